import { expect, test } from 'vitest';
import { roundAbove, roundDurationAbove } from './chart.tsx';

test('the axis ends at a round number that no bar exceeds', () => {
  const ends = [0, 0.004, 0.83, 1, 1.01, 4.9, 277, 82_000].map(roundAbove);
  expect(ends).toEqual([1, 0.004, 1, 1, 1.5, 5, 300, 100_000]);
});

test('an axis of a few milliseconds ends at a number whose half is whole', () => {
  expect([0, 1, 3, 4.5, 9, 13, 20, 21].map(roundDurationAbove)).toEqual([2, 2, 4, 6, 10, 20, 20, 30]);
});

test('an axis of durations ends at a round number of seconds, minutes or hours', () => {
  const seconds = [0.25, 7, 59, 61, 701, 3_000, 50_000, 90_000].map((one) => roundDurationAbove(one * 1_000) / 1_000);
  expect(seconds).toEqual([0.3, 8, 60, 120, 1_200, 3_600, 86_400, 172_800]);
});
