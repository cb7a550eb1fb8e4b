/** Going on after a lost connection, for what is read for as long as it lasts. */
import { SignalboxError } from './errors.ts';
import { backoffMs, isPassing, retryAfterMs } from './retry.ts';
import { now } from './time.ts';
import type { RequestOptions, Transport } from './transport.ts';

const longestPauseMs = 10_000;
const longestRetryAfterMs = 60_000;
/** About five minutes with the pauses above; then the service is away rather than restarting. */
const maxLostInARow = 32;

/** How often it was lost in a row, and what that means. */
export class Patience {
  readonly #transport: Transport;
  readonly #options: RequestOptions;
  #begun = false;
  #lostInARow = 0;
  #begunAt = now();

  constructor(transport: Transport, options: RequestOptions) {
    this.#transport = transport;
    this.#options = options;
  }

  /** For the next connection: the first fails as any call does; once it has begun, the pauses here are instead of retries. */
  get options(): RequestOptions {
    return this.#begun ? { ...this.#options, maxRetries: 0 } : this.#options;
  }

  /** There was an answer. */
  begin(): void {
    this.#begun = true;
    this.#begunAt = now();
  }

  /** What the caller asked for was read: what was lost before does not count any more. */
  progress(): void {
    this.#lostInARow = 0;
  }

  /** Waits before the next connection. Throws the error where there is none, and the reason of the caller's signal. */
  async pauseAfter(error: unknown): Promise<void> {
    // A connection that lasted was good, though there was nothing to say: a Session may wait for days. One that broke off soon was not.
    if (now().getTime() - this.#begunAt.getTime() > longestPauseMs) this.progress();
    const isBorne = this.#begun && error instanceof SignalboxError && isPassing(error);
    if (!isBorne || this.#lostInARow >= maxLostInARow) throw error;
    const retryAfter = Math.min(retryAfterMs(error.headers, now()) ?? 0, longestRetryAfterMs);
    const pauseMs = Math.max(retryAfter, backoffMs(this.#lostInARow, Math.random(), longestPauseMs));
    this.#lostInARow += 1;
    await this.#transport.sleep(pauseMs, this.#options.signal);
  }
}
