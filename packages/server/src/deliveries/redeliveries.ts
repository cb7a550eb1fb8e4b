// Redeliveries: finished deliveries that a caller asked to send again. Their `next_attempt_at` is set until they have been sent.
import sql from 'sql-template-tag';
import type { Db } from '../db/db.ts';
import type { JournalOwner } from '../journal/segment.ts';
import { maxBodyBytes } from './batch.ts';
import type { AttemptedDelivery, Delivery } from './delivery.ts';
import { type DeliveryRow, deliveryOf, finishedDeliveryColumns } from './delivery-row.ts';
import type { Assignment } from './destinations/assignments.ts';
import { attemptLines, withAttempts } from './finished-deliveries.ts';

export interface Redelivery {
  delivery: Delivery;
  owner: JournalOwner;
  /** Its body is rebuilt from a segment that is longer than a delivery with several chunks. */
  isLong: boolean;
}

/** A finished delivery that is still to be sent again; undefined if it is not, or its session was deleted. */
export async function readRedelivery(
  db: Db,
  { organizationId, environment, webhookSubscriptionId }: Assignment,
  deliveryId: string,
): Promise<Redelivery | undefined> {
  const [row] = await db.query<DeliveryRow & { sessionId: string; agentId: string; isLong: boolean }>(sql`
    select d.session_id as "sessionId", s.agent_id as "agentId", ${finishedDeliveryColumns()},
      exists (
        select 1 from segments r
        where r.organization_id = ${organizationId} and r.session_id = d.session_id
          and (r.turn, r.seq_to) > (d.from_turn, d.from_seq) and (r.turn, r.seq_from) <= (d.to_turn, d.to_seq)
          and octet_length(r.body) > ${maxBodyBytes}) as "isLong"
    from webhook_deliveries d
    join sessions s on s.organization_id = d.organization_id and s.session_id = d.session_id
    where d.organization_id = ${organizationId} and d.webhook_subscription_id = ${webhookSubscriptionId}
      and d.delivery_id = ${deliveryId} and d.next_attempt_at is not null`);
  if (!row) return undefined;
  const { sessionId, agentId, isLong } = row;
  return { delivery: deliveryOf(sessionId, row), owner: { sessionId, agentId, environment }, isLong };
}

/** Stores the attempts. An accepted delivery succeeded now, if it had not before; any other keeps its status. */
export async function finishRedelivery(
  db: Db,
  { organizationId, webhookSubscriptionId }: Assignment,
  { delivery, attempts }: AttemptedDelivery,
  isAccepted: boolean,
  now: Date,
): Promise<void> {
  await db.query(sql`
    update webhook_deliveries d set attempts = ${withAttempts()}, attempt_count = b.attempt_count, next_attempt_at = null,
      status = case when ${isAccepted} then 'succeeded' else d.status end,
      finished_at = case when ${isAccepted} then ${now}::timestamptz else d.finished_at end
    from (
      select ${attemptLines(attempts)}::text as attempts,
        ${delivery.attemptCount + attempts.length}::int as attempt_count) b
    where d.organization_id = ${organizationId} and d.webhook_subscription_id = ${webhookSubscriptionId}
      and d.delivery_id = ${delivery.deliveryId} and d.attempt_count = ${delivery.attemptCount}`);
}
