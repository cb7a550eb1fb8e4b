// Deliveries as people look at them (api.md section 7). The dispatcher makes them.
import type { Input, Result, WebhookDelivery } from '@signalbox/contract';
import sql, { empty, type Sql } from 'sql-template-tag';
import { recordEvent } from '../events/record.ts';
import { formatCursor } from '../journal/cursor.ts';
import { notFound } from '../lib/api-error.ts';
import { type Context, inTransaction } from '../lib/context.ts';
import { formatId, uuidOf } from '../lib/ids.ts';
import { pageOf, pageRequest } from '../lib/page.ts';
import { JournalGone } from './batch.ts';
import { readBody } from './delivery-body.ts';
import { type DeliveryRow, deliveryColumns, deliveryOf } from './delivery-row.ts';
import { parseAttempt, viewAttempt } from './kept-attempt.ts';

interface Row {
  deliveryId: string;
  webhookSubscriptionId: string;
  environment: string;
  sessionId: string;
  status: WebhookDelivery['status'];
  previousCursor: string;
  toTurn: number;
  toSeq: number;
  attemptCount: number;
  createdAt: Date;
  nextAttemptAt: Date | null;
  finishedAt: Date | null;
}

/** Of the Environment's present subscription, newest first. 404 where it has none. */
export async function listDeliveries(ctx: Context, input: Input<'listDeliveries'>): Promise<Result<'listDeliveries'>> {
  const webhookSubscriptionId = await subscriptionOf(ctx, input.env);
  const request = pageRequest(`deliveries:${webhookSubscriptionId}`, input);
  const rows = await ctx.db.query<Row>(sql`
    select ${columns()} from webhook_deliveries
    where organization_id = ${ctx.organizationId} and webhook_subscription_id = ${webhookSubscriptionId}
      ${request.after === undefined ? empty : sql`and delivery_id < ${request.after}`}
      ${input.status === undefined ? empty : sql`and status = ${input.status}`}
      ${input.sessionId === undefined ? empty : sql`and session_id = ${uuidOf('ses', input.sessionId)}`}
    order by delivery_id desc limit ${request.limit + 1}`);
  return pageOf(request, rows, (row) => row.deliveryId, view);
}

interface WholeRow extends Omit<DeliveryRow, keyof Row>, Row {
  agentId: string;
  attempts: string[];
}

/** One with its attempts and its body. */
export async function getDelivery(ctx: Context, input: Input<'getDelivery'>): Promise<Result<'getDelivery'>> {
  const webhookSubscriptionId = await subscriptionOf(ctx, input.env);
  const [row] = await ctx.db.query<WholeRow>(sql`
    select ${columns()}, ${deliveryColumns()}, agent_id as "agentId", attempts from webhook_deliveries d
    where organization_id = ${ctx.organizationId} and delivery_id = ${uuidOf('whd', input.deliveryId)}
      and webhook_subscription_id = ${webhookSubscriptionId}`);
  if (!row) throw notFound('delivery');
  const attempts = row.attempts.map((text) => viewAttempt(row, parseAttempt(text)));
  return { webhookDelivery: { ...view(row), attempts, requestBody: await bodyOf(ctx, row) } };
}

/** Kept since its first failure until it is over, else built again as it was. */
async function bodyOf({ db, organizationId }: Context, row: WholeRow): Promise<string | null> {
  if (row.body !== null) return row.body;
  const { sessionId, agentId, environment } = row;
  try {
    const owner = { sessionId, agentId, environment };
    return (await readBody(db, organizationId, owner, deliveryOf(sessionId, row))).toString();
  } catch (error) {
    if (error instanceof JournalGone) return null;
    throw error;
  }
}

/**
 * One that is over is sent once more, once: its id, its bytes. One that waits for a retry is tried now, at no cost to its
 * retries; one that is on its way is left alone.
 */
export async function resendDelivery(ctx: Context, input: Input<'resendDelivery'>): Promise<Result<'resendDelivery'>> {
  const { organizationId } = ctx;
  return inTransaction(ctx, async (tx, ctx) => {
    const webhookSubscriptionId = await subscriptionOf(ctx, input.env);
    const now = ctx.clock.now();
    const deliveryId = uuidOf('whd', input.deliveryId);
    await tx.query(sql`
      update webhook_deliveries set next_attempt_at = ${now}, not_before = null, retries = greatest(retries - 1, 0)
      where organization_id = ${organizationId} and delivery_id = ${deliveryId}
        and webhook_subscription_id = ${webhookSubscriptionId} and (status <> 'pending' or next_attempt_at is not null)`);
    const [row] = await tx.query<Row>(sql`
      select ${columns()} from webhook_deliveries
      where organization_id = ${organizationId} and webhook_subscription_id = ${webhookSubscriptionId}
        and delivery_id = ${deliveryId}`);
    if (!row) throw notFound('delivery');
    await tx.query(
      recordEvent(ctx, now, {
        type: 'webhook_delivery.resent',
        resource: { type: 'webhook_delivery', id: input.deliveryId },
        environment: row.environment,
        sessionId: formatId('ses', row.sessionId),
      }),
    );
    tx.afterCommit(() => ctx.wake.publish('subscription', { organizationId }));
    return { webhookDelivery: view(row) };
  });
}

/** The Environment's present subscription; 404 where it has none. */
export async function subscriptionOf(ctx: Context, environment: string): Promise<string> {
  const [row] = await ctx.db.query<{ webhookSubscriptionId: string }>(sql`
    select webhook_subscription_id as "webhookSubscriptionId" from webhook_subscriptions
    where organization_id = ${ctx.organizationId} and environment = ${environment}`);
  if (!row) throw notFound('webhook subscription');
  return row.webhookSubscriptionId;
}

function columns(): Sql {
  return sql`delivery_id as "deliveryId", webhook_subscription_id as "webhookSubscriptionId", environment,
    session_id as "sessionId", status, previous_cursor as "previousCursor", to_turn as "toTurn", to_seq as "toSeq",
    attempt_count as "attemptCount", created_at as "createdAt", next_attempt_at as "nextAttemptAt",
    finished_at as "finishedAt"`;
}

function view(row: Row): WebhookDelivery {
  return {
    deliveryId: formatId('whd', row.deliveryId),
    webhookSubscriptionId: formatId('whs', row.webhookSubscriptionId),
    environment: row.environment,
    sessionId: formatId('ses', row.sessionId),
    status: row.status,
    previousCursor: row.previousCursor || null,
    cursor: formatCursor({ turn: row.toTurn, seq: row.toSeq }),
    attemptCount: row.attemptCount,
    createdAt: row.createdAt.toISOString(),
    nextAttemptAt: row.nextAttemptAt?.toISOString() ?? null,
    finishedAt: row.finishedAt?.toISOString() ?? null,
  };
}
