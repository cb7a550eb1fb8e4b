import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { CircleCheck, KeyRound, Plug } from 'lucide-react';
import { useState } from 'react';
import { useApiMutation, useOrganization } from '../../data/organization.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Page } from '../../ui/page.tsx';
import { Breakable } from '../../ui/text.tsx';
import { useToast } from '../../ui/toast.tsx';
import { bodyOf, type Definition } from './definition.ts';
import { type Edits, useNewDraft } from './draft.tsx';
import { Editor, type View } from './editor.tsx';
import { forgetEdits, useKeep, useKeptEdits } from './kept-edits.ts';
import { type Template, templateGroups, templates } from './templates.ts';
import { TryIt } from './try-it.tsx';
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
        <Notice title="You need the member role to create agents.">
          <p>Ask an admin or owner of the organization for help, or for the member role.</p>
        </Notice>
      ) : template ? (
        <NewAgent template={template} />
      ) : (
        <Templates />
      )}
    </Page>
  );
}

function Templates() {
  const groups = Object.entries(templateGroups) as [Template['group'], string][];
  return groups.map(([group, title]) => (
    <section className="stack tight" key={group} aria-labelledby={`templates-${group}`}>
      <h2 id={`templates-${group}`}>{title}</h2>
      <ul className="templates">
        {templates
          .filter((one) => one.group === group)
          .map((one) => (
            <li key={one.id}>
              <TemplateCard template={one} />
            </li>
          ))}
      </ul>
    </section>
  ));
}

function TemplateCard({ template: { id, name, about, icon: Icon, group, secret, needs } }: { template: Template }) {
  const { organizationId } = useOrganization();
  return (
    <Link className="card" to="/$organizationId/agents/new" params={{ organizationId }} search={{ template: id }}>
      <span className="template-icon">
        <Icon aria-hidden="true" />
      </span>
      <strong>{name}</strong>
      <span className="quiet small">{about}</span>
      <span className="template-needs small">
        {group === 'try' && (
          <>
            <CircleCheck aria-hidden="true" /> <span>Needs no key and no network</span>
          </>
        )}
        {secret && (
          <>
            <KeyRound aria-hidden="true" />
            <span>
              Needs the secret{' '}
              <code>
                <Breakable text={secret} />
              </code>
            </span>
          </>
        )}
        {needs && (
          <>
            <Plug aria-hidden="true" /> <span>{needs}</span>
          </>
        )}
      </span>
    </Link>
  );
}

function NewAgent({ template }: { template: Template }) {
  const { organizationId } = useOrganization();
  const navigate = useNavigate();
  const toast = useToast();
  const { key, kept } = useKeptEdits<Edits>(`new.${template.id}`);
  const draft = useNewDraft(template.definition, kept);
  const changed = draft.differs(template.definition);
  useKeep(key, changed ? draft.edits : undefined);
  const [view, setView] = useState<View>();
  const [sessionId, setSessionId] = useState<string>();
  const create = useApiMutation(
    (client, definition: Definition) => client.agents.create(bodyOf(definition)),
    ['agents'],
  );
  async function submit() {
    const { agentId, name } = await create.mutateAsync(draft.value);
    forgetEdits(key);
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
      changed={changed}
      action="Create agent"
      state="Not saved yet"
      submit={submit}
      isRestored={kept !== undefined}
      onDiscard={() => {
        forgetEdits(key);
        draft.reset(template.definition);
      }}
      view={view}
      onView={setView}
      tryIt={<TryIt unsaved sessionId={sessionId} onOpen={setSessionId} />}
    />
  );
}
