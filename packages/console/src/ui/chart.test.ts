import { expect, test } from 'vitest';
import { roundAbove } from './chart.tsx';

test('the axis ends at a round number that no bar exceeds', () => {
  const ends = [0, 0.004, 0.83, 1, 1.01, 4.9, 277, 82_000].map(roundAbove);
  expect(ends).toEqual([1, 0.004, 1, 1, 1.5, 5, 300, 100_000]);
});
