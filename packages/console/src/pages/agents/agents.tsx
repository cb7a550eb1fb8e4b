import type { Agent } from '@signalbox/client';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { Bot } from 'lucide-react';
import { useState } from 'react';
import { useEnvironment } from '../../data/environment.ts';
import { useApiQuery, useList, useMorePages, useOrganization } from '../../data/organization.tsx';
import { useChangeSearch } from '../../lib/change-search.ts';
import { withFilter } from '../../lib/search-params.ts';
import { ButtonLink } from '../../ui/button.tsx';
import { writeClipboard } from '../../ui/clipboard.ts';
import { EmptyState, NoMatches } from '../../ui/empty-state.tsx';
import { FilterBar } from '../../ui/filter-bar.tsx';
import { Menu } from '../../ui/menu.tsx';
import { Page } from '../../ui/page.tsx';
import { Table } from '../../ui/table.tsx';
import { useToast } from '../../ui/toast.tsx';
import { agentColumns } from './agent-columns.tsx';
import { ArchiveDialog } from './archive-dialog.tsx';
import { modelName } from './model.ts';
import './agents.css';

export function AgentsPage() {
  const { organizationId, may } = useOrganization();
  const navigate = useNavigate();
  const { archived = false, q = '', model } = useSearch({ from: '/$organizationId/agents' });
  const today = useToday();
  const isFiltered = q !== '' || model !== undefined;
  const newest = useList<Agent>(['agents', archived], (client, page) => client.agents.list({ ...page, archived }));
  const found = useList<Agent>(['agents', archived, ...(isFiltered ? [q, model] : [])], (client, page) =>
    client.agents.list({ ...page, archived, ...(q && { q }), model }),
  );
  const { data, hasNextPage } = found;
  // The service checks a few thousand agents for each page, so the first pages may be empty.
  const isSearching = data?.length === 0 && hasNextPage;
  useMorePages(found, isSearching);
  const models = [
    ...new Set([...(newest.data?.map((agent) => modelName(agent.model)) ?? []), ...(model ? [model] : [])]),
  ];
  const change = useChangeSearch<{ q?: string; model?: string }>();
  return (
    <Page
      title="Agents"
      operation="createAgent"
      views={
        <nav className="views" aria-label="Agents by status">
          {[false, true].map((which) => (
            <Link
              key={String(which)}
              to="/$organizationId/agents"
              params={{ organizationId }}
              search={which ? { archived: true } : {}}
              aria-current={which === archived ? 'page' : undefined}
            >
              {which ? 'Archived' : 'Active'}
            </Link>
          ))}
        </nav>
      }
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
      <FilterBar
        search={{
          label: 'Search names, models, tools, ids',
          value: q,
          onChange: (value) => change((before) => withFilter(before, 'q', value), { isTyping: true }),
        }}
        filters={[
          {
            label: 'Model',
            value: model,
            options: models.sort().map((value) => ({ value, label: value })),
            onChange: (value) => change((before) => withFilter(before, 'model', value ?? '')),
          },
        ]}
      />
      <Table
        name="agents"
        caption={archived ? 'Archived agents' : 'Agents'}
        query={isSearching ? { ...found, data: undefined } : found}
        columns={agentColumns({ organizationId, archived, today })}
        rowKey={({ agentId }) => agentId}
        rowLink={({ agentId }) => ({ to: '/$organizationId/agents/$agentId', params: { organizationId, agentId } })}
        actions={(agent) => <RowMenu agent={agent} />}
        empty={
          isFiltered ? (
            <NoMatches
              icon={Bot}
              what="agents"
              onClear={() =>
                void navigate({
                  to: '/$organizationId/agents',
                  params: { organizationId },
                  search: archived ? { archived } : {},
                })
              }
            >
              Change or clear the search and the filters.
            </NoMatches>
          ) : archived ? (
            <EmptyState icon={Bot} title="No archived agents">
              An archived agent accepts no new sessions. Its versions and sessions stay readable.
            </EmptyState>
          ) : (
            <EmptyState
              icon={Bot}
              title="No agents yet"
              docs={{ label: 'How agents work', href: '/docs#createAgent' }}
              action={
                may('write') && (
                  <ButtonLink look="primary" to="/$organizationId/agents/new" params={{ organizationId }}>
                    Choose a template
                  </ButtonLink>
                )
              }
            >
              Create one to start a session. Some templates need no API key and no network.
            </EmptyState>
          )
        }
      />
    </Page>
  );
}

const REFRESH_MS = 60_000;

/** What each agent did in the last 24 hours, in the chosen environment. */
function useToday() {
  const environment = useEnvironment();
  const { data } = useApiQuery(
    ['analytics', 'agents', environment],
    (client) => client.analytics.get({ step: 'hour', groupBy: 'agent', ...(environment && { environment }) }),
    { everyMs: REFRESH_MS },
  );
  return data && new Map(data.groups.map((group) => [group.group, group]));
}

function RowMenu({ agent }: { agent: Agent }) {
  const { organizationId, may } = useOrganization();
  const navigate = useNavigate();
  const toast = useToast();
  const [isArchiving, setArchiving] = useState(false);
  const { agentId } = agent;
  const copy = async () => {
    const isCopied = await writeClipboard(agentId);
    toast(isCopied ? 'Copied' : 'Your browser blocked copying.');
  };
  return (
    <>
      <Menu
        label={`Actions for ${agent.name}`}
        items={[
          {
            label: 'Show sessions',
            onSelect: () =>
              void navigate({ to: '/$organizationId/sessions', params: { organizationId }, search: { agentId } }),
          },
          {
            label: 'Compare versions',
            onSelect: () =>
              void navigate({ to: '/$organizationId/agents/$agentId/versions', params: { organizationId, agentId } }),
          },
          {
            label: 'Open in playground',
            onSelect: () =>
              void navigate({
                to: '/$organizationId/playground',
                params: { organizationId },
                search: { agent: agentId },
              }),
          },
          { label: 'Copy ID', onSelect: () => void copy() },
          ...(may('write') && agent.archivedAt === null
            ? [{ label: 'Archive agent', group: 'archive', danger: true, onSelect: () => setArchiving(true) }]
            : []),
        ]}
      />
      {isArchiving && <ArchiveDialog agent={agent} onClose={() => setArchiving(false)} />}
    </>
  );
}
