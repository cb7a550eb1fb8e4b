// The columns of the list of agents: what it is, what it did in the last 24 hours, and when it changed.
import type { Agent, AnalyticsGroup } from '@signalbox/client';
import { Link } from '@tanstack/react-router';
import { capped, counted } from '../../lib/text-format.ts';
import { Badge } from '../../ui/badge.tsx';
import { IdChip } from '../../ui/id-chip.tsx';
import { Bone } from '../../ui/skeleton.tsx';
import type { Column } from '../../ui/table.tsx';
import { PlainText } from '../../ui/text.tsx';
import { Time } from '../../ui/time.tsx';
import { modelName } from './model.ts';

export function agentColumns({
  organizationId,
  archived,
  today,
}: {
  organizationId: string;
  archived: boolean;
  /** The totals of the last 24 hours, by agent; undefined while they are loading. */
  today: ReadonlyMap<string, AnalyticsGroup> | undefined;
}): Column<Agent>[] {
  return [
    {
      id: 'agent',
      label: 'Agent',
      cell: ({ name, description }) => (
        <span className="agent-title">
          <strong>
            <PlainText text={name} />
          </strong>
          {description && (
            <span className="quiet" dir="auto">
              <PlainText text={description} />
            </span>
          )}
        </span>
      ),
    },
    {
      id: 'model',
      label: 'Model',
      width: '20%',
      choice: 'shown',
      phone: 'under',
      cell: ({ model }) => <code title={modelName(model)}>{modelName(model)}</code>,
    },
    {
      id: 'tools',
      label: 'Tools',
      width: '4.5rem',
      end: true,
      choice: 'shown',
      from: 'desktop',
      cell: ({ tools }) => <Tools names={tools.map((tool) => ('name' in tool ? tool.name : tool.type))} />,
    },
    ...(archived ? [] : activity(organizationId, today)),
    {
      id: 'version',
      label: 'Version',
      width: '5rem',
      end: true,
      choice: 'hidden',
      from: 'desktop',
      cell: ({ version }) => `v${version}`,
    },
    {
      id: 'id',
      label: 'ID',
      width: '8rem',
      choice: 'hidden',
      from: 'desktop',
      cell: ({ agentId }) => <IdChip value={agentId} />,
    },
    {
      id: 'changed',
      label: archived ? 'Archived' : 'Updated',
      width: '6.5rem',
      end: true,
      phone: 'under-aside',
      cell: ({ archivedAt, updatedAt }) => <Time at={archivedAt ?? updatedAt} />,
    },
  ];
}

function activity(organizationId: string, today: ReadonlyMap<string, AnalyticsGroup> | undefined): Column<Agent>[] {
  return [
    {
      id: 'sessions',
      label: 'Sessions, 24 h',
      width: '8rem',
      end: true,
      choice: 'shown',
      from: 'desktop',
      cell: ({ agentId }) => {
        if (!today) return <Bone />;
        const opened = today.get(agentId)?.sessions.opened ?? 0;
        return opened === 0 ? <span className="quiet">–</span> : capped(opened);
      },
    },
    {
      id: 'failed',
      label: 'Failed turns, 24 h',
      width: '18%',
      choice: 'shown',
      phone: 'aside',
      cell: ({ agentId }) => today && <Failed organizationId={organizationId} group={today.get(agentId)} />,
    },
  ];
}

function Tools({ names }: { names: readonly string[] }) {
  if (names.length === 0) return <span className="quiet">–</span>;
  return <span title={names.join('\n')}>{names.length}</span>;
}

/** How many, and the most frequent reason with a link to the last session that has it. */
function Failed({ organizationId, group }: { organizationId: string; group: AnalyticsGroup | undefined }) {
  if (!group || group.turns.failed === 0) return null;
  const [first] = group.failures;
  return (
    <>
      <Badge tone="bad">{capped(group.turns.failed)} failed</Badge>{' '}
      {first?.sessionId && (
        <Link
          className="small failure-code"
          to="/$organizationId/sessions/$sessionId"
          params={{ organizationId, sessionId: first.sessionId }}
          title={`${counted(first.count, 'turn')} failed with ${first.code}. Open the last session.`}
        >
          {first.code}
        </Link>
      )}
    </>
  );
}
