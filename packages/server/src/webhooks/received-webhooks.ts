// Lists what the built-in test receiver (sending/test-receiver.ts) received.
import { deliveryHeaders, type Input, type ReceivedWebhook, type Result } from '@signalbox/contract';
import sql, { empty } from 'sql-template-tag';
import type { Context } from '../lib/context.ts';
import { pageOf, pageRequest } from '../lib/page.ts';
import { subscriptionOf } from './deliveries.ts';

interface Row {
  receivedWebhookId: string;
  headers: Record<string, string>;
  body: string;
  truncated: boolean;
  verified: boolean;
  receivedAt: Date;
}

/** Newest first; empty if the subscription has another url. 404 if the environment has no subscription. */
export async function listReceivedWebhooks(
  ctx: Context,
  input: Input<'listReceivedWebhooks'>,
): Promise<Result<'listReceivedWebhooks'>> {
  const webhookSubscriptionId = await subscriptionOf(ctx, input.env);
  const request = pageRequest(`received_webhooks:${webhookSubscriptionId}`, input);
  const rows = await ctx.db.query<Row>(sql`
    select received_webhook_id as "receivedWebhookId", headers, body, truncated, verified, received_at as "receivedAt"
    from received_webhooks
    where organization_id = ${ctx.organizationId} and webhook_subscription_id = ${webhookSubscriptionId}
      ${request.after === undefined ? empty : sql`and received_webhook_id < ${request.after}`}
    order by received_webhook_id desc limit ${request.limit + 1}`);
  return pageOf(request, rows, (row) => row.receivedWebhookId, viewReceived);
}

function viewReceived({ headers, body, truncated, verified, receivedAt }: Row): ReceivedWebhook {
  return {
    deliveryId: headers[deliveryHeaders.deliveryId]!,
    attempt: Number(headers[deliveryHeaders.attempt]),
    verified,
    receivedAt: receivedAt.toISOString(),
    headers,
    body,
    truncated,
  };
}
