import { Link } from '@tanstack/react-router';
import { useEnvironment } from '../../data/environment.ts';
import { useApiQuery, useOrganization } from '../../data/organization.tsx';
import { Dollars } from '../../ui/dollars.tsx';
import { Await } from '../../ui/page.tsx';
import { inDays } from '../../ui/time.tsx';
import { Unpriced } from '../usage/day-charts.tsx';
import { SplitChart } from '../usage/split-chart.tsx';

/**
 * What the models cost, day by day; how many tokens they used if none of them has a price. Nothing if that could not be read and
 * `isFailureSaid`.
 */
export function CostByModel({ days, isFailureSaid }: { days: number; isFailureSaid: boolean }) {
  const { organizationId } = useOrganization();
  const environment = useEnvironment();
  const query = useApiQuery(
    ['usage', 'by-model', days, environment],
    (client) =>
      client.usage.get({ from: inDays(1 - days), splitBy: 'model', draft: false, ...(environment && { environment }) }),
    { keeps: { environment } },
  );
  if (isFailureSaid && query.error && !query.data) return null;
  const period = `in the last ${days} days (UTC)`;
  return (
    <section className="card">
      <Await query={query}>
        {(report) => {
          const { steps, costUsd, unpricedSteps } = report.total;
          const name = costUsd === null && steps > 0 ? 'Tokens by model' : 'Cost by model';
          if (steps === 0) {
            return (
              <>
                <h2>{name}</h2>
                <p className="quiet">No model calls in the last {days} days.</p>
              </>
            );
          }
          return (
            <>
              <SplitChart
                title={
                  <Link to="/$organizationId/usage" params={{ organizationId }} search={{ groupBy: 'model' }}>
                    {name}
                  </Link>
                }
                name={name}
                total={
                  costUsd === null ? (
                    `${period}; no model has a price`
                  ) : (
                    <>
                      <Dollars usd={costUsd} as="money" /> {period}
                    </>
                  )
                }
                report={report}
                nameOf={(group) => group}
              />
              {costUsd !== null && <Unpriced calls={unpricedSteps} />}
            </>
          );
        }}
      </Await>
    </section>
  );
}
