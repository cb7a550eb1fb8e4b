// What an append sets on the session row for webhooks: that chunks are due for delivery, and for which subscription.
//
// The environment's subscription is looked up by the statement that appends. The first append that sees a new subscription
// moves the delivery position to the head before it, so creating a subscription writes and locks no session, and a session of
// an environment without one is never due. An append that began before the subscription was committed comes before it.
// Writers of a session follow one another (they are fenced), so a later append never sees an older subscription.
import sql, { type Sql } from 'sql-template-tag';

// A session that runs a draft is not delivered (agents/drafts.ts).
/** Whether chunks of `sessions s` are delivered. */
export const isDelivered = sql`(d.id is not null and coalesce(s.pinned_version, 0) >= 0)`;

/** What to set on `sessions s`; `d.id` is the subscription of its environment, or null. */
export function deliveryMark(): Sql {
  const isFirst = sql`d.id is distinct from s.delivery_subscription_id and ${isDelivered}`;
  return sql`delivery_due = ${isDelivered},
    delivery_subscription_id = case when ${isDelivered} then d.id else s.delivery_subscription_id end,
    delivered_turn = case when ${isFirst} then s.turn else s.delivered_turn end,
    delivered_seq = case when ${isFirst} then s.next_seq - 1 else s.delivered_seq end,
    delivery_id = case when ${isFirst} then null else s.delivery_id end,
    acknowledged_cursor = case when ${isFirst} then null else s.acknowledged_cursor end`;
}

/**
 * One row: `id`, the subscription of this environment, or null, and `organization_id`. A row that is inserted from it takes the
 * organization from it too: with a parameter, Citus would not know that both rows are on one shard.
 */
export function subscriptionOf(organizationId: string, environment: string): Sql {
  return sql`
    select o.organization_id, w.webhook_subscription_id as id from organizations o
    left join webhook_subscriptions w on w.organization_id = ${organizationId} and w.environment = ${environment}
    where o.organization_id = ${organizationId}`;
}
