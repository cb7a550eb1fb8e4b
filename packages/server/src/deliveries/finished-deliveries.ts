// Finishing deliveries: the row moves from `pending_deliveries` to `webhook_deliveries` in the transaction that advances its
// session. A pending row exists exactly as long as its session refers to it.
//
// Pending rows come and go, so PostgreSQL's statistics of them are mostly of a time when there were hardly any. It then plans a join
// with them as one that reads all of the subscription, for each row on the other side: with 20,000 that wait for a retry, finishing
// 250 took 1.6 seconds instead of 9 milliseconds. So each is looked up by its whole key: in a lateral subquery, which a limit or a row
// lock keeps from becoming a join, or as one of an array. For an array, PostgreSQL 15 and 16 may read all that wait, once.
import sql, { raw, type Sql } from 'sql-template-tag';
import { textArray } from '../db/values.ts';
import type { AttemptedDelivery, FinishedDelivery } from './delivery.ts';
import type { Assignment } from './destinations/assignments.ts';
import { attemptText, type StoredAttempt } from './stored-attempt.ts';

/** How many attempts of a delivery are stored: the latest ones. */
export const maxStoredAttempts = 50;

/**
 * Moves deliveries to the finished ones; run the statement in the transaction that advanced their sessions. A delivery stays if its
 * session still refers to it: the session was not advanced, because the subscription has changed or was deleted.
 */
export function finishDeliveries(
  { organizationId, webhookSubscriptionId }: Assignment,
  done: readonly FinishedDelivery[],
  status: 'succeeded' | 'exhausted',
  now: Date,
): Sql[] {
  if (done.length === 0) return [];
  return [
    sql`
      with i as (
        insert into webhook_deliveries as w (${sharedColumns}, status, attempts, attempt_count, finished_at)
        select ${sharedColumnsOf('d')}, ${status}::text, ${withAttempts()}, b.attempt_count, ${now}::timestamptz
        from unnest(${done.map(({ delivery }) => delivery.deliveryId)}::uuid[],
          ${textArray(done.map(({ attempts }) => attemptLines(attempts)))}::text[],
          ${done.map(({ delivery, attempts }) => delivery.attemptCount + attempts.length)}::int[])
          as b(delivery_id, attempts, attempt_count)
        cross join lateral (
          select x.* from pending_deliveries x
          where x.organization_id = ${organizationId} and x.webhook_subscription_id = ${webhookSubscriptionId}
            and x.delivery_id = b.delivery_id
            and x.delivery_id is distinct from (
              select s.delivery_id from sessions s
              where s.organization_id = ${organizationId} and s.session_id = x.session_id)
          limit 1) d
        returning w.delivery_id)
      delete from pending_deliveries d
      where d.organization_id = ${organizationId} and d.webhook_subscription_id = ${webhookSubscriptionId}
        and d.delivery_id = any(array(select i.delivery_id from i))`,
  ];
}

/** Cancels the current deliveries of sessions that are rewound: their chunks are sent again. Run the statements in this order. */
export function cancelDeliveries(
  { organizationId, webhookSubscriptionId }: Assignment,
  sessionIds: readonly string[],
  now: Date,
): Sql[] {
  const current = sql`
    select s.delivery_id from sessions s
    where s.organization_id = ${organizationId} and s.session_id = any(${[...sessionIds]}::uuid[])`;
  const isUnderWay = sql`d.organization_id = ${organizationId} and d.webhook_subscription_id = ${webhookSubscriptionId}
    and d.delivery_id = any(array(${current}))`;
  return [
    sql`
      insert into webhook_deliveries (${sharedColumns}, status, attempts, attempt_count, finished_at)
      select ${sharedColumnsOf('d')}, 'cancelled', d.attempts, d.attempt_count, ${now}::timestamptz
      from pending_deliveries d where ${isUnderWay}`,
    sql`delete from pending_deliveries d where ${isUnderWay}`,
  ];
}

/**
 * Stores attempts that ended after their deliveries were cancelled: a recovery does not wait for them. For all others it changes nothing.
 */
export function storeLateAttempts(
  { organizationId, webhookSubscriptionId }: Assignment,
  late: readonly AttemptedDelivery[],
): Sql {
  return sql`
    update webhook_deliveries d set attempts = ${withAttempts()}, attempt_count = b.attempt_count
    from unnest(${late.map(({ delivery }) => delivery.deliveryId)}::uuid[],
      ${late.map(({ delivery }) => delivery.attemptCount)}::int[],
      ${textArray(late.map(({ attempts }) => attemptLines(attempts)))}::text[],
      ${late.map(({ delivery, attempts }) => delivery.attemptCount + attempts.length)}::int[])
      as b(delivery_id, attempts_before, attempts, attempt_count)
    where d.organization_id = ${organizationId} and d.webhook_subscription_id = ${webhookSubscriptionId}
      and d.delivery_id = b.delivery_id and d.status = 'cancelled' and d.attempt_count = b.attempts_before`;
}

// The columns of both tables whose value stays when a delivery is finished.
const names = [
  'organization_id',
  'webhook_subscription_id',
  'delivery_id',
  'session_id',
  'previous_cursor',
  'from_turn',
  'from_seq',
  'to_turn',
  'to_seq',
  'chunk_types',
  'occurred_at',
  'created_at',
];
const sharedColumns = raw(names.join(', '));
const sharedColumnsOf = (alias: string) => raw(names.map((name) => `${alias}.${name}`).join(', '));

/** One attempt a line, as `withAttempts` reads them. */
export function attemptLines(attempts: readonly StoredAttempt[]): string {
  return attempts.map(attemptText).join('\n');
}

// The number of stored attempts is limited, because probes may continue for days.
export function withAttempts(): Sql {
  const all = sql`d.attempts || string_to_array(b.attempts, E'\\n')`;
  return sql`case when d.attempt_count < ${maxStoredAttempts} then ${all}
    else (${all})[cardinality(${all}) - ${maxStoredAttempts - 1} :] end`;
}
