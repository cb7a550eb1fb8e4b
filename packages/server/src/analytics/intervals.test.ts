import { expect, test } from 'vitest';
import { coverPeriod, DAY, HOUR } from './intervals.ts';

const HOUR_MS = HOUR * 1000;

test('any period of full hours is filled exactly once, a year of days by at most 23 intervals', () => {
  const first = Date.UTC(2025, 0, 1);
  for (let begin = 0; begin < 64 * 24; begin += 7) {
    for (const hours of [1, 23, 24, 25, 24 * 31, 24 * 366]) {
      const from = new Date(first + begin * HOUR_MS);
      const to = new Date(from.getTime() + hours * HOUR_MS);
      const spans = coverPeriod(from, to);
      let at = from.getTime();
      let intervals = 0;
      for (const { seconds, ...span } of spans) {
        expect(span.from.getTime()).toBe(at);
        expect(span.from.getTime() % (seconds * 1000)).toBe(0);
        at = span.to.getTime();
        intervals += (at - span.from.getTime()) / (seconds * 1000);
      }
      expect(at).toBe(to.getTime());
      expect(Number.isInteger(intervals)).toBe(true);
      if (begin % 24 === 0 && hours % 24 === 0) expect(intervals).toBeLessThanOrEqual(23);
    }
  }
});

test('a period within an interval does not use it', () => {
  const from = new Date(64 * DAY * 1000 * 300 + DAY * 1000);
  const to = new Date(from.getTime() + 2 * DAY * 1000);
  expect(coverPeriod(from, to)).toEqual([{ seconds: DAY, from, to }]);
});
