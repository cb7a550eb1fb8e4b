import type { UsageReport, UsageSum } from '@signalbox/client';
import { counted, percent, shortNumber } from '../../lib/text-format.ts';
import { Dollars } from '../../ui/dollars.tsx';
import { Figure } from '../../ui/figure.tsx';
import { inDays } from '../../ui/time.tsx';

/** The sums of the period, compared with the one before, and how they went day by day. */
export function UsageFigures({
  report: { total, data, to },
  before,
  against,
}: {
  report: UsageReport;
  before: UsageReport | undefined;
  against: string;
}) {
  const changeOf = (amount: (sum: UsageSum) => number) => ({
    by: before && amount(before.total) > 0 ? amount(total) / amount(before.total) - 1 : undefined,
    against,
  });
  const { webSearches = 0 } = total;
  const figure = (amount: (sum: UsageSum) => number) => ({
    change: changeOf(amount),
    // Today is not over: it would look like a fall.
    points: data.slice(0, isToday(to) ? -1 : undefined).map(amount),
  });
  return (
    <section className="figures" aria-labelledby="total">
      <h2 className="visually-hidden" id="total">
        Total
      </h2>
      <Figure
        label="Cost"
        value={<Cost of={total} />}
        {...(total.costUsd !== null &&
          total.unpricedSteps > 0 && { about: `${shortNumber(total.unpricedSteps)} unpriced` })}
        {...(total.costUsd !== null && figure(({ costUsd }) => costUsd ?? 0))}
      />
      <Figure
        label="Model calls"
        value={shortNumber(total.steps)}
        {...(webSearches > 0 && { about: counted(webSearches, 'search', 'searches') })}
        {...figure(({ steps }) => steps)}
      />
      <Figure
        label="Input tokens"
        value={shortNumber(total.inputTokens)}
        {...(total.cachedTokens > 0 && { about: `${percent(total.cachedTokens / total.inputTokens)} cached` })}
        {...figure(({ inputTokens }) => inputTokens)}
      />
      <Figure
        label="Output tokens"
        value={shortNumber(total.outputTokens)}
        {...figure(({ outputTokens }) => outputTokens)}
      />
    </section>
  );
}

function isToday(to: string): boolean {
  return Date.parse(to) > Date.parse(inDays(0));
}

/** An unknown cost is not shown as zero. */
export function Cost({ of: { costUsd, steps } }: { of: UsageSum }) {
  return steps > 0 && costUsd === null ? 'no price' : <Dollars usd={costUsd ?? 0} />;
}
