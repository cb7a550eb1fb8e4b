// Deletes old deliveries. Finished deliveries are only for display: the progress of a session is in its own row, so nothing is sent
// twice or skipped without them. A delivery that is to be sent again stays.
//
// Also clears what still waited for a subscription when it was deleted, so that deleting a subscription takes constant time.
import sql, { type Sql } from 'sql-template-tag';
import type { Db } from '../db/db.ts';
import { deleteInBatches } from '../db/delete-in-batches.ts';
import { areThere } from '../db/rounds.ts';
import type { Within } from '../db/shards.ts';
import { firstUuidOf } from '../lib/ids.ts';

// The number of rows that one statement locks and writes, which takes a few milliseconds.
const BATCH = 1_000;
const BEFORE_ALL = '00000000-0000-0000-0000-000000000000';

interface Subscription {
  organizationId: string;
  webhookSubscriptionId: string;
}

/**
 * Whether an organization may have deliveries to delete, or a deleted subscription with anything left, for rounds through all of them. Of
 * each subscription, it looks at the oldest delivery, and at the next subscription that something is left of.
 */
export function hasOldDeliveries(organizationId: Sql, before: Date, within: Within): Sql {
  // After each subscription, and after none: Citus refuses a union of the two.
  const isLeftOf = (nextAfter: (id: Sql) => Sql) => {
    const isDeleted = sql`not exists (
      select 1 from webhook_subscriptions w
      where w.organization_id = ${organizationId} and w.webhook_subscription_id = next.id ${within(sql`w.organization_id`)})`;
    const first = areThere(sql`from (${nextAfter(sql`${BEFORE_ALL}::uuid`)} limit 1) next where ${isDeleted}`);
    const later = areThere(sql`
      from webhook_subscriptions k
      cross join lateral (${nextAfter(sql`k.webhook_subscription_id`)} limit 1) next
      where k.organization_id = ${organizationId} ${within(sql`k.organization_id`)} and ${isDeleted}`);
    return sql`${first} or ${later}`;
  };
  const ofSubscriptions = areThere(sql`
    from webhook_subscriptions w
    cross join lateral (
      select d.delivery_id from webhook_deliveries d
      where d.organization_id = w.organization_id and d.webhook_subscription_id = w.webhook_subscription_id
        ${within(sql`d.organization_id`)}
      order by d.delivery_id limit 1) oldest
    where w.organization_id = ${organizationId} and oldest.delivery_id < ${firstUuidOf(before)}
      ${within(sql`w.organization_id`)}`);
  const deliveries = isLeftOf(
    (id) => sql`
    select d.webhook_subscription_id as id from webhook_deliveries d
    where d.organization_id = ${organizationId} and d.webhook_subscription_id > ${id} ${within(sql`d.organization_id`)}
    order by d.webhook_subscription_id`,
  );
  const sessions = isLeftOf(
    (id) => sql`
    select s.delivery_subscription_id as id from sessions s
    where s.organization_id = ${organizationId} and s.delivery_due and s.delivery_subscription_id > ${id}
      ${within(sql`s.organization_id`)}
    order by s.delivery_subscription_id`,
  );
  const pending = isLeftOf(
    (id) => sql`
    select d.webhook_subscription_id as id from pending_deliveries d
    where d.organization_id = ${organizationId} and d.webhook_subscription_id > ${id} ${within(sql`d.organization_id`)}
    order by d.webhook_subscription_id`,
  );
  return sql`${ofSubscriptions} or ${deliveries} or ${sessions} or ${pending}`;
}

/** The subscriptions, including deleted ones, that have deliveries: one index look-up for each subscription, not each delivery. */
export async function subscriptionsWithDeliveries(db: Db, organizationId: string): Promise<string[]> {
  const rows = await db.query<{ id: string }>(sql`
    with recursive found as (
      (select d.webhook_subscription_id as id from webhook_deliveries d
      where d.organization_id = ${organizationId} order by d.webhook_subscription_id limit 1)
      union all
      select (
        select d.webhook_subscription_id from webhook_deliveries d
        where d.organization_id = ${organizationId} and d.webhook_subscription_id > found.id
        order by d.webhook_subscription_id limit 1)
      from found where found.id is not null)
    select found.id from found where found.id is not null`);
  return rows.map(({ id }) => id);
}

/** Deletes the deliveries that finished before that time, oldest first. */
export async function dropDeliveries(
  db: Db,
  { organizationId, webhookSubscriptionId }: Subscription,
  before: Date,
  signal: AbortSignal,
): Promise<void> {
  await deleteInBatches(db, signal, {
    // Ids sort by time of creation, so younger deliveries are not read. What is deleted with its session is left out: to wait for
    // some of them, while their deletion waits for others, would be a deadlock.
    find: (limit) => sql`
      select x.delivery_id from webhook_deliveries x
      where x.organization_id = ${organizationId} and x.webhook_subscription_id = ${webhookSubscriptionId}
        and x.delivery_id < ${firstUuidOf(before)} and x.finished_at < ${before} and x.next_attempt_at is null
      order by x.delivery_id ${limit} for update skip locked`,
    drop: sql`
      delete from webhook_deliveries d
      where d.organization_id = ${organizationId} and d.webhook_subscription_id = ${webhookSubscriptionId}
        and d.delivery_id = any(array(select old.delivery_id from old))`,
  });
}

/** Deleted subscriptions for which chunks of the organization still wait. */
export async function deletedSubscriptions(db: Db, organizationId: string): Promise<string[]> {
  const rows = await db.query<{ id: string }>(sql`
    with recursive found as (
      (select s.delivery_subscription_id as id from sessions s
      where s.organization_id = ${organizationId} and s.delivery_due order by s.delivery_subscription_id limit 1)
      union all
      select (
        select s.delivery_subscription_id from sessions s
        where s.organization_id = ${organizationId} and s.delivery_due and s.delivery_subscription_id > found.id
        order by s.delivery_subscription_id limit 1)
      from found where found.id is not null),
    under_way as (
      (select d.webhook_subscription_id as id from pending_deliveries d
      where d.organization_id = ${organizationId} order by d.webhook_subscription_id limit 1)
      union all
      select (
        select d.webhook_subscription_id from pending_deliveries d
        where d.organization_id = ${organizationId} and d.webhook_subscription_id > under_way.id
        order by d.webhook_subscription_id limit 1)
      from under_way where under_way.id is not null)
    select waiting.id from (select found.id from found union select under_way.id from under_way) waiting
    where waiting.id is not null and not exists (
      select 1 from webhook_subscriptions w
      where w.organization_id = ${organizationId} and w.webhook_subscription_id = waiting.id)`);
  return rows.map(({ id }) => id);
}

/** Clears the progress of the sessions of a deleted subscription, except sessions that are in use right now. */
export async function clearSessions(
  db: Db,
  { organizationId, webhookSubscriptionId }: Subscription,
  signal: AbortSignal,
): Promise<void> {
  for (let cleared = BATCH; cleared === BATCH && !signal.aborted; ) {
    // They are locked, so none of them is missing in the count.
    cleared = await db.execute(sql`
      update sessions s set delivery_due = false, delivery_id = null
      where s.organization_id = ${organizationId} and s.delivery_subscription_id = ${webhookSubscriptionId}
        and s.session_id in (
          select x.session_id from sessions x
          where x.organization_id = ${organizationId} and x.delivery_subscription_id = ${webhookSubscriptionId}
            and x.delivery_due
          order by x.session_id limit ${BATCH} for no key update of x skip locked)`);
  }
}

/** Deletes the pending deliveries of a deleted subscription. */
export async function dropPending(
  db: Db,
  { organizationId, webhookSubscriptionId }: Subscription,
  signal: AbortSignal,
): Promise<void> {
  await deleteInBatches(db, signal, {
    find: (limit) => sql`
      select x.delivery_id from pending_deliveries x
      where x.organization_id = ${organizationId} and x.webhook_subscription_id = ${webhookSubscriptionId}
      order by x.delivery_id ${limit} for update skip locked`,
    drop: sql`
      delete from pending_deliveries d
      where d.organization_id = ${organizationId} and d.webhook_subscription_id = ${webhookSubscriptionId}
        and d.delivery_id = any(array(select old.delivery_id from old))`,
  });
}
