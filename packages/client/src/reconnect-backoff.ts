/** Reconnecting after a lost connection, for responses that are read over a long time. */
import { SignalboxError } from './errors.ts';
import { backoffMs, isTemporary, retryAfterMs } from './retry.ts';
import { now } from './time.ts';
import type { RequestOptions, Transport } from './transport.ts';

const longestPauseMs = 10_000;
const longestRetryAfterMs = 60_000;
/** About five minutes with the pauses above: the service is then down, not restarting. */
const maxConsecutiveFailures = 32;

/** Counts connections that were lost in a row, and decides on retries and pauses. */
export class ReconnectBackoff {
  readonly #transport: Transport;
  readonly #options: RequestOptions;
  #hasOpened = false;
  #consecutiveFailures = 0;
  #openedAt = now();

  constructor(transport: Transport, options: RequestOptions) {
    this.#transport = transport;
    this.#options = options;
  }

  /** For the next connection: the first one fails like any call; after it, the pauses here replace retries. */
  get options(): RequestOptions {
    return this.#hasOpened ? { ...this.#options, maxRetries: 0 } : this.#options;
  }

  /** A connection is open. */
  opened(): void {
    this.#hasOpened = true;
    this.#openedAt = now();
  }

  /** Data that the caller asked for has arrived: earlier failures no longer count. */
  progress(): void {
    this.#consecutiveFailures = 0;
  }

  /** Waits before the next connection. Throws the error if there is none, and the reason of the caller's signal. */
  async pauseAfter(error: unknown): Promise<void> {
    // A connection that lasted was good even without data: a session can wait for days. One that was cut soon was not.
    if (now().getTime() - this.#openedAt.getTime() > longestPauseMs) this.progress();
    const shouldRetry = this.#hasOpened && error instanceof SignalboxError && isTemporary(error);
    if (!shouldRetry || this.#consecutiveFailures >= maxConsecutiveFailures) throw error;
    const retryAfter = Math.min(retryAfterMs(error.headers, now()) ?? 0, longestRetryAfterMs);
    const pauseMs = Math.max(retryAfter, backoffMs(this.#consecutiveFailures, Math.random(), longestPauseMs));
    this.#consecutiveFailures += 1;
    await this.#transport.sleep(pauseMs, this.#options.signal);
  }
}
