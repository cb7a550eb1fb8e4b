// Webhooks, the sending side (api.md section 7, "A delivery").
//
//   webhook_subscriptions   claimed by one node at a time (holding.ts), the one whose share it is (shares.ts); each has a sender
//                           (sender.ts)
//   sessions.delivery_due   set by every append; says that chunks wait. delivered_* is the position that deliveries have
//                           come to, delivery_id the one under way (progress.ts)
//   pending_deliveries      the delivery under way of each session, durable before its first attempt; next_attempt_at while it
//                           waits for a retry
//   webhook_deliveries      those that are over; next_attempt_at while one is to be sent once more
//
// Three things make a sender look at a Session: the wake-up after an append, a retry whose time has come, and a poll that
// searches for subscriptions with work (search.ts) and goes through what is due of those that this node holds (due.ts): the net
// under lost wake-ups. It costs what the work costs, however many subscriptions have none. What waits from before is found when a
// subscription is claimed.
import { coalesced } from '../../lib/coalesced.ts';
import type { Platform } from '../../platform.ts';
import type { Hints } from '../../wake/hints.ts';
import {
  type ClaimableSubscription,
  claimSubscriptions,
  findClaimable,
  handOver,
  isAnyUnassigned,
  releaseAll,
} from './assignments.ts';
import { findDue, type ScanPosition } from './due-sessions.ts';
import { createDueSearch } from './due-subscriptions.ts';
import { Sender } from './sender.ts';
import { deliveryNodes, leaveShares, nodeFor } from './shares.ts';
import { writeHealthUpdates } from './subscription-changes.ts';

export interface Dispatcher {
  start(): void;
  /** Fixes no further delivery, gives those on their way a moment to end, and hands its subscriptions over. */
  stop(): Promise<void>;
}

export type DispatcherPlatform = Pick<
  Platform,
  'db' | 'shards' | 'clock' | 'log' | 'vault' | 'wake' | 'egress' | 'metrics' | 'tracing'
>;

export interface DispatcherOptions {
  /** Its row in `workers` is registered and renewed elsewhere; while it has none, nothing is sent. */
  nodeId: string;
  /** Of the service, for `User-Agent`. */
  version: string;
  /** 0 up to 1, for the jitter of retries. */
  random?: () => number;
  /** For an attempt; 15 s unless said. */
  timeoutMs?: number;
  /** How long deliveries on their way may take when the dispatcher stops. */
  graceMs?: number;
}

const POLL_MS = 1_000;
const DEFAULT_GRACE_MS = 5_000;
// Claims in one transaction, which bounds how long it holds its rows.
const CLAIM_BATCH = 100;
// Subscriptions whose health one statement writes.
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
  const search = createDueSearch(shards);
  /** The nodes by which subscriptions were shared last; undefined if that failed. */
  let refreshedFor: readonly string[] | undefined;
  let unsubscribe = (): void => {};

  /** Keeps track of work that nobody awaits, so that `stop` can; its failures are only worth a line, as the poll comes again. */
  function run(what: string, work: () => Promise<void>): void {
    const promise = work()
      .catch((error: unknown) => log.warn({ err: error }, what))
      .finally(() => background.delete(promise));
    background.add(promise);
  }

  /** Brings the senders in line with the subscriptions that this node holds and may claim. */
  const refresh = coalesced(refreshOnce);

  /** As `refresh`, if there may be a reason to: without one, it reads nothing of the subscriptions that are held. */
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
    // The next node begins with what is known of the destination.
    await writeHealth(leaving.map(([, sender]) => sender));
    // One whose deliveries are still on their way stays, so that a Session never has two loops on this node.
    for (const [id, sender] of leaving) if (sender.isIdle && !sender.isActive) forget(id, sender);
    await handOverOthers(candidates.filter(({ isAssigned, webhookSubscriptionId: id }) => isAssigned && !ids.has(id)));
    const changed = mine.filter(({ webhookSubscriptionId, epoch, isAssigned }) => {
      const sender = senders.get(webhookSubscriptionId);
      return !(isAssigned && sender?.isActive && sender.assignment.epoch === epoch);
    });
    // After a claim that failed, this node may hold what it does not know of.
    if (await claimAll(changed)) refreshedFor = nodes;
  }

  /**
   * Hands over what is another node's share. What is on its way is acknowledged first, so that the next node goes on after it;
   * until then the subscription stays, and a later poll hands it over.
   */
  async function handOverOthers(others: readonly ClaimableSubscription[]): Promise<void> {
    const idle = others.filter(({ webhookSubscriptionId }) => !senders.has(webhookSubscriptionId));
    await shards.eachInTime('handing over subscriptions', idle, organizationOf, async (group) => {
      for (const candidate of group) {
        await handOver(db, nodeId, candidate);
        wake.publish('subscription', candidate);
      }
    });
  }

  /** Whether none failed. */
  async function claimAll(candidates: readonly ClaimableSubscription[]): Promise<boolean> {
    const failures = await shards.eachInTime('claiming subscriptions', candidates, organizationOf, async (group) => {
      for (const ofOne of Map.groupBy(group, organizationOf).values())
        for (let at = 0; at < ofOne.length; at += CLAIM_BATCH) await claim(ofOne.slice(at, at + CLAIM_BATCH));
    });
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
          signal: cutting.signal,
          onStale: () => run('reading subscriptions again failed', refresh),
          onCapacity: (sender) => run('looking for due sessions failed', () => scan([sender])),
        });
      senders.set(assignment.webhookSubscriptionId, sender);
      senderByEnvironment.set(environmentKey(assignment.organizationId, assignment.environment), sender);
      taken.push(sender);
    }
    await scan(taken);
  }

  function forget(id: string, sender: Sender): void {
    senders.delete(id);
    const key = environmentKey(sender.assignment.organizationId, sender.assignment.environment);
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
      }
    } finally {
      for (const { sender } of found) scanning.delete(sender);
    }
    // What was read may have been too early for who asked meanwhile.
    const asked = found.flatMap(({ sender }) => (scanAgain.delete(sender) ? sender : []));
    if (asked.length > 0) await scan(asked);
  }

  /** Looks where work waits. The search is for all organizations: if it fails, each is looked at by itself. */
  async function scanDue(): Promise<void> {
    const found = await search().catch((error: unknown) => {
      log.warn({ err: error }, 'searching for due deliveries failed; checking each subscription instead');
    });
    await scan([...senders].flatMap(([id, sender]) => (!found || found.has(id) || sender.hasDue ? sender : [])));
  }

  /** Never rejects: what is not written is written with the next. */
  async function writeHealth(of: Iterable<Sender>): Promise<void> {
    const changes = [...of].flatMap(({ health }) => {
      const update = health.takeUpdate();
      return update ? { health, update } : [];
    });
    const failures = await shards.eachInTime(
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

  function applyHint(hint: Hints['journal'] | undefined): void {
    if (stopping.signal.aborted || senders.size === 0) return;
    if (hint) senderByEnvironment.get(environmentKey(hint.organizationId, hint.environment))?.enqueue(hint.sessionId);
    else run('looking for due sessions failed', () => scan(senders.values()));
  }

  async function poll(): Promise<void> {
    while (!stopping.signal.aborted) {
      // Each is tried whatever becomes of the others: one that is about all organizations fails with any of them.
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
      const offJournal = wake.subscribe('journal', (hint) => applyHint(hint));
      const offSubscription = wake.subscribe('subscription', () => run('reading subscriptions failed', refresh));
      unsubscribe = () => {
        offJournal();
        offSubscription();
      };
      run('the dispatcher failed', poll);
    },
    async stop() {
      unsubscribe();
      stopping.abort();
      for (const sender of senders.values()) sender.halt();
      const drained = Promise.all([...senders.values()].map((sender) => sender.drained()));
      const waiting = new AbortController();
      const late = clock.sleep(graceMs, waiting.signal).then(
        () => cutting.abort(),
        () => {},
      );
      await drained;
      waiting.abort();
      await late;
      while (background.size > 0) await Promise.all(background);
      try {
        await writeHealth(senders.values());
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

function environmentKey(organizationId: string, environment: string): string {
  return `${organizationId} ${environment}`;
}
