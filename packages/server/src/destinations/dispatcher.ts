// Sends records of the event log to destinations: a cursor on the log of an organization for each, at least once, in order within one
// session or resource.
//
//   destinations             a type, a filter, and read_sequence: how far the log was read for it. Those of an organization are assigned
//                            to one node (assignments.ts), which deliveries/destinations/shares.ts determines
//   destination_deliveries   what is due by the records (webhook/deliveries.ts), and what was sent
//
// The node has a reader for each organization with an enabled destination (reader.ts), which waits for records as a long poll of
// `GET /events` does: one query every half second for all (events/watch.ts). Nothing is added to a commit. It has a sender for each
// destination, of the kind of its type (kinds.ts).
//
// Wake-ups can be lost, so every node polls once a second for destinations that it should claim.
import { raw } from 'sql-template-tag';
import { isAnyUnassigned } from '../deliveries/destinations/assignments.ts';
import { deliveryNodes, leaveShares, nodeFor } from '../deliveries/destinations/shares.ts';
import type { Dispatcher, DispatcherOptions } from '../deliveries/dispatcher.ts';
import { OVER } from '../lib/aborted.ts';
import { coalesced } from '../lib/coalesced.ts';
import type { Platform } from '../platform.ts';
import { type ClaimableDestination, claimDestinations, findClaimable, release } from './destination/assignments.ts';
import { destinationHealth } from './destination/health-store.ts';
import type { DestinationSender, SenderPlatform } from './destination/kind.ts';
import { kinds } from './kinds.ts';
import { LogReader, type ReaderPlatform } from './reader.ts';

export type DestinationPlatform = ReaderPlatform & SenderPlatform & Pick<Platform, 'shards' | 'vault' | 'wake'>;

const POLL_MS = 1_000;
const DEFAULT_GRACE_MS = 5_000;
// The number of destinations whose health one statement writes.
const HEALTH_BATCH = 500;

/** What the node does for one organization. */
interface Work {
  organizationId: string;
  reader: LogReader;
  senders: Map<string, DestinationSender>;
}

export function createDestinationDispatcher(platform: DestinationPlatform, options: DispatcherOptions): Dispatcher {
  const { db, shards, clock, log, wake } = platform;
  const { nodeId, random = Math.random, graceMs = DEFAULT_GRACE_MS } = options;
  const stopping = new AbortController();
  const cutting = new AbortController();
  const works = new Map<string, Work>();
  const background = new Set<Promise<void>>();
  /** The nodes among which organizations were last distributed; undefined if that failed. */
  let refreshedFor: readonly string[] | undefined;
  let unsubscribe = (): void => {};

  /** Runs work in the background; `stop` awaits it. A failure is only logged, because the next poll retries. */
  function run(what: string, work: () => Promise<void>): void {
    const promise = work()
      .catch((error: unknown) => log.warn({ err: error }, what))
      .finally(() => background.delete(promise));
    background.add(promise);
  }

  const senders = () => [...works.values()].flatMap((work) => [...work.senders.values()]);

  const refresh = coalesced(refreshOnce);
  const refreshSoon = () => {
    if (!stopping.signal.aborted) run('reading destinations failed', refresh);
  };

  /** Refreshes only if something may have changed; otherwise it reads none of the assigned destinations. */
  async function refreshIfNeeded(): Promise<void> {
    const nodes = await deliveryNodes(db, nodeId, 'sends_destinations');
    const isSame = nodes.join() === refreshedFor?.join();
    const isLeaving = senders().some(({ isActive }) => !isActive);
    if (!isSame || isLeaving || (await isAnyUnassigned(platform, nodes, raw('destinations')))) await refresh();
  }

  async function refreshOnce(): Promise<void> {
    if (stopping.signal.aborted) return;
    refreshedFor = undefined;
    const nodes = await deliveryNodes(db, nodeId, 'sends_destinations');
    const { rows: candidates, covers } = await findClaimable(platform, nodeId);
    const mine = candidates.filter(({ organizationId }) => nodeFor(organizationId, nodes) === nodeId);
    const ids = new Set(mine.map(({ destinationId }) => destinationId));
    for (const work of works.values()) if (covers(work.organizationId)) await leave(work, ids);
    const others = candidates.filter(({ isAssigned, destinationId }) => isAssigned && !ids.has(destinationId));
    const foreign = [...new Set(others.map(({ organizationId }) => organizationId))].filter((id) => !works.has(id));
    await shards.forEachShardWithTimeout(
      'handing over destinations',
      foreign,
      (id) => id,
      async (group) => {
        for (const organizationId of group) {
          await release(db, nodeId, organizationId);
          wake.publish('subscription', { organizationId });
        }
      },
    );
    const changed = mine.filter(({ organizationId, destinationId, epoch, isAssigned }) => {
      const sender = works.get(organizationId)?.senders.get(destinationId);
      return !(isAssigned && sender?.isActive && sender.assignment.epoch === epoch);
    });
    const failures = await shards.forEachShardWithTimeout('claiming destinations', changed, organizationOf, claim);
    if (failures.length === 0) refreshedFor = nodes;
  }

  /** Stops what is no longer this node's share, or not enabled. Deliveries in flight end first, so that no lane is sent twice at once. */
  async function leave({ organizationId, reader, senders }: Work, mine: ReadonlySet<string>): Promise<void> {
    for (const [id, sender] of senders) {
      if (mine.has(id)) continue;
      sender.halt();
      reader.remove(id);
      await writeHealth([sender], { isLast: true });
      if (sender.isIdle) senders.delete(id);
    }
    if (senders.size > 0) return;
    works.delete(organizationId);
    await reader.stop();
  }

  async function claim(candidates: readonly ClaimableDestination[]): Promise<void> {
    for (const [organizationId, ofOne] of Map.groupBy(candidates, organizationOf)) {
      const assignments = await claimDestinations(platform, nodeId, ofOne);
      if (stopping.signal.aborted || assignments.length === 0) continue;
      const work = works.get(organizationId) ?? {
        ...{ organizationId, reader: new LogReader(platform, organizationId, refreshSoon), senders: new Map() },
      };
      works.set(organizationId, work);
      const { reader } = work;
      for (const assignment of assignments) {
        const known = work.senders.get(assignment.destinationId);
        known?.resume(assignment);
        const sender =
          known ??
          kinds[assignment.type].createSender(platform, assignment, {
            ...options,
            random,
            signal: cutting.signal,
            onStale: refreshSoon,
            onRoom: () => reader.wake(),
          });
        work.senders.set(assignment.destinationId, sender);
        reader.add(sender);
      }
    }
  }

  /** Never rejects: what could not be written is included in the next write. */
  async function writeHealth(of: Iterable<DestinationSender>, options: { isLast?: boolean } = {}): Promise<void> {
    const changes = [...of].flatMap((sender) => {
      const update = sender.takeHealth(options);
      return update ? { sender, update } : [];
    });
    const failures = await shards.forEachShardWithTimeout(
      'recording the health of destinations of the event log',
      changes,
      ({ update }) => update.assignment.organizationId,
      async (group) => {
        for (let at = 0; at < group.length; at += HEALTH_BATCH)
          await db.execute(destinationHealth.write(group.slice(at, at + HEALTH_BATCH).map(({ update }) => update)));
      },
    );
    for (const { sender, update } of failures.flatMap(({ items }) => items)) sender.restoreHealth(update);
  }

  async function poll(): Promise<void> {
    while (!stopping.signal.aborted) {
      await refreshIfNeeded().catch((error: unknown) =>
        log.warn({ err: error }, 'could not look for destinations; retrying'),
      );
      await writeHealth(senders());
      await clock.sleep(POLL_MS, stopping.signal).catch(() => {});
    }
  }

  return {
    start() {
      unsubscribe = wake.subscribe('subscription', refreshSoon);
      run('sending to destinations failed', poll);
    },
    async stop() {
      unsubscribe();
      stopping.abort(OVER);
      await Promise.all([...works.values()].map(({ reader }) => reader.stop()));
      for (const sender of senders()) sender.halt();
      const waiting = new AbortController();
      const late = clock.sleep(graceMs, waiting.signal).then(
        () => cutting.abort(OVER),
        () => {},
      );
      await Promise.all(senders().map((sender) => sender.drained()));
      waiting.abort(OVER);
      await late;
      while (background.size > 0) await Promise.all(background);
      try {
        await writeHealth(senders(), { isLast: true });
        await leaveShares(db, nodeId, 'sends_destinations');
        for (const organizationId of works.keys()) {
          await release(db, nodeId, organizationId);
          wake.publish('subscription', { organizationId });
        }
      } catch (error) {
        log.warn({ err: error }, 'releasing destinations failed; other nodes claim them when the node lease expires');
      }
    },
  };
}

function organizationOf({ organizationId }: ClaimableDestination): string {
  return organizationId;
}
