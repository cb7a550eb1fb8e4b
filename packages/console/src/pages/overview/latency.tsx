import type { AnalyticsGroup, AnalyticsPoint } from '@signalbox/client';
import type { AnalyticsStep } from '@signalbox/contract';
import { useAgentName } from '../../data/agent-names.ts';
import { useOrganization } from '../../data/organization.tsx';
import { percent } from '../../lib/text-format.ts';
import { units, usePointLabel } from '../../ui/analytics-time.ts';
import { LineChart } from '../../ui/chart.tsx';
import { type Column, loaded, Table } from '../../ui/table.tsx';
import { PlainText } from '../../ui/text.tsx';
import { duration } from '../../ui/time.tsx';
import { number } from '../sessions/session-text.ts';

/** Median and 95th percentile of turns. */
export function LatencyOverTime({ points, step }: { points: readonly AnalyticsPoint[]; step: AnalyticsStep }) {
  const pointLabel = usePointLabel();
  const measured = points.some(({ turnDuration }) => turnDuration.count > 0);
  return (
    <section className="card">
      {measured ? (
        <LineChart
          title="Turn duration"
          series={['Median', '95th percentile']}
          points={points.map((point) => ({
            label: pointLabel(point, step),
            values: [point.turnDuration.p50Ms, point.turnDuration.p95Ms],
          }))}
          format={duration}
          unit={units[step]}
        />
      ) : (
        <>
          <h2>Turn duration</h2>
          <p className="quiet">No turn ended in this period.</p>
        </>
      )}
    </section>
  );
}

/** Which agents are slow or fail. */
export function LatencyByAgent({ groups }: { groups: readonly AnalyticsGroup[] }) {
  const { organizationId } = useOrganization();
  const nameOf = useAgentName();
  const agents = groups.filter(({ group, turns }) => group !== '' && turns.ended > 0);
  if (agents.length === 0) return null;
  const busiest = agents.toSorted((a, b) => b.turns.ended - a.turns.ended).slice(0, 10);
  const columns: Column<AnalyticsGroup>[] = [
    {
      id: 'agent',
      label: 'Agent',
      cell: ({ group }) => <PlainText text={nameOf(group)} />,
    },
    { id: 'turns', label: 'Turns', width: '6rem', end: true, cell: ({ turns }) => number(turns.ended) },
    {
      id: 'failed',
      label: 'Failed',
      width: '6rem',
      end: true,
      phone: 'aside',
      cell: ({ turns }) => (
        <span className={turns.failed > 0 ? 'failed-share' : 'quiet'}>{percent(turns.failed / turns.ended)}</span>
      ),
    },
    {
      id: 'first',
      label: 'First token',
      width: '11rem',
      end: true,
      phone: 'under',
      cell: ({ firstToken }) => latencyText(firstToken),
    },
    {
      id: 'turn',
      label: 'Turn',
      width: '11rem',
      end: true,
      phone: 'under-aside',
      cell: ({ turnDuration }) => latencyText(turnDuration),
    },
  ];
  return (
    <section className="stack tight" aria-labelledby="by-agent">
      <div className="row apart">
        <h2 id="by-agent">Latency by agent</h2>
        <span className="quiet small">median / 95th percentile</span>
      </div>
      <Table
        name="latency-by-agent"
        caption="Latency by agent"
        query={loaded(busiest)}
        columns={columns}
        rowKey={({ group }) => group}
        rowLink={({ group }) => ({
          to: '/$organizationId/agents/$agentId',
          params: { organizationId, agentId: group },
        })}
        empty={null}
      />
    </section>
  );
}

function latencyText({ p50Ms, p95Ms }: AnalyticsGroup['firstToken']): string {
  return p50Ms === null || p95Ms === null ? '–' : `${duration(p50Ms)} / ${duration(p95Ms)}`;
}
