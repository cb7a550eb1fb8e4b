// One kind of work on one part of the database that may be away: a shard, or a server that has several.
//
// A caller waits for its answer for a moment, or for twice as long as the last one took, up to 5 s: a part that is slow is waited for,
// one that hangs is not. What is late goes on by itself. After a failure the part is left alone for a while, longer each time, and the next
// attempt is waited for by nobody: so a part that is away holds the caller up once, not once a second.
import type { Clock } from '../lib/clock.ts';
import { DatabaseUnavailable } from './checkout.ts';

// Longer than an answer that is not in trouble takes.
const PATIENCE_MS = 1_000;
const MAX_PATIENCE_MS = 5_000;
const FIRST_REST_MS = 1_000;
const MAX_REST_MS = 30_000;

/** What the caller can count on: undefined if the work is done. */
export type Failure = { error: unknown } | undefined;

export class Lane {
  readonly #clock: Clock;
  #underWay: Promise<Failure> | undefined;
  #tookMs = 0;
  #failures = 0;
  #restsUntil = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether the last attempt succeeded and none is under way. */
  get isWell(): boolean {
    return this.#failures === 0 && this.#underWay === undefined;
  }

  /**
   * Never rejects; `onFailure` hears of an attempt that failed, also of one that was not waited for. If an attempt is under way, or
   * the last one failed a moment ago, it is not begun.
   */
  async run(act: () => Promise<void>, onFailure: (error: unknown) => void = () => {}): Promise<Failure> {
    if (this.#underWay || this.#now() < this.#restsUntil) return away();
    const patienceMs = this.#failures > 0 ? 0 : Math.min(Math.max(PATIENCE_MS, 2 * this.#tookMs), MAX_PATIENCE_MS);
    const over = new AbortController();
    const done = this.#attempt(act).finally(() => {
      this.#underWay = undefined;
      over.abort();
    });
    this.#underWay = done;
    void done.then((failure) => failure && onFailure(failure.error));
    const inTime =
      patienceMs > 0 &&
      (await Promise.race([
        done.then(() => true),
        this.#clock.sleep(patienceMs, over.signal).then(
          () => false,
          () => true,
        ),
      ]));
    return inTime ? done : away();
  }

  /** Resolves when nothing is under way. */
  async ended(): Promise<void> {
    await this.#underWay;
  }

  async #attempt(act: () => Promise<void>): Promise<Failure> {
    const startedAt = this.#now();
    try {
      await act();
      this.#failures = 0;
      this.#tookMs = this.#now() - startedAt;
      return undefined;
    } catch (error) {
      this.#failures += 1;
      this.#restsUntil = this.#now() + Math.min(FIRST_REST_MS * 2 ** (this.#failures - 1), MAX_REST_MS);
      return { error };
    }
  }

  #now(): number {
    return this.#clock.now().getTime();
  }
}

function away(): Failure {
  return { error: new DatabaseUnavailable(new Error('A part of it does not answer')) };
}
