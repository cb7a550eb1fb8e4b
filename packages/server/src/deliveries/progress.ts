// The progress of sessions' deliveries: the statements that read and advance it, each for many sessions of one subscription.
//
//   read      reads the chunks that wait, and the current delivery
//   advance   acknowledges the current delivery, stores the next one, or both; or skips chunks that don't match the filter
//   postpone  an attempt failed; the delivery waits for its retry
//   giveUp    the last attempt failed; the session continues without this delivery
//
// `sessions.delivery_id` is the fence between two nodes that both believe the subscription is assigned to them: a node that finds
// another delivery than its own there was overtaken and stops. What depends on the current subscription (which delivery is next and
// what is skipped) is also conditional on its epoch, under a lock that conflicts with changes of the subscription.
// Locks are taken in one order everywhere: subscription, sessions by id, deliveries.

import sql, { type Sql } from 'sql-template-tag';
import type { Db } from '../db/db.ts';
import { planForLookups } from '../db/plan-for-lookups.ts';
import { textArray } from '../db/values.ts';
import { recordEvent, systemSource } from '../events/record.ts';
import { formatCursor, type Position } from '../journal/cursor.ts';
import type { Segment } from '../journal/segment.ts';
import { formatId } from '../lib/ids.ts';
import { agentIdOf } from '../session-rows/session.ts';
import { maxBodyBytes, maxChunks, type UndeliveredJournal } from './batch.ts';
import type { AttemptedDelivery, Delivery, FinishedDelivery } from './delivery.ts';
import { type DeliveryRow, deliveryColumns, deliveryOf, encodeChunkTypes } from './delivery-row.ts';
import { type Assignment, sameSubscription } from './destinations/assignments.ts';
import { attemptLines, finishDeliveries, storeLateAttempts, withAttempts } from './finished-deliveries.ts';

export interface ReadInput {
  sessionId: string;
  /** Where to read from; undefined: from the position up to which the session's chunks are delivered. */
  after: Position | undefined;
  /** Whether to read also what is longer than a delivery with several chunks: a segment, or a stored body. */
  mayBeLong?: boolean;
}

export interface DeliveryProgress extends UndeliveredJournal {
  /** The epoch of the subscription; another than that of the assignment means that it has changed. */
  epoch: number;
  /** The cursor of the last delivery that the receiver of this subscription accepted; empty: none. */
  acknowledgedCursor: string;
  /** The parent in the trace of the session's turn. */
  traceParent: string | null;
  /** The current delivery, unless `after` was given. `segments` is empty if it has a body. */
  delivery: Delivery | undefined;
  /** What comes first is too long, and was not read. */
  isTooLong: boolean;
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
  segment: string | null;
  createdAt: Date;
  isTooLong: boolean;
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
  const body = sql`case when b.may_be_long or octet_length(d.body) <= ${maxBodyBytes} then d.body end`;
  const select = sql`
    select w.epoch, s.session_id as "sessionId", s.agent_id as "agentId", s.turn as "headTurn",
      s.next_seq - 1 as "headSeq", s.after_turn as "afterTurn", s.after_seq as "afterSeq",
      s.acknowledged_cursor as "acknowledgedCursor", s.trace_parent as "traceParent",
      ${deliveryColumns(body)}, g.turn, g.seq_from as "seqFrom", g.seq_to as "seqTo", g.created_at as "createdAt",
      case when b.may_be_long or g.bytes <= ${maxBodyBytes} then g.body end as "segment",
      not b.may_be_long and greatest(g.bytes, octet_length(d.body)) > ${maxBodyBytes} is true as "isTooLong"
    from webhook_subscriptions w
    cross join unnest(${inputs.map(({ sessionId }) => sessionId)}::uuid[],
      ${inputs.map(({ after }) => after?.turn)}::int[], ${inputs.map(({ after }) => after?.seq)}::bigint[],
      ${inputs.map(({ mayBeLong = false }) => mayBeLong)}::bool[])
      as b(sid, turn, seq, may_be_long)
    -- The limits force a look-up by the whole key for each session (finished-deliveries.ts).
    cross join lateral (
      select x.session_id, x.agent_id, x.turn, x.next_seq, x.acknowledged_cursor, x.trace_parent, x.delivery_id,
        coalesce(b.turn, case when x.delivery_subscription_id = w.webhook_subscription_id then x.delivered_turn
          else x.turn end) as after_turn,
        coalesce(b.seq, case when x.delivery_subscription_id = w.webhook_subscription_id then x.delivered_seq
          else x.next_seq - 1 end) as after_seq
      from sessions x where x.organization_id = ${organizationId} and x.session_id = b.sid
      limit 1) s
    left join lateral (
      select x.* from pending_deliveries x
      where b.turn is null and x.organization_id = ${organizationId}
        and x.webhook_subscription_id = ${webhookSubscriptionId} and x.delivery_id = s.delivery_id
      limit 1) d on true
    left join lateral (
      -- The first one, however long it is, and those that fit with it.
      select y.* from (
        select x.*, sum(x.bytes) over (order by x.turn, x.seq_to) as bytes_through
        from (
          select r.turn, r.seq_from, r.seq_to, r.body, r.created_at, octet_length(r.body) as bytes from segments r
          where r.organization_id = ${organizationId} and r.session_id = b.sid and d.body is null
            and (r.turn, r.seq_to) > (s.after_turn, s.after_seq)
          order by r.turn, r.seq_to limit ${maxChunks}) x) y
      where y.bytes_through <= ${maxBodyBytes} or y.bytes_through = y.bytes
      order by y.turn, y.seq_to) g on true
    where w.organization_id = ${organizationId} and w.environment = ${environment}
      and w.webhook_subscription_id = ${webhookSubscriptionId}`;
  const [, rows = []] = await db.batch<ProgressRow>([planForLookups, select]);
  const found = new Map<string, DeliveryProgress & { segments: Segment[] }>();
  for (const row of rows) {
    let progress = found.get(row.sessionId);
    if (!progress) {
      progress = progressOf(row, environment);
      found.set(row.sessionId, progress);
    }
    const { turn, seqFrom, seqTo, segment: body, createdAt } = row;
    if (turn !== null && body !== null) {
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
    isTooLong: row.isTooLong,
    delivery: row.deliveryId === null ? undefined : deliveryOf(row.sessionId, row),
  };
}

/** Stores the next delivery of a session, and acknowledges the previous one, if there is one. */
export interface NextInput {
  /** The epoch of the subscription that the delivery was built for. */
  epoch: number;
  next: Delivery;
  /** The position that its chunks were read from. */
  after: Position;
  done: FinishedDelivery | undefined;
}

/** Skips a range of chunks that don't match the filter. */
export interface SkipInput {
  sessionId: string;
  /** The epoch of the subscription with that filter. */
  epoch: number;
  after: Position;
  through: Position;
}

/** The second acknowledges a delivery that none follows yet. */
export type AdvanceInput = NextInput | { done: FinishedDelivery } | SkipInput;

/**
 * Advances sessions in one transaction. For each: whether chunks wait; undefined if it was not advanced, because the subscription has
 * changed, another node advanced the session, or it was deleted.
 */
export async function advanceMany(
  db: Db,
  assignment: Assignment,
  inputs: readonly AdvanceInput[],
  now: Date,
): Promise<(boolean | undefined)[]> {
  const moves = inputs.map(moveOf);
  const done = inputs.flatMap((input) => ('done' in input ? (input.done ?? []) : []));
  const next = inputs.flatMap((input) => ('next' in input ? input.next : []));
  const [, , advanced] = await db.batch<AdvancedRow>([
    planForLookups,
    lockSubscription(assignment),
    advanceSessions(assignment, moves),
    ...(next.length === 0 ? [] : [insertPending(assignment, next, now)]),
    ...finishDeliveries(assignment, done, 'succeeded', now),
  ]);
  const isDue = new Map(advanced?.map((row) => [row.sessionId, row.isDue]));
  await recordLate(
    db,
    assignment,
    done.filter(({ delivery }) => !isDue.has(delivery.sessionId)),
  );
  return moves.map(({ sessionId }) => isDue.get(sessionId));
}

/** Records attempts of deliveries that are no longer the current ones of their sessions. */
async function recordLate(db: Db, assignment: Assignment, late: readonly AttemptedDelivery[]): Promise<void> {
  if (late.length > 0) await db.batch([planForLookups, storeLateAttempts(assignment, late)]);
}

/** Stores deliveries of the sessions that were advanced to them. */
function insertPending(
  { organizationId, webhookSubscriptionId, chunkTypes }: Assignment,
  next: readonly Delivery[],
  now: Date,
): Sql {
  return sql`
    insert into pending_deliveries (organization_id, webhook_subscription_id, delivery_id, session_id, previous_cursor,
      from_turn, from_seq, to_turn, to_seq, chunk_types, occurred_at, created_at)
    select s.organization_id, ${webhookSubscriptionId}::uuid, s.delivery_id, s.session_id, b.previous_cursor,
      s.delivered_turn, s.delivered_seq, b.to_turn, b.to_seq, ${encodeChunkTypes(chunkTypes)}::text, b.occurred_at,
      ${now}::timestamptz
    from unnest(${next.map((d) => d.sessionId)}::uuid[], ${next.map((d) => d.deliveryId)}::uuid[],
      ${next.map((d) => d.to.turn)}::int[], ${next.map((d) => d.to.seq)}::bigint[],
      ${next.map((d) => d.previousCursor)}::text[], ${next.map((d) => d.occurredAt)}::timestamptz[])
      as b(sid, delivery_id, to_turn, to_seq, previous_cursor, occurred_at)
    cross join lateral (
      select x.organization_id, x.session_id, x.delivery_id, x.delivered_turn, x.delivered_seq from sessions x
      where x.organization_id = ${organizationId} and x.session_id = b.sid and x.delivery_id = b.delivery_id
      limit 1) s`;
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
  const sorted = inputs.toSorted((a, b) => compareIds(a.delivery.deliveryId, b.delivery.deliveryId));
  const ids = sorted.map(({ delivery }) => delivery.deliveryId);
  // As an inlined subquery, the locks would be taken again for each row of the update. They are taken in the order of the ids, and
  // keep the attempts from changing until the update.
  const update = sql`
    with b as materialized (
      select b.* from unnest(${ids}::uuid[], ${sorted.map(({ delivery }) => delivery.attemptCount)}::int[],
        ${textArray(sorted.map(({ attempts }) => attemptLines(attempts)))}::text[],
        ${sorted.map(({ delivery, attempts }) => delivery.attemptCount + attempts.length)}::int[],
        ${sorted.map(({ retries }) => retries)}::int[],
        ${sorted.map(({ nextAttemptAt }) => nextAttemptAt)}::timestamptz[],
        ${sorted.map(({ notBefore }) => notBefore)}::timestamptz[],
        ${sorted.map(({ delivery, body }) => (delivery.body === null ? body.toString() : null))}::text[])
        as b(delivery_id, attempts_before, attempts, attempt_count, retries, next_attempt_at, not_before, body)
      cross join lateral (
        select 1 from pending_deliveries x
        where x.organization_id = ${organizationId} and x.webhook_subscription_id = ${webhookSubscriptionId}
          and x.delivery_id = b.delivery_id and x.attempt_count = b.attempts_before
        for no key update of x) locked)
    update pending_deliveries d set attempts = ${withAttempts()}, attempt_count = b.attempt_count, retries = b.retries,
      next_attempt_at = b.next_attempt_at, not_before = b.not_before, body = coalesce(d.body, b.body)
    from b
    where d.organization_id = ${organizationId} and d.webhook_subscription_id = ${webhookSubscriptionId}
      and d.delivery_id = any(${ids}::uuid[]) and d.delivery_id = b.delivery_id
    returning d.delivery_id as "deliveryId"`;
  const [, postponed = []] = await db.batch<{ deliveryId: string }>([planForLookups, update]);
  const found = new Set(postponed.map(({ deliveryId }) => deliveryId));
  await recordLate(
    db,
    assignment,
    sorted.filter(({ delivery }) => !found.has(delivery.deliveryId)),
  );
}

/** Whether more chunks wait in the session; undefined if another node advanced it. */
export async function giveUp(
  db: Db,
  assignment: Assignment,
  done: FinishedDelivery,
  now: Date,
): Promise<boolean | undefined> {
  const { sessionId, deliveryId } = done.delivery;
  const isDue = await db.transaction(async (tx) => {
    tx.write(planForLookups);
    await tx.query(lockSubscription(assignment));
    const [moved] = await tx.query<AdvancedRow>(advanceSessions(assignment, [{ ...moveOf({ done }), cursor: null }]));
    if (!moved) return undefined;
    const agentId = await agentIdOf(tx, assignment.organizationId, sessionId);
    await Promise.all([
      ...finishDeliveries(assignment, [done], 'exhausted', now).map((statement) => tx.query(statement)),
      tx.query(
        recordEvent(systemSource(assignment.organizationId), now, {
          type: 'webhook_delivery.exhausted',
          resource: { type: 'webhook_delivery', id: formatId('whd', deliveryId) },
          outcome: 'failure',
          environment: assignment.environment,
          sessionId: formatId('ses', sessionId),
          agentId,
        }),
      ),
    ]);
    return moved.isDue;
  });
  if (isDue === undefined) await recordLate(db, assignment, [done]);
  return isDue;
}

// Changes of the subscription lock the row for update, so each happens before this transaction or after it.
function lockSubscription(assignment: Assignment): Sql {
  return sql`select 1 from webhook_subscriptions where ${sameSubscription(assignment)} for key share`;
}

interface SessionMove {
  sessionId: string;
  /** The current delivery, which has ended; null if there is none. */
  doneId: string | null;
  /** The delivery that becomes the current one. */
  nextId: string | null;
  /** The position of a session without a current delivery. */
  after: Position;
  /** The new position. */
  to: Position;
  /** The cursor that the receiver acknowledged; null: none. */
  cursor: string | null;
  /** The epoch that the subscription must have; null: any, because a delivery has ended whatever has changed since. */
  epoch: number | null;
}

function moveOf(input: AdvanceInput): SessionMove {
  if ('through' in input) {
    const { sessionId, epoch, after, through } = input;
    return { sessionId, doneId: null, nextId: null, after, to: through, cursor: null, epoch };
  }
  const { done } = input;
  const acknowledged = {
    doneId: done?.delivery.deliveryId ?? null,
    cursor: done ? formatCursor(done.delivery.to) : null,
  };
  if ('next' in input) {
    const { next, epoch, after } = input;
    const { sessionId, deliveryId: nextId, from: to } = next;
    return { ...acknowledged, sessionId, nextId, after, to, epoch };
  }
  const { delivery, through } = input.done;
  return {
    ...acknowledged,
    sessionId: delivery.sessionId,
    nextId: null,
    after: delivery.from,
    to: through,
    epoch: null,
  };
}

interface AdvancedRow {
  sessionId: string;
  isDue: boolean;
}

function advanceSessions(
  { organizationId, environment, webhookSubscriptionId }: Assignment,
  moves: readonly SessionMove[],
): Sql {
  const sorted = moves.toSorted((a, b) => compareIds(a.sessionId, b.sessionId));
  return sql`
    update sessions s set delivery_id = b.next_id, delivered_turn = b.turn, delivered_seq = b.seq,
      delivery_due = (s.turn, s.next_seq - 1) > (b.turn, b.seq),
      acknowledged_cursor = coalesce(b.cursor, s.acknowledged_cursor)
    from webhook_subscriptions w
    cross join unnest(${sorted.map((m) => m.sessionId)}::uuid[], ${sorted.map((m) => m.doneId)}::uuid[],
      ${sorted.map((m) => m.nextId)}::uuid[], ${sorted.map((m) => m.after.turn)}::int[],
      ${sorted.map((m) => m.after.seq)}::bigint[], ${sorted.map((m) => m.to.turn)}::int[],
      ${sorted.map((m) => m.to.seq)}::bigint[], ${sorted.map((m) => m.cursor)}::text[],
      ${sorted.map((m) => m.epoch)}::int[])
      as b(sid, done_id, next_id, after_turn, after_seq, turn, seq, cursor, epoch)
    where w.organization_id = ${organizationId} and w.environment = ${environment}
      and w.webhook_subscription_id = ${webhookSubscriptionId} and w.epoch = coalesce(b.epoch, w.epoch)
      and s.organization_id = ${organizationId} and s.session_id = b.sid
      and s.delivery_subscription_id = ${webhookSubscriptionId} and s.delivery_id is not distinct from b.done_id
      and (b.done_id is not null or (s.delivered_turn = b.after_turn and s.delivered_seq = b.after_seq))
    returning s.session_id as "sessionId", s.delivery_due as "isDue"`;
}

// A statement almost always locks rows in the order of its input. Two nodes that contend for a subscription may still deadlock; the
// one that PostgreSQL aborts finds its sessions again.
function compareIds(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
