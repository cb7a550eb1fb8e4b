// The statement of the fast path (appender.ts) that appends text of many sessions, and the one that reads where a session is that it left out.
import sql, { empty, type Sql } from 'sql-template-tag';
import { textArray } from '../db/values.ts';
import type { JournalHead } from './append.ts';
import { deliveryMark, isDelivered } from './delivery-mark.ts';
import { endOfSegments } from './tail.ts';
import { type Batch, organizationsOf } from './text-head.ts';

export type HeadKey = Pick<JournalHead, 'sessionId' | 'epoch'>;

export interface WrittenHead extends HeadKey {
  /** The text that follows may be flushed. */
  isOpen?: boolean;
}

export function keyOf({ sessionId, epoch }: HeadKey): string {
  return `${sessionId} ${epoch}`;
}

/**
 * `found` locks the rows, except those that are locked already. The lock makes the condition on `epoch` true until the commit: without
 * it a claim can come between the check and the insert. Each row is looked up by a lateral join: as a plain join, a database without
 * statistics compares each session of the batch with all of its organization's.
 *
 * The insert takes its values from `found`, which looked at the locked row, and the update reaches that row by its key, also if another
 * transaction changed it after the statement began. (By `ctid` it would not be much faster, and Citus refuses that.)
 */
export function appendStatement(
  group: readonly Batch[],
  now: Date,
  tail: { nodeId: string; flush: number } | undefined,
): Sql {
  const heads = group.map(({ head }) => head);
  const organizations = organizationsOf(group);
  const opening = tail
    ? sql`, tail_node = case when not ${isDelivered} then ${tail.nodeId}::uuid end,
        tail_from = case when not ${isDelivered} then ${tail.flush}::bigint end`
    : group.some(({ head }) => head.unfolded)
      ? sql`, tail_node = null, tail_from = null`
      : empty;
  return sql`
    with found as materialized (
      select x.organization_id, x.session_id, x.turn, x.id, b.expect, b.n, b.body
      from unnest(${heads.map((h) => h.organizationId)}::uuid[], ${heads.map((h) => h.sessionId)}::uuid[],
        ${heads.map((h) => h.epoch)}::int[], ${heads.map((h) => h.turn)}::int[], ${heads.map(endOfSegments)}::bigint[],
        ${group.map(({ items }) => items.length)}::int[], ${textArray(group.map(({ body }) => body))}::text[])
        as b(org, sid, epoch, turn, expect, n, body)
      cross join lateral (
        select x.organization_id, x.session_id, x.turn, w.webhook_subscription_id as id from sessions x
        left join webhook_subscriptions w on w.organization_id = any(${organizations}::uuid[])
          and w.organization_id = x.organization_id and w.environment = x.environment
        where x.organization_id = any(${organizations}::uuid[]) and x.organization_id = b.org and x.session_id = b.sid
          and x.epoch = b.epoch and x.turn = b.turn and x.next_seq = b.expect
        for no key update of x skip locked) x),
    i as (
      insert into segments as g (organization_id, session_id, turn, seq_to, seq_from, body, created_at)
      select d.organization_id, d.session_id, d.turn, d.expect + d.n - 1, d.expect, d.body, ${now}::timestamptz from found d)
    update sessions s set next_seq = d.expect + d.n, ${deliveryMark()} ${opening}
    from found d
    where s.organization_id = any(${organizations}::uuid[])
      and s.organization_id = d.organization_id and s.session_id = d.session_id
    returning s.session_id as "sessionId", s.epoch ${tail ? sql`, s.tail_node is not null as "isOpen"` : empty}`;
}

/** Where a session is. */
export interface Found {
  sessionId: string;
  epoch: number;
  turn: number;
  nextSeq: number;
}

/** Reads where these sessions are (`Found`). */
export function headsOf(missed: readonly Batch[]): Sql {
  return sql`
    select h.sid as "sessionId", s.epoch, s.turn, s.next_seq as "nextSeq"
    from unnest(${missed.map(({ head }) => head.organizationId)}::uuid[],
      ${missed.map(({ head }) => head.sessionId)}::uuid[]) as h(org, sid)
    cross join lateral (
      select x.epoch, x.turn, x.next_seq from sessions x
      where x.organization_id = any(${organizationsOf(missed)}::uuid[]) and x.organization_id = h.org
        and x.session_id = h.sid
      limit 1) s`;
}
