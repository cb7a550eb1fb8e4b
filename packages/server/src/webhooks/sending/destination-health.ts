// What the answers of a receiver say of its subscription: when one last succeeded and failed, how the destination does, and
// which secret it knows.
//
// The node that holds the subscription decides on what it knows. The dispatcher writes what has changed once a second, of many
// subscriptions by one statement: a crash loses no more than a second of it.
import type { Platform } from '../../platform.ts';
import type { Assignment } from './assignments.ts';
import {
  afterFailure,
  afterSuccess,
  awaitsProbe,
  type Failure,
  type Health,
  probingAnySession,
  severityOf,
  wasLongOutage,
} from './health-rules.ts';
import {
  confirmSecret,
  disableSubscription,
  type HealthUpdate,
  markDegraded,
  retryNow,
  writeHealthUpdates,
} from './subscription-changes.ts';

// For how long the secret that a receiver accepted last is tried first.
const PREFERENCE_MS = 60_000;

export class DestinationHealth {
  readonly #platform: Pick<Platform, 'db' | 'clock' | 'log'>;
  #assignment: Assignment;
  #confirmedVersion: number;
  #preference: { version: number; until: number } | undefined;
  #health: Health;
  #isDegraded: boolean;
  #success: Date | null = null;
  #isChanged = false;

  constructor(platform: Pick<Platform, 'db' | 'clock' | 'log'>, assignment: Assignment) {
    this.#platform = platform;
    this.#assignment = assignment;
    this.#confirmedVersion = assignment.confirmedSecretVersion ?? 0;
    this.#health = assignment.health;
    this.#isDegraded = assignment.isDegraded;
  }

  /** A change of the subscription may have set aside what was known of its destination. */
  resume(assignment: Assignment): void {
    if (assignment.secret.version !== this.#assignment.secret.version) this.#preference = undefined;
    if (assignment.epoch !== this.#assignment.epoch) {
      this.#health = assignment.health;
      this.#isDegraded = assignment.isDegraded;
    }
    this.#assignment = assignment;
  }

  /** The older secret, while a receiver is known that accepts no other. */
  preferredVersion(): number | undefined {
    const preference = this.#preference;
    return preference && preference.until > this.#now() ? preference.version : undefined;
  }

  /** Whether this Session waits for a probe; without a Session: whether all do. */
  awaitsProbe(sessionId?: string): boolean {
    return awaitsProbe(this.#health, sessionId);
  }

  /** Whether the time of the next probe has come. */
  get isProbeDue(): boolean {
    const { probeAt } = this.#health;
    return probeAt !== null && probeAt.getTime() <= this.#now();
  }

  /** The one Session that is probed, where the others go on. */
  get suspect(): string | null {
    return this.#health.probeAt === null ? null : this.#health.failingSessionId;
  }

  /** Nothing waits in the one Session that was to be probed: whatever comes next is the probe. */
  clearSuspect(): void {
    this.#health = probingAnySession(this.#health);
    this.#isChanged = true;
  }

  /**
   * Whether what waits for retries is due now, as after a long failure. Never throws: the delivery was accepted, and that
   * is still to be written.
   */
  async accepted(assignment: Assignment, secretVersion: number): Promise<boolean> {
    const { clock, db, log } = this.#platform;
    const now = clock.now();
    const isBack = wasLongOutage(this.#health, now);
    this.#success = now;
    this.#isChanged = true;
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
      if (isNews) await confirmSecret(db, assignment, secretVersion, now);
    } catch (error) {
      this.#confirmedVersion = confirmed;
      log.warn({ err: error }, 'recording that the receiver accepted the new secret failed');
    }
    if (isBack)
      await db
        .query(retryNow(assignment, now))
        .catch((error) => log.warn({ err: error }, 'rescheduling retries after a recovered destination failed'));
    return isBack;
  }

  /** Whether the subscription was disabled for it. */
  async failed(assignment: Assignment, failure: Failure): Promise<boolean> {
    const { db, log } = this.#platform;
    // What was on its way to another url says nothing of this one.
    if (assignment.url !== this.#assignment.url) return false;
    this.#health = afterFailure(this.#health, failure);
    this.#isChanged = true;
    const severity = severityOf(this.#health, failure.at);
    if (severity === 'degraded' && !this.#isDegraded) {
      this.#isDegraded = true;
      log.warn('the destination has failed for a day');
      await markDegraded(db, assignment, this.#health.failingSince!, failure.at);
    }
    if (severity !== 'disabled') return false;
    const last = this.takeUpdate();
    if (last) await db.query(writeHealthUpdates([last]));
    return disableSubscription(db, assignment, 'failing', failure.at);
  }

  /** What is to be written, if anything has changed since the last call. If it is not written, `putBack` has the next one give it. */
  takeUpdate(): HealthUpdate | undefined {
    if (!this.#isChanged) return undefined;
    const update = { assignment: this.#assignment, success: this.#success, health: this.#health };
    this.#success = null;
    this.#isChanged = false;
    return update;
  }

  restoreUpdate({ success }: HealthUpdate): void {
    this.#success ??= success;
    this.#isChanged = true;
  }

  #now(): number {
    return this.#platform.clock.now().getTime();
  }
}
