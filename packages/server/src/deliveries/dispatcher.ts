// Sends webhooks: the chunks of each session go out in order, one delivery at a time, and are retried until the receiver accepts.
//
//   webhook_subscriptions   assigned to one node at a time (assignments.ts), which shares.ts determines; the node has a sender
//                           for each of its subscriptions (sender.ts)
//   sessions                delivery_due is set by every append and means that chunks wait. delivered_turn and delivered_seq say
//                           how far deliveries have come; delivery_id is the current delivery (progress.ts)
//   pending_deliveries      the current delivery of each session, durable before its first attempt. next_attempt_at is set
//                           while it waits for a retry
//   webhook_deliveries      finished deliveries. next_attempt_at is set while one is to be sent again
//
// A sender works on a session (session-loop.ts) after a wake-up that follows an append, when a retry is due, or when a poll finds
// the session. Wake-ups can be lost, so every node polls once a second: it looks for subscriptions with work
// (due-subscriptions.ts), less often if that is slow, then for the due sessions of those that are assigned to it
// (due-sessions.ts). The cost of a poll depends on the work found, not on the number of subscriptions. Work from before an
// assignment is found when the subscription is claimed.

import { OVER } from '../lib/aborted.ts';
import { coalesced } from '../lib/coalesced.ts';
import { createFairShare } from '../lib/fair-share.ts';
import type { Platform } from '../platform.ts';
import { environmentKey } from '../wake/followers.ts';
import type { Hints } from '../wake/hints.ts';
import {
  type ClaimableSubscription,
  claimSubscriptions,
  findClaimable,
  handOver,
  isAnyUnassigned,
  releaseAll,
} from './destinations/assignments.ts';
import { findDue, type ScanPosition } from './destinations/due-sessions.ts';
import { createDueSearch } from './destinations/due-subscriptions.ts';
import { deliveryNodes, leaveShares, nodeFor } from './destinations/shares.ts';
import { writeHealthUpdates } from './destinations/subscription-changes.ts';
import { Sender } from './sender.ts';

export interface Dispatcher {
  start(): void;
  /** Starts no further delivery, waits `graceMs` for those in flight, and releases the node's subscriptions. */
  stop(): Promise<void>;
}

export type DispatcherPlatform = Pick<
  Platform,
  'db' | 'shards' | 'clock' | 'log' | 'vault' | 'wake' | 'egress' | 'metrics' | 'analytics' | 'tracing'
>;

export interface DispatcherOptions {
  /** The node's row in `nodes` is inserted and renewed elsewhere (node/claims/node-lease.ts); without it nothing is sent. */
  nodeId: string;
  /** The version of the service, for `User-Agent`. */
  version: string;
  /** Returns 0 up to 1; used for the jitter of retries. */
  random?: () => number;
  /** The time limit of an attempt; 15 s by default. */
  timeoutMs?: number;
  /** How long `stop` waits for deliveries in flight before it aborts them; 5 s by default. */
  graceMs?: number;
}

const POLL_MS = 1_000;
const DEFAULT_GRACE_MS = 5_000;
// How many deliveries of a long chunk this node has in memory at once: a chunk of 1 MB takes several times that in all its forms. Others
// have at most 64 KiB.
const MAX_LONG = 8;
// The number of claims in one transaction, which limits how long their rows stay locked.
const CLAIM_BATCH = 100;
// The number of subscriptions whose health one statement writes.
const HEALTH_BATCH = 500;

export function createDispatcher(platform: DispatcherPlatform, options: DispatcherOptions): Dispatcher {
  const { db, shards, clock, log, wake } = platform;
  const { nodeId, random = Math.random, graceMs = DEFAULT_GRACE_MS } = options;
  const stopping = new AbortController();
  const cutting = new AbortController();
  const senders = new Map<string, Sender>();
  const senderByEnvironment = new Map<string, Sender>();
  const organizations = new Set<string>();
  const scanning = new Set<Sender>();
  const scanAgain = new Set<Sender>();
  const background = new Set<Promise<void>>();
  const search = createDueSearch(shards, clock);
  const long = createFairShare({ max: MAX_LONG });
  /** The nodes among which subscriptions were last distributed; undefined if that failed. */
  let refreshedFor: readonly string[] | undefined;
  let unsubscribe = (): void => {};

  /** Runs work in the background; `stop` awaits it. A failure is only logged, because the next poll retries. */
  function run(what: string, work: () => Promise<void>): void {
    const promise = work()
      .catch((error: unknown) => log.warn({ err: error }, what))
      .finally(() => background.delete(promise));
    background.add(promise);
  }

  /** Adjusts the senders to the subscriptions that are assigned to this node or that it should claim. */
  const refresh = coalesced(refreshOnce);

  /** Refreshes only if something may have changed; otherwise it reads none of the assigned subscriptions. */
  async function refreshIfNeeded(): Promise<void> {
    const nodes = await deliveryNodes(db, nodeId);
    const isSame = nodes.join() === refreshedFor?.join();
    const isLeaving = [...senders.values()].some(({ isActive }) => !isActive);
    if (!isSame || isLeaving || (await isAnyUnassigned(platform, nodes))) await refresh();
  }

  async function refreshOnce(): Promise<void> {
    refreshedFor = undefined;
    const nodes = stopping.signal.aborted ? [] : await deliveryNodes(db, nodeId);
    const { rows: candidates, covers } = stopping.signal.aborted
      ? { rows: [], covers: () => true }
      : await findClaimable(platform, nodeId);
    const mine = candidates.filter(({ webhookSubscriptionId: id }) => nodeFor(id, nodes) === nodeId);
    const ids = new Set(mine.map(({ webhookSubscriptionId }) => webhookSubscriptionId));
    const leaving = [...senders].filter(([id, { assignment }]) => !ids.has(id) && covers(assignment.organizationId));
    for (const [, sender] of leaving) sender.halt();
    // The next node starts with what this node knows about the destination.
    const left = leaving.map(([, sender]) => sender);
    await writeHealth(left, { isLast: true });
    // A sender with deliveries in flight stays, so that a session never has two loops on this node.
    for (const [id, sender] of leaving) if (sender.isIdle && !sender.isActive) forget(id, sender);
    await handOverOthers(candidates.filter(({ isAssigned, webhookSubscriptionId: id }) => isAssigned && !ids.has(id)));
    const changed = mine.filter(({ webhookSubscriptionId, epoch, isAssigned }) => {
      const sender = senders.get(webhookSubscriptionId);
      return !(isAssigned && sender?.isActive && sender.assignment.epoch === epoch);
    });
    // After a failed claim, the database may list subscriptions as assigned that have no sender here.
    if (await claimAll(changed)) refreshedFor = nodes;
  }

  /**
   * Releases subscriptions that are another node's share. Deliveries in flight are acknowledged first, so that the next node
   * continues after them; a later poll releases their subscription.
   */
  async function handOverOthers(others: readonly ClaimableSubscription[]): Promise<void> {
    const idle = others.filter(({ webhookSubscriptionId }) => !senders.has(webhookSubscriptionId));
    await shards.forEachShardWithTimeout('handing over subscriptions', idle, organizationOf, async (group) => {
      for (const candidate of group) {
        await handOver(db, nodeId, candidate);
        wake.publish('subscription', candidate);
      }
    });
  }

  /** Returns whether every claim succeeded. */
  async function claimAll(candidates: readonly ClaimableSubscription[]): Promise<boolean> {
    const failures = await shards.forEachShardWithTimeout(
      'claiming subscriptions',
      candidates,
      organizationOf,
      async (group) => {
        for (const ofOne of Map.groupBy(group, organizationOf).values())
          for (let at = 0; at < ofOne.length; at += CLAIM_BATCH) await claim(ofOne.slice(at, at + CLAIM_BATCH));
      },
    );
    return failures.length === 0;
  }

  async function claim(candidates: readonly ClaimableSubscription[]): Promise<void> {
    const taken: Sender[] = [];
    for (const { organizationId } of candidates) organizations.add(organizationId);
    for (const assignment of await claimSubscriptions(platform, nodeId, candidates)) {
      if (stopping.signal.aborted) continue;
      const known = senders.get(assignment.webhookSubscriptionId);
      if (known) known.resume(assignment);
      const sender =
        known ??
        new Sender(platform, assignment, {
          ...options,
          random,
          long,
          signal: cutting.signal,
          onStale: () => run('reading subscriptions again failed', refresh),
          onCapacity: (sender) => run('looking for due sessions failed', () => scan([sender])),
        });
      senders.set(assignment.webhookSubscriptionId, sender);
      senderByEnvironment.set(environmentKey(assignment), sender);
      taken.push(sender);
    }
    await scan(taken);
  }

  function forget(id: string, sender: Sender): void {
    senders.delete(id);
    const key = environmentKey(sender.assignment);
    if (senderByEnvironment.get(key) === sender) senderByEnvironment.delete(key);
  }

  async function scan(wanted: Iterable<Sender>): Promise<void> {
    const found: { sender: Sender; position: ScanPosition }[] = [];
    for (const sender of wanted) {
      if (scanning.has(sender)) {
        scanAgain.add(sender);
        continue;
      }
      const position = sender.nextScan();
      if (position) found.push({ sender, position });
    }
    for (const { sender } of found) scanning.add(sender);
    try {
      const pages = await findDue(
        platform,
        found.map(({ position }) => position),
        clock.now(),
      );
      for (const { sender, position } of found) {
        scanning.delete(sender);
        const page = pages.get(position);
        if (page) sender.addDue(page);
        else sender.requestScan();
      }
    } finally {
      for (const { sender } of found) scanning.delete(sender);
    }
    // A scan that was requested during this one must start after the request.
    const asked = found.flatMap(({ sender }) => (scanAgain.delete(sender) ? sender : []));
    if (asked.length > 0) await scan(asked);
  }

  /** Scans the senders that have work. The search covers all organizations; if it fails, every sender is scanned. */
  async function scanDue(): Promise<void> {
    const found = await search().catch((error: unknown) => {
      log.warn({ err: error }, 'searching for due deliveries failed; checking each subscription instead');
    });
    await scan([...senders].flatMap(([id, sender]) => (!found || found.has(id) || sender.needsScan ? sender : [])));
  }

  /** Never rejects: what could not be written is included in the next write. */
  async function writeHealth(of: Iterable<Sender>, options: { isLast?: boolean } = {}): Promise<void> {
    const changes = [...of].flatMap(({ health }) => {
      const update = health.takeUpdate(options);
      return update ? { health, update } : [];
    });
    const failures = await shards.forEachShardWithTimeout(
      'recording the health of destinations',
      changes,
      ({ update }) => update.assignment.organizationId,
      async (group) => {
        for (let at = 0; at < group.length; at += HEALTH_BATCH)
          await db.execute(writeHealthUpdates(group.slice(at, at + HEALTH_BATCH).map(({ update }) => update)));
      },
    );
    for (const { health, update } of failures.flatMap(({ items }) => items)) health.restoreUpdate(update);
  }

  function applyHint(hint: Hints['journal'] | undefined, from: string | undefined): void {
    if (stopping.signal.aborted || senders.size === 0) return;
    if (hint) committed(hint, from);
    else run('looking for due sessions failed', () => scan(senders.values()));
  }

  function committed(hint: Hints['journal'], from: string | undefined): void {
    const sender = senderByEnvironment.get(environmentKey(hint));
    if (!sender) return;
    if (from !== undefined) wake.follow(sender.assignment, from);
    sender.committed(hint);
  }

  function applyChange(hint: Hints['subscription'] | undefined): void {
    // A delivery may have been resent, which does not change its subscription.
    for (const sender of senders.values())
      if (!hint || sender.assignment.organizationId === hint.organizationId) sender.requestScan();
    run('reading subscriptions failed', refresh);
  }

  async function poll(): Promise<void> {
    while (!stopping.signal.aborted) {
      // Each step runs even if the others fail: one that covers all organizations fails if the server of any of them does.
      await retryLater('could not look for subscriptions', refreshIfNeeded);
      await retryLater('could not look for due deliveries', scanDue);
      await writeHealth(senders.values());
      await clock.sleep(POLL_MS, stopping.signal).catch(() => {});
    }
  }

  function retryLater(what: string, work: () => Promise<void>): Promise<void> {
    return work().catch((error: unknown) => log.warn({ err: error }, `${what}; retrying`));
  }

  return {
    start() {
      const offJournal = wake.subscribe('journal', applyHint);
      const offSubscription = wake.subscribe('subscription', applyChange);
      unsubscribe = () => {
        offJournal();
        offSubscription();
      };
      run('the dispatcher failed', poll);
    },
    async stop() {
      unsubscribe();
      stopping.abort(OVER);
      for (const sender of senders.values()) sender.halt();
      const drained = Promise.all([...senders.values()].map((sender) => sender.drained()));
      const waiting = new AbortController();
      const late = clock.sleep(graceMs, waiting.signal).then(
        () => cutting.abort(OVER),
        () => {},
      );
      await drained;
      waiting.abort(OVER);
      await late;
      while (background.size > 0) await Promise.all(background);
      try {
        await writeHealth(senders.values(), { isLast: true });
        await leaveShares(db, nodeId);
        const failures = await shards.each(
          [...organizations],
          (id) => id,
          (group) => releaseAll(db, nodeId, group),
        );
        if (failures[0]) throw failures[0].error;
      } catch (error) {
        log.warn({ err: error }, 'releasing subscriptions failed; other nodes claim them when the node lease expires');
      }
    },
  };
}

function organizationOf({ organizationId }: ClaimableSubscription): string {
  return organizationId;
}
