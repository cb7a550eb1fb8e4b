import type { UsageReport } from '@signalbox/client';
import { ChartColumn } from 'lucide-react';
import { counted } from '../../lib/text-format.ts';
import { BarChart } from '../../ui/chart.tsx';
import { useDollars } from '../../ui/dollars.tsx';
import { EmptyState } from '../../ui/empty-state.tsx';
import { number } from '../sessions/session-text.ts';

const day = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short', timeZone: 'UTC' });
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

/** Cost and tokens by UTC day. */
export function DayCharts({ report: { data, total } }: { report: UsageReport }) {
  const { money, axis } = useDollars({ isShown: total.costUsd !== null });
  const label = (group: string) => day.format(new Date(`${group}T00:00:00Z`));
  if (total.steps === 0) {
    return (
      <div className="data-frame">
        <EmptyState
          icon={ChartColumn}
          title="No model calls in this period"
          docs={{ label: 'About usage', href: '/docs#getUsage' }}
        >
          Each completed model call counts, with its tokens and its cost.
        </EmptyState>
      </div>
    );
  }
  return (
    <div className="columns">
      {total.costUsd !== null && (
        <section className="card">
          <BarChart
            title="Cost by day"
            series={['Cost']}
            bars={data.map(({ group, costUsd }) => ({ label: label(group), values: [costUsd ?? 0] }))}
            format={money}
            axis={axis}
          />
          <Unpriced calls={total.unpricedSteps} />
        </section>
      )}
      <section className="card">
        <BarChart
          title="Tokens by day"
          {...(total.costUsd === null && { total: 'no model has a price' })}
          series={['Input', 'Output']}
          bars={data.map(({ group, inputTokens, outputTokens }) => ({
            label: label(group),
            values: [inputTokens, outputTokens],
          }))}
          format={number}
          axis={(value) => compact.format(value)}
        />
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
