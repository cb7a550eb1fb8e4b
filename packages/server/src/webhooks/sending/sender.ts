// The deliveries of one subscription.
//
// A Session with something to send is rewound in hand: one loop (session-loop.ts) for it at a time, so its deliveries go out in
// order, and as many loops at once as there are Sessions. When its loop has ended the Session leaves the hand.
//
// While the destination is probed (health.ts), Sessions stay where they are: one at a time is rewound in hand as the probe, one that
// has not failed yet before others. An attempt before its delivery's own time costs no retry.
import { formatId } from '../../lib/ids.ts';
import { Semaphore } from '../../lib/semaphore.ts';
import type { Platform } from '../../platform.ts';
import type { Assignment } from './assignments.ts';
import { DestinationHealth } from './destination-health.ts';
import { beforeAllSessions, type DuePage, PAGE_SIZE, type ScanPosition } from './due-sessions.ts';
import { MAX_RECOVERING, rewindDeliveries } from './rewind.ts';
import {
  type LoopOptions,
  type SenderContext,
  type SenderPlatform,
  SessionLoop,
  type SessionWork,
} from './session-loop.ts';
import { egressFor } from './test-receiver.ts';

export interface SenderOptions extends LoopOptions {
  /** There is room, and Sessions that were not looked at. */
  onCapacity: (sender: Sender) => void;
}

// Each holds a connection to the receiver and up to 64 KiB.
const MAX_CONCURRENT = 200;
// Beyond those that send: waiting for their turn or for company, a few hundred bytes each.
const MAX_IN_FLIGHT = 2_000;

export class Sender implements SenderContext {
  readonly #platform: SenderPlatform;
  readonly #options: SenderOptions;
  readonly #inFlight = new Map<string, SessionWork>();
  /** Of those that send. */
  readonly slots = new Semaphore(MAX_CONCURRENT);
  readonly #loop: SessionLoop;
  #assignment: Assignment;
  #isActive = true;
  #halted = new AbortController();
  #scanAfter = beforeAllSessions;
  #mayHaveMore = false;
  /** When Sessions that this node saw fail are tried again; a wake-up before that is for nothing. */
  readonly #retryAt = new Map<string, Date>();
  /** The Session that is the probe now. */
  #probe: string | undefined;
  /** Sessions that were rewound back and have not caught up. */
  readonly #recovering = new Set<string>();
  #isRecovering = false;
  readonly health: DestinationHealth;
  #reported: unknown;
  #drained: (() => void) | undefined;

  constructor(platform: SenderPlatform & Pick<Platform, 'vault'>, assignment: Assignment, options: SenderOptions) {
    const log = platform.log.child({
      organizationId: formatId('org', assignment.organizationId),
      webhookSubscriptionId: formatId('whs', assignment.webhookSubscriptionId),
    });
    this.#platform = { ...platform, log, egress: egressFor(assignment, platform) };
    this.#assignment = assignment;
    this.#options = options;
    this.health = new DestinationHealth(this.#platform, assignment);
    this.#loop = new SessionLoop(this.#platform, this, options);
  }

  get assignment(): Assignment {
    return this.#assignment;
  }

  /** Whether it may send. */
  get isActive(): boolean {
    return this.#isActive;
  }

  get halted(): AbortSignal {
    return this.#halted.signal;
  }

  get isIdle(): boolean {
    return this.#inFlight.size === 0 && !this.#isRecovering;
  }

  /** Goes on with the subscription as it is now. */
  resume(assignment: Assignment): void {
    this.health.resume(assignment);
    if (!this.#isActive) this.#halted = new AbortController();
    this.#assignment = assignment;
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

  /** Something may wait in this Session, or `redelivery` was asked for once more. */
  enqueue(sessionId: string, redelivery?: string): void {
    const work = this.#inFlight.get(sessionId);
    if (work) {
      work.isWoken = true;
      work.since ??= this.#platform.clock.now();
      if (redelivery !== undefined && !work.redeliveries.includes(redelivery)) work.redeliveries.push(redelivery);
    } else if (!this.#isActive) {
      // It is found again when the subscription is resumed.
    } else if (this.#inFlight.size >= MAX_IN_FLIGHT) {
      this.#mayHaveMore = true;
    } else if (this.health.awaitsProbe(sessionId)) {
      if (this.#mayProbe) this.#startWork(sessionId, true, redelivery);
    } else {
      const retryAt = this.#retryAt.get(sessionId);
      if (retryAt && retryAt > this.#platform.clock.now() && redelivery === undefined) return;
      this.#startWork(sessionId, false, redelivery);
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
  nextScan(): ScanPosition | undefined {
    const suspect = this.health.suspect;
    if (this.#isActive && suspect !== null && this.#mayProbe && !this.#inFlight.has(suspect))
      this.#startWork(suspect, true);
    if (!this.#isActive || this.#inFlight.size + 2 * PAGE_SIZE > MAX_IN_FLIGHT) return undefined;
    if (this.health.awaitsProbe() && !this.#mayProbe) return undefined;
    return { ...this.#assignment, afterSessionId: this.#scanAfter };
  }

  /** Takes what was found there. */
  addDue({ ready, retries, waiting, redeliveries, hasRecovery, lastSessionId }: DuePage): void {
    this.#scanAfter = lastSessionId ?? beforeAllSessions;
    this.#mayHaveMore = lastSessionId !== undefined && ready.length > 0;
    for (const sessionId of [...retries, ...ready]) this.#retryAt.delete(sessionId);
    // Of sessions that are gone, say: all that are due were found.
    if (retries.length < PAGE_SIZE) for (const sessionId of this.#dueRetries()) this.#retryAt.delete(sessionId);
    if (this.health.awaitsProbe()) {
      const [sessionId] = [...ready, ...retries, ...waiting];
      if (sessionId !== undefined) this.enqueue(sessionId);
      else if (redeliveries[0]) this.enqueue(redeliveries[0].sessionId, redeliveries[0].deliveryId);
      return;
    }
    for (const sessionId of [...retries, ...ready]) this.enqueue(sessionId);
    for (const { sessionId, deliveryId } of redeliveries) this.enqueue(sessionId, deliveryId);
    if (hasRecovery) void this.#recover();
  }

  /** Takes Sessions back, as many as may be recovered at once; the end of each of them calls for the next. */
  async #recover(): Promise<void> {
    if (this.#isRecovering) return;
    this.#isRecovering = true;
    try {
      for (let isOver = false; !isOver && this.#isActive && !this.health.awaitsProbe(); ) {
        const room = MAX_RECOVERING - this.#recovering.size;
        if (room === 0) break;
        const { clock, db } = this.#platform;
        const rewound = await rewindDeliveries(db, this.#assignment, room, clock.now());
        isOver = rewound.isOver;
        for (const sessionId of rewound.sessionIds) {
          this.#retryAt.delete(sessionId);
          this.enqueue(sessionId);
          if (this.#inFlight.has(sessionId)) this.#recovering.add(sessionId);
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
    return this.#probe === undefined && this.health.isProbeDue;
  }

  #startWork(sessionId: string, isProbe: boolean, redelivery?: string): void {
    if (isProbe) this.#probe = sessionId;
    this.#retryAt.delete(sessionId);
    const work: SessionWork = { isWoken: false, since: this.#platform.clock.now(), isProbe, redeliveries: [] };
    if (redelivery !== undefined) work.redeliveries.push(redelivery);
    this.#inFlight.set(sessionId, work);
    void this.#run(sessionId, work);
  }

  async #run(sessionId: string, work: SessionWork): Promise<void> {
    await this.slots.acquire();
    try {
      await this.#loop.run(sessionId, work);
      // It had nothing to send.
      if (this.health.suspect === sessionId && this.health.isProbeDue) this.health.clearSuspect();
    } catch (error) {
      // The Session stays due and is found again. Loops that travelled together fail together: one line is enough.
      if (error !== this.#reported) this.#platform.log.warn({ err: error }, 'deliveries were interrupted');
      this.#reported = error;
      work.isWoken = false;
    } finally {
      this.slots.release();
      this.#inFlight.delete(sessionId);
      if (this.#probe === sessionId) this.#probe = undefined;
    }
    if (work.isWoken) this.enqueue(sessionId);
    if (this.#recovering.has(sessionId) && !this.#inFlight.has(sessionId)) {
      this.#recovering.delete(sessionId);
      void this.#recover();
    }
    if (this.isIdle) this.#drained?.();
    if (this.#mayHaveMore && this.#inFlight.size < MAX_CONCURRENT) this.#options.onCapacity(this);
  }

  /** Whether this loop may send: the destination may have failed elsewhere meanwhile. */
  maySend(sessionId: string, work: SessionWork): boolean {
    return this.#isActive && (work.isProbe || !this.health.awaitsProbe(sessionId));
  }

  waitForRetry(sessionId: string, at: Date): void {
    this.#retryAt.set(sessionId, at);
  }

  async accepted(work: SessionWork, assignment: Assignment, secretVersion: number): Promise<void> {
    const wasProbed = work.isProbe || this.health.awaitsProbe();
    if (work.isProbe) this.#probe = undefined;
    work.isProbe = false;
    if (await this.health.accepted(assignment, secretVersion)) this.#retryAt.clear();
    if (wasProbed) this.#options.onCapacity(this);
  }
}
