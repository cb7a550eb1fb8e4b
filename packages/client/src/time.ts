/** The only file of the client that reads the clock or waits. */

/**
 * Waits. Resolves after `ms` milliseconds; rejects with the signal's reason as soon as it aborts.
 *
 * A test passes its own as `new Signalbox({ sleep })` and decides when time passes.
 */
export type Sleep = (ms: number, signal?: AbortSignal) => Promise<void>;

export const sleep: Sleep = (ms, signal) =>
  new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    }, ms);
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    signal?.addEventListener('abort', abort, { once: true });
  });

/** The current time. */
export const now = (): Date => new Date();
