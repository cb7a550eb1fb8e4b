// Sends the deliveries of one session, one after the other.
//
// The loop reads the chunks that wait, stores the next delivery, sends it, and acknowledges it in the statement that stores the
// delivery after it. What this node commits in the meantime is not read (journal-tail.ts). It ends when nothing waits or an attempt
// failed; the time of the retry is then in the database.
//
// The reads and writes of all loops of a subscription are batched (`gather`). What a loop knows about the subscription is valid for
// one epoch. If a statement finds another epoch, the loop stops, the subscription is read again, and its due sessions with it.
import { formatCursor, type Position } from '../journal/cursor.ts';
import type { JournalOwner, Segment } from '../journal/segment.ts';
import type { FairShare } from '../lib/fair-share.ts';
import { gather } from '../lib/gather.ts';
import type { Semaphore } from '../lib/semaphore.ts';
import type { Platform } from '../platform.ts';
import { type AttemptPlatform, type AttemptResult, attemptDelivery } from './attempt.ts';
import { deliveryRetryDelayMs } from './back-off.ts';
import { maxTextWaitMs, nextStep } from './batch.ts';
import { type Delivery, type FinishedDelivery, newDelivery } from './delivery.ts';
import { readBody } from './delivery-body.ts';
import type { Assignment } from './destinations/assignments.ts';
import type { DestinationHealth } from './destinations/destination-health.ts';
import { disableSubscription } from './destinations/subscription-changes.ts';
import { JournalTail } from './journal-tail.ts';
import { attributesOf, outgoing } from './outgoing.ts';
import {
  type AdvanceInput,
  advanceMany,
  type DeliveryProgress,
  giveUp,
  type PostponeInput,
  postponeMany,
  type ReadInput,
  readMany,
} from './progress.ts';
import { finishRedelivery, readRedelivery } from './redeliveries.ts';
import { leaveLong, type SessionWork } from './session-work.ts';

export type LoopPlatform = AttemptPlatform & Pick<Platform, 'db' | 'analytics'>;

export interface LoopOptions {
  /** The version of the service, for `User-Agent`. */
  version: string;
  /** Returns 0 up to 1; used for the jitter of retries. */
  random: () => number;
  /** The time limit of an attempt; 15 s by default. */
  timeoutMs?: number;
  /** For what is longer than a delivery with several chunks. */
  long: FairShare;
  /** Called when the subscription has changed since it was assigned. */
  onStale: () => void;
  /** Aborts the attempts in flight. */
  signal: AbortSignal;
}

/** What loops share with the sender that runs them: what they may do, and what they found out. */
export interface SenderContext {
  readonly assignment: Assignment;
  readonly isActive: boolean;
  /** Aborted when nothing more may be sent. */
  readonly halted: AbortSignal;
  readonly health: DestinationHealth<Assignment>;
  /** A loop has a slot except while it waits for more text. */
  readonly slots: Semaphore;
  maySend(sessionId: string, work: SessionWork): boolean;
  /** Starts no further attempt. */
  halt(): void;
  waitForRetry(sessionId: string, at: Date): void;
  accepted(work: SessionWork, assignment: Assignment, secretVersion: number): Promise<void>;
}

// While text waits for more text, a wake-up may announce a chunk that must not wait. Finding out can take a read for each streaming
// session, so it happens no more often than this.
const LOOK_AGAIN_MS = 25;

/** A delivery with its bytes, ready to send. */
interface PreparedDelivery {
  delivery: Delivery;
  body: Buffer;
  /** The position up to which the delivery covers all chunks that match the filter. */
  through: Position;
  /** Whether there may be chunks after `through`. */
  more: boolean;
  /** Sent before its retry time. */
  isEarly: boolean;
  /** The parent in the trace of the session's turn. */
  traceParent: string | null;
}

export class SessionLoop {
  readonly #platform: LoopPlatform;
  readonly #sender: SenderContext;
  readonly #options: LoopOptions;

  readonly #read = gather((inputs: readonly ReadInput[]) =>
    readMany(this.#platform.db, this.#sender.assignment, inputs),
  );
  /**
   * Returns `woken` instead of advancing if it is a lone acknowledgement and chunks arrived while it waited for its turn: then one
   * statement can acknowledge and store the next delivery.
   */
  readonly #advance = gather(async (inputs: readonly { advance: AdvanceInput; unlessWoken?: SessionWork }[]) => {
    const due = inputs.filter(({ unlessWoken }) => !(unlessWoken?.isWoken && this.#sender.isActive));
    const advances = due.map(({ advance }) => advance);
    const now = this.#platform.clock.now();
    const advanced =
      advances.length === 0 ? [] : await advanceMany(this.#platform.db, this.#sender.assignment, advances, now);
    const isDue = new Map(due.map((input, index) => [input, advanced[index]]));
    return inputs.map((input) => (isDue.has(input) ? isDue.get(input) : 'woken'));
  });
  readonly #postpone = gather(async (inputs: readonly PostponeInput[]) => {
    await postponeMany(this.#platform.db, this.#sender.assignment, inputs);
    return inputs;
  });

  constructor(platform: LoopPlatform, sender: SenderContext, options: LoopOptions) {
    this.#platform = platform;
    this.#sender = sender;
    this.#options = options;
  }

  /** Resolves when there is nothing to send now. */
  async run(sessionId: string, work: SessionWork): Promise<void> {
    let prepared = await this.#next(sessionId, work, undefined);
    while (prepared) {
      const { delivery, body, through, more, traceParent } = prepared;
      if (!this.#sender.maySend(sessionId, work)) {
        work.isWoken = false;
        return;
      }
      const assignment = this.#sender.assignment;
      const outcome = await this.#attempt(assignment, delivery, body, traceParent);
      if (more) work.isWoken = true;
      if (outcome.verdict === 'accepted') {
        this.#acknowledged(delivery);
        await this.#sender.accepted(work, assignment, outcome.secretVersion);
        prepared = await this.#next(sessionId, work, { delivery, attempts: outcome.attempts, through });
      } else if (this.#options.signal.aborted || !(await this.#failed(assignment, prepared, outcome, work))) {
        // Nothing overtakes this delivery: chunks that were committed in the meantime are found when its retry is due.
        work.isWoken = false;
        return;
      } else {
        work.tail = undefined;
        prepared = await this.#next(sessionId, work, undefined);
      }
    }
  }

  #acknowledged({ occurredAt }: Delivery): void {
    const { clock, metrics } = this.#platform;
    // Another node with a clock ahead of this one's may have committed the chunk.
    metrics.deliverySeconds.observe(Math.max(0, clock.now().getTime() - occurredAt.getTime()) / 1000);
  }

  #attempt(
    assignment: Assignment,
    delivery: Delivery,
    body: Buffer,
    traceParent: string | null,
  ): Promise<AttemptResult> {
    return attemptDelivery(this.#platform, assignment, outgoing(delivery), body, {
      ...this.#options,
      preferredVersion: this.#sender.health.preferredVersion(),
      attributes: attributesOf(assignment),
      traceParent,
      onAttempt: ({ verdict, durationMs }) => {
        const { analytics } = this.#platform;
        const failed = verdict === 'accepted' ? [] : ['webhookAttemptsFailed' as const];
        analytics.count(assignment, 'webhookAttempts', ...failed);
        analytics.observe(assignment, 'webhookMs', durationMs);
      },
    });
  }

  /** Sends finished deliveries again. If the service stops first, the next node sends them. */
  async #redeliver(sessionId: string, work: SessionWork): Promise<void> {
    for (const deliveryId of work.redeliveries.splice(0)) {
      await this.#resend(sessionId, work, deliveryId);
      leaveLong(work);
    }
  }

  async #resend(sessionId: string, work: SessionWork, deliveryId: string): Promise<void> {
    const { clock, db } = this.#platform;
    const assignment = this.#sender.assignment;
    const found = await readRedelivery(db, assignment, deliveryId);
    if (found?.isLong) await this.#enterLong(work);
    if (!found || !this.#sender.maySend(sessionId, work)) return;
    const { delivery, owner } = found;
    const outcome = await this.#attempt(assignment, delivery, await this.#rebuild(owner, delivery, []), null);
    if (this.#options.signal.aborted) return;
    const isAccepted = outcome.verdict === 'accepted';
    if (isAccepted) await this.#sender.accepted(work, assignment, outcome.secretVersion);
    else await this.#recordFailure(assignment, delivery, outcome, work);
    await finishRedelivery(db, assignment, { delivery, attempts: outcome.attempts }, isAccepted, clock.now());
  }

  /** Waits until the session may have something long in memory. It may not if nothing more is sent. */
  async #enterLong(work: SessionWork): Promise<void> {
    const { organizationId } = this.#sender.assignment;
    work.leaveLong = await this.#options.long.take(organizationId, 1, this.#sender.halted);
  }

  /** Updates the health of the destination after a failure; returns whether the subscription was disabled because of it. */
  async #recordFailure(
    assignment: Assignment,
    { sessionId }: Delivery,
    outcome: AttemptResult,
    work: SessionWork,
  ): Promise<boolean> {
    const { clock, db } = this.#platform;
    const at = clock.now();
    const { isProbe } = work;
    work.isProbe = false;
    const { verdict, retryAfterMs } = outcome;
    const { error = null, status = null } = outcome.attempts.at(-1) ?? {};
    const isDisabled =
      (await this.#sender.health.failed(assignment, { lane: sessionId, at, isProbe, retryAfterMs, error, status })) ||
      (verdict === 'gone' && (await disableSubscription(db, assignment, 'gone', at)));
    if (isDisabled) {
      this.#sender.halt();
      this.#options.onStale();
    }
    return isDisabled;
  }

  /** Stores the next delivery and acknowledges the previous one with it; undefined if there is nothing to send now. */
  async #next(
    sessionId: string,
    work: SessionWork,
    before: FinishedDelivery | undefined,
  ): Promise<PreparedDelivery | undefined> {
    const { clock } = this.#platform;
    let done = before;
    if (done) work.tail?.delivered(done);
    for (;;) {
      leaveLong(work);
      if (work.redeliveries.length > 0) {
        if (done) await this.#advance({ advance: { done } });
        done = undefined;
        await this.#redeliver(sessionId, work);
      }
      if (done && !(work.isWoken && this.#sender.isActive)) {
        const isDue = await this.#advance({ advance: { done }, unlessWoken: work });
        if (!isDue) return undefined;
        if (isDue !== 'woken') done = undefined;
      }
      if (!this.#sender.maySend(sessionId, work)) {
        if (done) await this.#advance({ advance: { done } });
        return undefined;
      }
      work.isWoken = false;
      const since = work.since ?? clock.now();
      work.since = undefined;
      const { epoch, chunkTypes } = this.#sender.assignment;
      const stepOf = (progress: DeliveryProgress) =>
        nextStep(progress, chunkTypes, clock.now().getTime() - since.getTime());
      let progress = work.tail?.progress;
      let step = progress?.epoch === epoch ? stepOf(progress) : undefined;
      if (!progress || !step || (work.tail?.isPartial && step.kind === 'send' && !step.isFull)) {
        progress = await this.#read({ sessionId, after: done?.through });
        if (progress?.isTooLong) {
          // The acknowledgement must not wait with it.
          if (done) await this.#advance({ advance: { done } });
          done = undefined;
          await this.#enterLong(work);
          if (!work.leaveLong) continue;
          progress = await this.#read({ sessionId, after: undefined, mayBeLong: true });
        }
        if (progress?.epoch !== epoch) {
          work.tail = undefined;
          if (done) await this.#advance({ advance: { done } });
          done = undefined;
          if (this.#isStillStale(epoch)) return undefined;
          continue;
        }
        // What was committed during the read may not be in it.
        work.tail = work.isWoken ? undefined : new JournalTail(progress);
        if (done) work.tail?.delivered(done);
        if (progress.delivery) return await this.#reopen(progress, progress.delivery, work);
        step = stepOf(progress);
      }
      if (step.kind === 'send') {
        const previousCursor = done ? formatCursor(done.delivery.to) : progress.acknowledgedCursor;
        const delivery = newDelivery(sessionId, step.content, previousCursor);
        const isDue = await this.#advance({ advance: { epoch, next: delivery, after: progress.after, done } });
        if (isDue !== undefined) {
          work.tail?.passed(step.through);
          return { ...step, delivery, isEarly: false, traceParent: progress.traceParent };
        }
        work.tail = undefined;
        if (done) await this.#advance({ advance: { done } });
        done = undefined;
        if (this.#isStillStale(epoch)) return undefined;
        continue;
      }
      if (done) {
        // The chunks after it don't match the filter or wait for more text; the acknowledgement must not wait with them.
        const isDue = await this.#advance({ advance: { done } });
        done = undefined;
        if (!isDue) return undefined;
      } else if (step.kind === 'skip') {
        const skip = { sessionId, epoch, after: progress.after, through: step.through };
        const isDue = await this.#advance({ advance: skip });
        if (isDue === false || (isDue === undefined && this.#isStillStale(epoch))) return undefined;
        if (isDue) work.tail?.passed(step.through);
        else work.tail = undefined;
      } else if (step.kind === 'nothing') {
        return undefined;
      }
      if (step.kind === 'wait') {
        work.since = since;
        leaveLong(work);
        await this.#waitForCompany(work, since);
      }
    }
  }

  /**
   * Called after a statement was refused because of another epoch. If the subscription has been read again since, the loop
   * continues with that, because nothing else would handle its session. Otherwise the loop stops, and its session is found once the
   * subscription has been read.
   */
  #isStillStale(epoch: number): boolean {
    if (this.#sender.assignment.epoch !== epoch) return false;
    this.#options.onStale();
    return true;
  }

  async #waitForCompany(work: SessionWork, since: Date): Promise<void> {
    const { clock } = this.#platform;
    const end = since.getTime() + maxTextWaitMs;
    this.#sender.slots.release();
    do {
      const waitMs = Math.min(LOOK_AGAIN_MS, end - clock.now().getTime());
      await clock.sleep(Math.max(waitMs, 0), this.#sender.halted).catch(() => {});
    } while (this.#sender.isActive && !work.isWoken && clock.now().getTime() < end);
    await this.#sender.slots.acquire();
  }

  /** Prepares a delivery that was stored before: after a crash, or because its retry is due. */
  async #reopen(
    progress: DeliveryProgress,
    delivery: Delivery,
    work: SessionWork,
  ): Promise<PreparedDelivery | undefined> {
    const isEarly = delivery.nextAttemptAt !== null && delivery.nextAttemptAt > this.#platform.clock.now();
    if (delivery.nextAttemptAt && isEarly && !work.isProbe) {
      this.#sender.waitForRetry(delivery.sessionId, delivery.nextAttemptAt);
      work.isWoken = false;
      return undefined;
    }
    const { body } = delivery;
    work.tail?.passed(delivery.to);
    return {
      delivery,
      body: body === null ? await this.#rebuild(progress.owner, delivery, progress.segments) : Buffer.from(body),
      through: delivery.to,
      more: true,
      isEarly,
      traceParent: progress.traceParent,
    };
  }

  #rebuild(owner: JournalOwner, delivery: Delivery, read: readonly Segment[]): Promise<Buffer> {
    return readBody(this.#platform.db, this.#sender.assignment.organizationId, owner, delivery, read);
  }

  /** Returns whether the session continues: after the last retry it does, without this delivery. */
  async #failed(
    assignment: Assignment,
    prepared: PreparedDelivery,
    outcome: AttemptResult,
    work: SessionWork,
  ): Promise<boolean> {
    const { clock, db } = this.#platform;
    const { delivery, body, through, isEarly } = prepared;
    const { attempts, retryAfterMs } = outcome;
    const isDisabled = await this.#recordFailure(assignment, delivery, outcome, work);
    const now = clock.now();
    const delayMs = deliveryRetryDelayMs(delivery.retries, this.#options.random(), retryAfterMs);
    // The attempt uses up no retry if it disabled the subscription (the delivery goes out once that is enabled again) or was sent
    // before the delivery's retry time, which stays.
    const isFree = isDisabled || isEarly;
    if (delayMs === undefined && !isFree) {
      return (await giveUp(db, assignment, { delivery, attempts, through }, now)) === true;
    }
    const notBefore = retryAfterMs > 0 ? new Date(now.getTime() + retryAfterMs) : null;
    const own = isDisabled ? now : isEarly ? delivery.nextAttemptAt! : new Date(now.getTime() + delayMs!);
    const nextAttemptAt = notBefore && notBefore > own ? notBefore : own;
    const retries = isFree ? delivery.retries : delivery.retries + 1;
    await this.#postpone({ delivery, attempts, retries, nextAttemptAt, notBefore, body });
    this.#sender.waitForRetry(delivery.sessionId, nextAttemptAt);
    return false;
  }
}
