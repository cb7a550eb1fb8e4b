// The session runner of a node: it claims sessions that can continue, and runs their turns.
//
// A claim raises the session's epoch and puts the node's id on its row. Any node may claim the sessions of a node whose lease
// (node-lease.ts) has expired. Correctness does not depend on the lease: a node that is wrong about it has an old epoch, so its
// writes are refused.
//
// A turn that begins by an API call on this node needs no claim (session-rows/local-start.ts).
//
// A wake-up causes a claim at once. If it is lost, the poll finds the session.
import sql, { type Sql } from 'sql-template-tag';
import { createDefinitionCache } from '../agents/read-definition.ts';
import { Fenced } from '../journal/append.ts';
import { createAppender } from '../journal/appender.ts';
import { dropFolded } from '../journal/tail.ts';
import type { TailUse } from '../journal/tail-use.ts';
import { OVER } from '../lib/aborted.ts';
import { coalesced } from '../lib/coalesced.ts';
import { formatId } from '../lib/ids.ts';
import { paced } from '../lib/paced.ts';
import type { AskModel } from '../models/model/model.ts';
import type { Platform } from '../platform.ts';
import type { SessionRow } from '../session-rows/session.ts';
import { readShare } from '../session-rows/share.ts';
import { reportToParent, UNREPORTED_PAGE_SIZE, unreportedAmong, unreportedChildren } from '../sessions/children.ts';
import { withMocks } from '../tools/tool/mocks.ts';
import type { Tools } from '../tools/tools.ts';
import type { SessionHint } from '../wake/hints.ts';
import type { ClaimCandidate } from './claims/candidates.ts';
import type { ClaimedSession } from './claims/claim.ts';
import { createClaimer } from './claims/claims.ts';
import { uncountCrash } from './claims/crashes.ts';
import { createDeadNodeSearch } from './claims/dead-nodes.ts';
import { createNodeLease } from './claims/node-lease.ts';
import { Room } from './claims/room.ts';
import { SessionEnded } from './finish-turn.ts';
import { createTurnRunner, type TurnRunner } from './turn-runner.ts';

export interface SessionRunner {
  /** Resolves when the lease is written. */
  start(): Promise<void>;
  /** Claims nothing more, waits up to `graceMs` for running turns to finish their step, and releases the others. */
  stop(): Promise<void>;
}

export interface SessionRunnerOptions {
  nodeId: string;
  ask: AskModel;
  tools: Pick<Tools, 'list' | 'run'>;
  /** How long the sessions of a dead node wait at most before another node claims them. Renewed three times within it. */
  leaseSeconds?: number;
  /** How long a turn may take to finish its step when the node stops. */
  graceMs?: number;
  /** How often a process may crash while it runs one step. Default: see crashes.ts. */
  maxCrashes?: number | undefined;
  /** If text goes through the tail (journal/tail.ts). */
  tail?: TailUse | undefined;
  /** Active sessions at once. */
  maxActive?: number;
  /** The limit of the transcripts of active sessions, as JSON. A single larger transcript is loaded anyway. */
  maxActiveBytes?: number;
}

// Active sessions wait for models most of the time, and each costs some kilobytes.
const MAX_ACTIVE = 2_000;
// The share of one organization, so that its slow tools and models leave room for others.
const SHARE_OF_ORGANIZATION = 0.9;
// What a transcript takes in memory is a small multiple of its JSON.
const MAX_ACTIVE_BYTES = 256 * 1024 * 1024;
const POLL_MS = 1_000;
const DROP_FOLDED_MS = 10_000;
const LOOK_AT_READERS_MS = 2_000;
const DEFAULT_GRACE_MS = 20_000;
// After an unexpected error, so that a session that always fails does not occupy the node.
const UNEXPECTED_PAUSE_SECONDS = 5;
const RELEASE_RETRY_MS = 500;
// How long a model or tool has to react to its abort signal.
const ABORT_GRACE_MS = 2_000;

/** The columns of an active session's row that tell what arrived for it. */
type Hint = Pick<SessionRow, 'sessionId' | 'epoch' | 'turn' | 'inbox' | 'stop'>;

/** The node stops, and another node continues the session. */
class HandedOver extends Error {
  override readonly name = 'HandedOver';
}

export function createSessionRunner(platform: Platform, options: SessionRunnerOptions): SessionRunner {
  const { db, shards, clock, log, metrics, localRunners, wake } = platform;
  const {
    nodeId,
    leaseSeconds,
    graceMs = DEFAULT_GRACE_MS,
    tail,
    maxActive = MAX_ACTIVE,
    maxActiveBytes = MAX_ACTIVE_BYTES,
  } = options;
  const maxSessionsOfOrganization = Math.floor(maxActive * SHARE_OF_ORGANIZATION);
  const room = new Room({ maxSessions: maxActive, maxSessionsOfOrganization, maxBytes: maxActiveBytes });
  const lease = createNodeLease(platform, { nodeId, leaseSeconds, runs: true });
  const appender = createAppender(platform, tail && { nodeId, isAllowed: tail.isAllowed });
  const definitionOf = createDefinitionCache(db);
  const active = new Map<string, TurnRunner>();
  const running = new Set<Promise<void>>();
  const stopping = new AbortController();
  const loops: Promise<void>[] = [];
  const unsubscribe: (() => void)[] = [];
  let notifying: Promise<void> | undefined;
  const claimer = createClaimer(platform, {
    nodeId,
    room,
    signal: stopping.signal,
    isActive: (sessionId) => active.has(sessionId),
    hasSuspect: () => [...active.values()].some((one) => one.isSuspect()),
    start: startRunner,
    onArrival: (sessionId) => void refreshActive(sessionId),
    onUnowned: () => searchForOwnSessions.endPause(),
  });

  // ── Running ────────────────────────────────────────────────────────────────────────────────────────────────────────

  function startRunner(claimed: ClaimedSession, bytes: number): void {
    const { ask, maxCrashes } = options;
    const tools = { ...options.tools, run: withMocks(db, options.tools.run) };
    const leaving = () => (stopping.signal.aborted ? new HandedOver('The worker stops') : undefined);
    const one = createTurnRunner(claimed, { platform, appender, definitionOf, ask, tools, leaving, maxCrashes });
    const { sessionId } = one.head;
    active.get(sessionId)?.abort(new Fenced());
    active.set(sessionId, one);
    const leave = room.enter(one.head.organizationId, bytes);
    const wasSuspect = one.isSuspect();
    const done = one
      .run()
      .catch((error) => releaseAfterFailure(one, error))
      .finally(() => {
        leave();
        if (active.get(sessionId) === one) active.delete(sessionId);
        running.delete(done);
        if (wasSuspect) claimer.soon();
      });
    running.add(done);
  }

  /**
   * Releases the session after a failure, so that this or another node continues it. Its turn keeps its deadline: a turn that
   * fails each time it is resumed ends there.
   */
  async function releaseAfterFailure({ head, deadline }: TurnRunner, error: unknown): Promise<void> {
    if (error instanceof Fenced) {
      // Its pending text must not be written any more: this node itself may claim the session again.
      await appender.take(head);
      if (error instanceof SessionEnded) return;
      metrics.leaseLosses.inc();
      return executeUntilDone(uncountCrash(head));
    }
    const handedOver = error instanceof HandedOver;
    if (!handedOver)
      log.error(
        { err: error, sessionId: formatId('ses', head.sessionId) },
        'turn interrupted by an error; it will be resumed',
      );
    await appender.take(head);
    const pause = handedOver ? 0 : UNEXPECTED_PAUSE_SECONDS;
    await executeUntilDone(sql`
      update sessions set node_id = null, epoch = epoch + 1,
        runnable_at = ${new Date(clock.now().getTime() + pause * 1000)},
        turn_deadline = case when status = 'running' then coalesce(turn_deadline, ${deadline() ?? null}::timestamptz) end
      where organization_id = ${head.organizationId} and session_id = ${head.sessionId}
        and node_id = ${nodeId} and epoch = ${head.epoch}`);
  }

  /** Retries the statement until the database accepts it. */
  async function executeUntilDone(statement: Sql): Promise<void> {
    while (true) {
      try {
        await db.execute(statement);
        return;
      } catch {
        // Stopping does not wait for an unavailable database: the lease expires, and another node claims the session.
        if (stopping.signal.aborted) return;
        await clock.sleep(RELEASE_RETRY_MS, stopping.signal).catch(() => {});
      }
    }
  }

  // ── Leases and polling ──────────────────────────────────────────────────────────────────────────────────────────────────

  const findDeadNodes = createDeadNodeSearch(platform, nodeId);

  async function findNodes(): Promise<void> {
    claimer.setNodes(await findDeadNodes(), await readShare(db, nodeId));
  }

  const searchForOwnSessions = paced(clock, () =>
    shards.query<ClaimCandidate & Hint>(
      'looking for sessions of this node',
      (within) => sql`
      select organization_id as "organizationId", session_id as "sessionId", epoch, node_id as "nodeId", crashes,
        turn, inbox, stop from sessions
      where node_id = ${nodeId} ${within()}`,
    ),
  );

  /** Finds what lost wake-ups would have reported, and sessions that name this node although it does not run them. */
  async function checkActive(): Promise<void> {
    const before = [...active.values()];
    const own = await searchForOwnSessions();
    if (!own) return readActive(before);
    applyHints(
      before.filter(({ head }) => own.covers(head.organizationId)),
      own.rows,
    );
    claimer.setUnowned(own.rows.filter(({ sessionId }) => !active.has(sessionId)));
  }

  async function readActive(all: readonly TurnRunner[]): Promise<void> {
    await shards.forEachShardWithTimeout(
      'reading active sessions',
      all,
      ({ head }) => head.organizationId,
      async (group) => {
        const organizations = group.map(({ head }) => head.organizationId);
        const rows = await db.query<Hint>(sql`
          select h.sid as "sessionId", s.epoch, s.turn, s.inbox, s.stop
          from unnest(${organizations}::uuid[], ${group.map(({ head }) => head.sessionId)}::uuid[]) as h(org, sid)
          cross join lateral (
            select x.epoch, x.turn, x.inbox, x.stop from sessions x
            where x.organization_id = any(${[...new Set(organizations)]}::uuid[]) and x.organization_id = h.org
              and x.session_id = h.sid
            limit 1) s`);
        applyHints(group, rows);
      },
    );
  }

  async function repeatEvery(ms: number, what: string, act: () => Promise<void>): Promise<void> {
    while (!stopping.signal.aborted) {
      await clock.sleep(ms, stopping.signal).catch(() => {});
      if (stopping.signal.aborted) return;
      await act().catch((error) => log.warn({ err: error }, `${what} failed; retrying`));
    }
  }

  /** Reads the row of an active session: if it was cancelled or claimed by another node, its model is aborted at once. */
  async function refreshActive(sessionId: string): Promise<void> {
    const one = active.get(sessionId);
    if (!one) return claimer.arrivedFor(sessionId);
    const rows = await db
      .query<Hint>(sql`
        select session_id as "sessionId", epoch, turn, inbox, stop from sessions
        where organization_id = ${one.head.organizationId} and session_id = ${sessionId}`)
      .catch(() => undefined);
    if (rows) applyHints([one], rows);
    else one.wake();
  }

  /** `rows`: of these sessions. One without a row, or with another epoch, is no longer this node's. */
  function applyHints(all: readonly TurnRunner[], rows: readonly Hint[]): void {
    const found = new Map(rows.map((row) => [row.sessionId, row]));
    for (const one of all) {
      const row = found.get(one.head.sessionId);
      if (row?.epoch !== one.head.epoch) one.abort(new Fenced());
      // The row may have been read before the next turn began, which is not to be stopped.
      else if (row.stop && row.turn === one.head.turn) one.stop(row.stop);
      else if (row.inbox > 0) one.wake();
    }
  }

  const endedChildren = new Map<string, SessionHint>();
  const searchForChildren = paced(clock, () => unreportedChildren(platform), {
    again: ({ length }) => length >= UNREPORTED_PAGE_SIZE,
  });

  /** Passes the results of child sessions that have ended to their parents. */
  const notifyParents = coalesced(async () => {
    const hinted = [...endedChildren.values()];
    endedChildren.clear();
    const children = (await searchForChildren()) ?? (await unreportedAmong(platform, hinted));
    const unreported = await shards.forEachShardWithTimeout(
      'notifying parent sessions',
      children,
      ({ organizationId }) => organizationId,
      async (group) => {
        for (const child of group) {
          await reportToParent(platform, child).catch((error) => {
            endedChildren.set(child.sessionId, child);
            log.warn({ err: error }, 'notifying a parent session failed; retrying');
          });
        }
      },
    );
    for (const child of unreported.flatMap(({ items }) => items)) endedChildren.set(child.sessionId, child);
  });

  /** Whether every running turn ends within this time. */
  async function endedWithin(ms: number): Promise<boolean> {
    const over = new AbortController();
    const ended = Promise.allSettled(running).then(() => true);
    const late = clock.sleep(ms, over.signal).then(
      () => false,
      () => true,
    );
    const inTime = await Promise.race([ended, late]);
    over.abort(OVER);
    return inTime;
  }

  return {
    async start() {
      await lease.start();
      unsubscribe.push(
        wake.subscribe('runnable', (hint) => claimer.soon(hint)),
        wake.subscribe('inbox', (hint) => {
          if (hint) void refreshActive(hint.sessionId);
          else void checkActive().catch(() => {});
        }),
        wake.subscribe('child', (hint) => {
          if (hint) endedChildren.set(hint.sessionId, hint);
          else searchForChildren.endPause();
          notifying = notifyParents().catch((error) =>
            log.warn({ err: error }, 'notifying parent sessions failed; retrying'),
          );
        }),
      );
      loops.push(
        repeatEvery(POLL_MS, 'looking for runnable sessions', async () => {
          await findNodes();
          await checkActive();
          claimer.soon();
          await notifyParents();
        }),
      );
      loops.push(
        repeatEvery(DROP_FOLDED_MS, 'deleting text that is in segments', async () => {
          appender.foldOld();
          await dropFolded(platform, nodeId);
        }),
      );
      if (tail) loops.push(repeatEvery(LOOK_AT_READERS_MS, 'looking if all nodes read the tail', tail.look));
      unsubscribe.push(
        localRunners.join({
          nodeId,
          hasRoom: (organizationId) => room.leftFor(organizationId) > 0,
          take: claimer.take,
        }),
      );
      await findNodes();
      claimer.soon();
    },

    async stop() {
      for (const stopListening of unsubscribe) stopListening();
      stopping.abort(OVER);
      // If the database is unavailable, the others wait for a moment.
      const leaving = lease.leaveShare().catch(() => {});
      await claimer.ended();
      if (!(await endedWithin(graceMs))) {
        const reason = new HandedOver('The worker stops');
        for (const one of active.values()) one.abort(reason);
        // A call that ignores the abort signal is left behind: its session is released anyway, so it can't write any more.
        if (!(await endedWithin(ABORT_GRACE_MS)))
          await Promise.all([...active.values()].map((one) => releaseAfterFailure(one, reason)));
      }
      await Promise.all([...loops, notifying, leaving]);
      await appender.close();
      await lease.stop();
    },
  };
}
