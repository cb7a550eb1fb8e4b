import { setTimeout as delay } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { systemClock } from './clock.ts';

vi.mock('node:timers/promises', () => ({ setTimeout: vi.fn(async () => {}) }));

test('sleeps longer than a timer can, as for an approval of a year', async () => {
  const yearMs = 365 * 24 * 3_600_000;
  await systemClock.sleep(yearMs);
  const timers = vi.mocked(delay).mock.calls.map(([ms]) => ms!);
  expect(timers.reduce((sum, ms) => sum + ms, 0)).toBe(yearMs);
  expect(Math.max(...timers)).toBeLessThan(2 ** 31);
});
