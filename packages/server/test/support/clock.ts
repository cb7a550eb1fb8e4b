// A clock that stands still until the test moves it.
import type { Clock } from '../../src/lib/clock.ts';

export interface ManualClock extends Clock {
  /** Moves the time on; who sleeps until then wakes, the earliest first. */
  advance(ms: number): void;
}

interface Sleeper {
  until: number;
  wake(): void;
}

export function createManualClock(start = new Date('2026-01-01T00:00:00.000Z')): ManualClock {
  let now = start.getTime();
  const sleepers = new Set<Sleeper>();
  return {
    now: () => new Date(now),
    sleep(ms, signal) {
      return new Promise((resolve, reject) => {
        signal?.throwIfAborted();
        const onAbort = () => {
          sleepers.delete(sleeper);
          reject(signal!.reason);
        };
        const sleeper: Sleeper = {
          until: now + ms,
          wake() {
            signal?.removeEventListener('abort', onAbort);
            resolve();
          },
        };
        if (ms <= 0) return resolve();
        signal?.addEventListener('abort', onAbort, { once: true });
        sleepers.add(sleeper);
      });
    },
    advance(ms) {
      now += ms;
      for (const sleeper of [...sleepers].toSorted((a, b) => a.until - b.until)) {
        if (sleeper.until > now) break;
        sleepers.delete(sleeper);
        sleeper.wake();
      }
    },
  };
}
