// A worker claims Sessions that can go on and drives them.
//
// Claiming moves the Session's epoch on and puts the worker's id on its row. Sessions whose worker's lease (lease.ts) has run
// out may be claimed by anyone. Nothing's safety rests on the lease: a worker that is wrong about it meets another epoch and
// can't write.
//
// A turn that begins on this node comes to it without a claim (own-worker.ts).
//
// A wake-up makes a claim come at once; without any, the poll finds what is runnable.
import sql from 'sql-template-tag';
import { createDefinitions } from '../agents/agents.ts';
import { Fenced } from '../journal/append.ts';
import { createAppender } from '../journal/appender.ts';
import { formatId } from '../lib/ids.ts';
import { onceMore } from '../lib/once-more.ts';
import type { Platform } from '../platform.ts';
import { tellParent, unheardChildren } from '../sessions/children.ts';
import { type Operation, operationColumns } from '../sessions/operations.ts';
import { type SessionRow, sessionColumns } from '../sessions/session.ts';
import type { TranscriptEntry } from '../sessions/transcript.ts';
import { type Claimed, createDrive, type Drive } from './drive.ts';
import { Ended } from './ending.ts';
import { createNodeLease } from './lease.ts';
import type { AskModel } from './models/model.ts';
import type { Given } from './own-worker.ts';
import type { Tools } from './tools/tools.ts';

export interface Worker {
  /** Resolves when the lease is written. */
  start(): Promise<void>;
  /** Claims nothing more, gives turns under way a moment to end, and hands the rest over. */
  stop(): Promise<void>;
}

export interface WorkerOptions {
  workerId: string;
  ask: AskModel;
  tools: Pick<Tools, 'list' | 'run'>;
  /** How long a dead worker's Sessions wait at most before another takes them; renewed three times in it. */
  leaseSeconds?: number;
  /** How long a turn may take to come to the end of its step when the worker stops. */
  graceMs?: number;
  /** Sessions held at once. */
  maxHeld?: number;
}

// Sessions held at once: they wait for models most of the time, and each costs some kilobytes.
// Of nodes and worker turns that died more than a day ago, at each look.
const MOST_FORGOTTEN = 1_000;
const MAX_HELD = 2_000;
// What one organization may have of them, so that slow tools and models of one leave room for the others.
const SHARE_OF_ORGANIZATION = 0.9;
const CLAIM_BATCH = 200;
const POLL_MS = 1_000;
// An API call holds a Session's row for some milliseconds.
const LOCKED_RETRY_MS = 20;
const DEFAULT_GRACE_MS = 20_000;
// After a failure that was not foreseen, so that a Session that always fails does not occupy the worker.
const UNFORESEEN_PAUSE_SECONDS = 5;
const RELEASE_RETRY_MS = 500;
// How long a model or tool has to hear that it is to stop.
const UNHEARD_MS = 2_000;

/** A Session that may be claimed as long as it has this epoch. */
interface Candidate {
  organizationId: string;
  sessionId: string;
  epoch: number;
  /** Who had it, and is dead; null where nobody did. */
  workerId: string | null;
}

/** What the row of a held Session says of what came for it. */
type Hint = Pick<SessionRow, 'epoch' | 'turn' | 'inbox' | 'stop'>;

/** The worker stops; another goes on. */
class HandedOver extends Error {
  override readonly name = 'HandedOver';
}

export function createWorker(platform: Platform, options: WorkerOptions): Worker {
  const { db, clock, log, metrics, ownWorkers, wake } = platform;
  const { workerId, leaseSeconds, graceMs = DEFAULT_GRACE_MS, maxHeld = MAX_HELD } = options;
  const share = Math.floor(maxHeld * SHARE_OF_ORGANIZATION);
  const lease = createNodeLease(platform, { workerId, leaseSeconds });
  const appender = createAppender(platform);
  const definitionOf = createDefinitions(db);
  const held = new Map<string, Drive>();
  const driving = new Set<Promise<void>>();
  const stopping = new AbortController();
  const loops: Promise<void>[] = [];
  const unsubscribe: (() => void)[] = [];
  let claiming: Promise<void> | undefined;
  let telling: Promise<void> | undefined;
  let wanted = false;
  /** Workers that Sessions still name and whose lease has run out or is gone. */
  let deadKnown: string[] = [];
  /** Sessions that name this worker and that nobody here drives: the answer to their claim was lost, or their drive's head. */
  let strays: Candidate[] = [];
  /** Sessions for which something came during a claim, which may be one of them. */
  const cameMeanwhile = new Set<string>();

  // ── Claiming ───────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Claims now, or once more after the claim under way. */
  function claimSoon(): void {
    if (stopping.signal.aborted) return;
    wanted = true;
    claiming ??= claimAll().finally(() => {
      claiming = undefined;
      if (wanted) claimSoon();
    });
  }

  async function claimAll(): Promise<void> {
    // What arrives in one turn of the event loop is claimed together.
    await new Promise<void>((resolve) => setImmediate(resolve));
    wanted = false;
    try {
      while (!stopping.signal.aborted && held.size < maxHeld) {
        const room = roomLeft();
        const full = [...room].flatMap(([organizationId, left]) => (left <= 0 ? [organizationId] : []));
        const found = await db.query<Candidate>(sql`
          (select organization_id as "organizationId", session_id as "sessionId", epoch, worker_id as "workerId"
           from sessions
           where worker_id is null and runnable_at <= ${clock.now()} and organization_id <> all(${full}::uuid[])
           order by runnable_at limit ${CLAIM_BATCH})
          union all
          (select organization_id as "organizationId", session_id as "sessionId", epoch, worker_id as "workerId"
           from sessions
           where worker_id = any(${deadKnown}::uuid[]) and organization_id <> all(${full}::uuid[]) limit ${CLAIM_BATCH})`);
        // Claims are made here alone and one after another, so that what is not held now is nobody's.
        const candidates = [...found, ...strays.splice(0).filter(({ sessionId }) => !held.has(sessionId))];
        const groups = Map.groupBy(candidates, ({ organizationId }) => organizationId);
        for (const [organizationId, runnable] of groups) {
          const group = runnable.slice(0, Math.max(0, room.get(organizationId) ?? share));
          if (group.length === 0) continue;
          const claims = await claim(organizationId, group);
          for (const claimed of claims) drive(claimed);
          for (const { row } of claims) if (cameMeanwhile.has(row.sessionId)) void heard(row.sessionId);
          // Some row was locked by a call that may be the last one to wake anybody for it.
          if (claims.length < group.length)
            void clock.sleep(LOCKED_RETRY_MS, stopping.signal).then(claimSoon, () => {});
        }
        if (found.length < CLAIM_BATCH) return;
      }
    } catch (error) {
      log.warn({ err: error }, 'could not claim sessions; trying again');
    } finally {
      cameMeanwhile.clear();
    }
  }

  /** How many more Sessions of each organization may be held, of those that have some. */
  function roomLeft(): Map<string, number> {
    const groups = Map.groupBy(held.values(), ({ head }) => head.organizationId);
    return new Map([...groups].map(([organizationId, { length }]) => [organizationId, share - length]));
  }

  async function claim(organizationId: string, candidates: readonly Candidate[]): Promise<Claimed[]> {
    const rows = await db.query<SessionRow>(sql`
      update sessions s set epoch = s.epoch + 1, worker_id = ${workerId}, queue = null
      where s.organization_id = ${organizationId} and s.session_id in (
        select x.session_id from sessions x
        join unnest(${candidates.map(({ sessionId }) => sessionId)}::uuid[], ${candidates.map(({ epoch }) => epoch)}::int[])
          as c(sid, epoch) on x.session_id = c.sid
        where x.organization_id = ${organizationId} and x.epoch = c.epoch and x.ended_at is null
          and (x.worker_id is null and x.runnable_at <= ${clock.now()} or x.worker_id = any(${[...deadKnown, workerId]}::uuid[]))
        order by x.session_id for no key update of x skip locked)
      returning ${sessionColumns}`);
    if (rows.length === 0) return [];
    const ids = rows.map(({ sessionId }) => sessionId);
    const [entriesOf, operations] = await Promise.all([
      readTranscripts(organizationId, ids),
      db.query<Operation & { sessionId: string }>(sql`
        select session_id as "sessionId", ${operationColumns} from operations
        join unnest(${ids}::uuid[], ${rows.map(({ turn }) => turn)}::int[]) as c(sid, in_turn)
          on session_id = c.sid and turn = c.in_turn
        where organization_id = ${organizationId}
        order by session_id, step, index`),
    ]);
    const operationsOf = Map.groupBy(operations, ({ sessionId }) => sessionId);
    const had = new Set(candidates.filter((one) => one.workerId !== null).map(({ sessionId }) => sessionId));
    return rows.map((row) => ({
      row,
      isTakenOver: had.has(row.sessionId),
      transcript: entriesOf.get(row.sessionId) ?? [],
      operations: operationsOf.get(row.sessionId) ?? [],
    }));
  }

  async function readTranscripts(organizationId: string, ids: string[]): Promise<Map<string, TranscriptEntry[]>> {
    const entries = await db.query<TranscriptEntry & { sessionId: string }>(sql`
      select session_id as "sessionId", turn, position, message_id as "messageId", role, content,
        provider_data as "providerData", created_at as "createdAt"
      from messages where organization_id = ${organizationId} and session_id = any(${ids}::uuid[])
      order by session_id, turn, position`);
    return Map.groupBy(entries, ({ sessionId }) => sessionId);
  }

  /** Where it can't be read now, the next look at what names this worker finds it. */
  async function take({ row, operations, transcript }: Given): Promise<void> {
    const { organizationId, sessionId } = row;
    const known = transcript ?? (await readTranscripts(organizationId, [sessionId])).get(sessionId) ?? [];
    // By then it may have been found there.
    if (stopping.signal.aborted || held.has(sessionId)) return;
    drive({ row, isTakenOver: false, transcript: known, operations });
    // What came for it while it was read.
    if (!transcript) await heard(sessionId);
  }

  // ── Driving ────────────────────────────────────────────────────────────────────────────────────────────────────────

  function drive(claimed: Claimed): void {
    const { ask, tools } = options;
    const leaving = () => (stopping.signal.aborted ? new HandedOver('The worker stops') : undefined);
    const one = createDrive(claimed, { platform, appender, definitionOf, ask, tools, leaving });
    const { sessionId } = one.head;
    held.get(sessionId)?.abort(new Fenced());
    held.set(sessionId, one);
    const done = one
      .run()
      .catch((error) => letGo(one, error))
      .finally(() => {
        if (held.get(sessionId) === one) held.delete(sessionId);
        driving.delete(done);
      });
    driving.add(done);
  }

  /**
   * Gives the Session back after a failure, so that it goes on here or elsewhere. Its turn's time goes on as well: one that
   * breaks off each time it is taken up ends with it.
   */
  async function letGo({ head, deadline }: Drive, error: unknown): Promise<void> {
    if (error instanceof Fenced) {
      if (!(error instanceof Ended)) metrics.leaseLosses.inc();
      // Nothing of it may be written any more: its successor may be on this very node.
      await appender.take(head);
      return;
    }
    const handedOver = error instanceof HandedOver;
    if (!handedOver)
      log.error({ err: error, sessionId: formatId('ses', head.sessionId) }, 'turn broke off; it goes on soon');
    await appender.take(head);
    const pause = handedOver ? 0 : UNFORESEEN_PAUSE_SECONDS;
    while (true) {
      try {
        await db.execute(sql`
          update sessions set worker_id = null, epoch = epoch + 1,
            runnable_at = ${new Date(clock.now().getTime() + pause * 1000)},
            turn_deadline = case when status = 'running' then coalesce(turn_deadline, ${deadline() ?? null}::timestamptz) end
          where organization_id = ${head.organizationId} and session_id = ${head.sessionId}
            and worker_id = ${workerId} and epoch = ${head.epoch}`);
        return;
      } catch {
        // Stopping does not wait for a database that is away: the lease runs out, and another worker takes the Session.
        if (stopping.signal.aborted) return;
        await clock.sleep(RELEASE_RETRY_MS, stopping.signal).catch(() => {});
      }
    }
  }

  // ── Lease and net ──────────────────────────────────────────────────────────────────────────────────────────────────

  async function lookForDead(): Promise<void> {
    const rows = await db.query<{ workerId: string }>(sql`
      select distinct s.worker_id as "workerId" from sessions s
      where s.worker_id is not null and s.worker_id <> ${workerId} and not exists (
        select 1 from workers w where w.worker_id = s.worker_id and w.lease_expires_at >= now())`);
    deadKnown = rows.map((row) => row.workerId);
    await db.execute(sql`
      delete from workers w using (
        select worker_id from workers where lease_expires_at < now() - interval '1 day' limit ${MOST_FORGOTTEN}) dead
      where w.worker_id = dead.worker_id`);
  }

  /** What a lost wake-up would have said of the Sessions held here, and which of this worker's nobody holds. */
  async function lookAtHeld(): Promise<void> {
    const before = [...held.values()];
    const rows = await db.query<Candidate & Hint>(sql`
      select organization_id as "organizationId", session_id as "sessionId", epoch, worker_id as "workerId", turn, inbox,
        stop from sessions
      where worker_id = ${workerId}`);
    const found = new Map(rows.map((row) => [row.sessionId, row]));
    for (const one of before) {
      const row = found.get(one.head.sessionId);
      if (row?.epoch !== one.head.epoch) one.abort(new Fenced());
      else hear(one, row);
    }
    strays = rows.filter(({ sessionId }) => !held.has(sessionId));
  }

  async function every(ms: number, what: string, act: () => Promise<void>): Promise<void> {
    while (!stopping.signal.aborted) {
      await clock.sleep(ms, stopping.signal).catch(() => {});
      if (stopping.signal.aborted) return;
      await act().catch((error) => log.warn({ err: error }, `${what} failed; trying again`));
    }
  }

  /** Asks the row whether the Session is still this worker's: a cancelled one stops its model at once. */
  async function heard(sessionId: string): Promise<void> {
    const one = held.get(sessionId);
    if (!one && claiming) cameMeanwhile.add(sessionId);
    if (!one) return;
    const rows = await db
      .query<Hint>(sql`
        select epoch, turn, inbox, stop from sessions
        where organization_id = ${one.head.organizationId} and session_id = ${sessionId}`)
      .catch(() => undefined);
    if (!rows) return one.wake();
    const [row] = rows;
    if (row?.epoch !== one.head.epoch) one.abort(new Fenced());
    else hear(one, row);
  }

  function hear(one: Drive, { turn, inbox, stop }: Hint): void {
    // The answer may be older than what is held: another turn than the one that was to stop goes on.
    if (stop && turn === one.head.turn) one.stop(stop);
    else if (inbox > 0) one.wake();
  }

  /** Tells parents what came of their children, as far as nobody did. */
  const tellParents = onceMore(async () => {
    for (const child of await unheardChildren(db)) {
      await tellParent(platform, child).catch((error) =>
        log.warn({ err: error }, 'telling a parent failed; trying again'),
      );
    }
  });

  /** Whether every turn under way ends in this time. */
  async function endedWithin(ms: number): Promise<boolean> {
    const over = new AbortController();
    const ended = Promise.allSettled(driving).then(() => true);
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
        wake.subscribe('runnable', claimSoon),
        wake.subscribe('inbox', (hint) => {
          if (hint) void heard(hint.sessionId);
          else void lookAtHeld().catch(() => {});
        }),
        wake.subscribe('child', () => {
          telling = tellParents().catch((error) => log.warn({ err: error }, 'telling parents failed; trying again'));
        }),
      );
      loops.push(
        every(POLL_MS, 'looking for what may go on', async () => {
          await lookForDead();
          await lookAtHeld();
          claimSoon();
          await tellParents();
        }),
      );
      unsubscribe.push(
        ownWorkers.join({
          workerId,
          hasRoom: (organizationId) => held.size < maxHeld && (roomLeft().get(organizationId) ?? share) > 0,
          take: (given) =>
            void take(given).catch((error) => log.warn({ err: error }, 'could not take a session; trying again')),
        }),
      );
      await lookForDead();
      claimSoon();
    },

    async stop() {
      for (const stopListening of unsubscribe) stopListening();
      stopping.abort();
      await claiming;
      if (!(await endedWithin(graceMs))) {
        const reason = new HandedOver('The worker stops');
        for (const one of held.values()) one.abort(reason);
        // What does not hear the abort is left behind: its Session is handed over all the same, and it can't write any more.
        if (!(await endedWithin(UNHEARD_MS))) await Promise.all([...held.values()].map((one) => letGo(one, reason)));
      }
      await Promise.all([...loops, telling]);
      await appender.close();
      await lease.stop();
    },
  };
}
