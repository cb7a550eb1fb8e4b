// How far a Session's deliveries have come: the statements that read it and move it on, each for many Sessions of one
// subscription.
//
//   read      what waits, and the delivery under way
//   fix       the next delivery becomes durable, and the one before is acknowledged with it
//   settle    a delivery is acknowledged and none follows yet, or chunks that were not asked for are skipped
//   postpone  an attempt failed; the delivery waits for its next
//   giveUp    the last attempt failed; the Session goes on without it
//
// `sessions.delivery_id` is the fence between two nodes that both believe to hold the subscription: whoever finds another
// delivery there than its own has been overtaken and stops. What depends on the subscription as it is now (which delivery
// comes next, and what is skipped) is conditional on its epoch too, under a lock that changes of it wait for.
// Locks are taken in one order everywhere: subscription, Sessions by id, deliveries.
import sql, { type Sql } from 'sql-template-tag';
import type { Db } from '../../db/db.ts';
import { textArray } from '../../db/values.ts';
import { recordEvent, systemSource } from '../../events/record.ts';
import { formatCursor, type Position } from '../../journal/cursor.ts';
import type { Segment } from '../../journal/segment.ts';
import { formatId } from '../../lib/ids.ts';
import { type Assignment, sameSubscription } from './assignments.ts';
import { maxBodyBytes, maxChunks, type UndeliveredJournal } from './batch.ts';
import type { AttemptedDelivery, Delivery, FinishedDelivery } from './delivery.ts';
import { type DeliveryRow, deliveryColumns, deliveryOf, lettersOf } from './delivery-row.ts';
import { attemptLines, finishDeliveries, withAttempts } from './finished-deliveries.ts';

export interface ReadInput {
  sessionId: string;
  /** Where to read from; left out: from where the Session's deliveries have come to. */
  after: Position | undefined;
}

export interface DeliveryProgress extends UndeliveredJournal {
  /** Of the subscription: another than the one held means that it has changed. */
  epoch: number;
  /** Of what this subscription's receiver acknowledged last; empty: nothing. */
  acknowledgedCursor: string;
  /** Of the trace that the Session's turn belongs to. */
  traceParent: string | null;
  /** The one under way, where none was named to read behind. It has segments only if it has no body. */
  delivery: Delivery | undefined;
}

interface ProgressRow extends DeliveryRow {
  epoch: number;
  sessionId: string;
  agentId: string;
  headTurn: number;
  headSeq: number;
  afterTurn: number;
  afterSeq: number;
  acknowledgedCursor: string | null;
  traceParent: string | null;
  turn: number | null;
  seqFrom: number;
  seqTo: number;
  segment: string;
  createdAt: Date;
}

/**
 * Everything in one snapshot. No view if the session or the subscription is gone. Nothing waits in a session that has shown no
 * chunk since the subscription was created.
 */
export async function readMany(
  db: Db,
  assignment: Assignment,
  inputs: readonly ReadInput[],
): Promise<(DeliveryProgress | undefined)[]> {
  const { organizationId, environment, webhookSubscriptionId } = assignment;
  const rows = await db.query<ProgressRow>(sql`
    select w.epoch, s.session_id as "sessionId", s.agent_id as "agentId", s.turn as "headTurn",
      s.next_seq - 1 as "headSeq", coalesce(b.turn, p.turn) as "afterTurn", coalesce(b.seq, p.seq) as "afterSeq",
      s.acknowledged_cursor as "acknowledgedCursor", s.trace_parent as "traceParent",
      ${deliveryColumns()}, g.turn, g.seq_from as "seqFrom", g.seq_to as "seqTo", g.body as "segment", g.created_at as "createdAt"
    from webhook_subscriptions w
    cross join unnest(${inputs.map(({ sessionId }) => sessionId)}::uuid[],
      ${inputs.map(({ after }) => after?.turn)}::int[], ${inputs.map(({ after }) => after?.seq)}::bigint[])
      as b(sid, turn, seq)
    join sessions s on s.organization_id = ${organizationId} and s.session_id = b.sid
    cross join lateral (
      select case when s.delivery_subscription_id = w.webhook_subscription_id then s.delivered_turn else s.turn end as turn,
        case when s.delivery_subscription_id = w.webhook_subscription_id then s.delivered_seq else s.next_seq - 1 end as seq) p
    left join lateral (
      -- The limit makes it a look-up by the whole key for each Session. Without, and while the table was never analyzed, the
      -- planner joins with all deliveries of the subscription: measured, 100 ms at 7,000 of them rather than 2.
      select x.* from pending_deliveries x
      where b.turn is null and x.organization_id = ${organizationId}
        and x.webhook_subscription_id = ${webhookSubscriptionId} and x.delivery_id = s.delivery_id
      limit 1) d on true
    left join lateral (
      select y.* from (
        select x.*, sum(octet_length(x.body)) over (order by x.turn, x.seq_to) - octet_length(x.body) as bytes_before
        from (
          select r.turn, r.seq_from, r.seq_to, r.body, r.created_at from segments r
          where r.organization_id = ${organizationId} and r.session_id = b.sid and d.body is null
            and (r.turn, r.seq_to) > (coalesce(b.turn, p.turn), coalesce(b.seq, p.seq))
          order by r.turn, r.seq_to limit ${maxChunks}) x) y
      where y.bytes_before < ${maxBodyBytes}
      order by y.turn, y.seq_to) g on true
    where w.organization_id = ${organizationId} and w.environment = ${environment}
      and w.webhook_subscription_id = ${webhookSubscriptionId}`);
  const found = new Map<string, DeliveryProgress & { segments: Segment[] }>();
  for (const row of rows) {
    let progress = found.get(row.sessionId);
    if (!progress) {
      progress = progressOf(row, environment);
      found.set(row.sessionId, progress);
    }
    if (row.turn !== null) {
      const { turn, seqFrom, seqTo, segment: body, createdAt } = row;
      progress.segments.push({ turn, seqFrom, seqTo, body, createdAt });
    }
  }
  return inputs.map(({ sessionId }) => found.get(sessionId));
}

function progressOf(row: ProgressRow, environment: string): DeliveryProgress & { segments: Segment[] } {
  return {
    epoch: row.epoch,
    owner: { sessionId: row.sessionId, agentId: row.agentId, environment },
    after: { turn: row.afterTurn, seq: row.afterSeq },
    head: { turn: row.headTurn, seq: row.headSeq },
    acknowledgedCursor: row.acknowledgedCursor ?? '',
    traceParent: row.traceParent,
    segments: [],
    delivery: row.deliveryId === null ? undefined : deliveryOf(row.sessionId, row),
  };
}

export interface FixInput {
  /** Of the subscription that it was made for. */
  epoch: number;
  next: Delivery;
  /** Where it was read from. */
  after: Position;
  /** The one before, acknowledged by the same statement. */
  done: FinishedDelivery | undefined;
}

/** True for each that was fixed; false where the subscription has changed or the Session was moved on by another node. */
export async function fixMany(
  db: Db,
  assignment: Assignment,
  inputs: readonly FixInput[],
  now: Date,
): Promise<boolean[]> {
  const { organizationId, webhookSubscriptionId } = assignment;
  const sorted = inputs.toSorted((a, b) => compareIds(a.next.sessionId, b.next.sessionId));
  const next = sorted.map((input) => input.next);
  const done = inputs.flatMap((input) => input.done ?? []);
  const sessionIds = next.map(({ sessionId }) => sessionId);
  const deliveryIds = next.map(({ deliveryId }) => deliveryId);
  const previousCursors = next.map(({ previousCursor }) => previousCursor);
  const [, fixed] = await db.batch<{ sessionId: string }>([
    lockSubscription(assignment),
    sql`
      update sessions s set delivery_id = b.delivery_id, delivered_turn = b.from_turn, delivered_seq = b.from_seq,
        acknowledged_cursor = b.previous_cursor
      from unnest(${sessionIds}::uuid[], ${deliveryIds}::uuid[],
        ${sorted.map((input) => input.done?.delivery.deliveryId)}::uuid[],
        ${sorted.map((input) => input.after.turn)}::int[], ${sorted.map((input) => input.after.seq)}::bigint[],
        ${next.map((d) => d.from.turn)}::int[], ${next.map((d) => d.from.seq)}::bigint[], ${previousCursors}::text[],
        ${sorted.map((input) => input.epoch)}::int[])
        as b(sid, delivery_id, done_id, after_turn, after_seq, from_turn, from_seq, previous_cursor, epoch)
      where s.organization_id = ${organizationId} and s.session_id = b.sid
        and s.delivery_subscription_id = ${webhookSubscriptionId} and s.delivery_id is not distinct from b.done_id
        and (b.done_id is not null or (s.delivered_turn = b.after_turn and s.delivered_seq = b.after_seq))
        and ${isUnchanged(assignment)}
      returning s.session_id as "sessionId"`,
    sql`
      insert into pending_deliveries (organization_id, webhook_subscription_id, delivery_id, session_id, previous_cursor,
        from_turn, from_seq, to_turn, to_seq, chunk_types, occurred_at, created_at)
      select s.organization_id, ${webhookSubscriptionId}::uuid, s.delivery_id, s.session_id, b.previous_cursor,
        s.delivered_turn, s.delivered_seq, b.to_turn, b.to_seq, ${lettersOf(assignment.chunkTypes)}::text, b.occurred_at,
        ${now}::timestamptz
      from sessions s
      join unnest(${sessionIds}::uuid[], ${deliveryIds}::uuid[], ${next.map((d) => d.to.turn)}::int[],
        ${next.map((d) => d.to.seq)}::bigint[], ${previousCursors}::text[],
        ${next.map((d) => d.occurredAt)}::timestamptz[])
        as b(sid, delivery_id, to_turn, to_seq, previous_cursor, occurred_at)
        on s.session_id = b.sid and s.delivery_id = b.delivery_id
      where s.organization_id = ${organizationId}`,
    ...finishDeliveries(assignment, done, 'succeeded', now),
  ]);
  const sessions = new Set(fixed?.map(({ sessionId }) => sessionId));
  return inputs.map(({ next: { sessionId } }) => sessions.has(sessionId));
}

/** Either a delivery that was accepted, or a stretch that was not asked for. */
export type SettleInput =
  | { done: FinishedDelivery }
  | { sessionId: string; epoch: number; after: Position; through: Position };

/** Whether more waits in each Session; undefined where the Session was moved on by another node or is gone. */
export async function settleMany(
  db: Db,
  assignment: Assignment,
  inputs: readonly SettleInput[],
  now: Date,
): Promise<(boolean | undefined)[]> {
  const done = inputs.flatMap((input) => ('done' in input ? input.done : []));
  const [, settled] = await db.batch<{ sessionId: string; isDue: boolean }>([
    lockSubscription(assignment),
    advanceSessions(
      assignment,
      inputs.map((input) =>
        'done' in input
          ? {
              sessionId: input.done.delivery.sessionId,
              deliveryId: input.done.delivery.deliveryId,
              after: input.done.delivery.from,
              through: input.done.through,
              cursor: formatCursor(input.done.delivery.to),
              epoch: null,
            }
          : { ...input, deliveryId: null, cursor: null },
      ),
    ),
    ...finishDeliveries(assignment, done, 'succeeded', now),
  ]);
  const due = new Map(settled?.map(({ sessionId, isDue }) => [sessionId, isDue]));
  return inputs.map((input) => due.get('done' in input ? input.done.delivery.sessionId : input.sessionId));
}

/** An attempt failed and `nextAttemptAt` says when the next comes; `body` is kept if it is the first failure. */
export interface PostponeInput extends AttemptedDelivery {
  retries: number;
  nextAttemptAt: Date;
  /** Until when the receiver asked to wait; null: it did not. */
  notBefore: Date | null;
  body: Buffer;
}

export async function postponeMany(db: Db, assignment: Assignment, inputs: readonly PostponeInput[]): Promise<void> {
  const { organizationId, webhookSubscriptionId } = assignment;
  await db.query(sql`
    update pending_deliveries d set attempts = ${withAttempts()}, attempt_count = b.attempt_count, retries = b.retries,
      next_attempt_at = b.next_attempt_at, not_before = b.not_before, body = coalesce(d.body, b.body)
    from (
      select b.* from pending_deliveries x
      join unnest(${inputs.map(({ delivery }) => delivery.deliveryId)}::uuid[],
        ${inputs.map(({ delivery }) => delivery.attemptCount)}::int[],
        ${textArray(inputs.map(({ attempts }) => attemptLines(attempts)))}::text[],
        ${inputs.map(({ delivery, attempts }) => delivery.attemptCount + attempts.length)}::int[],
        ${inputs.map(({ retries }) => retries)}::int[],
        ${inputs.map(({ nextAttemptAt }) => nextAttemptAt)}::timestamptz[],
        ${inputs.map(({ notBefore }) => notBefore)}::timestamptz[],
        ${inputs.map(({ delivery, body }) => (delivery.body === null ? body.toString() : null))}::text[])
        as b(delivery_id, attempts_before, attempts, attempt_count, retries, next_attempt_at, not_before, body)
        on x.delivery_id = b.delivery_id
      where x.organization_id = ${organizationId} and x.webhook_subscription_id = ${webhookSubscriptionId}
        and x.attempt_count = b.attempts_before
      order by x.delivery_id for no key update of x) b
    where d.organization_id = ${organizationId} and d.webhook_subscription_id = ${webhookSubscriptionId}
      and d.delivery_id = b.delivery_id`);
}

/** Whether more waits in the Session; undefined where another node was first. */
export function giveUp(
  db: Db,
  assignment: Assignment,
  done: FinishedDelivery,
  now: Date,
): Promise<boolean | undefined> {
  const { delivery, through } = done;
  const { sessionId, deliveryId } = delivery;
  return db.transaction(async (tx) => {
    await tx.query(lockSubscription(assignment));
    const [moved] = await tx.query<{ isDue: boolean }>(
      advanceSessions(assignment, [
        { sessionId, deliveryId, after: delivery.from, through, cursor: null, epoch: null },
      ]),
    );
    if (!moved) return undefined;
    await Promise.all([
      ...finishDeliveries(assignment, [done], 'exhausted', now).map((statement) => tx.query(statement)),
      tx.query(
        recordEvent(systemSource(assignment.organizationId), now, {
          type: 'webhook_delivery.exhausted',
          resource: { type: 'webhook_delivery', id: formatId('whd', deliveryId) },
          outcome: 'failure',
          environment: assignment.environment,
          sessionId: formatId('ses', sessionId),
        }),
      ),
    ]);
    return moved.isDue;
  });
}

// Changes of the subscription lock the row for update: they come before this transaction or after it.
function lockSubscription(assignment: Assignment): Sql {
  return sql`select 1 from webhook_subscriptions where ${sameSubscription(assignment)} for key share`;
}

/** The subscription is as it was for the row `b`. */
function isUnchanged(assignment: Assignment): Sql {
  return sql`exists (select 1 from webhook_subscriptions where ${sameSubscription(assignment)} and epoch = b.epoch)`;
}

interface SessionAdvance {
  sessionId: string;
  /** The one that is over; null for a stretch that is skipped. */
  deliveryId: string | null;
  after: Position;
  through: Position;
  /** Acknowledged now; null: nothing was. */
  cursor: string | null;
  /** Of the subscription that a stretch was skipped for. */
  epoch: number | null;
}

function advanceSessions(assignment: Assignment, moves: readonly SessionAdvance[]): Sql {
  const { organizationId, webhookSubscriptionId } = assignment;
  const sorted = moves.toSorted((a, b) => compareIds(a.sessionId, b.sessionId));
  return sql`
    update sessions s set delivery_id = null, delivered_turn = b.turn, delivered_seq = b.seq,
      delivery_due = (s.turn, s.next_seq - 1) > (b.turn, b.seq),
      acknowledged_cursor = coalesce(b.cursor, s.acknowledged_cursor)
    from unnest(${sorted.map((m) => m.sessionId)}::uuid[], ${sorted.map((m) => m.deliveryId)}::uuid[],
      ${sorted.map((m) => m.after.turn)}::int[], ${sorted.map((m) => m.after.seq)}::bigint[],
      ${sorted.map((m) => m.through.turn)}::int[], ${sorted.map((m) => m.through.seq)}::bigint[],
      ${sorted.map((m) => m.cursor)}::text[], ${sorted.map((m) => m.epoch)}::int[])
      as b(sid, delivery_id, after_turn, after_seq, turn, seq, cursor, epoch)
    where s.organization_id = ${organizationId} and s.session_id = b.sid
      and s.delivery_subscription_id = ${webhookSubscriptionId} and s.delivery_id is not distinct from b.delivery_id
      and exists (select 1 from webhook_subscriptions where ${sameSubscription(assignment)} and epoch = coalesce(b.epoch, epoch))
      and (b.delivery_id is not null or (s.delivered_turn = b.after_turn and s.delivered_seq = b.after_seq))
    returning s.session_id as "sessionId", s.delivery_due as "isDue"`;
}

// The rows of a statement are locked in the order of its input, as good as always; two nodes that contend for a
// subscription may still meet head on, and the one that PostgreSQL stops finds its Sessions again.
function compareIds(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
