// Rewinds sessions for recoveries: the position up to which their chunks are delivered moves back to where the caller asked. From
// there on deliveries are created and sent as usual, in order and one at a time, up to the newest chunk.
//
// A recovery is a row of webhook_recoveries. The node that the subscription is assigned to processes recoveries, oldest first and a
// few sessions at a time: when a session has caught up or failed, the next one is rewound. Live deliveries of other sessions continue
// meanwhile. After a crash at most one page is read again.
//
// A recovery since a time reads the open sessions of the environment, by id, and then those that have ended since that time, by the
// time at which they ended. A session that ends in the meantime is found in the second part. Sessions that ended earlier cost
// nothing. No index used here contains a column that appends write.
import sql, { type Sql } from 'sql-template-tag';
import type { Db, Tx } from '../db/db.ts';
import { planForLookups } from '../db/plan-for-lookups.ts';
import { beginning, comparePositions, formatCursor, type Position } from '../journal/cursor.ts';
import { type Assignment, sameSubscription } from './destinations/assignments.ts';
import { beforeAllSessions } from './destinations/due-sessions.ts';
import { cancelDeliveries } from './finished-deliveries.ts';

// Each session has one delivery in flight, of the 200 that a sender allows.
export const MAX_RECOVERING = 10;
// The number of open sessions that one statement reads; most of them may have been idle since before the time.
const PAGE_SIZE = 1_000;
// The assumed maximum difference between the clocks of two nodes.
const MAX_SKEW_MS = 60_000;

interface Recovery {
  recoveryId: string;
  since: Date | null;
  sessionId: string | null;
  turn: number;
  seq: number;
  afterSessionId: string;
  /** As text, which keeps the microseconds. Null while the recovery reads open sessions. */
  afterEndedAt: string | null;
  endedBefore: Date | null;
}

/** The progress of a recovery since a time. */
type RecoveryProgress = Pick<Recovery, 'afterSessionId' | 'afterEndedAt' | 'endedBefore'>;

/** The position to rewind a session to. */
interface RewindTarget extends Position {
  sessionId: string;
}

/** Rewinds up to `room` sessions. `isOver`: nothing is left to recover, or the subscription has changed since it was assigned. */
export function rewindDeliveries(
  db: Db,
  assignment: Assignment,
  room: number,
  now: Date,
): Promise<{ sessionIds: string[]; isOver: boolean }> {
  const { organizationId, webhookSubscriptionId } = assignment;
  return db.transaction(async (tx) => {
    tx.write(planForLookups);
    // Changes of the subscription happen before this transaction or after it.
    const current = await tx.execute(sql`
      select 1 from webhook_subscriptions where ${sameSubscription(assignment)} and epoch = ${assignment.epoch} for key share`);
    const [recovery] = await tx.query<Recovery>(sql`
      select recovery_id as "recoveryId", since, session_id as "sessionId", turn, seq,
        after_session_id as "afterSessionId", after_ended_at::text as "afterEndedAt", ended_before as "endedBefore"
      from webhook_recoveries
      where organization_id = ${organizationId} and webhook_subscription_id = ${webhookSubscriptionId}
      order by recovery_id limit 1 for update`);
    if (current === 0 || !recovery) return { sessionIds: [], isOver: true };
    const { recoveryId, sessionId, turn, seq, since } = recovery;
    const page =
      since === null
        ? { targets: [{ sessionId: sessionId!, turn, seq }], progress: null }
        : await targetsSince(tx, assignment, recovery, since, room, now);
    const sessionIds = await rewindSessions(tx, assignment, page.targets, now);
    const isThis = sql`organization_id = ${organizationId} and webhook_subscription_id = ${webhookSubscriptionId}
      and recovery_id = ${recoveryId}`;
    await tx.query(
      page.progress === null
        ? sql`delete from webhook_recoveries where ${isThis}`
        : sql`
            update webhook_recoveries set after_session_id = ${page.progress.afterSessionId},
              after_ended_at = ${page.progress.afterEndedAt}::timestamptz, ended_before = ${page.progress.endedBefore}
            where ${isThis}`,
    );
    return { sessionIds, isOver: false };
  });
}

/** The next sessions with a chunk of that time or later; `progress` is null if there are no more. */
async function targetsSince(
  tx: Tx,
  assignment: Assignment,
  recovery: Recovery,
  since: Date,
  room: number,
  now: Date,
): Promise<{ targets: RewindTarget[]; progress: RecoveryProgress | null }> {
  const { sessionIds, progress } = recovery.afterEndedAt
    ? await nextEnded(tx, assignment, { ...recovery, afterEndedAt: recovery.afterEndedAt }, room)
    : await nextOpen(tx, assignment, recovery, since, room, now);
  return { targets: await positionsBefore(tx, assignment, sessionIds, since), progress };
}

interface RewindPage {
  sessionIds: string[];
  progress: RecoveryProgress | null;
}

async function nextOpen(
  tx: Tx,
  { organizationId, environment }: Assignment,
  { recoveryId, afterSessionId }: Recovery,
  since: Date,
  room: number,
  now: Date,
): Promise<RewindPage> {
  // An append alone does not set `updated_at`, but the end of a turn does.
  const rows = await tx.query<{ sessionId: string; isActive: boolean }>(sql`
    select p.session_id as "sessionId", p.status <> 'idle' or p.updated_at >= ${since} as "isActive"
    from unnest(array['idle', 'running', 'waiting']) k(status)
    cross join lateral (
      select x.session_id, x.status, x.updated_at from sessions x
      where x.organization_id = ${organizationId} and x.environment = ${environment} and x.status = k.status
        and x.session_id > ${afterSessionId} and x.session_id <= ${recoveryId}
      order by x.session_id limit ${PAGE_SIZE}) p
    order by p.session_id limit ${PAGE_SIZE}`);
  const active = rows.filter(({ isActive }) => isActive).map(({ sessionId }) => sessionId);
  const sessionIds = active.slice(0, room);
  const isOpen = { afterEndedAt: null, endedBefore: null };
  if (active.length > room) return { sessionIds, progress: { ...isOpen, afterSessionId: sessionIds.at(-1)! } };
  if (rows.length === PAGE_SIZE) return { sessionIds, progress: { ...isOpen, afterSessionId: rows.at(-1)!.sessionId } };
  // A session that ends later than this was open when its page was read.
  const endedBefore = new Date(now.getTime() + MAX_SKEW_MS);
  return {
    sessionIds,
    progress: { afterSessionId: beforeAllSessions, afterEndedAt: since.toISOString(), endedBefore },
  };
}

async function nextEnded(
  tx: Tx,
  { organizationId, environment }: Assignment,
  { recoveryId, afterSessionId, afterEndedAt, endedBefore }: Recovery & { afterEndedAt: string },
  room: number,
): Promise<RewindPage> {
  const rows = await tx.query<{ sessionId: string; endedAt: string }>(sql`
    select p.session_id as "sessionId", p.ended_at::text as "endedAt"
    from unnest(array['completed', 'failed', 'cancelled']) k(status)
    cross join lateral (
      select x.session_id, x.ended_at from sessions x
      where x.organization_id = ${organizationId} and x.environment = ${environment} and x.status = k.status
        and x.ended_at >= ${afterEndedAt}::timestamptz and x.ended_at < ${endedBefore}
        and (x.ended_at, x.session_id) > (${afterEndedAt}::timestamptz, ${afterSessionId}::uuid)
        and x.session_id <= ${recoveryId}
      order by x.ended_at, x.session_id limit ${room}) p
    order by p.ended_at, p.session_id limit ${room}`);
  const sessionIds = rows.map(({ sessionId }) => sessionId);
  if (rows.length < room) return { sessionIds, progress: null };
  const { sessionId, endedAt } = rows.at(-1)!;
  return { sessionIds, progress: { afterSessionId: sessionId, afterEndedAt: endedAt, endedBefore } };
}

/** For each of these sessions with a chunk of that time or later, the position before the first such chunk. */
export async function positionsBefore(
  db: Pick<Db, 'query'>,
  { organizationId }: Pick<Assignment, 'organizationId'>,
  sessionIds: readonly string[],
  since: Date,
): Promise<RewindTarget[]> {
  if (sessionIds.length === 0) return [];
  const segmentsOf = (sessionId: Sql) => sql`from segments r
    where r.organization_id = ${organizationId} and r.session_id = ${sessionId}`;
  // Segments are in the order of time, so if the last one is too old, all are.
  const rows = await db.query<{ sessionId: string; turn: number | null; seq: number | null }>(sql`
    select p.session_id as "sessionId", b.turn, b.seq_to as seq
    from unnest(${[...sessionIds]}::uuid[]) p(session_id)
    cross join lateral (
      select r.created_at ${segmentsOf(sql`p.session_id`)} order by r.turn desc, r.seq_to desc limit 1) l
    cross join lateral (
      select r.turn, r.seq_to ${segmentsOf(sql`p.session_id`)} and l.created_at >= ${since} and r.created_at >= ${since}
      order by r.turn, r.seq_to limit 1) f
    left join lateral (
      select r.turn, r.seq_to ${segmentsOf(sql`p.session_id`)} and (r.turn, r.seq_to) < (f.turn, f.seq_to)
      order by r.turn desc, r.seq_to desc limit 1) b on true`);
  return rows.map(({ sessionId, turn, seq }) => ({
    sessionId,
    turn: turn ?? beginning.turn,
    seq: seq ?? beginning.seq,
  }));
}

/**
 * Returns the sessions that were rewound: those that had come further. Their current delivery is cancelled, because its chunks are
 * sent again.
 */
async function rewindSessions(
  tx: Tx,
  assignment: Assignment,
  targets: readonly RewindTarget[],
  now: Date,
): Promise<string[]> {
  if (targets.length === 0) return [];
  const { organizationId, environment, webhookSubscriptionId } = assignment;
  const sessionIds = targets.map(({ sessionId }) => sessionId);
  // A session without a chunk since the subscription was created counts as delivered up to the end of its journal.
  const isOurs = sql`s.delivery_subscription_id = ${webhookSubscriptionId}`;
  const isFurther = sql`s.organization_id = ${organizationId} and s.environment = ${environment}
    and s.session_id = any(${sessionIds}::uuid[]) and s.session_id = b.sid
    and s.next_seq > 1 and coalesce(s.pinned_version, 0) >= 0
    and (case when ${isOurs} then s.delivered_turn else s.turn end,
      case when ${isOurs} then s.delivered_seq else s.next_seq - 1 end) > (b.turn, b.seq)`;
  const places = sql`unnest(${sessionIds}::uuid[], ${targets.map(({ turn }) => turn)}::int[],
    ${targets.map(({ seq }) => seq)}::bigint[],
    ${targets.map((target) => (comparePositions(target, beginning) === 0 ? '' : formatCursor(target)))}::text[])
    as b(sid, turn, seq, cursor)`;
  const further = await tx.query<{ sessionId: string }>(sql`
    select s.session_id as "sessionId" from sessions s join ${places} on s.session_id = b.sid
    where ${isFurther} order by s.session_id for no key update of s`);
  if (further.length === 0) return [];
  const moving = further.map(({ sessionId }) => sessionId);
  await Promise.all([
    ...cancelDeliveries(assignment, moving, now).map((statement) => tx.query(statement)),
    tx.query(sql`
      update sessions s set delivered_turn = b.turn, delivered_seq = b.seq, delivery_due = true, delivery_id = null,
        acknowledged_cursor = b.cursor, delivery_subscription_id = ${webhookSubscriptionId}
      from ${places} where ${isFurther}`),
  ]);
  return moving;
}
