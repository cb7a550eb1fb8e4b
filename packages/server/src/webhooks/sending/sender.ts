// The deliveries of one subscription.
//
// A Session with something to send is taken in hand: one loop (session-loop.ts) for it at a time, so its deliveries go out in
// order, and as many loops at once as there are Sessions. When its loop has ended the Session leaves the hand.
//
// While the destination is probed (health.ts), Sessions stay where they are: one at a time is taken in hand as the probe, one that
// has not failed yet before others. An attempt before its delivery's own time costs no retry.
import { formatId } from '../../lib/ids.ts';
import { Semaphore } from '../../lib/semaphore.ts';
import type { Platform } from '../../platform.ts';
import type { Held } from './assignments.ts';
import { Standing } from './destination-health.ts';
import { beforeAllSessions, PAGE_SIZE, type Page, type Place } from './due.ts';
import { MAX_RECOVERING, takeBack } from './rewind.ts';
import { type Hand, type Host, type LoopOptions, type SenderPlatform, SessionLoop } from './session-loop.ts';
import { wayTo } from './test-receiver.ts';

export interface SenderOptions extends LoopOptions {
  /** There is room, and Sessions that were not looked at. */
  onRoom: (sender: Sender) => void;
}

// Each holds a connection to the receiver and up to 64 KiB.
const MAX_SENDING = 200;
// Beyond those that send: waiting for their turn or for company, a few hundred bytes each.
const MAX_IN_HAND = 2_000;

export class Sender implements Host {
  readonly #platform: SenderPlatform;
  readonly #options: SenderOptions;
  readonly #hands = new Map<string, Hand>();
  /** Of those that send. */
  readonly slots = new Semaphore(MAX_SENDING);
  readonly #loop: SessionLoop;
  #held: Held;
  #isActive = true;
  #halted = new AbortController();
  #scanAfter = beforeAllSessions;
  #mayHaveMore = false;
  /** When Sessions that this node saw fail are tried again; a wake-up before that is for nothing. */
  readonly #retryAt = new Map<string, Date>();
  /** The Session that is the probe now. */
  #probe: string | undefined;
  /** Sessions that were taken back and have not caught up. */
  readonly #recovering = new Set<string>();
  #isRecovering = false;
  readonly standing: Standing;
  #reported: unknown;
  #drained: (() => void) | undefined;

  constructor(platform: SenderPlatform & Pick<Platform, 'vault'>, held: Held, options: SenderOptions) {
    const log = platform.log.child({
      organizationId: formatId('org', held.organizationId),
      webhookSubscriptionId: formatId('whs', held.webhookSubscriptionId),
    });
    this.#platform = { ...platform, log, egress: wayTo(held, platform) };
    this.#held = held;
    this.#options = options;
    this.standing = new Standing(this.#platform, held);
    this.#loop = new SessionLoop(this.#platform, this, options);
  }

  get held(): Held {
    return this.#held;
  }

  /** Whether it may send. */
  get isActive(): boolean {
    return this.#isActive;
  }

  get halted(): AbortSignal {
    return this.#halted.signal;
  }

  get isIdle(): boolean {
    return this.#hands.size === 0 && !this.#isRecovering;
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

  /** Something may wait in this Session, or `resend` was asked for once more. */
  take(sessionId: string, resend?: string): void {
    const hand = this.#hands.get(sessionId);
    if (hand) {
      hand.isWoken = true;
      hand.since ??= this.#platform.clock.now();
      if (resend !== undefined && !hand.resends.includes(resend)) hand.resends.push(resend);
    } else if (!this.#isActive) {
      // It is found again when the subscription is resumed.
    } else if (this.#hands.size >= MAX_IN_HAND) {
      this.#mayHaveMore = true;
    } else if (this.standing.holdsBack(sessionId)) {
      if (this.#mayProbe) this.#takeInHand(sessionId, true, resend);
    } else {
      const retryAt = this.#retryAt.get(sessionId);
      if (retryAt && retryAt > this.#platform.clock.now() && resend === undefined) return;
      this.#takeInHand(sessionId, false, resend);
    }
  }

  /** Whether something is due that this node knows of, without a search. */
  get hasDue(): boolean {
    return this.#mayHaveMore || this.#scanAfter !== beforeAllSessions || this.#dueRetries().length > 0;
  }

  #dueRetries(): string[] {
    const now = this.#platform.clock.now();
    return [...this.#retryAt].flatMap(([sessionId, at]) => (at <= now ? sessionId : []));
  }

  /** Where to look for what is due; undefined where there is no room for it, or nothing may be sent now. */
  place(): Place | undefined {
    const suspect = this.standing.suspect;
    if (this.#isActive && suspect !== null && this.#mayProbe && !this.#hands.has(suspect))
      this.#takeInHand(suspect, true);
    if (!this.#isActive || this.#hands.size + 2 * PAGE_SIZE > MAX_IN_HAND) return undefined;
    if (this.standing.holdsBack() && !this.#mayProbe) return undefined;
    return { ...this.#held, afterSessionId: this.#scanAfter };
  }

  /** Takes what was found there. */
  found({ ready, retries, waiting, resends, hasRecovery, lastSessionId }: Page): void {
    this.#scanAfter = lastSessionId ?? beforeAllSessions;
    this.#mayHaveMore = lastSessionId !== undefined && ready.length > 0;
    for (const sessionId of [...retries, ...ready]) this.#retryAt.delete(sessionId);
    // Of sessions that are gone, say: all that are due were found.
    if (retries.length < PAGE_SIZE) for (const sessionId of this.#dueRetries()) this.#retryAt.delete(sessionId);
    if (this.standing.holdsBack()) {
      const [sessionId] = [...ready, ...retries, ...waiting];
      if (sessionId !== undefined) this.take(sessionId);
      else if (resends[0]) this.take(resends[0].sessionId, resends[0].deliveryId);
      return;
    }
    for (const sessionId of [...retries, ...ready]) this.take(sessionId);
    for (const { sessionId, deliveryId } of resends) this.take(sessionId, deliveryId);
    if (hasRecovery) void this.#recover();
  }

  /** Takes Sessions back, as many as may be recovered at once; the end of each of them calls for the next. */
  async #recover(): Promise<void> {
    if (this.#isRecovering) return;
    this.#isRecovering = true;
    try {
      for (let isOver = false; !isOver && this.#isActive && !this.standing.holdsBack(); ) {
        const room = MAX_RECOVERING - this.#recovering.size;
        if (room === 0) break;
        const { clock, db } = this.#platform;
        const taken = await takeBack(db, this.#held, room, clock.now());
        isOver = taken.isOver;
        for (const sessionId of taken.sessionIds) {
          this.#retryAt.delete(sessionId);
          this.take(sessionId);
          if (this.#hands.has(sessionId)) this.#recovering.add(sessionId);
        }
      }
    } catch (error) {
      this.#platform.log.warn({ err: error }, 'a recovery was interrupted; it continues with the next poll');
    } finally {
      this.#isRecovering = false;
    }
    if (this.isIdle) this.#drained?.();
  }

  get #mayProbe(): boolean {
    return this.#probe === undefined && this.standing.isProbeDue;
  }

  #takeInHand(sessionId: string, isProbe: boolean, resend?: string): void {
    if (isProbe) this.#probe = sessionId;
    this.#retryAt.delete(sessionId);
    const hand: Hand = { isWoken: false, since: this.#platform.clock.now(), isProbe, resends: [] };
    if (resend !== undefined) hand.resends.push(resend);
    this.#hands.set(sessionId, hand);
    void this.#carry(sessionId, hand);
  }

  async #carry(sessionId: string, hand: Hand): Promise<void> {
    await this.slots.acquire();
    try {
      await this.#loop.run(sessionId, hand);
      // It had nothing to send.
      if (this.standing.suspect === sessionId && this.standing.isProbeDue) this.standing.clearSuspect();
    } catch (error) {
      // The Session stays due and is found again. Loops that travelled together fail together: one line is enough.
      if (error !== this.#reported) this.#platform.log.warn({ err: error }, 'deliveries were interrupted');
      this.#reported = error;
      hand.isWoken = false;
    } finally {
      this.slots.release();
      this.#hands.delete(sessionId);
      if (this.#probe === sessionId) this.#probe = undefined;
    }
    if (hand.isWoken) this.take(sessionId);
    if (this.#recovering.has(sessionId) && !this.#hands.has(sessionId)) {
      this.#recovering.delete(sessionId);
      void this.#recover();
    }
    if (this.isIdle) this.#drained?.();
    if (this.#mayHaveMore && this.#hands.size < MAX_SENDING) this.#options.onRoom(this);
  }

  /** Whether this loop may send: the destination may have failed elsewhere meanwhile. */
  maySend(sessionId: string, hand: Hand): boolean {
    return this.#isActive && (hand.isProbe || !this.standing.holdsBack(sessionId));
  }

  waitForRetry(sessionId: string, at: Date): void {
    this.#retryAt.set(sessionId, at);
  }

  async accepted(hand: Hand, held: Held, secretVersion: number): Promise<void> {
    const wasProbed = hand.isProbe || this.standing.holdsBack();
    if (hand.isProbe) this.#probe = undefined;
    hand.isProbe = false;
    if (await this.standing.accepted(held, secretVersion)) this.#retryAt.clear();
    if (wasProbed) this.#options.onRoom(this);
  }
}
