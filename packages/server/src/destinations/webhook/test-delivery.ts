// Tests a destination: sends a made-up record, signed like a delivery, at once and whatever the status of the destination. It is not a
// delivery: it is not stored, and a failure does not affect the destination's health.
import { type Event, eventTypesOf, type Input, type Result } from '@signalbox/contract';
import { attemptDelivery } from '../../deliveries/attempt.ts';
import { viewAttempt } from '../../deliveries/stored-attempt.ts';
import { systemActor } from '../../events/record.ts';
import { notFound } from '../../lib/api-error.ts';
import type { PoolContext } from '../../lib/context.ts';
import { formatId, newUuid, uuidOf } from '../../lib/ids.ts';
import { version } from '../../lib/version.ts';
import { readAssignment } from '../destination/assignments.ts';
import { destinationHealth } from '../destination/health-store.ts';
import { bodyOf } from './deliveries.ts';
import { outgoing } from './sender.ts';

const NO_HASH = '0'.repeat(64);

/** 404 if it does not exist. */
export async function testDestination(
  ctx: PoolContext,
  input: Input<'testDestination'>,
): Promise<Result<'testDestination'>> {
  const assignment = await readAssignment(ctx, ctx.organizationId, uuidOf('dst', input.destinationId));
  if (!assignment) throw notFound('destination');
  const event: Event = {
    eventId: formatId('evt', newUuid()),
    sequence: 0,
    type: assignment.eventTypes.flatMap(eventTypesOf)[0]!,
    occurredAt: ctx.clock.now().toISOString(),
    outcome: 'success',
    actor: systemActor,
    resource: { type: 'test', id: input.destinationId },
    environment: assignment.environment,
    sessionId: null,
    changes: null,
    context: { requestId: null, ipAddress: null, userAgent: null },
    previousHash: NO_HASH,
    hash: NO_HASH,
  };
  const delivery = outgoing({
    ...{ deliveryId: newUuid(), lane: `test:${input.destinationId}`, lastSequence: 0 },
    ...{ previousSequence: null, attemptCount: 0 },
  });
  const { verdict, attempts, secretVersion } = await attemptDelivery(
    { ...ctx, egress: ctx.egress.of(ctx.organizationId) },
    assignment,
    delivery,
    bodyOf([event]),
    {
      version,
      preferredVersion: undefined,
      attributes: { 'signalbox.destination.id': input.destinationId },
      signal: ctx.signal ?? new AbortController().signal,
    },
  );
  if (verdict === 'accepted') await destinationHealth.confirmSecret(ctx.db, assignment, secretVersion, ctx.clock.now());
  // There are two attempts if the first was refused and another secret is valid; the last one counts.
  return { attempt: viewAttempt(delivery, attempts.at(-1)!) };
}
