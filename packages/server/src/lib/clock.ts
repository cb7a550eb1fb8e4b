// The only place that reads the time. Everything else gets a Clock, so that a test can move it.
import { setTimeout as delay } from 'node:timers/promises';

export interface Clock {
  now(): Date;
  /** Resolves after `ms`; rejects with the signal's reason if it is aborted first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

// About 25 days. A timer set for longer fires at once, and an approval may take a year.
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => new Date(),
  sleep: async (ms, signal) => {
    let leftMs = ms;
    do {
      await delay(Math.min(leftMs, LONGEST_TIMER_MS), undefined, signal ? { signal } : {}).catch((error) => {
        throw signal?.aborted ? signal.reason : error;
      });
      leftMs -= LONGEST_TIMER_MS;
    } while (leftMs > 0);
  },
};
