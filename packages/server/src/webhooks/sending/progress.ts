// The progress of sessions' deliveries: the statements that read and advance it, each for many sessions of one subscription.
//
//   read      reads the chunks that wait, and the current delivery
//   fix       stores the next delivery and acknowledges the previous one with it
//   settle    acknowledges a delivery that none follows yet, or skips chunks that don't match the filter
//   postpone  an attempt failed; the delivery waits for its retry
//   giveUp    the last attempt failed; the session continues without this delivery
//
// `sessions.delivery_id` is the fence between two nodes that both believe the subscription is assigned to them: a node that finds
// another delivery than its own there was overtaken and stops. What depends on the current subscription (which delivery is next and
// what is skipped) is also conditional on its epoch, under a lock that conflicts with changes of the subscription.
// Locks are taken in one order everywhere: subscription, sessions by id, deliveries.
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
  /** Where to read from; undefined: from the position up to which the session's chunks are delivered. */
  after: Position | undefined;
}

export interface DeliveryProgress extends UndeliveredJournal {
  /** The epoch of the subscription; another than that of the assignment means that it has changed. */
  epoch: number;
  /** The cursor of the last delivery that the receiver of this subscription accepted; empty: none. */
  acknowledgedCursor: string;
  /** Of the trace of the session's turn. */
  traceParent: string | null;
  /** The current delivery, unless `after` was given. `segments` is empty if it has a body. */
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
 * Reads the progress of sessions in one snapshot; undefined if the session or the subscription was deleted. Nothing waits in a
 * session without a chunk since the subscription was created.
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
      -- The limit forces a look-up by the whole key for each session. Without it, while the table has not been analyzed, the planner
      -- joins with all deliveries of the subscription. Measured with 7,000 deliveries: 100 ms instead of 2.
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
  /** The epoch of the subscription that the delivery was built for. */
  epoch: number;
  next: Delivery;
  /** The position that its chunks were read from. */
  after: Position;
  /** The previous delivery, acknowledged by the same statement. */
  done: FinishedDelivery | undefined;
}

/** True for each delivery that was stored; false if the subscription has changed or another node advanced the session. */
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

/** Either an accepted delivery, or a range of chunks that don't match the filter. */
export type SettleInput =
  | { done: FinishedDelivery }
  | { sessionId: string; epoch: number; after: Position; through: Position };

/** Whether more chunks wait in each session; undefined if another node advanced the session or it was deleted. */
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

/** A delivery whose attempt failed. `body` is stored with the first failure. */
export interface PostponeInput extends AttemptedDelivery {
  retries: number;
  nextAttemptAt: Date;
  /** The time that the receiver's `Retry-After` asked for; null: none. */
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

/** Whether more chunks wait in the session; undefined if another node advanced it. */
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

// Changes of the subscription lock the row for update, so each happens before this transaction or after it.
function lockSubscription(assignment: Assignment): Sql {
  return sql`select 1 from webhook_subscriptions where ${sameSubscription(assignment)} for key share`;
}

/** The condition that the subscription still has the epoch of the row `b`. */
function isUnchanged(assignment: Assignment): Sql {
  return sql`exists (select 1 from webhook_subscriptions where ${sameSubscription(assignment)} and epoch = b.epoch)`;
}

interface SessionAdvance {
  sessionId: string;
  /** The finished delivery; null if a range is skipped. */
  deliveryId: string | null;
  after: Position;
  through: Position;
  /** The cursor that the receiver acknowledged; null: none. */
  cursor: string | null;
  /** The epoch of the subscription for which a range was skipped; null for a delivery. */
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

// A statement almost always locks rows in the order of its input. Two nodes that contend for a subscription may still deadlock; the
// one that PostgreSQL aborts finds its sessions again.
function compareIds(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
