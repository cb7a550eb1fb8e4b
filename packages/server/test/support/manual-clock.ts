// A clock that stands still until a test moves it.
import type { Clock } from '../../src/lib/clock.ts';

export interface ManualClock extends Clock {
  /** Moves the time; sleepers whose time has come wake in order. */
  advance(ms: number): void;
  /** Lets time pass in small steps until the promise is settled: for what is tried again in a moment. */
  passWhile<T>(awaited: Promise<T>): Promise<T>;
  /** Resolves as soon as someone sleeps, at once where someone does. */
  asleep(): Promise<void>;
  /** How many sleep. */
  readonly sleepers: number;
}

// Time runs faster than on the wall, yet not so fast that a turn runs out of it while the database answers.
const STEP_MS = 10;

export function createManualClock(start = new Date('2026-01-02T03:04:05.000Z')): ManualClock {
  let now = start.getTime();
  const sleeping = new Set<{ until: number; wake(): void }>();
  let fellAsleep = Promise.withResolvers<void>();
  function advance(ms: number): void {
    now += ms;
    for (const sleeper of [...sleeping].sort((a, b) => a.until - b.until)) if (sleeper.until <= now) sleeper.wake();
  }

  return {
    now: () => new Date(now),
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
        fellAsleep.resolve();
        fellAsleep = Promise.withResolvers();
      });
    },
    advance,
    async passWhile(awaited) {
      let over = false;
      const end = () => {
        over = true;
      };
      awaited.then(end, end);
      while (!over) {
        await new Promise<void>((resolve) => setTimeout(resolve, 1));
        advance(STEP_MS);
      }
      return awaited;
    },
    asleep: async () => {
      if (sleeping.size === 0) await fellAsleep.promise;
    },
    get sleepers() {
      return sleeping.size;
    },
  };
}
