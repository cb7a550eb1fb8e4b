import type { Agent } from '@signalbox/client';
import { Link, useSearch } from '@tanstack/react-router';
import { useList, useOrganization } from '../../organization.tsx';
import { ButtonLink } from '../../ui/button.tsx';
import { type Column, List } from '../../ui/list.tsx';
import { Page } from '../../ui/page.tsx';
import { PlainText } from '../../ui/text.tsx';
import { Time } from '../../ui/time.tsx';
import { modelOf } from './model.ts';

export function AgentsPage() {
  const { organizationId, may } = useOrganization();
  const { archived = false } = useSearch({ from: '/$organizationId/agents' });
  const agents = useList<Agent>(['agents', archived], (client, page) => client.agents.list({ ...page, archived }));
  const columns: readonly Column<Agent>[] = [
    {
      label: 'Name',
      cell: ({ agentId, name, description }) => (
        <>
          <Link to="/$organizationId/agents/$agentId" params={{ organizationId, agentId }}>
            <PlainText text={name} />
          </Link>
          {description && (
            <div className="quiet small clamp">
              <PlainText text={description} />
            </div>
          )}
        </>
      ),
    },
    { label: 'Model', cell: ({ model }) => <code>{modelName(model)}</code> },
    { label: 'Version', cell: ({ version }) => <span className="number">{version}</span> },
    archived
      ? { label: 'Archived', cell: ({ archivedAt }) => <Time at={archivedAt} /> }
      : { label: 'Updated', cell: ({ updatedAt }) => <Time at={updatedAt} /> },
  ];
  return (
    <Page
      title="Agents"
      operation="createAgent"
      about="An agent has a model, instructions and tools. Every change creates a new version."
      actions={
        may('write') ? (
          <ButtonLink look="primary" to="/$organizationId/agents/new" params={{ organizationId }}>
            New agent
          </ButtonLink>
        ) : (
          <span className="quiet small">You need the member role to create agents.</span>
        )
      }
    >
      <nav className="tabs" aria-label="Agents by status">
        {[false, true].map((which) => (
          <Link
            key={String(which)}
            to="/$organizationId/agents"
            params={{ organizationId }}
            search={which ? { archived: true } : {}}
            activeOptions={{ exact: true, includeSearch: true }}
          >
            {which ? 'Archived' : 'Active'}
          </Link>
        ))}
      </nav>
      <List
        caption={archived ? 'Archived agents' : 'Agents'}
        query={agents}
        columns={columns}
        rowKey={({ agentId }) => agentId}
        empty={
          archived ? (
            <p>No archived agents.</p>
          ) : (
            <>
              <h2>No agents yet</h2>
              <p>Create one to start a session. Some templates need no API key and no network.</p>
              {may('write') && (
                <ButtonLink to="/$organizationId/agents/new" params={{ organizationId }}>
                  Choose a template
                </ButtonLink>
              )}
            </>
          )
        }
      />
    </Page>
  );
}

/** `provider/model`, the short form of a model. */
function modelName(model: Agent['model']): string {
  const { provider, model: name, queue } = modelOf(model);
  return `${provider}/${name ?? queue ?? ''}`;
}
