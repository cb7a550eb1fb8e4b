// One Session's deliveries, one after the other.
//
// A loop reads what waits, makes the next delivery durable, sends it, and acknowledges it in the statement that fixes the one
// after. It ends when nothing waits, or when an attempt failed: then the time of the next one stands in the database.
//
// The reads and writes of all loops of a subscription travel together (`gather`). What a loop knows of the subscription is good
// for one epoch; where a statement finds another, the loop stops, the subscription is read again and its Sessions are looked for
// anew.
import { formatCursor, type Position } from '../../journal/cursor.ts';
import type { Owner, Segment } from '../../journal/segment.ts';
import { gather } from '../../lib/gather.ts';
import { newUuid } from '../../lib/ids.ts';
import type { Semaphore } from '../../lib/semaphore.ts';
import type { Platform } from '../../platform.ts';
import { disable, type Held } from './assignments.ts';
import { attemptDelivery, type Outcome } from './attempt.ts';
import { retryDelayMs } from './back-off.ts';
import { maxTextWaitMs, nextStep } from './batch.ts';
import { readBody } from './delivery-body.ts';
import type { Standing } from './destination-health.ts';
import {
  type Delivery,
  type Done,
  type FixInput,
  fixMany,
  giveUp,
  type PostponeInput,
  postponeMany,
  type ReadInput,
  readMany,
  type SettleInput,
  settleMany,
  type View,
} from './progress.ts';
import { finishAgain, readFinished } from './resending.ts';

export type SenderPlatform = Pick<Platform, 'db' | 'clock' | 'egress' | 'log' | 'metrics' | 'tracing'>;

export interface LoopOptions {
  /** Of the service. */
  version: string;
  /** 0 up to 1, for the jitter of retries. */
  random: () => number;
  /** For an attempt; 15 s unless said. */
  timeoutMs?: number;
  /** The subscription is no longer as it was held. */
  onStale: () => void;
  /** Aborts the attempts under way. */
  signal: AbortSignal;
}

/** A Session that is sent for. */
export interface Hand {
  /** Something may have come since the last read. */
  isWoken: boolean;
  /** When what waits now was first heard of; undefined: nothing is known to wait. */
  since: Date | undefined;
  /** Taken to see whether the destination is back. */
  isProbe: boolean;
  /** Deliveries that are over and go out once more between two of the Session's own. */
  readonly resends: string[];
}

/** Who runs the loops: what they may do, and what they have found out. */
export interface Host {
  readonly held: Held;
  readonly isActive: boolean;
  /** Aborted when it sends no more. */
  readonly halted: AbortSignal;
  readonly standing: Standing;
  /** A loop has one of them while it does not wait for company. */
  readonly slots: Semaphore;
  maySend(sessionId: string, hand: Hand): boolean;
  /** Sends nothing more. */
  halt(): void;
  waitForRetry(sessionId: string, at: Date): void;
  accepted(hand: Hand, held: Held, secretVersion: number): Promise<void>;
}

// While text waits for company, a wake-up may mean that something came which must not wait. Finding out is a read for each
// Session that streams, so no more than this often.
const LOOK_AGAIN_MS = 25;

/** A delivery with its bytes, ready to go. */
interface Parcel {
  delivery: Delivery;
  body: Buffer;
  /** Up to here nothing else was asked for. */
  through: Position;
  /** Behind that something may be. */
  more: boolean;
  /** Sent before its time. */
  isEarly: boolean;
  /** Of the trace that the Session's turn belongs to. */
  traceParent: string | null;
}

export class SessionLoop {
  readonly #platform: SenderPlatform;
  readonly #sender: Host;
  readonly #options: LoopOptions;

  readonly #read = gather((inputs: readonly ReadInput[]) => readMany(this.#platform.db, this.#sender.held, inputs));
  readonly #fix = gather((inputs: readonly FixInput[]) => {
    const fixing = fixMany(this.#platform.db, this.#sender.held, inputs, this.#platform.clock.now());
    this.#fixing = fixing.catch(() => {});
    return fixing;
  });
  #fixing: Promise<unknown> = Promise.resolve();
  readonly #settle = gather((inputs: readonly SettleInput[]) =>
    settleMany(this.#platform.db, this.#sender.held, inputs, this.#platform.clock.now()),
  );
  /** Acknowledges where nothing has come until the statement goes out; where something has, answers `more` instead. */
  readonly #settleUnlessWoken = gather(async (inputs: readonly { done: Done; hand: Hand }[]) => {
    const quiet = inputs.filter(({ hand }) => !hand.isWoken || !this.#sender.isActive);
    const now = this.#platform.clock.now();
    const settled = quiet.length === 0 ? [] : await settleMany(this.#platform.db, this.#sender.held, quiet, now);
    const isDue = new Map(quiet.map((input, index) => [input, settled[index]]));
    return inputs.map((input) => (isDue.has(input) ? isDue.get(input) : 'more'));
  });
  readonly #postpone = gather(async (inputs: readonly PostponeInput[]) => {
    await postponeMany(this.#platform.db, this.#sender.held, inputs);
    return inputs;
  });

  constructor(platform: SenderPlatform, sender: Host, options: LoopOptions) {
    this.#platform = platform;
    this.#sender = sender;
    this.#options = options;
  }

  /** Resolves when nothing is to be sent now. */
  async run(sessionId: string, hand: Hand): Promise<void> {
    let parcel = await this.#next(sessionId, hand, undefined);
    while (parcel) {
      const { delivery, body, through, more, traceParent } = parcel;
      if (!this.#sender.maySend(sessionId, hand)) {
        hand.isWoken = false;
        return;
      }
      const held = this.#sender.held;
      const outcome = await this.#attempt(held, delivery, body, traceParent);
      if (more) hand.isWoken = true;
      if (outcome.verdict === 'accepted') {
        this.#acknowledged(delivery);
        await this.#sender.accepted(hand, held, outcome.secretVersion);
        parcel = await this.#next(sessionId, hand, { delivery, attempts: outcome.attempts, through });
      } else if (this.#options.signal.aborted || !(await this.#failed(held, parcel, outcome, hand))) {
        // Nothing follows before this one: what woke it up in the meantime is found when its retry is due.
        hand.isWoken = false;
        return;
      } else {
        parcel = await this.#next(sessionId, hand, undefined);
      }
    }
  }

  #acknowledged({ occurredAt }: Delivery): void {
    const { clock, metrics } = this.#platform;
    // The commit may have been another node's, whose clock is ahead.
    metrics.deliverySeconds.observe(Math.max(0, clock.now().getTime() - occurredAt.getTime()) / 1000);
  }

  #attempt(held: Held, delivery: Delivery, body: Buffer, traceParent: string | null): Promise<Outcome> {
    return attemptDelivery(this.#platform, held, delivery, body, {
      ...this.#options,
      preferredVersion: this.#sender.standing.preferredVersion(),
      traceParent,
    });
  }

  /** Sends once more what was asked for; it stays asked for where the service stops. */
  async #resend(sessionId: string, hand: Hand): Promise<void> {
    const { clock, db } = this.#platform;
    for (const deliveryId of hand.resends.splice(0)) {
      const held = this.#sender.held;
      const found = await readFinished(db, held, deliveryId);
      if (!found || !this.#sender.maySend(sessionId, hand)) continue;
      const { delivery, owner } = found;
      const outcome = await this.#attempt(held, delivery, await this.#rebuild(owner, delivery, []), null);
      if (this.#options.signal.aborted) return;
      const isAccepted = outcome.verdict === 'accepted';
      if (isAccepted) await this.#sender.accepted(hand, held, outcome.secretVersion);
      else await this.#judge(held, delivery, outcome, hand);
      await finishAgain(db, held, { delivery, attempts: outcome.attempts }, isAccepted, clock.now());
    }
  }

  /** What a failure says of the destination; whether the subscription was disabled for it. */
  async #judge(held: Held, { sessionId }: Delivery, outcome: Outcome, hand: Hand): Promise<boolean> {
    const { clock, db } = this.#platform;
    const at = clock.now();
    const { isProbe } = hand;
    hand.isProbe = false;
    const { verdict, retryAfterMs } = outcome;
    const { error = null, status = null } = outcome.attempts.at(-1) ?? {};
    const isDisabled =
      (await this.#sender.standing.failed(held, { sessionId, at, isProbe, retryAfterMs, error, status })) ||
      (verdict === 'gone' && (await disable(db, held, 'gone', at)));
    if (isDisabled) {
      this.#sender.halt();
      this.#options.onStale();
    }
    return isDisabled;
  }

  /** The next delivery, durable, and with it the one before acknowledged; undefined where there is none to send now. */
  async #next(sessionId: string, hand: Hand, before: Done | undefined): Promise<Parcel | undefined> {
    const { clock } = this.#platform;
    let done = before;
    for (;;) {
      if (hand.resends.length > 0) {
        if (done) await this.#settle({ done });
        done = undefined;
        await this.#resend(sessionId, hand);
      }
      // While others' deliveries are being fixed there is a moment, and with what comes in it one statement does for two.
      if (done && !hand.isWoken) await this.#fixing;
      if (done && !(hand.isWoken && this.#sender.isActive)) {
        const isDue = await this.#settleUnlessWoken({ done, hand });
        if (!isDue) return undefined;
        if (isDue !== 'more') done = undefined;
      }
      if (!this.#sender.maySend(sessionId, hand)) {
        if (done) await this.#settle({ done });
        return undefined;
      }
      hand.isWoken = false;
      const since = hand.since ?? clock.now();
      hand.since = undefined;
      const { epoch, chunkTypes } = this.#sender.held;
      const view = await this.#read({ sessionId, after: done?.through });
      if (view?.epoch !== epoch) {
        if (done) await this.#settle({ done });
        done = undefined;
        if (this.#isStillStale(epoch)) return undefined;
        continue;
      }
      if (view.delivery) return await this.#reopen(view, view.delivery, hand);
      const step = nextStep(view, chunkTypes, clock.now().getTime() - since.getTime());
      if (step.kind === 'send') {
        const delivery: Delivery = {
          ...step.content,
          deliveryId: newUuid(),
          sessionId,
          previousCursor: done ? formatCursor(done.delivery.to) : view.acknowledgedCursor,
          attemptCount: 0,
          retries: 0,
          nextAttemptAt: null,
          body: null,
        };
        if (await this.#fix({ epoch, next: delivery, after: view.after, done })) {
          return { ...step, delivery, isEarly: false, traceParent: view.traceParent };
        }
        if (done) await this.#settle({ done });
        done = undefined;
        if (this.#isStillStale(epoch)) return undefined;
        continue;
      }
      if (done) {
        // What stands behind it was not asked for or waits for company: the acknowledgement does not wait with it.
        const isDue = await this.#settle({ done });
        done = undefined;
        if (!isDue) return undefined;
      } else if (step.kind === 'skip') {
        const isDue = await this.#settle({ sessionId, epoch, after: view.after, through: step.through });
        if (isDue === false || (isDue === undefined && this.#isStillStale(epoch))) return undefined;
      } else if (step.kind === 'nothing') {
        return undefined;
      }
      if (step.kind === 'wait') {
        hand.since = since;
        await this.#waitForCompany(hand, since);
      }
    }
  }

  /**
   * What was read of one epoch was refused. Where the subscription has been read again meanwhile, the loop goes on with
   * that: nobody else would look at its Session. Else it stops, and is looked for when that has been done.
   */
  #isStillStale(epoch: number): boolean {
    if (this.#sender.held.epoch !== epoch) return false;
    this.#options.onStale();
    return true;
  }

  async #waitForCompany(hand: Hand, since: Date): Promise<void> {
    const { clock } = this.#platform;
    const end = since.getTime() + maxTextWaitMs;
    this.#sender.slots.release();
    do {
      const waitMs = Math.min(LOOK_AGAIN_MS, end - clock.now().getTime());
      await clock.sleep(Math.max(waitMs, 0), this.#sender.halted).catch(() => {});
    } while (this.#sender.isActive && !hand.isWoken && clock.now().getTime() < end);
    await this.#sender.slots.acquire();
  }

  /** A delivery that was fixed before: after a crash, or because its retry is due. */
  async #reopen(view: View, delivery: Delivery, hand: Hand): Promise<Parcel | undefined> {
    const isEarly = delivery.nextAttemptAt !== null && delivery.nextAttemptAt > this.#platform.clock.now();
    if (delivery.nextAttemptAt && isEarly && !hand.isProbe) {
      this.#sender.waitForRetry(delivery.sessionId, delivery.nextAttemptAt);
      hand.isWoken = false;
      return undefined;
    }
    const { body } = delivery;
    return {
      delivery,
      body: body === null ? await this.#rebuild(view.owner, delivery, view.segments) : Buffer.from(body),
      through: delivery.to,
      more: true,
      isEarly,
      traceParent: view.traceParent,
    };
  }

  #rebuild(owner: Owner, delivery: Delivery, read: readonly Segment[]): Promise<Buffer> {
    return readBody(this.#platform.db, this.#sender.held.organizationId, owner, delivery, read);
  }

  /** Whether the Session goes on: after the last retry it does, without this delivery. */
  async #failed(held: Held, parcel: Parcel, outcome: Outcome, hand: Hand): Promise<boolean> {
    const { clock, db } = this.#platform;
    const { delivery, body, through, isEarly } = parcel;
    const { attempts, retryAfterMs } = outcome;
    const isDisabled = await this.#judge(held, delivery, outcome, hand);
    const now = clock.now();
    const delayMs = retryDelayMs(delivery.retries, this.#options.random(), retryAfterMs);
    // A disabled subscription's delivery costs no retry and goes out as soon as it is enabled again; one that was sent before
    // its time keeps it.
    const isFree = isDisabled || isEarly;
    if (delayMs === undefined && !isFree) {
      return (await giveUp(db, held, { delivery, attempts, through }, now)) === true;
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
