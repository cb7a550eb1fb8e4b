// What needs a person, and how it goes: figures of a period, pending approvals and problems, cost and latency, the latest events.
import { useQueryClient } from '@tanstack/react-query';
import { Link, useSearch } from '@tanstack/react-router';
import { useEnvironment } from '../../data/environment.ts';
import { useApiQuery, useOrganization } from '../../data/organization.tsx';
import { useOverview } from '../../data/overview.tsx';
import { useChangeSearch } from '../../lib/change-search.ts';
import { withFilter } from '../../lib/search-params.ts';
import { ButtonLink } from '../../ui/button.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Await, Page } from '../../ui/page.tsx';
import { Segmented } from '../../ui/segmented.tsx';
import { SkeletonFigures } from '../../ui/skeleton.tsx';
import { inDays } from '../../ui/time.tsx';
import { CostByModel } from './cost-by-model.tsx';
import { Figures } from './figures.tsx';
import { LatencyByAgent, LatencyOverTime } from './latency.tsx';
import { LatestEvents } from './latest-events.tsx';
import { NeedsAttention } from './needs-attention.tsx';
import { PendingApprovals } from './pending-approvals.tsx';
import { type OverviewRange, type OverviewSearch, overviewSearch } from './search-params.ts';
import './overview.css';

// Some counts change without an event: latencies, deliveries, and what a budget has spent.
const AGAIN_MS = 10_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const ranges: Record<OverviewRange, { label: string; ms: number; step: 'minute' | 'hour' | 'day'; before: string }> = {
  '1h': { label: '1 h', ms: HOUR_MS, step: 'minute', before: 'the hour before' },
  '24h': { label: '24 h', ms: 24 * HOUR_MS, step: 'hour', before: 'the 24 hours before' },
  '7d': { label: '7 d', ms: 7 * 24 * HOUR_MS, step: 'hour', before: 'the 7 days before' },
  '30d': { label: '30 d', ms: 30 * 24 * HOUR_MS, step: 'day', before: 'the 30 days before' },
};

export function OverviewPage() {
  const environment = useEnvironment();
  const change = useChangeSearch<OverviewSearch>();
  const search = overviewSearch(useSearch({ from: '/$organizationId/' }));
  const { range = '24h' } = search;
  const { ms, step, before } = ranges[range];
  const within = environment === undefined ? {} : { environment };
  const overview = useOverview(environment, { everyMs: AGAIN_MS });
  const analytics = useApiQuery(
    ['analytics', 'overview', range, environment],
    (client) => client.analytics.get({ from: inDays(-ms / DAY_MS), step, groupBy: 'agent', ...within }),
    { everyMs: AGAIN_MS, keeps: { environment } },
  );
  // Why it failed is said once, in place of the first part that failed.
  const { organizationId } = useOrganization();
  const queries = useQueryClient();
  const retried = { refetch: () => queries.refetchQueries({ queryKey: [organizationId], type: 'active' }) };
  const hasFailed = isFailed(analytics);
  const isSaid = hasFailed || isFailed(overview);
  return (
    <Page
      title="Overview"
      actions={
        <Segmented
          label="Range"
          value={range}
          options={(Object.keys(ranges) as OverviewRange[]).map((value) => ({ value, label: ranges[value].label }))}
          onChange={(next) => change((before) => withFilter(before, 'range', next === '24h' ? '' : next))}
        />
      }
    >
      <FirstMinutes />
      <Await query={{ ...analytics, ...retried }} skeleton={<SkeletonFigures />}>
        {(report) => <Figures {...report} range={range} against={before} />}
      </Await>
      {!(hasFailed && isFailed(overview)) && (
        <Await query={{ ...overview, ...retried, ...(hasFailed && { error: null }) }}>
          {(counts) => (
            <div className="columns">
              <PendingApprovals count={counts.pendingApprovals} isFailureSaid={isSaid} />
              <NeedsAttention overview={counts} groups={hasFailed ? null : analytics.data?.groups} />
            </div>
          )}
        </Await>
      )}
      <div className="columns">
        <CostByModel days={range === '30d' ? 30 : 7} isFailureSaid={isSaid} />
        {!hasFailed && (
          <Await query={analytics}>{(report) => <LatencyOverTime points={report.points} step={report.step} />}</Await>
        )}
      </div>
      {!hasFailed && <Await query={analytics}>{(report) => <LatencyByAgent groups={report.groups} />}</Await>}
      <LatestEvents isFailureSaid={isSaid} />
    </Page>
  );
}

/** Whether there is nothing to show. */
function isFailed({ data, error }: { data: unknown; error: unknown }): boolean {
  return data === undefined && error !== null;
}

/** In an empty organization, a link to the first steps. */
function FirstMinutes() {
  const { organizationId, may } = useOrganization();
  const sessions = useApiQuery(
    ['sessions', 'any'],
    async (client) => (await client.sessions.list({ limit: 1 })).data.length,
  );
  const agents = useApiQuery(['agents', 'any'], async (client) => (await client.agents.list({ limit: 1 })).data.length);
  if (sessions.data !== 0 || agents.data !== 0) return null;
  return (
    <Notice title="Nothing is running yet.">
      <p>Create an API key and an agent that asks before it acts. It takes a few minutes.</p>
      <div className="row">
        {may('write') ? (
          <ButtonLink look="primary" to="/$organizationId/start" params={{ organizationId }}>
            Get started
          </ButtonLink>
        ) : (
          <Link to="/$organizationId/start" params={{ organizationId }}>
            Get started
          </Link>
        )}
      </div>
    </Notice>
  );
}
