import type { UsageReport } from '@signalbox/client';
import type { ReactNode } from 'react';
import { BarChart } from '../../ui/chart.tsx';
import { useDollars } from '../../ui/dollars.tsx';

// A sixth color is for all others.
const SHOWN = 5;

const dayText = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short', timeZone: 'UTC' });
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

/** `1 Feb` of a day such as 2026-02-01. */
function dayLabel(day: string): string {
  return dayText.format(new Date(`${day}T00:00:00Z`));
}

/** The days of a report with `splitBy`, stacked by the groups that cost most: cost, or tokens if nothing had a price. */
export function SplitChart({
  title,
  name,
  total,
  report: { data, total: sum },
  nameOf,
}: {
  title: ReactNode;
  name: string;
  total?: ReactNode;
  report: UsageReport;
  nameOf: (group: string) => string;
}) {
  const hasCost = sum.costUsd !== null && sum.costUsd > 0;
  const { money, axis } = useDollars({ isShown: hasCost });
  const amountOf = (one: { costUsd: number | null; inputTokens: number; outputTokens: number }) =>
    hasCost ? (one.costUsd ?? 0) : one.inputTokens + one.outputTokens;
  const sums = new Map<string, number>();
  for (const { split = [] } of data) {
    for (const part of split) {
      if (part.group !== null) sums.set(part.group, (sums.get(part.group) ?? 0) + amountOf(part));
    }
  }
  const groups = [...sums].toSorted(([, a], [, b]) => b - a).map(([group]) => group);
  const shown = groups.slice(0, SHOWN);
  const hasOthers = groups.length > SHOWN || data.some(({ split = [] }) => split.some(({ group }) => group === null));
  const bars = data.map((day) => {
    const { split = [] } = day;
    const values = shown.map((group) => {
      const part = split.find((one) => one.group === group);
      return part ? amountOf(part) : 0;
    });
    const rest = Math.max(
      0,
      split.reduce((all, part) => all + amountOf(part), 0) - values.reduce((all, one) => all + one, 0),
    );
    return { label: dayLabel(day.group), values: hasOthers ? [...values, rest] : values };
  });
  return (
    <BarChart
      title={title}
      name={name}
      total={total}
      series={[...distinct(shown.map(nameOf)), ...(hasOthers ? ['All others'] : [])]}
      bars={bars}
      format={hasCost ? money : (value) => compact.format(value)}
      axis={(value) => (hasCost ? axis(value) : compact.format(value))}
    />
  );
}

/** Two agents may have the same name. */
function distinct(names: readonly string[]): string[] {
  return names.map((name, index) => {
    const before = names.slice(0, index).filter((one) => one === name).length;
    return before === 0 ? name : `${name} (${before + 1})`;
  });
}
