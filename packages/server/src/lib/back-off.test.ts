import { expect, test } from 'vitest';
import { exponentialMs } from './back-off.ts';

test('the wait doubles with each failure, up to its maximum', () => {
  expect([1, 2, 3, 4, 5, 500].map((failures) => exponentialMs(failures, 1_000, 5_000))).toEqual([
    1_000, 2_000, 4_000, 5_000, 5_000, 5_000,
  ]);
  expect(exponentialMs(11, 1_000)).toBe(1_024_000);
});
