// The deliveries of one subscription.
//
// A Session with something to send is taken in hand: one loop for it at a time, so its deliveries go out in order, and as many
// loops at once as there are Sessions. A loop reads what waits, makes the next delivery durable, sends it, and acknowledges it
// in the statement that fixes the one after. It ends when nothing waits, or when an attempt failed: then the time of the next
// one stands in the database and the Session leaves the hand.
//
// The reads and writes of all loops travel together (`gather`). What a loop knows of the subscription is good for one epoch;
// where a statement finds another, the loop stops, the subscription is read again and its Sessions are looked for anew.
import { comparePositions, formatCursor, type Position } from '../journal/cursor.ts';
import { readSegments } from '../journal/read.ts';
import { gather } from '../lib/gather.ts';
import { formatId, newUuid } from '../lib/ids.ts';
import type { Platform } from '../platform.ts';
import { attemptDelivery, type Outcome } from './attempt.ts';
import { maxChunks, maxTextWaitMs, nextStep, rebuildBody } from './batch.ts';
import { beforeAllSessions, PAGE_SIZE, type Page, type Place } from './due.ts';
import { disable, type Held } from './holding.ts';
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
import { retryDelayMs } from './schedule.ts';
import { Slots } from './slots.ts';
import { Standing } from './standing.ts';

export type SenderPlatform = Pick<Platform, 'db' | 'clock' | 'egress' | 'log'>;

export interface SenderOptions {
  /** Of the service. */
  version: string;
  /** 0 up to 1, for the jitter of retries. */
  random: () => number;
  /** The subscription is no longer as it was held. */
  onStale: () => void;
  /** There is room, and Sessions that were not looked at. */
  onRoom: (sender: Sender) => void;
  /** Aborts the attempts under way. */
  signal: AbortSignal;
}

// Each holds a connection to the receiver and up to 64 KiB.
const MAX_SENDING = 200;
// Beyond those that send: waiting for their turn or for company, a few hundred bytes each.
const MAX_IN_HAND = 2_000;
// While text waits for company, a wake-up may mean that something came which must not wait. Finding out is a read for each
// Session that streams, so no more than this often.
const LOOK_AGAIN_MS = 25;

interface Hand {
  /** Something may have come since the last read. */
  isWoken: boolean;
  /** When what waits now was first heard of; undefined: nothing is known to wait. */
  since: Date | undefined;
}

/** A delivery with its bytes, ready to go. */
interface Parcel {
  delivery: Delivery;
  body: Buffer;
  /** Up to here nothing else was asked for. */
  through: Position;
  /** Behind that something may be. */
  more: boolean;
}

export class Sender {
  readonly #platform: SenderPlatform;
  readonly #options: SenderOptions;
  readonly #hands = new Map<string, Hand>();
  readonly #slots = new Slots(MAX_SENDING);
  #held: Held;
  #isActive = true;
  #halted = new AbortController();
  #scanAfter = beforeAllSessions;
  #mayHaveMore = false;
  /** When Sessions that this node saw fail are tried again; a wake-up before that is for nothing. */
  readonly #retryAt = new Map<string, Date>();
  readonly standing: Standing;
  #reported: unknown;
  #drained: (() => void) | undefined;

  readonly #read = gather((inputs: readonly ReadInput[]) => readMany(this.#platform.db, this.#held, inputs));
  readonly #fix = gather((inputs: readonly FixInput[]) =>
    fixMany(this.#platform.db, this.#held, inputs, this.#platform.clock.now()),
  );
  readonly #settle = gather((inputs: readonly SettleInput[]) =>
    settleMany(this.#platform.db, this.#held, inputs, this.#platform.clock.now()),
  );
  /** Acknowledges where nothing has come until the statement goes out; where something has, answers `more` instead. */
  readonly #settleUnlessWoken = gather(async (inputs: readonly { done: Done; hand: Hand }[]) => {
    const quiet = inputs.filter(({ hand }) => !hand.isWoken || !this.#isActive);
    const now = this.#platform.clock.now();
    const settled = quiet.length === 0 ? [] : await settleMany(this.#platform.db, this.#held, quiet, now);
    const isDue = new Map(quiet.map((input, index) => [input, settled[index]]));
    return inputs.map((input) => (isDue.has(input) ? isDue.get(input) : 'more'));
  });
  readonly #postpone = gather(async (inputs: readonly PostponeInput[]) => {
    await postponeMany(this.#platform.db, this.#held, inputs);
    return inputs;
  });

  constructor(platform: SenderPlatform, held: Held, options: SenderOptions) {
    const log = platform.log.child({
      organizationId: formatId('org', held.organizationId),
      webhookSubscriptionId: formatId('whs', held.webhookSubscriptionId),
    });
    this.#platform = { ...platform, log };
    this.#held = held;
    this.#options = options;
    this.standing = new Standing(this.#platform, held);
  }

  get held(): Held {
    return this.#held;
  }

  /** Whether it may send. */
  get isActive(): boolean {
    return this.#isActive;
  }

  get isIdle(): boolean {
    return this.#hands.size === 0;
  }

  /** Goes on with the subscription as it is now. */
  resume(held: Held): void {
    this.standing.resume(held);
    if (!this.#isActive) this.#halted = new AbortController();
    this.#held = held;
    this.#isActive = true;
    this.#scanAfter = beforeAllSessions;
    this.#retryAt.clear();
  }

  /** Sends nothing more; what is on its way is still acknowledged. */
  halt(): void {
    this.#isActive = false;
    this.#halted.abort();
  }

  /** Resolves when nothing is on its way. */
  drained(): Promise<void> {
    if (this.isIdle) return Promise.resolve();
    return new Promise((resolve) => {
      this.#drained = resolve;
    });
  }

  /** Something may wait in this Session. */
  take(sessionId: string): void {
    const hand = this.#hands.get(sessionId);
    if (hand) {
      hand.isWoken = true;
      hand.since ??= this.#platform.clock.now();
    } else if (!this.#isActive) {
      // It is found again when the subscription is resumed.
    } else if (this.#hands.size >= MAX_IN_HAND) {
      this.#mayHaveMore = true;
    } else {
      const now = this.#platform.clock.now();
      const retryAt = this.#retryAt.get(sessionId);
      if (retryAt && retryAt > now) return;
      this.#retryAt.delete(sessionId);
      const taken: Hand = { isWoken: false, since: now };
      this.#hands.set(sessionId, taken);
      void this.#carry(sessionId, taken);
    }
  }

  /** Where to look for what is due; undefined where there is no room for it. */
  place(): Place | undefined {
    if (!this.#isActive || this.#hands.size + 2 * PAGE_SIZE > MAX_IN_HAND) return undefined;
    return { ...this.#held, afterSessionId: this.#scanAfter };
  }

  /** Takes what was found there. */
  found({ ready, retries, lastSessionId }: Page): void {
    this.#scanAfter = lastSessionId ?? beforeAllSessions;
    this.#mayHaveMore = lastSessionId !== undefined && ready.length > 0;
    for (const sessionId of retries) this.#retryAt.delete(sessionId);
    for (const sessionId of [...retries, ...ready]) this.take(sessionId);
  }

  async #carry(sessionId: string, hand: Hand): Promise<void> {
    await this.#slots.take();
    try {
      await this.#deliver(sessionId, hand);
    } catch (error) {
      // The Session stays due and is found again. Loops that travelled together fail together: one line is enough.
      if (error !== this.#reported) this.#platform.log.warn({ err: error }, 'deliveries were interrupted');
      this.#reported = error;
      hand.isWoken = false;
    } finally {
      this.#slots.give();
      this.#hands.delete(sessionId);
    }
    if (hand.isWoken) this.take(sessionId);
    if (this.isIdle) this.#drained?.();
    if (this.#mayHaveMore && this.#hands.size < MAX_SENDING) this.#options.onRoom(this);
  }

  async #deliver(sessionId: string, hand: Hand): Promise<void> {
    let parcel = await this.#next(sessionId, hand, undefined);
    while (parcel) {
      const { delivery, body, through, more } = parcel;
      const held = this.#held;
      const outcome = await attemptDelivery(this.#platform, held, delivery, body, {
        version: this.#options.version,
        preferredVersion: this.standing.preferredVersion(),
        signal: this.#options.signal,
      });
      if (more) hand.isWoken = true;
      if (outcome.verdict === 'accepted') {
        await this.standing.accepted(held, outcome.secretVersion);
        parcel = await this.#next(sessionId, hand, { delivery, attempts: outcome.attempts, through });
      } else if (this.#options.signal.aborted || !(await this.#failed(held, parcel, outcome))) {
        // Nothing follows before this one: what woke it up in the meantime is found when its retry is due.
        hand.isWoken = false;
        return;
      } else {
        parcel = await this.#next(sessionId, hand, undefined);
      }
    }
  }

  /** The next delivery, durable, and with it the one before acknowledged; undefined where there is none to send now. */
  async #next(sessionId: string, hand: Hand, before: Done | undefined): Promise<Parcel | undefined> {
    const { clock } = this.#platform;
    let done = before;
    for (;;) {
      if (done) {
        // Under load there is a moment before the statement goes out, and with what comes in it one statement does for two.
        const isDue = await this.#settleUnlessWoken({ done, hand });
        if (!isDue) return undefined;
        if (isDue !== 'more') done = undefined;
      }
      if (!this.#isActive) {
        if (done) await this.#settle({ done });
        return undefined;
      }
      hand.isWoken = false;
      const since = hand.since ?? clock.now();
      hand.since = undefined;
      const { epoch, chunkTypes } = this.#held;
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
        if (await this.#fix({ epoch, next: delivery, after: view.after, done })) return { ...step, delivery };
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
    if (this.#held.epoch !== epoch) return false;
    this.#options.onStale();
    return true;
  }

  async #waitForCompany(hand: Hand, since: Date): Promise<void> {
    const { clock } = this.#platform;
    const end = since.getTime() + maxTextWaitMs;
    this.#slots.give();
    do {
      const waitMs = Math.min(LOOK_AGAIN_MS, end - clock.now().getTime());
      await clock.sleep(Math.max(waitMs, 0), this.#halted.signal).catch(() => {});
    } while (this.#isActive && !hand.isWoken && clock.now().getTime() < end);
    await this.#slots.take();
  }

  /** A delivery that was fixed before: after a crash, or because its retry is due. */
  async #reopen(view: View, delivery: Delivery, hand: Hand): Promise<Parcel | undefined> {
    if (delivery.nextAttemptAt && delivery.nextAttemptAt > this.#platform.clock.now()) {
      this.#retryAt.set(delivery.sessionId, delivery.nextAttemptAt);
      hand.isWoken = false;
      return undefined;
    }
    const { body } = delivery;
    return {
      delivery,
      body: body === null ? await this.#rebuild(view, delivery) : Buffer.from(body),
      through: delivery.to,
      more: true,
    };
  }

  async #rebuild({ owner, segments: read }: View, delivery: Delivery): Promise<Buffer> {
    const segments = [...read];
    for (;;) {
      const last = segments.at(-1);
      const after = last ? { turn: last.turn, seq: last.seqTo } : delivery.from;
      if (comparePositions(after, delivery.to) >= 0) break;
      const more = await readSegments(this.#platform.db, this.#held.organizationId, owner.sessionId, after, maxChunks);
      if (more.length === 0) break;
      segments.push(...more);
    }
    return rebuildBody(owner, delivery, segments);
  }

  /** Whether the Session goes on: after the last retry it does, without this delivery. */
  async #failed(held: Held, parcel: Parcel, { verdict, attempts, retryAfterMs }: Outcome): Promise<boolean> {
    const { clock, db } = this.#platform;
    const { delivery, body, through } = parcel;
    const now = clock.now();
    await this.standing.failed();
    const isDisabled = verdict === 'gone' && (await disable(db, held, 'gone', now));
    // A disabled subscription's delivery costs no retry and goes out as soon as it is enabled again.
    const delayMs = isDisabled ? 0 : retryDelayMs(delivery.retries, this.#options.random(), retryAfterMs);
    if (isDisabled) {
      this.halt();
      this.#options.onStale();
    }
    if (delayMs === undefined) {
      return (await giveUp(db, held, { delivery, attempts, through }, now)) === true;
    }
    const nextAttemptAt = new Date(now.getTime() + delayMs);
    const retries = isDisabled ? delivery.retries : delivery.retries + 1;
    await this.#postpone({ delivery, attempts, retries, nextAttemptAt, body });
    this.#retryAt.set(delivery.sessionId, nextAttemptAt);
    return false;
  }
}
