// A clock that moves only when a test moves it, and not while the service is at work (idle.ts): otherwise a turn would time out because
// the machine is slow.
import type { Clock } from '../../src/lib/clock.ts';
import { idle, until } from './idle.ts';

export interface ManualClock extends Clock {
  /** Moves the time once the service is idle, wakes the sleepers that are due, in order, and resolves when it is idle again. */
  advance(ms: number): Promise<void>;
  /** Lets this time pass, from sleeper to sleeper; with `leastMs` in larger steps, for hours and days. */
  pass(ms: number, leastMs?: number): Promise<void>;
  /** Moves the time from sleeper to sleeper until the condition is true, which is checked while the service is idle. */
  passUntil(condition: () => boolean | Promise<boolean>, leastMs?: number): Promise<void>;
  /** Moves the time from sleeper to sleeper until the promise settles. */
  passWhile<T>(awaited: Promise<T>): Promise<T>;
  /** Moves the time at once, whatever is under way: for a test where something never ends by itself, or without anything to wait for. */
  leap(ms: number): void;
  /** The number of sleepers. */
  readonly sleepers: number;
}

export function createManualClock(start = new Date('2026-01-02T03:04:05.000Z')): ManualClock {
  let now = start.getTime();
  const sleeping = new Set<{ until: number; wake(): void }>();

  function leap(ms: number): void {
    now += ms;
    for (const sleeper of [...sleeping].sort((a, b) => a.until - b.until)) if (sleeper.until <= now) sleeper.wake();
  }

  /** Moves to the next sleeper, at least as far as `leastMs`. False if there is none. */
  function leapToNext(leastMs = 0, maxMs = Number.POSITIVE_INFINITY): boolean {
    const next = Math.min(...[...sleeping].map(({ until }) => until - now));
    const ms = Math.min(Math.max(next, leastMs), maxMs);
    if (!Number.isFinite(ms)) return false;
    leap(ms);
    return true;
  }

  return {
    now: () => new Date(now),
    // Work takes no time, however far a test moves the clock meanwhile.
    elapsedMs: () => 0,
    sleep(ms, signal) {
      return new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason);
        if (ms <= 0) return resolve();
        const sleeper = { until: now + ms, wake: () => end(resolve) };
        const onAbort = () => end(() => reject(signal?.reason));
        const end = (settle: () => void) => {
          sleeping.delete(sleeper);
          signal?.removeEventListener('abort', onAbort);
          settle();
        };
        signal?.addEventListener('abort', onAbort, { once: true });
        sleeping.add(sleeper);
      });
    },
    async advance(ms) {
      await idle();
      leap(ms);
      await idle();
    },
    async pass(ms, leastMs) {
      const end = now + ms;
      await until(
        () => now >= end,
        () => leapToNext(leastMs, end - now),
      );
      await idle();
    },
    passUntil: (condition, leastMs) => until(condition, () => leapToNext(leastMs)),
    async passWhile(awaited) {
      let isOver = false;
      const end = () => {
        isOver = true;
      };
      awaited.then(end, end);
      await until(
        () => isOver,
        () => leapToNext(),
      );
      return awaited;
    },
    leap,
    get sleepers() {
      return sleeping.size;
    },
  };
}
