// The only place that reads the time. Everything else is handed a Clock, so that a test can move it.
import { setTimeout as delay } from 'node:timers/promises';

export interface Clock {
  now(): Date;
  /** Resolves after `ms`, or rejects with the signal's reason when it is aborted first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

// Some 25 days. A timer that is set for longer fires at once, and an approval may have a year.
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
