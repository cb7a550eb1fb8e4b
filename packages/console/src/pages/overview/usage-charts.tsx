import type { UsageReport } from '@signalbox/client';
import { useAsk } from '../../organization.tsx';
import { BarChart } from '../../ui/chart.tsx';
import { Await } from '../../ui/page.tsx';
import { counted } from '../../words.ts';

const day = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short', timeZone: 'UTC' });
const tokens = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
/** Cents, and what is less than a dollar more exactly: a model call costs fractions of a cent. */
function dollars(value: number): string {
  const maximumFractionDigits = value > 0 && value < 1 ? 4 : 2;
  return value.toLocaleString('en', { style: 'currency', currency: 'USD', maximumFractionDigits });
}

/** Tokens and cost of the last 30 days, by day of UTC. */
export function UsageCharts() {
  const query = useAsk(['usage', 'by-day'], (client) => client.usage.get({ groupBy: 'day' }));
  return <Await query={query}>{(report) => <Charts report={report} />}</Await>;
}

function Charts({ report: { data, total } }: { report: UsageReport }) {
  const label = (group: string) => day.format(new Date(`${group}T00:00:00Z`));
  return (
    <div className="columns">
      <section className="card">
        <BarChart
          title="Tokens by day"
          total={`${tokens.format(total.inputTokens + total.outputTokens)} in 30 days`}
          series={['Input', 'Output']}
          bars={data.map(({ group, inputTokens, outputTokens }) => ({
            label: label(group),
            values: [inputTokens, outputTokens],
          }))}
          format={(value) => tokens.format(value)}
        />
      </section>
      <section className="card">
        {total.costUsd === null ? (
          <>
            <h2>Cost by day</h2>
            <p className="quiet">
              {total.steps === 0
                ? 'No model was called in the last 30 days.'
                : 'None of the models that were called has a price here. The operator sets prices.'}
            </p>
          </>
        ) : (
          <>
            <BarChart
              title="Cost by day"
              total={`${dollars(total.costUsd)} in 30 days`}
              series={['Cost']}
              bars={data.map(({ group, costUsd }) => ({ label: label(group), values: [costUsd ?? 0] }))}
              format={dollars}
            />
            {total.unpricedSteps > 0 && (
              <p className="quiet small">
                {counted(total.unpricedSteps, 'model call')} had no price and {total.unpricedSteps === 1 ? 'is' : 'are'}{' '}
                not in it.
              </p>
            )}
          </>
        )}
      </section>
    </div>
  );
}
