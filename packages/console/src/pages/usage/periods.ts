// The periods of the report. Its days are those of UTC.
import { inDays, monthFromNow } from '../../ui/time.tsx';
import type { Period, UsageSearch } from './search-params.ts';

/** `before`: what the period is compared with. */
export const periodWords: Record<Period, { label: string; before: string }> = {
  '7': { label: 'Last 7 days', before: 'the 7 days before' },
  '30': { label: 'Last 30 days', before: 'the 30 days before' },
  '90': { label: 'Last 90 days', before: 'the 90 days before' },
  '365': { label: 'Last 365 days', before: 'the 365 days before' },
  month: { label: 'This month', before: 'as many days before' },
  'last-month': { label: 'Last month', before: 'as many days before' },
  custom: { label: 'Custom…', before: 'as many days before' },
};

const DAY_MS = 86_400_000;

/** Whole days; `to` is the midnight after the last. */
export interface DayRange {
  from: string;
  to: string;
}

export function rangeOf({ period = '30', from, to }: UsageSearch): DayRange {
  const tomorrow = inDays(1);
  if (period === 'custom') {
    const first = midnight(Date.parse(from ?? '') || Date.parse(inDays(-29)));
    const last = midnight(Date.parse(to ?? '') || Date.parse(inDays(0)));
    // An end before the start is the same day.
    return { from: textOf(first), to: textOf(Math.max(first, last) + DAY_MS) };
  }
  if (period === 'month') return { from: monthFromNow(0), to: textOf(midnight(Date.parse(tomorrow))) };
  if (period === 'last-month') return { from: monthFromNow(-1), to: monthFromNow(0) };
  // Today counts as one of the days.
  return {
    from: textOf(midnight(Date.parse(inDays(1 - Number(period))))),
    to: textOf(midnight(Date.parse(tomorrow))),
  };
}

/** The range before, with the same number of days. */
export function rangeBefore({ from, to }: DayRange): DayRange {
  const start = Date.parse(from);
  return { from: textOf(2 * start - Date.parse(to)), to: from };
}

/** `Nov 1 – 23 Nov`: the first and the last day. */
export function daysText({ from, to }: DayRange): string {
  return day.formatRange(new Date(from), new Date(Date.parse(to) - DAY_MS));
}

const day = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short', year: 'numeric', timeZone: 'UTC' });

function midnight(ms: number): number {
  return ms - (ms % DAY_MS);
}

function textOf(ms: number): string {
  return new Date(ms).toISOString();
}
