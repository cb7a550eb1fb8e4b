// What the receiver's responses say about what is sent to it: when a delivery last succeeded and failed, the health of the destination,
// and which secret the receiver knows. A `HealthStore` writes it where it belongs.
//
// The node that the subscription is assigned to decides from its memory. The dispatcher writes changes once a second, those of many
// subscriptions in one statement, so a crash loses at most a second of them. The time of another success is written every 15 s: each
// write leaves a version of the row, and PostgreSQL keeps all of them during a backup. Every delivery reads that row.
import type { Sql } from 'sql-template-tag';
import type { Db } from '../../db/db.ts';
import type { Platform } from '../../platform.ts';
import {
  afterFailure,
  afterSuccess,
  awaitsProbe,
  type Failure,
  type Health,
  probingAnyLane,
  severityOf,
  wasLongOutage,
} from './health-rules.ts';
import type { Target } from './target.ts';

/** A target whose health is watched, as the node that sends to it knows it. */
export interface Watched extends Pick<Target, 'url' | 'secret'> {
  /** Raised by every change, and by every claim by another node. */
  epoch: number;
  confirmedSecretVersion: number | null;
  /** As last written to the database. */
  health: Health;
  /** Whether the event about the lasting failure was recorded. */
  isDegraded: boolean;
}

/** When a delivery last succeeded (null: unchanged), and the health of the destination. */
export interface HealthUpdate<T> {
  assignment: T;
  success: Date | null;
  health: Health;
}

/** What the sending side changes about a target, each with its event record; false if it was changed before. */
export interface HealthStore<T> {
  /** Sends nothing more until a caller enables it. */
  disable(db: Db, assignment: T, reason: 'gone' | 'failing', now: Date): Promise<boolean>;
  /** Records that the destination has failed for long enough to warn about. */
  markDegraded(db: Db, assignment: T, failingSince: Date, now: Date): Promise<boolean>;
  /** Records that the receiver accepted this version of the secret. */
  confirmSecret(db: Db, assignment: T, version: number, now: Date): Promise<boolean>;
  /** Writes the health, except of what has changed since: the change may have reset it. */
  write(updates: readonly HealthUpdate<T>[]): Sql;
  /** Makes pending retries due now, or at the time the receiver asked for if that is later, in one transaction. */
  retryNow(assignment: T, now: Date): Sql[];
}

// How long the secret that the receiver accepted last is tried first.
const PREFERENCE_MS = 60_000;
const WRITE_SUCCESS_EVERY_MS = 15_000;

export class DestinationHealth<T extends Watched> {
  readonly #platform: Pick<Platform, 'db' | 'clock' | 'log'>;
  readonly #store: HealthStore<T>;
  #assignment: T;
  #confirmedVersion: number;
  #preference: { version: number; until: number } | undefined;
  #health: Health;
  #isDegraded: boolean;
  #success: Date | null = null;
  #successWrittenMs = Number.NEGATIVE_INFINITY;
  #isChanged = false;

  constructor(platform: Pick<Platform, 'db' | 'clock' | 'log'>, assignment: T, store: HealthStore<T>) {
    this.#platform = platform;
    this.#store = store;
    this.#assignment = assignment;
    this.#confirmedVersion = assignment.confirmedSecretVersion ?? 0;
    this.#health = assignment.health;
    this.#isDegraded = assignment.isDegraded;
  }

  /** Takes the health of the new epoch: the change may have reset it. */
  resume(assignment: T): void {
    if (assignment.secret.version !== this.#assignment.secret.version) this.#preference = undefined;
    if (assignment.epoch !== this.#assignment.epoch) {
      this.#health = assignment.health;
      this.#isDegraded = assignment.isDegraded;
    }
    this.#assignment = assignment;
  }

  /** The version of the older secret, while the receiver is known to accept no other. */
  preferredVersion(): number | undefined {
    const preference = this.#preference;
    return preference && preference.until > this.#now() ? preference.version : undefined;
  }

  /** Whether this lane waits for a probe; without a lane: whether all do. */
  awaitsProbe(lane?: string): boolean {
    return awaitsProbe(this.#health, lane);
  }

  /** The last attempt was not accepted. */
  get isFailing(): boolean {
    return this.#health.failingSince !== null;
  }

  /** When the next probe may be sent; null: nothing waits for one. */
  get probeAt(): Date | null {
    return this.#health.probeAt;
  }

  /** Whether the next probe may be sent now. */
  get isProbeDue(): boolean {
    const { probeAt } = this.#health;
    return probeAt !== null && probeAt.getTime() <= this.#now();
  }

  /** The one lane that is probed while the others continue. */
  get suspect(): string | null {
    return this.#health.probeAt === null ? null : this.#health.failingLane;
  }

  /** The suspect has nothing to send, so the next delivery of any lane is the probe. */
  clearSuspect(): void {
    this.#health = probingAnyLane(this.#health);
    this.#isChanged = true;
  }

  /**
   * Returns whether pending retries are due now, because a long failure is over. Never throws: the caller still has to store that the
   * delivery was accepted.
   */
  async accepted(assignment: T, secretVersion: number): Promise<boolean> {
    const { clock, db, log } = this.#platform;
    const now = clock.now();
    const isBack = wasLongOutage(this.#health, now);
    this.#success = now;
    if (this.#health.failingSince !== null) this.#isChanged = true;
    this.#health = afterSuccess(this.#health);
    this.#isDegraded = false;
    if (secretVersion === assignment.secret.version) this.#preference = undefined;
    else if (this.preferredVersion() !== secretVersion) {
      this.#preference = { version: secretVersion, until: now.getTime() + PREFERENCE_MS };
    }
    const confirmed = this.#confirmedVersion;
    const isNews = secretVersion === assignment.secret.version && confirmed < secretVersion;
    if (isNews) this.#confirmedVersion = secretVersion;
    try {
      if (isNews) await this.#store.confirmSecret(db, assignment, secretVersion, now);
    } catch (error) {
      this.#confirmedVersion = confirmed;
      log.warn({ err: error }, 'recording that the receiver accepted the new secret failed');
    }
    if (isBack)
      await db
        .batch(this.#store.retryNow(assignment, now))
        .catch((error) => log.warn({ err: error }, 'rescheduling retries after a recovered destination failed'));
    return isBack;
  }

  /** Returns whether it was disabled because of the failure. */
  async failed(assignment: T, failure: Failure): Promise<boolean> {
    const { db, log } = this.#platform;
    // The result of an attempt at a former url says nothing about the current one.
    if (assignment.url !== this.#assignment.url) return false;
    this.#health = afterFailure(this.#health, failure);
    this.#isChanged = true;
    const severity = severityOf(this.#health, failure.at);
    if (severity === 'degraded' && !this.#isDegraded) {
      this.#isDegraded = true;
      log.warn('the destination has failed for a day');
      await this.#store.markDegraded(db, assignment, this.#health.failingSince!, failure.at);
    }
    if (severity !== 'disabled') return false;
    const last = this.takeUpdate();
    if (last) await db.query(this.#store.write([last]));
    return this.#store.disable(db, assignment, 'failing', failure.at);
  }

  /**
   * What the caller should write now, if anything; `isLast`: even if only the time of a success is new. If the write fails, call
   * `restoreUpdate`.
   */
  takeUpdate({ isLast = false } = {}): HealthUpdate<T> | undefined {
    const isTime = isLast || this.#now() - this.#successWrittenMs >= WRITE_SUCCESS_EVERY_MS;
    if (!this.#isChanged && !(this.#success !== null && isTime)) return undefined;
    const update = { assignment: this.#assignment, success: this.#success, health: this.#health };
    if (this.#success !== null) this.#successWrittenMs = this.#now();
    this.#success = null;
    this.#isChanged = false;
    return update;
  }

  restoreUpdate({ success }: HealthUpdate<T>): void {
    this.#success ??= success;
    this.#isChanged = true;
  }

  #now(): number {
    return this.#platform.clock.now().getTime();
  }
}
