import { Link } from '@tanstack/react-router';
import { useApiQuery, useOrganization } from '../../organization.tsx';
import { Await } from '../../ui/page.tsx';
import { DayCharts } from '../usage/day-charts.tsx';

/** Tokens and cost of the last 30 days, by day of UTC. */
export function UsageCharts() {
  const { organizationId } = useOrganization();
  const query = useApiQuery(['usage', 'by-day'], (client) => client.usage.get({ groupBy: 'day' }));
  return (
    <section className="stack tight" aria-labelledby="usage">
      <div className="row apart">
        <h2 id="usage">Usage</h2>
        <Link to="/$organizationId/usage" params={{ organizationId }}>
          Usage by agent, environment and model
        </Link>
      </div>
      <Await query={query}>{(report) => <DayCharts report={report} period="in the last 30 days" />}</Await>
    </section>
  );
}
