// Sends the deliveries of one destination: those of a lane in order, lanes concurrently.
//
// A look starts the lanes whose first delivery is due. The loop of a lane continues until nothing waits in it or an attempt failed; the
// time of the retry is then in the database. A look follows when rows were added, when a lane may have ended before others could begin,
// and when the next delivery is due. While the destination is being probed (deliveries/destinations/health-rules.ts), only one lane at a
// time is in flight, as the probe.
import { type AttemptPlatform, type AttemptResult, attemptDelivery } from '../../deliveries/attempt.ts';
import { deliveryRetryDelayMs } from '../../deliveries/back-off.ts';
import { DestinationHealth, type HealthUpdate } from '../../deliveries/destinations/destination-health.ts';
import { OVER } from '../../lib/aborted.ts';
import { formatId } from '../../lib/ids.ts';
import type { DestinationAssignment } from '../destination/assignments.ts';
import { resourceOfLane } from '../destination/filter.ts';
import { destinationHealth } from '../destination/health-store.ts';
import type { DestinationSender, SenderOptions, SenderPlatform } from '../destination/kind.ts';
import {
  countWaiting,
  finishDelivery,
  firstOfLane,
  firstOfLanes,
  postponeDelivery,
  readBody,
  type WaitingDelivery,
} from './deliveries.ts';

// Each needs a connection to the receiver and up to 64 KiB of memory.
const MAX_LANES = 20;
const PAGE = 200;
/** How many deliveries may wait: after that, records wait in the log until half of these are sent. */
const MAX_WAITING = 10_000;
// Work that this node does not know of, for example because a statement failed whose effect it has.
const LOOK_EVERY_MS = 30_000;
const AFTER_ERROR_MS = 1_000;

export class WebhookSender implements DestinationSender {
  readonly #platform: Omit<SenderPlatform, 'egress'> & AttemptPlatform;
  readonly #options: SenderOptions;
  readonly #health: DestinationHealth<DestinationAssignment>;
  readonly #lanes = new Set<string>();
  #assignment: DestinationAssignment;
  #isActive = true;
  #isProbing = false;
  #woken = new AbortController();
  #loop: Promise<void> | undefined;
  /** How many wait; undefined until they were counted. */
  #waiting: number | undefined;
  #wasFull = false;
  #drained: (() => void)[] = [];

  constructor(platform: SenderPlatform, assignment: DestinationAssignment, options: SenderOptions) {
    const log = platform.log.child({
      organizationId: formatId('org', assignment.organizationId),
      destinationId: formatId('dst', assignment.destinationId),
    });
    this.#platform = { ...platform, log, egress: platform.egress.of(assignment.organizationId) };
    this.#assignment = assignment;
    this.#options = options;
    this.#health = new DestinationHealth(this.#platform, assignment, destinationHealth);
    this.#start();
  }

  get assignment(): DestinationAssignment {
    return this.#assignment;
  }

  get isActive(): boolean {
    return this.#isActive;
  }

  get isIdle(): boolean {
    return this.#lanes.size === 0;
  }

  get isFailing(): boolean {
    return this.#health.isFailing;
  }

  get hasRoom(): boolean {
    return this.#waiting !== undefined && this.#waiting < (this.#wasFull ? MAX_WAITING / 2 : MAX_WAITING);
  }

  added(count: number): void {
    this.#waiting = (this.#waiting ?? 0) + count;
    this.#wasFull ||= this.#waiting >= MAX_WAITING;
    this.#wake();
  }

  resume(assignment: DestinationAssignment): void {
    this.#health.resume(assignment);
    this.#assignment = assignment;
    this.#isActive = true;
    // A recovery cancels deliveries.
    this.#waiting = undefined;
    this.#start();
    this.#wake();
  }

  halt(): void {
    this.#isActive = false;
    this.#wake();
  }

  async drained(): Promise<void> {
    if (!this.isIdle) await new Promise<void>((resolve) => this.#drained.push(resolve));
    await this.#loop;
  }

  takeHealth(options?: { isLast?: boolean }): HealthUpdate<DestinationAssignment> | undefined {
    return this.#health.takeUpdate(options);
  }

  restoreHealth(update: HealthUpdate<DestinationAssignment>): void {
    this.#health.restoreUpdate(update);
  }

  #wake(): void {
    this.#woken.abort(OVER);
  }

  #start(): void {
    this.#loop ??= this.#run().finally(() => {
      this.#loop = undefined;
      if (this.#isActive) this.#start();
    });
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#platform;
    while (this.#isActive) {
      // Before the look, so that a wake-up during it is followed by another.
      this.#woken = new AbortController();
      const waitMs = await this.#look().catch((error: unknown) => {
        log.warn({ err: error }, 'looking for due deliveries failed; retrying');
        return AFTER_ERROR_MS;
      });
      await clock.sleep(Math.min(waitMs, LOOK_EVERY_MS), this.#woken.signal).catch(() => {});
    }
  }

  /** Starts what is due. Returns the time until the next delivery is. */
  async #look(): Promise<number> {
    const { db, clock } = this.#platform;
    const destination = this.#assignment;
    if (this.#waiting === undefined) {
      this.#waiting = await countWaiting(db, destination, MAX_WAITING);
      this.#wasFull = this.#waiting >= MAX_WAITING;
      this.#options.onRoom();
    }
    const health = this.#health;
    const now = clock.now().getTime();
    const untilProbe = health.probeAt === null ? LOOK_EVERY_MS : Math.max(0, health.probeAt.getTime() - now);
    if (health.awaitsProbe()) {
      if (!this.isIdle || untilProbe > 0) return untilProbe || LOOK_EVERY_MS;
      const [first] = await firstOfLanes(db, destination, [], 1);
      if (first) this.#begin(first, true);
      return LOOK_EVERY_MS;
    }
    const suspect = health.suspect;
    if (suspect !== null && untilProbe === 0 && !this.#isProbing && !this.#lanes.has(suspect)) {
      const first = await firstOfLane(db, destination, suspect);
      if (first) this.#begin(first, true);
      else health.clearSuspect();
    }
    const room = MAX_LANES - this.#lanes.size;
    if (room <= 0) return LOOK_EVERY_MS;
    const without = [...this.#lanes, ...(suspect === null ? [] : [suspect])];
    const found = await firstOfLanes(db, destination, without, PAGE);
    const due = found.filter(({ dueAt }) => dueAt.getTime() <= now);
    for (const delivery of due.slice(0, room)) this.#begin(delivery, false);
    const later = found[due.length];
    return Math.min(
      untilProbe || LOOK_EVERY_MS,
      later && due.length <= room ? later.dueAt.getTime() - now : LOOK_EVERY_MS,
    );
  }

  #begin(delivery: WaitingDelivery, isProbe: boolean): void {
    if (!this.#isActive || this.#lanes.has(delivery.lane)) return;
    this.#lanes.add(delivery.lane);
    if (isProbe) this.#isProbing = true;
    void this.#runLane(delivery, isProbe);
  }

  async #runLane(first: WaitingDelivery, isProbe: boolean): Promise<void> {
    const { clock, log } = this.#platform;
    let hasFailed = false;
    try {
      let next: WaitingDelivery | undefined = first;
      for (let probes = isProbe; next && this.#isActive; probes = false) {
        const isDue = next.dueAt.getTime() <= clock.now().getTime();
        if (!probes && (!isDue || this.#health.awaitsProbe(next.lane))) break;
        next = await this.#send(next, probes);
      }
    } catch (error) {
      hasFailed = true;
      log.warn({ err: error }, 'deliveries were interrupted; they continue');
    } finally {
      this.#lanes.delete(first.lane);
      if (isProbe) this.#isProbing = false;
      if (this.isIdle) for (const resolve of this.#drained.splice(0)) resolve();
    }
    // An error could repeat at once.
    if (hasFailed) await clock.sleep(AFTER_ERROR_MS, this.#options.signal).catch(() => {});
    this.#wake();
  }

  /** Returns the next delivery of the lane, if it may be sent. */
  async #send(delivery: WaitingDelivery, isProbe: boolean): Promise<WaitingDelivery | undefined> {
    const { db } = this.#platform;
    const assignment = this.#assignment;
    const body = await readBody(db, assignment, delivery.sequences);
    if (!body) return this.#finish(delivery, [], 'exhausted');
    const outcome = await attemptDelivery(this.#platform, assignment, outgoing(delivery), body, {
      ...this.#options,
      preferredVersion: this.#health.preferredVersion(),
      attributes: { 'signalbox.destination.id': formatId('dst', assignment.destinationId) },
    });
    if (outcome.attempts.length === 0) return undefined;
    if (outcome.verdict !== 'accepted') return this.#failed(assignment, delivery, outcome, isProbe);
    const next = await this.#finish(delivery, outcome.attempts, 'succeeded');
    if (await this.#health.accepted(assignment, outcome.secretVersion)) this.#wake();
    return next;
  }

  async #finish(
    delivery: WaitingDelivery,
    attempts: AttemptResult['attempts'],
    status: 'succeeded' | 'exhausted',
  ): Promise<WaitingDelivery | undefined> {
    const { db, clock } = this.#platform;
    const done = { attempts, status, now: clock.now() };
    const { isStale, next } = await finishDelivery(db, this.#assignment, delivery, done);
    if (isStale) {
      this.#options.onStale();
      return undefined;
    }
    if (this.#waiting !== undefined) this.#waiting -= 1;
    if (this.#wasFull && this.hasRoom) {
      this.#wasFull = false;
      this.#options.onRoom();
    }
    return next;
  }

  async #failed(
    assignment: DestinationAssignment,
    delivery: WaitingDelivery,
    { attempts, verdict, retryAfterMs }: AttemptResult,
    isProbe: boolean,
  ): Promise<WaitingDelivery | undefined> {
    const { db, clock } = this.#platform;
    const at = clock.now();
    const { error = null, status = null } = attempts.at(-1) ?? {};
    const failure = { lane: delivery.lane, at, isProbe, retryAfterMs, error, status };
    const isDisabled =
      (await this.#health.failed(assignment, failure)) ||
      (verdict === 'gone' && (await destinationHealth.disable(db, assignment, 'gone', at)));
    const delayMs = deliveryRetryDelayMs(delivery.retries, this.#options.random(), retryAfterMs);
    // A probe before its time uses up no retry, and neither does what disabled the destination.
    const isEarly = delivery.dueAt > at;
    const isFree = isDisabled || isEarly;
    if (delayMs === undefined && !isFree) return this.#finish(delivery, attempts, 'exhausted');
    const notBefore = retryAfterMs > 0 ? new Date(at.getTime() + retryAfterMs) : null;
    const own = isDisabled ? at : isEarly ? delivery.dueAt : new Date(at.getTime() + delayMs!);
    const dueAt = notBefore && notBefore > own ? notBefore : own;
    const retries = isFree ? delivery.retries : delivery.retries + 1;
    await postponeDelivery(db, assignment, delivery, { attempts, retries, dueAt, notBefore });
    if (isDisabled) {
      this.halt();
      this.#options.onStale();
    }
    return undefined;
  }
}

/** A delivery as its headers and log lines name it. */
export function outgoing({
  deliveryId,
  lane,
  lastSequence,
  previousSequence,
  attemptCount,
}: Pick<WaitingDelivery, 'deliveryId' | 'lane' | 'lastSequence' | 'previousSequence' | 'attemptCount'>) {
  const { type, id } = resourceOfLane(lane);
  return {
    deliveryId: formatId('dsd', deliveryId),
    sessionId: type === 'session' ? id : null,
    cursor: String(lastSequence),
    previousCursor: previousSequence === null ? '' : String(previousSequence),
    attemptCount,
  };
}
