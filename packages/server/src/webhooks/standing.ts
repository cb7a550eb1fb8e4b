// What the answers of a receiver say of its subscription: when one last succeeded and failed, and which secret it knows.
import type { Platform } from '../platform.ts';
import { confirmSecret, type Held } from './holding.ts';
import { stamp } from './progress.ts';

// For how long the secret that a receiver accepted last is tried first.
const PREFERENCE_MS = 60_000;
// How often the times of the last success and failure are written, at most.
const STAMP_INTERVAL_MS = 1_000;

export class Standing {
  readonly #platform: Pick<Platform, 'db' | 'clock' | 'log'>;
  #held: Held;
  #confirmedVersion: number;
  #preference: { version: number; until: number } | undefined;
  #success: Date | null = null;
  #failure: Date | null = null;
  #writtenAt = 0;

  constructor(platform: Pick<Platform, 'db' | 'clock' | 'log'>, held: Held) {
    this.#platform = platform;
    this.#held = held;
    this.#confirmedVersion = held.confirmedSecretVersion ?? 0;
  }

  resume(held: Held): void {
    if (held.secret.version !== this.#held.secret.version) this.#preference = undefined;
    this.#held = held;
  }

  /** The older secret, while a receiver is known that accepts no other. */
  preferredVersion(): number | undefined {
    const preference = this.#preference;
    return preference && preference.until > this.#now() ? preference.version : undefined;
  }

  /** Never throws: the delivery was accepted, and that is still to be written. */
  async accepted(held: Held, secretVersion: number): Promise<void> {
    const { clock, db, log } = this.#platform;
    const now = clock.now();
    this.#success = now;
    if (secretVersion === held.secret.version) this.#preference = undefined;
    else if (this.preferredVersion() !== secretVersion) {
      this.#preference = { version: secretVersion, until: now.getTime() + PREFERENCE_MS };
    }
    const confirmed = this.#confirmedVersion;
    const isNews = secretVersion === held.secret.version && confirmed < secretVersion;
    if (isNews) this.#confirmedVersion = secretVersion;
    try {
      if (isNews) await confirmSecret(db, held, secretVersion, now);
    } catch (error) {
      this.#confirmedVersion = confirmed;
      log.warn({ err: error }, 'the acceptance of a new secret was not written');
    }
    await this.write();
  }

  async failed(): Promise<void> {
    this.#failure = this.#platform.clock.now();
    await this.write();
  }

  /** Writes the times, if they have changed and, unless it is the last chance, were not written just before. Never throws. */
  async write(isLast = false): Promise<void> {
    const { db, log } = this.#platform;
    if ((!this.#success && !this.#failure) || (!isLast && this.#now() - this.#writtenAt < STAMP_INTERVAL_MS)) return;
    const statement = stamp(this.#held, this.#success, this.#failure);
    this.#success = null;
    this.#failure = null;
    this.#writtenAt = this.#now();
    try {
      await db.query(statement);
    } catch (error) {
      log.warn({ err: error }, 'the times of the last deliveries were not written');
    }
  }

  #now(): number {
    return this.#platform.clock.now().getTime();
  }
}
