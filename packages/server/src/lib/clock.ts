// The only place that reads the time. Everything else gets a Clock, so that a test can move it.
import { onceAborted } from './aborted.ts';

export interface Clock {
  now(): Date;
  /** Only differences are meaningful: how much time has passed, even if the clock is set. */
  elapsedMs(): number;
  /** Resolves after `ms`; rejects with the signal's reason if it is aborted first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

// About 25 days. A timer set for longer fires at once, and an approval may take a year.
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => new Date(),
  elapsedMs: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      // A deadline may have passed, and Node warns about a negative time.
      let leftMs = Math.max(0, ms);
      let timer: NodeJS.Timeout | undefined;
      const wait = () => {
        timer = setTimeout(over, Math.min(leftMs, LONGEST_TIMER_MS));
        leftMs -= LONGEST_TIMER_MS;
      };
      const over = () => {
        if (leftMs > 0) return wait();
        forget();
        resolve();
      };
      wait();
      const forget = signal
        ? onceAborted(signal, () => {
            clearTimeout(timer);
            reject(signal.reason);
          })
        : () => {};
    }),
};
