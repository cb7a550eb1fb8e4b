// Recovery: sends chunks again from the journal. A request inserts a row into webhook_recoveries, which the node that the
// subscription is assigned to processes (sending/rewind.ts).
import type { Input, Result } from '@signalbox/contract';
import sql from 'sql-template-tag';
import type { Tx } from '../db/db.ts';
import { beforeAllSessions } from '../deliveries/destinations/due-sessions.ts';
import { recordEvent } from '../events/record.ts';
import { formatCursor, type Position } from '../journal/cursor.ts';
import { positionAfter, readJournalInfo } from '../journal/read.ts';
import { ApiError, invalidField, notFound } from '../lib/api-error.ts';
import { type Context, inTransaction } from '../lib/context.ts';
import { formatId, newUuid, uuidOf } from '../lib/ids.ts';
import { agentIdOf } from '../session-rows/session.ts';
import { getWebhookSubscription } from './subscriptions.ts';

// How many recoveries of a subscription may wait. To recover more sessions than this, callers give a time.
const MAX_WAITING = 1_000;

/**
 * 404 if the environment has no subscription or the session is in another environment, 400 `invalid_cursor`, 409 if too many
 * recoveries wait.
 */
export async function recoverDeliveries(
  ctx: Context,
  input: Input<'recoverDeliveries'>,
): Promise<Result<'recoverDeliveries'>> {
  const { organizationId } = ctx;
  const now = ctx.clock.now();
  const since = 'since' in input ? new Date(input.since) : null;
  if (since && since > now) throw invalidField('since', 'must not be in the future');
  return inTransaction(ctx, async (tx, ctx) => {
    const { webhookSubscription } = await getWebhookSubscription(ctx, input);
    const from = 'sessionId' in input ? await requestedPosition(tx, organizationId, input) : undefined;
    const webhookSubscriptionId = uuidOf('whs', webhookSubscription.webhookSubscriptionId);
    const [waiting] = await tx.query<{ count: number }>(sql`
      select count(*)::int as count from webhook_recoveries
      where organization_id = ${organizationId} and webhook_subscription_id = ${webhookSubscriptionId}`);
    if (waiting!.count >= MAX_WAITING) {
      throw new ApiError(
        'conflict',
        'Too many recoveries are waiting. Retry later, or recover all sessions since a time.',
      );
    }
    const agentId = from && (await agentIdOf(tx, organizationId, from.sessionId));
    await Promise.all([
      tx.query(sql`
        insert into webhook_recoveries (organization_id, webhook_subscription_id, recovery_id, since, session_id, turn, seq,
          after_session_id, created_at)
        values (${organizationId}, ${webhookSubscriptionId}, ${newUuid()}, ${since}, ${from?.sessionId},
          ${from?.position.turn}, ${from?.position.seq}, ${beforeAllSessions}, ${now})`),
      tx.query(
        recordEvent(ctx, now, {
          type: 'webhook_delivery.recovered',
          resource: { type: 'webhook_subscription', id: webhookSubscription.webhookSubscriptionId },
          environment: webhookSubscription.environment,
          sessionId: from ? formatId('ses', from.sessionId) : null,
          ...(agentId && { agentId }),
          changes: since ? { since: [null, since.toISOString()] } : { cursor: [null, formatCursor(from!.position)] },
        }),
      ),
    ]);
    return { webhookSubscription };
  });
}

async function requestedPosition(
  tx: Tx,
  organizationId: string,
  input: { env: string; sessionId: string; cursor: string },
): Promise<{ sessionId: string; position: Position }> {
  const sessionId = uuidOf('ses', input.sessionId);
  const head = await readJournalInfo(tx, organizationId, sessionId);
  if (head.environment !== input.env) throw notFound('session');
  return { sessionId, position: positionAfter(input.cursor, head) };
}
