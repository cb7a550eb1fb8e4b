// A clock that stands still until a test moves it.
import type { Clock } from '../../src/lib/clock.ts';

export interface ManualClock extends Clock {
  /** Moves the time; whoever's sleep is over wakes, in order. */
  advance(ms: number): void;
  /** Resolves as soon as someone sleeps, at once where someone does. */
  asleep(): Promise<void>;
  /** How many sleep. */
  readonly sleepers: number;
}

export function createManualClock(start = new Date('2026-01-02T03:04:05.000Z')): ManualClock {
  let now = start.getTime();
  const sleeping = new Set<{ until: number; wake(): void }>();
  let fellAsleep = Promise.withResolvers<void>();
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
    advance(ms) {
      now += ms;
      for (const sleeper of [...sleeping].sort((a, b) => a.until - b.until)) if (sleeper.until <= now) sleeper.wake();
    },
    asleep: async () => {
      if (sleeping.size === 0) await fellAsleep.promise;
    },
    get sleepers() {
      return sleeping.size;
    },
  };
}
