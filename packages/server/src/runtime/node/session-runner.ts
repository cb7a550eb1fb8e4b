// A worker claims Sessions that can go on and drives them.
//
// Claiming moves the Session's epoch on and puts the worker's id on its row. Sessions whose worker's lease (lease.ts) has run
// out may be claimed by anyone. Nothing's safety rests on the lease: a worker that is wrong about it meets another epoch and
// can't write.
//
// A turn that begins on this node comes to it without a claim (local-start.ts).
//
// A wake-up makes a claim come at once; without any, the poll finds what is runnable.
import sql, { type Sql } from 'sql-template-tag';
import { createDefinitionCache } from '../../agents/agents.ts';
import { Fenced } from '../../journal/append.ts';
import { createAppender } from '../../journal/appender.ts';
import { coalesced } from '../../lib/coalesced.ts';
import { formatId } from '../../lib/ids.ts';
import type { Platform } from '../../platform.ts';
import { reportToParent, unreportedChildren } from '../../sessions/children.ts';
import type { SessionRow } from '../../sessions/state/session.ts';
import type { AskModel } from '../models/model.ts';
import type { Tools } from '../tools/tools.ts';
import type { ClaimCandidate } from './candidates.ts';
import { createClaimer } from './claims.ts';
import { uncountCrash } from './crashes.ts';
import { SessionEnded } from './finish-turn.ts';
import { createNodeLease } from './node-lease.ts';
import { Room } from './room.ts';
import { type ClaimedSession, createTurnRunner, type TurnRunner } from './turn-runner.ts';

export interface SessionRunner {
  /** Resolves when the lease is written. */
  start(): Promise<void>;
  /** Claims nothing more, gives turns under way a moment to end, and hands the rest over. */
  stop(): Promise<void>;
}

export interface SessionRunnerOptions {
  nodeId: string;
  ask: AskModel;
  tools: Pick<Tools, 'list' | 'run'>;
  /** How long a dead worker's Sessions wait at most before another takes them; renewed three times in it. */
  leaseSeconds?: number;
  /** How long a turn may take to come to the end of its step when the worker stops. */
  graceMs?: number;
  /** How often the process may end while it runs one step. Default: as crashes.ts says. */
  maxCrashes?: number | undefined;
  /** Sessions held at once. */
  maxActive?: number;
  /** Of the transcripts that they came with, as JSON. One that is larger by itself is held all the same. */
  maxActiveBytes?: number;
}

// Sessions held at once: they wait for models most of the time, and each costs some kilobytes.
// Of nodes and worker turns that died more than a day ago, at each look.
const DELETED_NODES_MAX = 1_000;
const MAX_ACTIVE = 2_000;
// What one organization may have of them, so that slow tools and models of one leave room for the others.
const SHARE_OF_ORGANIZATION = 0.9;
// What a transcript takes in memory is a small multiple of its JSON.
const MAX_ACTIVE_BYTES = 256 * 1024 * 1024;
const POLL_MS = 1_000;
const DEFAULT_GRACE_MS = 20_000;
// After a failure that was not foreseen, so that a Session that always fails does not occupy the worker.
const UNEXPECTED_PAUSE_SECONDS = 5;
const RELEASE_RETRY_MS = 500;
// How long a model or tool has to hear that it is to stop.
const ABORT_GRACE_MS = 2_000;

/** What the row of a held Session says of what came for it. */
type Hint = Pick<SessionRow, 'epoch' | 'turn' | 'inbox' | 'stop'>;

/** The worker stops; another goes on. */
class HandedOver extends Error {
  override readonly name = 'HandedOver';
}

export function createSessionRunner(platform: Platform, options: SessionRunnerOptions): SessionRunner {
  const { db, shards, clock, log, metrics, localRunners, wake } = platform;
  const {
    nodeId,
    leaseSeconds,
    graceMs = DEFAULT_GRACE_MS,
    maxActive = MAX_ACTIVE,
    maxActiveBytes = MAX_ACTIVE_BYTES,
  } = options;
  const maxSessionsOfOrganization = Math.floor(maxActive * SHARE_OF_ORGANIZATION);
  const room = new Room({ maxSessions: maxActive, maxSessionsOfOrganization, maxBytes: maxActiveBytes });
  const lease = createNodeLease(platform, { nodeId, leaseSeconds });
  const appender = createAppender(platform);
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
  });

  // ── Driving ────────────────────────────────────────────────────────────────────────────────────────────────────────

  function startRunner(claimed: ClaimedSession, bytes: number): void {
    const { ask, tools, maxCrashes } = options;
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
   * Gives the Session back after a failure, so that it goes on here or elsewhere. Its turn's time goes on as well: one that
   * breaks off each time it is taken up ends with it.
   */
  async function releaseAfterFailure({ head, deadline }: TurnRunner, error: unknown): Promise<void> {
    if (error instanceof Fenced) {
      // Nothing of it may be written any more: its successor may be on this very node.
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

  /** Retries the statement until the database takes it. */
  async function executeUntilDone(statement: Sql): Promise<void> {
    while (true) {
      try {
        await db.execute(statement);
        return;
      } catch {
        // Stopping does not wait for a database that is away: the lease runs out, and another worker takes the Session.
        if (stopping.signal.aborted) return;
        await clock.sleep(RELEASE_RETRY_MS, stopping.signal).catch(() => {});
      }
    }
  }

  // ── Lease and net ──────────────────────────────────────────────────────────────────────────────────────────────────

  async function findDeadNodes(): Promise<void> {
    const { rows } = await shards.query<{ nodeId: string }>(
      'looking for dead workers',
      (within) => sql`
      with alive as materialized (select w.node_id from nodes w where w.lease_expires_at >= now())
      select distinct s.node_id as "nodeId" from sessions s
      where s.node_id is not null and s.node_id <> ${nodeId} and s.node_id not in (select node_id from alive)
        ${within(sql`s.organization_id`)}`,
    );
    claimer.setDeadNodes([...new Set(rows.map((row) => row.nodeId))]);
    await db.execute(sql`
      delete from nodes w using (
        select node_id from nodes where lease_expires_at < now() - interval '1 day' limit ${DELETED_NODES_MAX}) dead
      where w.node_id = dead.node_id`);
  }

  /** What a lost wake-up would have said of the Sessions held here, and which of this worker's nobody holds. */
  async function checkActive(): Promise<void> {
    const before = [...active.values()];
    const { rows, covers } = await shards.query<ClaimCandidate & Hint>(
      'looking at the sessions that are held',
      (within) => sql`
      select organization_id as "organizationId", session_id as "sessionId", epoch, node_id as "nodeId", crashes,
        turn, inbox, stop from sessions
      where node_id = ${nodeId} ${within()}`,
    );
    const found = new Map(rows.map((row) => [row.sessionId, row]));
    for (const one of before) {
      if (!covers(one.head.organizationId)) continue;
      const row = found.get(one.head.sessionId);
      if (row?.epoch !== one.head.epoch) one.abort(new Fenced());
      else applyHint(one, row);
    }
    claimer.setUnowned(rows.filter(({ sessionId }) => !active.has(sessionId)));
  }

  async function repeatEvery(ms: number, what: string, act: () => Promise<void>): Promise<void> {
    while (!stopping.signal.aborted) {
      await clock.sleep(ms, stopping.signal).catch(() => {});
      if (stopping.signal.aborted) return;
      await act().catch((error) => log.warn({ err: error }, `${what} failed; retrying`));
    }
  }

  /** Asks the row whether the Session is still this worker's: a cancelled one stops its model at once. */
  async function refreshActive(sessionId: string): Promise<void> {
    const one = active.get(sessionId);
    if (!one) return claimer.arrivedFor(sessionId);
    const rows = await db
      .query<Hint>(sql`
        select epoch, turn, inbox, stop from sessions
        where organization_id = ${one.head.organizationId} and session_id = ${sessionId}`)
      .catch(() => undefined);
    if (!rows) return one.wake();
    const [row] = rows;
    if (row?.epoch !== one.head.epoch) one.abort(new Fenced());
    else applyHint(one, row);
  }

  function applyHint(one: TurnRunner, { turn, inbox, stop }: Hint): void {
    // The answer may be older than what is held: another turn than the one that was to stop goes on.
    if (stop && turn === one.head.turn) one.stop(stop);
    else if (inbox > 0) one.wake();
  }

  /** Tells parents what came of their children, as far as nobody did. */
  const notifyParents = coalesced(async () => {
    const children = await unreportedChildren(platform);
    await shards.eachInTime(
      'notifying parent sessions',
      children,
      ({ organizationId }) => organizationId,
      async (group) => {
        for (const child of group) {
          await reportToParent(platform, child).catch((error) =>
            log.warn({ err: error }, 'notifying a parent session failed; retrying'),
          );
        }
      },
    );
  });

  /** Whether every turn under way ends in this time. */
  async function endedWithin(ms: number): Promise<boolean> {
    const over = new AbortController();
    const ended = Promise.allSettled(running).then(() => true);
    const late = clock.sleep(ms, over.signal).then(
      () => false,
      () => true,
    );
    const inTime = await Promise.race([ended, late]);
    over.abort();
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
        wake.subscribe('child', () => {
          notifying = notifyParents().catch((error) =>
            log.warn({ err: error }, 'notifying parent sessions failed; retrying'),
          );
        }),
      );
      loops.push(
        repeatEvery(POLL_MS, 'looking for runnable sessions', async () => {
          await findDeadNodes();
          await checkActive();
          claimer.soon();
          await notifyParents();
        }),
      );
      unsubscribe.push(
        localRunners.join({
          nodeId,
          hasRoom: (organizationId) => room.leftFor(organizationId) > 0,
          take: claimer.take,
        }),
      );
      await findDeadNodes();
      claimer.soon();
    },

    async stop() {
      for (const stopListening of unsubscribe) stopListening();
      stopping.abort();
      await claimer.ended();
      if (!(await endedWithin(graceMs))) {
        const reason = new HandedOver('The worker stops');
        for (const one of active.values()) one.abort(reason);
        // What does not hear the abort is left behind: its Session is handed over all the same, and it can't write any more.
        if (!(await endedWithin(ABORT_GRACE_MS)))
          await Promise.all([...active.values()].map((one) => releaseAfterFailure(one, reason)));
      }
      await Promise.all([...loops, notifying]);
      await appender.close();
      await lease.stop();
    },
  };
}
