// Tests a subscription's destination: sends an envelope of a fictional session, signed like a delivery, at once and whatever the
// status of the subscription. It is not a delivery: it is not stored, and a failure does not affect the destination's health.
import type { Envelope, Input, Result } from '@signalbox/contract';
import { attemptDelivery } from '../deliveries/attempt.ts';
import { readAssignment } from '../deliveries/destinations/assignments.ts';
import { confirmSecret } from '../deliveries/destinations/subscription-changes.ts';
import { attributesOf, outgoing } from '../deliveries/outgoing.ts';
import { viewAttempt } from '../deliveries/stored-attempt.ts';
import { egressFor } from '../deliveries/test-receiver.ts';
import { formatCursor } from '../journal/cursor.ts';
import { notFound } from '../lib/api-error.ts';
import type { PoolContext } from '../lib/context.ts';
import { newUuid } from '../lib/ids.ts';
import { version } from '../lib/version.ts';

/** 404 if the environment has no subscription. */
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
  const delivery = outgoing({ deliveryId: newUuid(), sessionId: null, to, previousCursor: '', attemptCount: 0 });
  const { verdict, attempts, secretVersion } = await attemptDelivery(
    { ...ctx, egress: egressFor(assignment, ctx) },
    assignment,
    delivery,
    Buffer.from(JSON.stringify(envelope)),
    {
      version,
      preferredVersion: undefined,
      attributes: attributesOf(assignment),
      signal: ctx.signal ?? new AbortController().signal,
    },
  );
  if (verdict === 'accepted') await confirmSecret(ctx.db, assignment, secretVersion, ctx.clock.now());
  // There are two attempts if the first was refused and another secret is valid; the last one counts.
  return { attempt: viewAttempt(delivery, attempts.at(-1)!) };
}
