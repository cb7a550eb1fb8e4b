// A clock that moves only when a test moves it.
import type { Clock } from '../../src/lib/clock.ts';

export interface ManualClock extends Clock {
  /** Moves the time forward and wakes the sleepers that are due, in order. */
  advance(ms: number): void;
  /** Moves the time in small steps until the promise settles: for code that retries after a pause. */
  passWhile<T>(awaited: Promise<T>): Promise<T>;
  /** Resolves as soon as there is a sleeper. */
  asleep(): Promise<void>;
  /** The number of sleepers. */
  readonly sleepers: number;
}

// Time passes faster than real time, but not so fast that a turn times out while the database responds.
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
