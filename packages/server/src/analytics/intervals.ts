// The lengths of the intervals that rows are of.
//
// Nodes write minutes. Folding adds each minute to every longer interval that contains it (fold.ts), so a report reads the rows of its
// points, and for the sum of a period the fewest intervals that fill it: a year is at most 23 of them, not 366 days.
const SECOND_MS = 1_000;
const DAY_SECONDS = 86_400;

/** Minutes that are not folded: they are in no other row. */
export const MINUTE = 60;
/** Minutes that are in their hour and day as well. They are kept for points of a minute. */
export const FOLDED_MINUTE = -60;
export const HOUR = 3_600;
export const DAY = DAY_SECONDS;
/** Lengths of several days, shortest first; each interval begins at a multiple of its length since 1970. */
const blocks = [4 * DAY_SECONDS, 16 * DAY_SECONDS, 64 * DAY_SECONDS] as const;
export const ROLLUP_INTERVALS: readonly number[] = [DAY, ...blocks];
/** What minutes are folded into. */
export const FOLDED_INTERVALS: readonly number[] = [FOLDED_MINUTE, HOUR, ...ROLLUP_INTERVALS];

/** Rows of one length whose start is in a period. */
export interface Span {
  seconds: number;
  from: Date;
  to: Date;
}

export function startOf(at: Date, seconds: number): number {
  return at.getTime() - (at.getTime() % lengthMs(seconds));
}

/** The fewest intervals of an hour or longer that fill a period, which begins and ends at full hours. */
export function coverPeriod(from: Date, to: Date): Span[] {
  const longestFirst = [HOUR, ...ROLLUP_INTERVALS].toReversed();
  const spans: Span[] = [];
  for (let at = from; at < to; ) {
    const seconds = longestFirst.find(
      (one) => startOf(at, one) === at.getTime() && at.getTime() + lengthMs(one) <= to.getTime(),
    );
    if (seconds === undefined) throw new Error('The period does not begin and end at full hours');
    const end = new Date(at.getTime() + lengthMs(seconds));
    const last = spans.at(-1);
    if (last?.seconds === seconds) last.to = end;
    else spans.push({ seconds, from: at, to: end });
    at = end;
  }
  return spans;
}

function lengthMs(seconds: number): number {
  return Math.abs(seconds) * SECOND_MS;
}
