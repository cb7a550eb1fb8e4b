// What goes on now: what waits for a person first, then what needs care, then how much was used, then what happened last.
import { Link } from '@tanstack/react-router';
import { useAsk, useOrganization } from '../../organization.tsx';
import { ButtonLink } from '../../ui/button.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Await, Page } from '../../ui/page.tsx';
import { Care } from './care.tsx';
import { LatestEvents } from './latest-events.tsx';
import { SessionsNow } from './sessions-now.tsx';
import { UsageCharts } from './usage-charts.tsx';
import { Waiting } from './waiting.tsx';
import './overview.css';

// Some of the numbers change without a record in the event log: deliveries, and what ended a day ago.
const AGAIN_MS = 30_000;

export function OverviewPage() {
  const query = useAsk(['overview'], (client) => client.overview(), { everyMs: AGAIN_MS });
  return (
    <Page title="Overview">
      <FirstMinutes />
      <Await query={query}>
        {(overview) => (
          <>
            <div className="columns">
              <Waiting count={overview.pendingApprovals} />
              <Care overview={overview} />
            </div>
            <SessionsNow sessions={overview.sessions} />
          </>
        )}
      </Await>
      <UsageCharts />
      <LatestEvents />
    </Page>
  );
}

/** Where there is nothing yet, the way to the first Session. */
function FirstMinutes() {
  const { organizationId, may } = useOrganization();
  const sessions = useAsk(
    ['sessions', 'any'],
    async (client) => (await client.sessions.list({ limit: 1 })).data.length,
  );
  const agents = useAsk(['agents', 'any'], async (client) => (await client.agents.list({ limit: 1 })).data.length);
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
