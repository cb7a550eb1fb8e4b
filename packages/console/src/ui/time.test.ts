import { expect, test } from 'vitest';
import { duration, formatRelative } from './time.tsx';

test.each([
  [0, '0 ms'],
  [999.4, '999 ms'],
  [999.6, '1.0 s'],
  [9_940, '9.9 s'],
  [9_960, '10 s'],
  [59_400, '59 s'],
  [59_600, '1 m'],
  [119_600, '2 m'],
  [3_599_600, '1 h'],
  [172_799_600, '2 d'],
])('%d ms is shown as %s; values that round up to the next unit use it', (ms, said) => {
  expect(duration(ms)).toBe(said);
});

test.each([
  [-59_900, 'just now'],
  [-60_000, '1 min ago'],
  [-3_569_000, '59 min ago'],
  [-3_571_000, '1 hr ago'],
  [86_000_000, 'tomorrow'],
  [-84_000_000, '23 hr ago'],
])('a time %d ms away is shown as %s', (ms, said) => {
  expect(formatRelative(ms, new Date(0))).toBe(said);
});
