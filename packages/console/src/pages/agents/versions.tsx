import type { Agent } from '@signalbox/client';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import {
  type ListQuery,
  useApiMutation,
  useApiQuery,
  useList,
  useMorePages,
  useOrganization,
} from '../../data/organization.tsx';
import { Button, ButtonLink } from '../../ui/button.tsx';
import { FormDialog } from '../../ui/dialog.tsx';
import { EmptyState } from '../../ui/empty-state.tsx';
import { Select } from '../../ui/field.tsx';
import { Page } from '../../ui/page.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { useToast } from '../../ui/toast.tsx';
import { changedFields, definitionOf } from './definition.ts';
import { DefinitionDiff } from './diff-view.tsx';
import { saveVersion } from './saving.ts';
import './agents.css';

export function AgentVersionsPage() {
  const { organizationId } = useOrganization();
  const { agentId } = useParams({ from: '/$organizationId/agents/$agentId/versions' });
  const { version } = useSearch({ from: '/$organizationId/agents/$agentId/versions' });
  const query = useList<Agent>(['agents', agentId, 'versions'], (client, page) =>
    client.agents.versions(agentId, page),
  );
  const savedBy = useSavedBy(agentId);
  const versions = query.data ?? [];
  const [newest] = versions;
  const shown = version === undefined ? newest : versions.find((one) => one.version === version);
  // A link may name a version on a later page.
  const isMissing = newest !== undefined && shown === undefined;
  useMorePages(query, isMissing);

  const columns: Column<Agent>[] = [
    {
      id: 'version',
      label: 'Version',
      width: '7.5rem',
      cell: (one) => <span aria-current={one === shown ? 'true' : undefined}>Version {one.version}</span>,
    },
    { id: 'changes', label: 'Changes', phone: 'under', cell: (one) => <Changed agent={one} versions={versions} /> },
    {
      id: 'saved',
      label: 'Saved',
      width: '45%',
      phone: 'under-aside',
      cell: (one) => (
        <>
          <Time at={one.updatedAt} />{' '}
          {savedBy(one.version) && <span className="quiet small">by {savedBy(one.version)}</span>}
        </>
      ),
    },
  ];

  return (
    <Page
      title={newest ? `Versions of ${newest.name}` : 'Versions'}
      about="Versions never change. Each turn uses the version that is newest when the turn starts."
      actions={
        <ButtonLink to="/$organizationId/agents/$agentId" params={{ organizationId, agentId }}>
          Edit agent
        </ButtonLink>
      }
    >
      <div className="versions">
        <Table
          name="versions"
          caption="Versions, newest first"
          query={query}
          columns={columns}
          rowKey={(one) => String(one.version)}
          rowLink={(one) => ({
            to: '/$organizationId/agents/$agentId/versions',
            params: { organizationId, agentId },
            search: { version: one.version },
            resetScroll: false,
          })}
          empty={<EmptyState title="No versions yet" />}
        />
        {newest && shown && <Comparison key={shown.version} shown={shown} newest={newest} query={query} />}
        {isMissing && !query.hasNextPage && <p className="quiet">Version {version} doesn’t exist.</p>}
      </div>
    </Page>
  );
}

// Older changes are shown without a name; the event log has them.
const MOST_EVENTS = 100;

/** Who saved a version, from the event log. */
function useSavedBy(agentId: string): (version: number) => string | undefined {
  const { data } = useApiQuery(['agents', agentId, 'events'], (client) =>
    client.events.list({ resourceId: agentId, limit: MOST_EVENTS }),
  );
  const names = new Map(
    data?.data.map(({ type, actor, changes }) => [
      type === 'agent.created' ? 1 : Number((changes as Record<string, unknown[]> | null)?.version?.[1]),
      actor.name ?? undefined,
    ]),
  );
  return (version) => names.get(version);
}

function Changed({ agent, versions }: { agent: Agent; versions: readonly Agent[] }) {
  if (agent.version === 1) return <span className="quiet">first version</span>;
  const before = versions.find((one) => one.version === agent.version - 1);
  if (!before) return <span className="quiet">…</span>;
  return changedFields(definitionOf(before), definitionOf(agent)).join(', ');
}

function Comparison({ shown, newest, query }: { shown: Agent; newest: Agent; query: ListQuery<Agent> }) {
  const { organizationId, may } = useOrganization();
  const { version, against } = useSearch({ from: '/$organizationId/agents/$agentId/versions' });
  const navigate = useNavigate();
  const heading = useRef<HTMLHeadingElement>(null);
  const [isReturning, setReturning] = useState(false);
  const versions = query.data ?? [];
  const { agentId } = newest;
  const others = versions.filter((one) => one.version !== shown.version);
  const other =
    others.find((one) => one.version === against) ??
    others.find((one) => one.version === shown.version - 1) ??
    others[0];

  useEffect(() => {
    // Moves the focus to the version that the user selected.
    if (version !== undefined) heading.current?.focus();
  }, [version]);

  return (
    <section className="stack" aria-labelledby="comparison">
      <div className="row apart">
        <h2 id="comparison" ref={heading} tabIndex={-1}>
          Version {shown.version}
          {shown === newest && <span className="quiet"> (newest)</span>}
        </h2>
        {shown !== newest && may('write') && !newest.archivedAt && (
          <Button small onClick={() => setReturning(true)}>
            Restore version {shown.version}
          </Button>
        )}
      </div>
      {other ? (
        <>
          <Select
            label="Compare with"
            value={String(other.version)}
            onChange={({ currentTarget }) =>
              void navigate({
                to: '/$organizationId/agents/$agentId/versions',
                params: { organizationId, agentId },
                search: { version: shown.version, against: Number(currentTarget.value) },
                resetScroll: false,
              })
            }
            options={others.map((one) => ({
              value: String(one.version),
              label: `version ${one.version}${one === newest ? ' (newest)' : ''}`,
            }))}
          />
          <DefinitionDiff before={definitionOf(other)} after={definitionOf(shown)} />
        </>
      ) : (
        <p className="quiet">This is the only version. Save a change to compare versions.</p>
      )}
      {isReturning && <GoBackDialog shown={shown} newest={newest} onClose={() => setReturning(false)} />}
    </section>
  );
}

function GoBackDialog({ shown, newest, onClose }: { shown: Agent; newest: Agent; onClose: () => void }) {
  const { organizationId } = useOrganization();
  const navigate = useNavigate();
  const toast = useToast();
  const update = useApiMutation(saveVersion, ['agents']);
  const [seen, setSeen] = useState(newest);
  const [isPassed, setPassed] = useState(false);
  async function submit() {
    const result = await update.mutateAsync({ seen, definition: definitionOf(shown) });
    if ('newest' in result) {
      setSeen(result.newest);
      setPassed(true);
      // The dialog stays open and shows the current state.
      throw new Error(
        'Nothing was saved because the agent changed in the meantime. Check the changes below, then try again.',
      );
    }
    toast(`Saved as version ${result.saved.version}`);
    await navigate({
      to: '/$organizationId/agents/$agentId/versions',
      params: { organizationId, agentId: newest.agentId },
      search: { version: result.saved.version },
    });
  }
  return (
    <FormDialog
      title={`Restore version ${shown.version}?`}
      action="Restore as new version"
      wide
      submit={submit}
      onClose={onClose}
    >
      {isPassed && (
        <p>
          <strong>Version {seen.version} was saved in the meantime.</strong>
        </p>
      )}
      <p>
        This saves the content of version {shown.version} as a new version. Changes compared with version {seen.version}
        :
      </p>
      <DefinitionDiff before={definitionOf(seen)} after={definitionOf(shown)} />
    </FormDialog>
  );
}
