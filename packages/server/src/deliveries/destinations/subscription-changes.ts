// What the sending side changes about a subscription: its health, and what it disables, warns about and confirms, each with its event
// record.
import sql, { type Sql } from 'sql-template-tag';
import type { Db } from '../../db/db.ts';
import { recordEvent, systemSource } from '../../events/record.ts';
import { formatId } from '../../lib/ids.ts';
import { type Assignment, sameSubscription } from './assignments.ts';
import type { HealthStore, HealthUpdate } from './destination-health.ts';

/** Sends nothing more until a caller enables the subscription; false if the subscription has changed since it was assigned. */
export function disableSubscription(
  db: Db,
  assignment: Assignment,
  reason: 'gone' | 'failing',
  now: Date,
): Promise<boolean> {
  const changes: Changes = { status: ['enabled', 'disabled'], disabledReason: [null, reason] };
  const update = sql`
    update webhook_subscriptions set status = 'disabled', disabled_reason = ${reason}, epoch = epoch + 1,
      updated_at = ${now}
    where ${sameSubscription(assignment)} and epoch = ${assignment.epoch} and status = 'enabled'`;
  return updateAndRecord(db, assignment, now, 'disabled', changes, update);
}

/** Records that the destination has failed for long enough to warn about; false if that was recorded before. */
function markDegraded(db: Db, assignment: Assignment, failingSince: Date, now: Date): Promise<boolean> {
  const changes: Changes = { failingSince: [null, failingSince.toISOString()] };
  const update = sql`
    update webhook_subscriptions set degraded = true
    where ${sameSubscription(assignment)} and epoch = ${assignment.epoch} and status = 'enabled' and not degraded`;
  return updateAndRecord(db, assignment, now, 'degraded', changes, update);
}

/** Records that the receiver accepted this version of the secret; false if that was recorded before. */
export function confirmSecret(db: Db, assignment: Assignment, version: number, now: Date): Promise<boolean> {
  const changes: Changes = { confirmedSecretVersion: [assignment.confirmedSecretVersion, version] };
  const update = sql`
    update webhook_subscriptions set confirmed_secret_version = ${version}
    where ${sameSubscription(assignment)} and secret_version >= ${version} and coalesce(confirmed_secret_version, 0) < ${version}`;
  return updateAndRecord(db, assignment, now, 'secret_confirmed', changes, update);
}

/**
 * Writes the health of as many subscriptions as one statement may name (db/shards.ts), except of those that have changed since:
 * the change may have reset their health.
 */
export function writeHealthUpdates(updates: readonly HealthUpdate<Assignment>[]): Sql {
  const of = <T>(value: (update: HealthUpdate<Assignment>) => T): T[] => updates.map(value);
  const organizations = [...new Set(of(({ assignment }) => assignment.organizationId))];
  // The order keeps two nodes that lock the same rows from deadlocking.
  return sql`
    update webhook_subscriptions w set last_success_at = coalesce(x.success, w.last_success_at),
      last_failure_at = x.last_failure_at, failing_since = x.failing_since, failures = x.failures,
      failing_session_id = x.failing_session_id, last_error = x.last_error, last_status = x.last_status,
      probe_at = x.probe_at, degraded = w.degraded and x.failing_since is not null
    from (
      select l.organization_id, l.environment, s.*
      from unnest(${of(({ assignment }) => assignment.organizationId)}::uuid[], ${of(({ assignment }) => assignment.environment)}::text[],
        ${of(({ assignment }) => assignment.webhookSubscriptionId)}::uuid[], ${of(({ assignment }) => assignment.epoch)}::int[],
        ${of(({ success }) => success)}::timestamptz[], ${of(({ health }) => health.lastFailureAt)}::timestamptz[],
        ${of(({ health }) => health.failingSince)}::timestamptz[], ${of(({ health }) => health.failures)}::int[],
        ${of(({ health }) => health.failingLane)}::uuid[], ${of(({ health }) => health.lastError)}::text[],
        ${of(({ health }) => health.lastStatus)}::int[], ${of(({ health }) => health.probeAt)}::timestamptz[])
        as s(org, env, id, at_epoch, success, last_failure_at, failing_since, failures, failing_session_id, last_error,
          last_status, probe_at)
      join webhook_subscriptions l on l.organization_id = s.org and l.environment = s.env
        and l.webhook_subscription_id = s.id and l.epoch = s.at_epoch
      where l.organization_id = any(${organizations}::uuid[])
      order by l.organization_id, l.environment for no key update of l) x
    where w.organization_id = any(${organizations}::uuid[]) and w.organization_id = x.organization_id
      and w.environment = x.environment`;
}

/**
 * Makes pending retries due now, or at the time the receiver asked for if that is later. Run the statements in one transaction: the
 * first takes the locks, in the order of the ids.
 */
export function retryNow(
  { organizationId, webhookSubscriptionId }: Pick<Assignment, 'organizationId' | 'webhookSubscriptionId'>,
  now: Date,
): Sql[] {
  const isWaiting = sql`d.organization_id = ${organizationId} and d.webhook_subscription_id = ${webhookSubscriptionId}
    and d.next_attempt_at > ${now}`;
  return [
    sql`
      select count(*) from (
        select 1 from pending_deliveries d where ${isWaiting} order by d.delivery_id for no key update of d) locked`,
    sql`
      update pending_deliveries d set next_attempt_at = greatest(${now}::timestamptz, d.not_before)
      where ${isWaiting}`,
  ];
}

export const subscriptionHealth: HealthStore<Assignment> = {
  disable: disableSubscription,
  markDegraded,
  confirmSecret,
  write: writeHealthUpdates,
  retryNow,
};

type Changes = Record<string, [before: unknown, after: unknown]>;

/** Records an event if the update changed the row; false if it did not. */
async function updateAndRecord(
  db: Db,
  assignment: Assignment,
  now: Date,
  what: 'degraded' | 'disabled' | 'secret_confirmed',
  changes: Changes,
  update: Sql,
): Promise<boolean> {
  return db.transaction(async (tx) => {
    if ((await tx.execute(update)) === 0) return false;
    await tx.query(
      recordEvent(systemSource(assignment.organizationId), now, {
        type: `webhook_subscription.${what}`,
        resource: { type: 'webhook_subscription', id: formatId('whs', assignment.webhookSubscriptionId) },
        environment: assignment.environment,
        changes,
      }),
    );
    return true;
  });
}
