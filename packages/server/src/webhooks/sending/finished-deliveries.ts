// Finishing deliveries: the row moves from `pending_deliveries` to `webhook_deliveries` in the transaction that advances its
// session. A pending row exists exactly as long as its session refers to it.
import sql, { raw, type Sql } from 'sql-template-tag';
import { textArray } from '../../db/values.ts';
import type { Assignment } from './assignments.ts';
import type { FinishedDelivery } from './delivery.ts';
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
        from pending_deliveries d
        join unnest(${done.map(({ delivery }) => delivery.deliveryId)}::uuid[],
          ${textArray(done.map(({ attempts }) => attemptLines(attempts)))}::text[],
          ${done.map(({ delivery, attempts }) => delivery.attemptCount + attempts.length)}::int[])
          as b(delivery_id, attempts, attempt_count) on d.delivery_id = b.delivery_id
        where d.organization_id = ${organizationId} and d.webhook_subscription_id = ${webhookSubscriptionId}
          and not exists (
            select 1 from sessions s
            where s.organization_id = ${organizationId} and s.session_id = d.session_id and s.delivery_id = d.delivery_id)
        returning w.delivery_id)
      delete from pending_deliveries d using i
      where d.organization_id = ${organizationId} and d.webhook_subscription_id = ${webhookSubscriptionId}
        and d.delivery_id = i.delivery_id`,
  ];
}

/** Cancels the current deliveries of sessions that are rewound: their chunks are sent again. Run the statements in this order. */
export function cancelDeliveries(
  { organizationId, webhookSubscriptionId }: Assignment,
  sessionIds: readonly string[],
  now: Date,
): Sql[] {
  const isUnderWay = sql`d.organization_id = ${organizationId} and d.webhook_subscription_id = ${webhookSubscriptionId}
    and s.organization_id = ${organizationId} and s.session_id = any(${[...sessionIds]}::uuid[])
    and d.delivery_id = s.delivery_id`;
  return [
    sql`
      insert into webhook_deliveries (${sharedColumns}, status, attempts, attempt_count, finished_at)
      select ${sharedColumnsOf('d')}, 'cancelled', d.attempts, d.attempt_count, ${now}::timestamptz
      from pending_deliveries d join sessions s on true where ${isUnderWay}`,
    sql`delete from pending_deliveries d using sessions s where ${isUnderWay}`,
  ];
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
