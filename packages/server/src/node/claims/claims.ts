// Which sessions a node runs: those that a wake-up names, those that a search finds, those of dead nodes, and those that API calls
// of this node start.
//
// Claims run only here, one after another. A session that names this node when two searches begin, one after the other, and is
// neither active nor about to be started by an API call, has therefore no runner.
import sql from 'sql-template-tag';
import { foldTails } from '../../journal/append.ts';
import { coalesced } from '../../lib/coalesced.ts';
import type { Platform } from '../../platform.ts';
import { type Loaded, loadTranscripts } from '../../session-rows/load-transcripts.ts';
import type { LocalStart } from '../../session-rows/local-start.ts';
import type { Operation } from '../../session-rows/operations.ts';
import type { SessionRow } from '../../session-rows/session.ts';
import { EVERYTHING, SHARE_MS, type Share } from '../../session-rows/share.ts';
import type { SessionHint } from '../../wake/hints.ts';
import {
  type ClaimCandidate,
  findOrphanedSessions,
  hintedCandidates,
  PAGE_SIZE,
  readyCandidates,
  timedCandidates,
} from './candidates.ts';
import { type ClaimedSession, claim, readOperationsOf } from './claim.ts';
import { limitToOneSuspect } from './crashes.ts';
import type { Room } from './room.ts';

export interface Claimer {
  /** Claims this session or, without one, whatever can be found: now, or after the claim under way. */
  soon(hint?: SessionHint): void;
  /** Starts a session that an API call of this node assigned to it. If it can't be read now, a later search finds it as unowned. */
  take(start: LocalStart): void;
  /** Something arrived for a session that is not active. It may be one that is being claimed. */
  arrivedFor(sessionId: string): void;
  /** Nodes and worker turns that sessions still name, and whose lease has expired or was removed; and this node's share. */
  setNodes(dead: string[], share: Share): void;
  /** Sessions that name this node and are not active here: the result of a claim or of a commit was lost. */
  setUnowned(candidates: ClaimCandidate[]): void;
  /** Waits for the claim under way. */
  ended(): Promise<void>;
}

export interface ClaimerOptions {
  nodeId: string;
  room: Room;
  /** Aborted when nothing more may be claimed. */
  signal: AbortSignal;
  isActive(sessionId: string): boolean;
  /** Whether a suspect (crashes.ts) is active. */
  hasSuspect(): boolean;
  start(claimed: ClaimedSession, bytes: number): void;
  /** Something arrived while the session was claimed. */
  onArrival(sessionId: string): void;
  /** Sessions may name this node without being active here. */
  onUnowned(): void;
}

// An API call locks a session's row for some milliseconds.
const LOCKED_RETRY_MS = 20;
const FIRST_ID = '00000000-0000-0000-0000-000000000000';
const FIRST_TIME = { runnableAt: new Date(0), sessionId: FIRST_ID };

export function createClaimer(
  platform: Pick<Platform, 'db' | 'shards' | 'clock' | 'log' | 'wake' | 'live' | 'metrics'>,
  { nodeId, room, signal, isActive, hasSuspect, start, onArrival, onUnowned }: ClaimerOptions,
): Claimer {
  const { db, shards, clock, log, wake } = platform;
  const hinted = new Map<string, SessionHint>();
  const wokenDuringClaim = new Set<string>();
  let isSearchWanted = false;
  let claiming: Promise<void> | undefined;
  const localStarts: LocalStart[] = [];
  let taking: Promise<void> | undefined;
  /** Sessions that an API call of this node assigned to it, and that are about to be started. */
  const starting = new Set<string>();
  /** Epochs of the sessions that had no runner at the last search, or whose claim or start has failed since. */
  let seenUnowned = new Map<string, number>();
  let dead: string[] = [];
  /** When this node first saw that they are dead. */
  let deadSince = new Map<string, number>();
  let share = EVERYTHING;
  let unownedClaims: ClaimCandidate[] = [];
  /** Where the next page begins. */
  let readyUntil = FIRST_ID;
  let timedUntil = FIRST_TIME;

  function run(): void {
    if (signal.aborted) return;
    const run = claimAll().finally(() => {
      if (claiming === run) claiming = undefined;
    });
    claiming = run;
  }

  const claimAll = coalesced(async () => {
    // Hints of one turn of the event loop are claimed together.
    await new Promise<void>((resolve) => setImmediate(resolve));
    const hints = [...hinted.values()];
    hinted.clear();
    const isSearch = isSearchWanted;
    isSearchWanted = false;
    try {
      if (hints.length > 0 && hasRoom()) await claimSome(await hintedCandidates(platform, hints));
      if (isSearch) await search();
    } catch (error) {
      log.warn({ err: error }, 'claiming sessions failed; retrying');
    } finally {
      wokenDuringClaim.clear();
    }
  });

  function hasRoom(): boolean {
    return !signal.aborted && room.left() > 0;
  }

  /** Repeats rounds as long as there is room and a round claims something. */
  async function search(): Promise<void> {
    const unowned = unownedClaims.splice(0).filter(({ sessionId }) => !hasRunner(sessionId));
    await claimSome(unowned);
    // There was no room, or its row was locked.
    if (!unowned.every(({ sessionId }) => isActive(sessionId))) onUnowned();
    for (let isClaimed = true; isClaimed && hasRoom(); ) {
      const nodes = { dead, recentlyDead: dead.filter(isRecent), share };
      isClaimed = await claimSome(await findOrphanedSessions(platform, nodes, room.full(), hasSuspect()));
      const timed = await timedCandidates(platform, timedUntil, share);
      timedUntil = timed.length < PAGE_SIZE ? FIRST_TIME : timed.at(-1)!;
      isClaimed = (await claimSome(timed)) || isClaimed;
      for (let isLast = false; !isLast && hasRoom(); ) {
        const ready = await readyCandidates(platform, readyUntil, share);
        isLast = ready.length < PAGE_SIZE;
        readyUntil = isLast ? FIRST_ID : ready.at(-1)!.organizationId;
        isClaimed = (await claimSome(ready)) || isClaimed;
      }
    }
  }

  function isRecent(deadNodeId: string): boolean {
    return clock.now().getTime() - deadSince.get(deadNodeId)! < SHARE_MS;
  }

  /** Limited by the free room. Returns whether any was claimed. */
  async function claimSome(candidates: readonly ClaimCandidate[]): Promise<boolean> {
    const groups = Map.groupBy(limitToOneSuspect(candidates, dead, hasSuspect()), organizationOf);
    const rest = [...groups].flatMap(([id, group]) => group.slice(0, Math.max(0, room.leftFor(id))));
    let isClaimed = false;
    while (rest.length > 0 && hasRoom()) {
      const some = rest.splice(0, Math.min(PAGE_SIZE, room.left()));
      const failed = await shards.forEachShardWithTimeout('claiming sessions', some, organizationOf, async (group) => {
        const rows = await claim(platform, nodeId, group, dead);
        isClaimed ||= rows.length > 0;
        await foldTails(platform, rows, clock.now());
        const claimed = new Set(rows.map(({ sessionId }) => sessionId));
        for (const candidate of group) if (!claimed.has(candidate.sessionId)) claimLater(candidate);
        const takenOver = new Set(group.flatMap((one) => (one.nodeId === null ? [] : [one.sessionId])));
        await startAll(rows, (id) => takenOver.has(id));
      });
      failedToStart(failed.flatMap(({ items }) => items.map((one) => ({ ...one, epoch: one.epoch + 1 }))));
    }
    return isClaimed;
  }

  /** The next search that finds them need not wait for another. */
  function failedToStart(sessions: readonly { sessionId: string; epoch: number }[]): void {
    for (const { sessionId, epoch } of sessions) seenUnowned.set(sessionId, epoch);
    if (sessions.length > 0) onUnowned();
  }

  /** Whether it runs here, or is about to. */
  function hasRunner(sessionId: string): boolean {
    return isActive(sessionId) || starting.has(sessionId);
  }

  /** Its row was locked, perhaps by the API call that published its last wake-up. */
  function claimLater({ organizationId, sessionId }: ClaimCandidate): void {
    void clock.sleep(LOCKED_RETRY_MS, signal).then(
      () => soon({ organizationId, sessionId }),
      () => {},
    );
  }

  function soon(hint?: SessionHint): void {
    if (hint) hinted.set(hint.sessionId, hint);
    else isSearchWanted = true;
    run();
  }

  async function startAll(rows: readonly SessionRow[], isTakenOver: (sessionId: string) => boolean): Promise<void> {
    await load(rows, async (some) => {
      const operations = await readOperationsOf(
        db,
        some.map(({ row }) => row),
      );
      for (const { row, transcript, compaction, bytes } of some) {
        const { sessionId } = row;
        start(
          {
            row,
            transcript,
            compaction,
            isTakenOver: isTakenOver(sessionId),
            operations: operations.get(sessionId) ?? [],
          },
          bytes,
        );
        if (wokenDuringClaim.has(sessionId)) onArrival(sessionId);
      }
    });
  }

  /** Hands over transcripts as they are loaded, as long as they fit into memory. Releases the rest for other nodes. */
  async function load(
    rows: readonly SessionRow[],
    handOver: (some: Loaded<SessionRow>[]) => void | Promise<void>,
  ): Promise<void> {
    for (let rest = rows; rest.length > 0; ) {
      if (!hasRoom()) return releaseAll(rest);
      const loaded = await loadTranscripts(db, rest);
      rest = rest.slice(loaded.length);
      await handOver(loaded);
    }
  }

  async function releaseAll(rows: readonly SessionRow[]): Promise<void> {
    for (const { organizationId, sessionId, epoch } of rows) {
      await db.execute(sql`
        update sessions set node_id = null, epoch = epoch + 1
        where organization_id = ${organizationId} and session_id = ${sessionId}
          and node_id = ${nodeId} and epoch = ${epoch}`);
      wake.publish('runnable', { organizationId, sessionId });
    }
  }

  // ── Sessions that API calls of this node start ─────────────────────────────────────────────────────────────────────────────────

  function take(one: LocalStart): void {
    // It was on its way when the node stopped: another node claims it once this one's lease has ended.
    if (signal.aborted) return;
    const { row, operations, transcript } = one;
    if (transcript) {
      // A search found it before its commit was acknowledged.
      if (isActive(row.sessionId)) return;
      start({ row, isTakenOver: false, transcript, compaction: null, operations }, JSON.stringify(transcript).length);
      return;
    }
    localStarts.push(one);
    starting.add(row.sessionId);
    taking ??= takeAll().finally(() => {
      taking = undefined;
    });
  }

  async function takeAll(): Promise<void> {
    while (localStarts.length > 0) {
      const operationsOf = new Map<string, Operation[]>();
      const rows = localStarts.splice(0).map(({ row, operations }) => {
        operationsOf.set(row.sessionId, operations);
        return row;
      });
      const failed = await shards.forEachShardWithTimeout(
        'taking over sessions of this node',
        rows,
        organizationOf,
        (group) =>
          load(group, (some) => {
            for (const { row, transcript, compaction, bytes } of some) {
              // A search may have found it in the meantime.
              if (isActive(row.sessionId)) continue;
              start(
                { row, isTakenOver: false, transcript, compaction, operations: operationsOf.get(row.sessionId)! },
                bytes,
              );
              onArrival(row.sessionId);
            }
          }),
      );
      for (const { sessionId } of rows) starting.delete(sessionId);
      failedToStart(failed.flatMap(({ items }) => items));
    }
  }

  return {
    soon,
    take,
    arrivedFor(sessionId) {
      if (claiming) wokenDuringClaim.add(sessionId);
    },
    setNodes(nodeIds, ofThisNode) {
      const now = clock.now().getTime();
      dead = nodeIds;
      deadSince = new Map(nodeIds.map((id) => [id, deadSince.get(id) ?? now]));
      share = ofThisNode;
    },
    setUnowned(candidates) {
      // A commit that assigned the session to this node may not have been acknowledged yet, so it counts from the second time on.
      // Another epoch would abort the turn that has just begun, and repeat its first model call.
      const isKnown = ({ sessionId, epoch }: ClaimCandidate) => seenUnowned.get(sessionId) === epoch;
      unownedClaims = candidates.filter((one) => isKnown(one) && !hasRunner(one.sessionId));
      seenUnowned = new Map(candidates.map(({ sessionId, epoch }) => [sessionId, epoch]));
      if (unownedClaims.length < candidates.length) onUnowned();
    },
    async ended() {
      await claiming;
      await taking;
      await Promise.all(['claiming sessions', 'taking over sessions of this node'].map(shards.ended));
    },
  };
}

function organizationOf({ organizationId }: { organizationId: string }): string {
  return organizationId;
}
