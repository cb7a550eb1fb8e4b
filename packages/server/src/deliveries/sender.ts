// Sends the deliveries of one subscription.
//
// Each session with something to send is in flight: it has one loop (session-loop.ts), so its deliveries go out in order. Loops of
// different sessions run concurrently. When its loop ends, the session is no longer in flight.
//
// While the destination is being probed (health-rules.ts), only one session at a time is in flight, as the probe; sessions that have
// not failed yet come first. An attempt before the delivery's retry time does not use up a retry.

import { OVER } from '../lib/aborted.ts';
import { formatId } from '../lib/ids.ts';
import { Semaphore } from '../lib/semaphore.ts';
import type { Platform } from '../platform.ts';
import type { Hints } from '../wake/hints.ts';
import type { Assignment } from './destinations/assignments.ts';
import { DestinationHealth } from './destinations/destination-health.ts';
import { beforeAllSessions, type DuePage, PAGE_SIZE, type ScanPosition } from './destinations/due-sessions.ts';
import { subscriptionHealth } from './destinations/subscription-changes.ts';
import { MAX_RECOVERING, rewindDeliveries } from './rewind.ts';
import { type LoopOptions, type LoopPlatform, type SenderContext, SessionLoop } from './session-loop.ts';
import { leaveLong, type SessionWork } from './session-work.ts';
import { egressFor } from './test-receiver.ts';

type SenderPlatform = Omit<LoopPlatform, 'egress'> & Pick<Platform, 'vault' | 'egress'>;

export interface SenderOptions extends LoopOptions {
  /** There is room for more sessions, and some have not been read yet. */
  onCapacity: (sender: Sender) => void;
}

// Each needs a connection to the receiver and up to 64 KiB of memory.
const MAX_CONCURRENT = 200;
// Includes sessions that wait for a slot or for more text: a few hundred bytes each.
const MAX_IN_FLIGHT = 2_000;

export class Sender implements SenderContext {
  readonly #platform: LoopPlatform;
  readonly #options: SenderOptions;
  readonly #inFlight = new Map<string, SessionWork>();
  /** One for each session that is sending. */
  readonly slots = new Semaphore(MAX_CONCURRENT);
  readonly #loop: SessionLoop;
  #assignment: Assignment;
  #isActive = true;
  #halted = new AbortController();
  #scanAfter = beforeAllSessions;
  #mayHaveMore = false;
  /** Something may be due that this node does not know of. */
  #isScanWanted = false;
  /** When sessions that failed on this node are retried; earlier wake-ups are ignored. */
  readonly #retryAt = new Map<string, Date>();
  /** The session that is the current probe. */
  #probe: string | undefined;
  /** Sessions that were rewound and have not caught up. */
  readonly #recovering = new Set<string>();
  #isRecovering = false;
  readonly health: DestinationHealth<Assignment>;
  #reported: unknown;
  #drained: (() => void) | undefined;

  constructor(platform: SenderPlatform, assignment: Assignment, options: SenderOptions) {
    const log = platform.log.child({
      organizationId: formatId('org', assignment.organizationId),
      webhookSubscriptionId: formatId('whs', assignment.webhookSubscriptionId),
    });
    this.#platform = { ...platform, log, egress: egressFor(assignment, platform) };
    this.#assignment = assignment;
    this.#options = options;
    this.health = new DestinationHealth(this.#platform, assignment, subscriptionHealth);
    this.#loop = new SessionLoop(this.#platform, this, options);
  }

  get assignment(): Assignment {
    return this.#assignment;
  }

  /** False while the subscription is not assigned to this node or must not be sent to. */
  get isActive(): boolean {
    return this.#isActive;
  }

  get halted(): AbortSignal {
    return this.#halted.signal;
  }

  get isIdle(): boolean {
    return this.#inFlight.size === 0 && !this.#isRecovering;
  }

  /** Continues with the subscription as it is now. */
  resume(assignment: Assignment): void {
    this.health.resume(assignment);
    if (!this.#isActive) this.#halted = new AbortController();
    this.#assignment = assignment;
    this.#isActive = true;
    this.#scanAfter = beforeAllSessions;
    this.#retryAt.clear();
  }

  /** Starts no further attempt; attempts in flight are still acknowledged. */
  halt(): void {
    this.#isActive = false;
    this.#halted.abort(OVER);
  }

  /** Resolves when nothing is in flight. */
  drained(): Promise<void> {
    if (this.isIdle) return Promise.resolve();
    return new Promise((resolve) => {
      this.#drained = resolve;
    });
  }

  /** Chunks were committed to a session. */
  committed({ sessionId, commit }: Hints['journal']): void {
    this.#inFlight.get(sessionId)?.tail?.add(commit);
    this.enqueue(sessionId);
  }

  /** Starts or wakes the loop of a session that may have chunks waiting; `redelivery` is a finished delivery to send again. */
  enqueue(sessionId: string, redelivery?: string): void {
    const work = this.#inFlight.get(sessionId);
    if (work) {
      work.isWoken = true;
      work.since ??= this.#platform.clock.now();
      if (redelivery !== undefined && !work.redeliveries.includes(redelivery)) work.redeliveries.push(redelivery);
    } else if (!this.#isActive) {
      // The session is found again when the subscription is resumed.
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

  /** Whether the next poll must scan it, even if the search does not find it. */
  get needsScan(): boolean {
    const mayHaveMore = this.#mayHaveMore || this.#scanAfter !== beforeAllSessions;
    return this.#isScanWanted || mayHaveMore || this.#dueRetries().length > 0;
  }

  requestScan(): void {
    this.#isScanWanted = true;
  }

  #dueRetries(): string[] {
    const now = this.#platform.clock.now();
    return [...this.#retryAt].flatMap(([sessionId, at]) => (at <= now ? sessionId : []));
  }

  /** Where to read the next page of due sessions; undefined if there is no room for them or nothing may be sent now. */
  nextScan(): ScanPosition | undefined {
    const suspect = this.health.suspect;
    if (this.#isActive && suspect !== null && this.#mayProbe && !this.#inFlight.has(suspect))
      this.#startWork(suspect, true);
    const hasRoom = this.#inFlight.size + 2 * PAGE_SIZE <= MAX_IN_FLIGHT;
    if (!this.#isActive || !hasRoom || (this.health.awaitsProbe() && !this.#mayProbe)) {
      this.requestScan();
      return undefined;
    }
    return { ...this.#assignment, afterSessionId: this.#scanAfter };
  }

  /** Starts loops for a page of due sessions. */
  addDue({ ready, retries, waiting, redeliveries, hasRecovery, lastSessionId }: DuePage): void {
    const isFirstPage = this.#scanAfter === beforeAllSessions;
    this.#scanAfter = lastSessionId ?? beforeAllSessions;
    this.#mayHaveMore = lastSessionId !== undefined && ready.length > 0;
    for (const sessionId of [...retries, ...ready]) this.#retryAt.delete(sessionId);
    // All due retries are in the page, so the others are obsolete, for example because their session was deleted.
    if (retries.length < PAGE_SIZE) for (const sessionId of this.#dueRetries()) this.#retryAt.delete(sessionId);
    if (this.health.awaitsProbe()) {
      const [sessionId] = [...ready, ...retries, ...waiting];
      if (sessionId !== undefined) this.enqueue(sessionId);
      else if (redeliveries[0]) this.enqueue(redeliveries[0].sessionId, redeliveries[0].deliveryId);
    } else {
      for (const sessionId of [...retries, ...ready]) this.enqueue(sessionId);
      for (const { sessionId, deliveryId } of redeliveries) this.enqueue(sessionId, deliveryId);
      if (hasRecovery) void this.#recover();
    }
    const isKnown = (sessionId: string) => this.#inFlight.has(sessionId) || this.#retryAt.has(sessionId);
    const isAnyUnknown = ![...ready, ...retries, ...waiting].every(isKnown);
    this.#isScanWanted = isAnyUnknown || (this.#isScanWanted && !isFirstPage);
  }

  /** Rewinds as many sessions as may be recovered at once; when one of them has caught up, the next follows. */
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
    const since = this.#platform.clock.now();
    const work: SessionWork = { isWoken: false, since, isProbe, redeliveries: [] };
    if (redelivery !== undefined) work.redeliveries.push(redelivery);
    this.#inFlight.set(sessionId, work);
    void this.#run(sessionId, work);
  }

  async #run(sessionId: string, work: SessionWork): Promise<void> {
    await this.slots.acquire();
    try {
      await this.#loop.run(sessionId, work);
      // The suspect had nothing to send.
      if (this.health.suspect === sessionId && this.health.isProbeDue) this.health.clearSuspect();
    } catch (error) {
      // The session stays due and is found again. Loops whose statements were batched fail with the same error, which is logged once.
      if (error !== this.#reported) this.#platform.log.warn({ err: error }, 'deliveries were interrupted');
      this.#reported = error;
      this.requestScan();
      work.isWoken = false;
    } finally {
      leaveLong(work);
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

  /** Whether this loop may send: another session may have shown in the meantime that the destination fails. */
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
    if (await this.health.accepted(assignment, secretVersion)) {
      this.#retryAt.clear();
      this.requestScan();
    }
    if (wasProbed) this.#options.onCapacity(this);
  }
}
