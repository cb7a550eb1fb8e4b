import { Link } from '@tanstack/react-router';
import { useEnvironment } from '../../frame/environment.tsx';
import { useApiQuery, useOrganization } from '../../organization.tsx';
import { money } from '../../text-format.ts';
import { Await } from '../../ui/page.tsx';
import { inDays } from '../../ui/time.tsx';
import { SplitChart } from '../usage/split-chart.tsx';

/** What the models cost, day by day. */
export function CostByModel({ days }: { days: number }) {
  const { organizationId } = useOrganization();
  const environment = useEnvironment();
  const query = useApiQuery(['usage', 'by-model', days, environment], (client) =>
    client.usage.get({ from: inDays(1 - days), splitBy: 'model', ...(environment && { environment }) }),
  );
  return (
    <section className="card">
      <Await query={query}>
        {(report) =>
          report.total.costUsd === null ? (
            <>
              <h2>Cost by model</h2>
              <p className="quiet">
                {report.total.steps === 0
                  ? `No model calls in the last ${days} days.`
                  : 'None of these models has a price. The operator can set prices.'}
              </p>
            </>
          ) : (
            <SplitChart
              title={
                <Link to="/$organizationId/usage" params={{ organizationId }} search={{ groupBy: 'model' }}>
                  Cost by model
                </Link>
              }
              name="Cost by model"
              total={`${money(report.total.costUsd)} in the last ${days} days (UTC)`}
              report={report}
              nameOf={(group) => group}
            />
          )
        }
      </Await>
    </section>
  );
}
