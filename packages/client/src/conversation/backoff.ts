/** When a page tries again after a failure. */
import type { Sleep } from '../time.ts';

const firstPauseMs = 1_000;
const longestPauseMs = 30_000;

/** Pauses after failures in a row, each up to twice as long as the one before. */
export class Backoff {
  readonly #sleep: Sleep;
  #failures = 0;
  #current: AbortController | undefined;

  constructor(sleep: Sleep) {
    this.#sleep = sleep;
  }

  succeeded(): void {
    this.#failures = 0;
  }

  /** Ends early on `wake` and when the signal is aborted. */
  async pause(signal?: AbortSignal): Promise<void> {
    const current = new AbortController();
    this.#current = current;
    const end = () => current.abort();
    signal?.addEventListener('abort', end, { once: true });
    // Up to half less at random, so that the pages of a service that restarts do not return at once.
    const pauseMs = Math.min(longestPauseMs, firstPauseMs * 2 ** this.#failures++) * (1 - Math.random() / 2);
    if (!signal?.aborted) await this.#sleep(pauseMs, current.signal).catch(() => {});
    signal?.removeEventListener('abort', end);
  }

  /** The cause of the failures may be over, for example because the network is back. */
  wake(): void {
    this.#failures = 0;
    this.#current?.abort();
  }
}

/** Calls the listener when a browser has lost its network or has it back, until the signal is aborted. */
export function onNetworkChange(listener: () => void, signal: AbortSignal): void {
  const target = globalThis as {
    addEventListener?: (type: string, listener: () => void, options: { signal: AbortSignal }) => void;
  };
  for (const type of ['online', 'offline']) target.addEventListener?.(type, listener, { signal });
}
