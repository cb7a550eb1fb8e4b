import { expect, test } from 'vitest';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createWindows } from './windows.ts';

test('a window starts with its first count, and peek counts nothing', () => {
  const clock = createManualClock();
  const windows = createWindows(clock);
  expect(windows.peek('a')).toEqual({ used: 0, resetSeconds: 60 });
  clock.leap(30_000);
  expect(windows.add('a')).toEqual({ used: 1, resetSeconds: 60 });
  clock.leap(59_500);
  expect(windows.add('a')).toEqual({ used: 2, resetSeconds: 1 });
  expect(windows.add('b')).toEqual({ used: 1, resetSeconds: 60 });
  clock.leap(500);
  expect(windows.peek('a').used).toBe(0);
  expect(windows.add('a')).toEqual({ used: 1, resetSeconds: 60 });
  expect(windows.peek('b').used).toBe(1);
});

test('memory is bounded for any number of names: the oldest are dropped first', () => {
  const windows = createWindows(createManualClock());
  for (let n = 0; n <= 50_000; n++) windows.add(`name ${n}`);
  expect(windows.peek('name 0').used).toBe(0);
  expect(windows.peek('name 1').used).toBe(1);
  expect(windows.peek('name 50000').used).toBe(1);
});
