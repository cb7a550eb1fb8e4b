// A try of a subscription's destination (api.md section 7): one envelope of no Session, signed and sent as deliveries are, at
// once and whatever the subscription's status. It is no delivery: nothing is kept of it, and it does not count as a failure.
import type { Envelope, Input, Result } from '@signalbox/contract';
import { formatCursor } from '../journal/cursor.ts';
import { notFound } from '../lib/api-error.ts';
import type { PoolContext } from '../lib/context.ts';
import { newUuid } from '../lib/ids.ts';
import { version } from '../lib/version.ts';
import { readAssignment } from './sending/assignments.ts';
import { attemptDelivery } from './sending/attempt.ts';
import { viewAttempt } from './sending/stored-attempt.ts';
import { confirmSecret } from './sending/subscription-changes.ts';
import { egressFor } from './sending/test-receiver.ts';

/** 404 where the Environment has no subscription. */
export async function testWebhookSubscription(
  ctx: PoolContext,
  input: Input<'testWebhookSubscription'>,
): Promise<Result<'testWebhookSubscription'>> {
  const assignment = await readAssignment(ctx, ctx.organizationId, input.env);
  if (!assignment) throw notFound('webhook subscription');
  const to = { turn: 1, seq: 1 };
  const envelope: Envelope = {
    event: 'session.chunks',
    environment: assignment.environment,
    sessionId: 'ses_test',
    agentId: 'agt_test',
    cursor: formatCursor(to),
    timestamp: ctx.clock.now().toISOString(),
    chunks: [{ type: 'session.status', status: 'idle', waitingFor: null, ...to }],
  };
  const delivery = { deliveryId: newUuid(), sessionId: null, to, previousCursor: '', attemptCount: 0 };
  const { verdict, attempts, secretVersion } = await attemptDelivery(
    { ...ctx, egress: egressFor(assignment, ctx) },
    assignment,
    delivery,
    Buffer.from(JSON.stringify(envelope)),
    { version, preferredVersion: undefined, signal: ctx.signal ?? new AbortController().signal },
  );
  if (verdict === 'accepted') await confirmSecret(ctx.db, assignment, secretVersion, ctx.clock.now());
  // Two where the first was refused and another secret is good as well: the last one decides.
  return { attempt: viewAttempt(delivery, attempts.at(-1)!) };
}
