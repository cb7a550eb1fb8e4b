// Protects callers from a part of the database that may be unavailable: a shard, or a server that has several. There is one breaker
// for each kind of work on each part.
//
// A caller waits for twice as long as the previous attempt took, at least 1 s and at most 5 s, so it waits for a slow part but not for
// one that hangs. An attempt that takes longer continues in the background. After a failure the breaker is open: it rejects work for
// 1 s, and for twice as long after each further failure, up to 30 s. No caller waits for the attempt that follows. An unavailable part
// therefore delays its callers once, not once a second.

import { OVER } from '../lib/aborted.ts';
import { exponentialMs } from '../lib/back-off.ts';
import type { Clock } from '../lib/clock.ts';
import { DatabaseUnavailable } from './checkout.ts';

// Longer than a healthy part takes.
const MIN_WAIT_MS = 1_000;
const MAX_WAIT_MS = 5_000;
const FIRST_OPEN_MS = 1_000;
const MAX_OPEN_MS = 30_000;

/** Undefined if the work is done. */
export type Failure = { error: unknown } | undefined;

export class CircuitBreaker {
  readonly #clock: Clock;
  #running: Promise<Failure> | undefined;
  #lastDurationMs = 0;
  #failures = 0;
  #openUntil = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether the last attempt succeeded and none is running. */
  get isHealthy(): boolean {
    return this.#failures === 0 && this.#running === undefined;
  }

  /**
   * Never rejects. If an attempt is running or the breaker is open, `act` is not called. `onFailure` receives the error of a failed
   * attempt, even if the caller did not wait for it.
   */
  async run(act: () => Promise<void>, onFailure: (error: unknown) => void = () => {}): Promise<Failure> {
    if (this.#running || this.#now() < this.#openUntil) return notAvailable();
    const waitMs = this.#failures > 0 ? 0 : Math.min(Math.max(MIN_WAIT_MS, 2 * this.#lastDurationMs), MAX_WAIT_MS);
    const over = new AbortController();
    const done = this.#attempt(act).finally(() => {
      this.#running = undefined;
      over.abort(OVER);
    });
    this.#running = done;
    void done.then((failure) => failure && onFailure(failure.error));
    const inTime =
      waitMs > 0 &&
      (await Promise.race([
        done.then(() => true),
        this.#clock.sleep(waitMs, over.signal).then(
          () => false,
          () => true,
        ),
      ]));
    return inTime ? done : notAvailable();
  }

  /** Resolves when no attempt is running. */
  async ended(): Promise<void> {
    await this.#running;
  }

  async #attempt(act: () => Promise<void>): Promise<Failure> {
    const startedAt = this.#now();
    try {
      await act();
      this.#failures = 0;
      this.#lastDurationMs = this.#now() - startedAt;
      return undefined;
    } catch (error) {
      this.#failures += 1;
      this.#openUntil = this.#now() + exponentialMs(this.#failures, FIRST_OPEN_MS, MAX_OPEN_MS);
      return { error };
    }
  }

  #now(): number {
    return this.#clock.now().getTime();
  }
}

function notAvailable(): Failure {
  return { error: new DatabaseUnavailable(new Error('A part of it does not respond')) };
}
