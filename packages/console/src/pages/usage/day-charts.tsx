import type { UsageReport } from '@signalbox/client';
import { counted } from '../../text-format.ts';
import { BarChart } from '../../ui/chart.tsx';

const day = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short', timeZone: 'UTC' });
const tokens = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
/** An amount with cents, or with more digits below a dollar: a model call costs fractions of a cent. */
function dollars(value: number): string {
  const maximumFractionDigits = value > 0 && value < 1 ? 4 : 2;
  return value.toLocaleString('en', { style: 'currency', currency: 'USD', maximumFractionDigits });
}

/** Tokens and cost by UTC day. `period` is a phrase such as `in 30 days`. */
export function DayCharts({ report: { data, total }, period }: { report: UsageReport; period: string }) {
  if (total.steps === 0) return <p className="card quiet">No model calls {period}.</p>;
  const label = (group: string) => day.format(new Date(`${group}T00:00:00Z`));
  return (
    <div className="columns">
      <section className="card">
        <BarChart
          title="Tokens by day"
          total={`${tokens.format(total.inputTokens + total.outputTokens)} ${period}`}
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
            <p className="quiet">None of these models has a price. The operator can set prices.</p>
          </>
        ) : (
          <>
            <BarChart
              title="Cost by day"
              total={`${dollars(total.costUsd)} ${period}`}
              series={['Cost']}
              bars={data.map(({ group, costUsd }) => ({ label: label(group), values: [costUsd ?? 0] }))}
              format={dollars}
            />
            <Unpriced calls={total.unpricedSteps} />
          </>
        )}
      </section>
    </div>
  );
}

/** Which calls a cost does not include. */
export function Unpriced({ calls }: { calls: number }) {
  if (calls === 0) return null;
  return (
    <p className="quiet small">
      {counted(calls, 'model call')} had no price and {calls === 1 ? 'is' : 'are'} not included.
    </p>
  );
}
