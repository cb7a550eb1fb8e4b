import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { useApiMutation, useOrganization } from '../../organization.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Page } from '../../ui/page.tsx';
import { useToast } from '../../ui/toast.tsx';
import { bodyOf, type Definition } from './definition.ts';
import { useNewDraft } from './draft.tsx';
import { Editor, type View } from './editor.tsx';
import { type Template, templates } from './templates.ts';
import './agents.css';

export function NewAgentPage() {
  const { organizationId, may } = useOrganization();
  const { template: id } = useSearch({ from: '/$organizationId/agents/new' });
  const template = templates.find((one) => one.id === id);
  return (
    <Page
      key={template?.id}
      title="New agent"
      about={
        template ? (
          <>
            {' '}
            Template: {template.name}.{' '}
            <Link to="/$organizationId/agents/new" params={{ organizationId }}>
              Choose another template
            </Link>
          </>
        ) : (
          'Choose a template. You can change everything later.'
        )
      }
    >
      {!may('write') ? (
        <Notice kind="warn">
          <p>You need the member role to create agents.</p>
        </Notice>
      ) : template ? (
        <NewAgent template={template} />
      ) : (
        <ul className="templates">
          {templates.map((one) => (
            <li key={one.id}>
              <Link
                className="card"
                to="/$organizationId/agents/new"
                params={{ organizationId }}
                search={{ template: one.id }}
              >
                <strong>{one.name}</strong>
                <span className="quiet small">{one.about}</span>
              </Link>
            </li>
          ))}
        </ul>
      )}
    </Page>
  );
}

function NewAgent({ template }: { template: Template }) {
  const { organizationId } = useOrganization();
  const navigate = useNavigate();
  const toast = useToast();
  const draft = useNewDraft(template.definition);
  const [view, setView] = useState<View>('form');
  const create = useApiMutation(
    (client, definition: Definition) => client.agents.create(bodyOf(definition)),
    ['agents'],
  );
  async function submit() {
    const { agentId, name } = await create.mutateAsync(draft.value);
    toast(`${name} created`);
    await navigate({
      to: '/$organizationId/agents/$agentId',
      params: { organizationId, agentId },
      // Nothing is lost: it was just saved.
      ignoreBlocker: true,
    });
  }
  return (
    <Editor
      draft={draft}
      readOnly={false}
      isNew
      changed={draft.differs(template.definition)}
      action="Create agent"
      state="Not saved yet"
      submit={submit}
      view={view}
      onView={setView}
      tryIt={<p className="quiet">Create the agent before you try it.</p>}
    />
  );
}
