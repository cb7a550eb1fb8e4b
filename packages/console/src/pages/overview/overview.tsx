// The current state: pending approvals and problems first, then sessions, usage and the latest events.
import { Link } from '@tanstack/react-router';
import { useEnvironment } from '../../frame/environment.tsx';
import { useApiQuery, useOrganization } from '../../organization.tsx';
import { ButtonLink } from '../../ui/button.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Await, Page } from '../../ui/page.tsx';
import { LatestEvents } from './latest-events.tsx';
import { NeedsAttention } from './needs-attention.tsx';
import { PendingApprovals } from './pending-approvals.tsx';
import { SessionCounts } from './session-counts.tsx';
import { UsageCharts } from './usage-charts.tsx';
import './overview.css';

// Some counts change without an event: deliveries, and sessions that ended a day ago.
const AGAIN_MS = 30_000;

export function OverviewPage() {
  const environment = useEnvironment();
  const query = useApiQuery(
    ['overview', environment],
    (client) => client.overview(environment === undefined ? {} : { environment }),
    { everyMs: AGAIN_MS },
  );
  return (
    <Page title="Overview">
      <FirstMinutes />
      <Await query={query}>
        {(overview) => (
          <>
            <div className="columns">
              <PendingApprovals count={overview.pendingApprovals} />
              <NeedsAttention overview={overview} />
            </div>
            <SessionCounts sessions={overview.sessions} />
          </>
        )}
      </Await>
      <UsageCharts />
      <LatestEvents />
    </Page>
  );
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
