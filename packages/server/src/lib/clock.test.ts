import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { systemClock } from './clock.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

test('sleeps longer than a timer can, as for an approval of a year', async () => {
  const yearMs = 365 * 24 * 3_600_000;
  let isOver = false;
  const slept = systemClock.sleep(yearMs).then(() => {
    isOver = true;
  });
  await vi.advanceTimersByTimeAsync(yearMs - 1);
  expect(isOver).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  await slept;
});

test('a sleep whose signal is aborted rejects with the reason and leaves no timer', async () => {
  const reason = new Error('enough');
  await expect(systemClock.sleep(1, AbortSignal.abort(reason))).rejects.toBe(reason);
  const over = new AbortController();
  const slept = systemClock.sleep(1, over.signal);
  over.abort(reason);
  await expect(slept).rejects.toBe(reason);
  expect(vi.getTimerCount()).toBe(0);
});

test('a time that has passed is over at once, without a warning of Node', async () => {
  const warnings: unknown[] = [];
  const listen = (warning: unknown) => warnings.push(warning);
  process.on('warning', listen);
  vi.useRealTimers();
  await systemClock.sleep(-42);
  await systemClock.sleep(1);
  process.off('warning', listen);
  expect(warnings).toEqual([]);
});
