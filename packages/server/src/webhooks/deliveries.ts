// The API of deliveries: list, read and resend them. The dispatcher creates them (sending/dispatcher.ts).
import type { Input, Result, WebhookDelivery } from '@signalbox/contract';
import sql, { empty, join, type Sql } from 'sql-template-tag';
import { JournalGone } from '../deliveries/batch.ts';
import { readBody } from '../deliveries/delivery-body.ts';
import { type DeliveryRow, deliveryColumns, deliveryOf, finishedDeliveryColumns } from '../deliveries/delivery-row.ts';
import { parseAttempt, viewAttempt } from '../deliveries/stored-attempt.ts';
import { recordEvent } from '../events/record.ts';
import { formatCursor } from '../journal/cursor.ts';
import { notFound } from '../lib/api-error.ts';
import { type Context, inTransaction } from '../lib/context.ts';
import { formatId, uuidOf } from '../lib/ids.ts';
import { pageOf, pageRequest } from '../lib/page.ts';
import { agentIdOf } from '../session-rows/session.ts';

interface Row {
  deliveryId: string;
  webhookSubscriptionId: string;
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

/** The deliveries of the environment's current subscription, newest first. 404 if the environment has none. */
export async function listDeliveries(ctx: Context, input: Input<'listDeliveries'>): Promise<Result<'listDeliveries'>> {
  const webhookSubscriptionId = await subscriptionOf(ctx, input.env);
  const request = pageRequest(`deliveries:${webhookSubscriptionId}`, input);
  const { status } = input;
  const sessionId = input.sessionId === undefined ? undefined : uuidOf('ses', input.sessionId);
  const page = ({ table, columns, ofSession }: Table, more: Sql) => sql`(
    select ${columns} from ${table} d
    where d.organization_id = ${ctx.organizationId} and d.webhook_subscription_id = ${webhookSubscriptionId}
      ${request.after === undefined ? empty : sql`and d.delivery_id < ${request.after}`} ${more}
      ${sessionId === undefined ? empty : ofSession(ctx.organizationId, sessionId)}
    order by d.delivery_id desc limit ${request.limit + 1})`;
  const pages = [
    ...(status === undefined || status === 'pending' ? [page(pending, empty)] : []),
    ...(status === 'pending' ? [] : [page(finished, status === undefined ? empty : hasStatus[status])]),
  ];
  const rows = await ctx.db.query<Row>(sql`
    select d.* from (${join(pages, ' union all ')}) d order by "deliveryId" desc limit ${request.limit + 1}`);
  return pageOf(
    request,
    rows,
    (row) => row.deliveryId,
    (row) => viewDelivery(row, input.env),
  );
}

interface DetailRow extends Omit<DeliveryRow, keyof Row>, Row {
  /** Null if the session was deleted. */
  agentId: string | null;
  attempts: string[];
}

/** A delivery with its attempts and its body. 404 if it does not exist. */
export async function getDelivery(ctx: Context, input: Input<'getDelivery'>): Promise<Result<'getDelivery'>> {
  const webhookSubscriptionId = await subscriptionOf(ctx, input.env);
  const one = ({ table, columns, content }: Table) => sql`
    select ${columns}, ${content()}, d.attempts, s.agent_id as "agentId" from ${table} d
    left join sessions s on s.organization_id = ${ctx.organizationId} and s.session_id = d.session_id
    where d.organization_id = ${ctx.organizationId} and d.webhook_subscription_id = ${webhookSubscriptionId}
      and d.delivery_id = ${uuidOf('whd', input.deliveryId)}`;
  const [row] = await ctx.db.query<DetailRow>(sql`${one(pending)} union all ${one(finished)}`);
  if (!row) throw notFound('delivery');
  const attempts = row.attempts.map((text) =>
    viewAttempt({ ...row, deliveryId: input.deliveryId }, parseAttempt(text)),
  );
  const requestBody = await requestBodyOf(ctx, input.env, row);
  return { webhookDelivery: { ...viewDelivery(row, input.env), attempts, requestBody } };
}

/** Stored from its first failure until it is finished, otherwise rebuilt from the journal; null if the journal was deleted. */
async function requestBodyOf(
  { db, organizationId }: Context,
  environment: string,
  row: DetailRow,
): Promise<string | null> {
  if (row.body !== null) return row.body;
  const { sessionId, agentId } = row;
  if (agentId === null) return null;
  try {
    const owner = { sessionId, agentId, environment };
    return (await readBody(db, organizationId, owner, deliveryOf(sessionId, row))).toString();
  } catch (error) {
    if (error instanceof JournalGone) return null;
    throw error;
  }
}

/**
 * Sends a finished delivery again, once, with the same id and bytes. Retries a pending delivery now without using up a retry. Does
 * nothing to a delivery in flight. 404 if it does not exist.
 */
export async function resendDelivery(ctx: Context, input: Input<'resendDelivery'>): Promise<Result<'resendDelivery'>> {
  const { organizationId } = ctx;
  return inTransaction(ctx, async (tx, ctx) => {
    const webhookSubscriptionId = await subscriptionOf(ctx, input.env);
    const now = ctx.clock.now();
    const deliveryId = uuidOf('whd', input.deliveryId);
    const isThis = sql`d.organization_id = ${organizationId} and d.webhook_subscription_id = ${webhookSubscriptionId}
      and d.delivery_id = ${deliveryId}`;
    // If the delivery is being finished, the first statement waits for that transaction, so the second one finds it.
    const [, , [row]] = await Promise.all([
      tx.query(sql`
        update pending_deliveries d set next_attempt_at = ${now}, not_before = null, retries = greatest(d.retries - 1, 0)
        where ${isThis} and d.next_attempt_at is not null`),
      tx.query(sql`update webhook_deliveries d set next_attempt_at = ${now} where ${isThis}`),
      tx.query<Row>(sql`
        select ${pending.columns} from pending_deliveries d where ${isThis}
        union all select ${finished.columns} from webhook_deliveries d where ${isThis}`),
    ]);
    if (!row) throw notFound('delivery');
    await tx.query(
      recordEvent(ctx, now, {
        type: 'webhook_delivery.resent',
        resource: { type: 'webhook_delivery', id: input.deliveryId },
        environment: input.env,
        sessionId: formatId('ses', row.sessionId),
        agentId: await agentIdOf(tx, organizationId, row.sessionId),
      }),
    );
    tx.afterCommit(() => ctx.wake.publish('subscription', { organizationId }));
    return { webhookDelivery: viewDelivery(row, input.env) };
  });
}

/** The id of the environment's current subscription; 404 if it has none. */
export async function subscriptionOf(ctx: Context, environment: string): Promise<string> {
  const [row] = await ctx.db.query<{ webhookSubscriptionId: string }>(sql`
    select webhook_subscription_id as "webhookSubscriptionId" from webhook_subscriptions
    where organization_id = ${ctx.organizationId} and environment = ${environment}`);
  if (!row) throw notFound('webhook subscription');
  return row.webhookSubscriptionId;
}

interface Table {
  table: Sql;
  columns: Sql;
  /** The columns that the body is built from. */
  content: () => Sql;
  ofSession: (organizationId: string, sessionId: string) => Sql;
}

const shared = sql`d.delivery_id as "deliveryId", d.webhook_subscription_id as "webhookSubscriptionId",
  d.session_id as "sessionId", d.previous_cursor as "previousCursor", d.to_turn as "toTurn", d.to_seq as "toSeq",
  d.attempt_count as "attemptCount", d.created_at as "createdAt", d.next_attempt_at as "nextAttemptAt"`;

const pending: Table = {
  table: sql`pending_deliveries`,
  columns: sql`${shared}, 'pending' as status, null::timestamptz as "finishedAt"`,
  content: deliveryColumns,
  // A session has at most one pending delivery.
  ofSession: (organizationId, sessionId) => sql`and d.delivery_id = (
    select s.delivery_id from sessions s where s.organization_id = ${organizationId} and s.session_id = ${sessionId})`,
};

const finished: Table = {
  table: sql`webhook_deliveries`,
  columns: sql`${shared}, d.status, d.finished_at as "finishedAt"`,
  content: finishedDeliveryColumns,
  ofSession: (_, sessionId) => sql`and d.session_id = ${sessionId}`,
};

// Constants, because the generic plan of a parameter can't use the partial index on the status.
const hasStatus = {
  succeeded: sql`and d.status = 'succeeded'`,
  exhausted: sql`and d.status = 'exhausted'`,
  cancelled: sql`and d.status = 'cancelled'`,
};

function viewDelivery(row: Row, environment: string): WebhookDelivery {
  return {
    deliveryId: formatId('whd', row.deliveryId),
    webhookSubscriptionId: formatId('whs', row.webhookSubscriptionId),
    environment,
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
