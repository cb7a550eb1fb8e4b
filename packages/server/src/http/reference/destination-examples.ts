// Examples of destinations and of a rotated signing secret, for `resource-examples.ts`.
import type { Destination, DestinationDelivery, Event, IdPrefix, WebhookAttempt } from '@signalbox/contract';

interface Shared {
  id: (prefix: IdPrefix) => string;
  /** A time of the day of all examples. */
  at: (time: string) => string;
  attempt: WebhookAttempt;
  event: Event;
}

export function destinationExamples({ id, at, attempt, event }: Shared) {
  const destination: Destination = {
    destinationId: id('dst'),
    name: 'On call',
    type: 'webhook',
    eventTypes: ['approval.*', 'session.failed'],
    environment: 'production',
    agentIds: null,
    url: 'https://example.com/hooks/signalbox',
    headerNames: ['authorization'],
    status: 'enabled',
    disabledReason: null,
    secretVersion: 1,
    previousSecretExpiresAt: null,
    confirmedSecretVersion: 1,
    createdAt: at('08:30:00.000'),
    updatedAt: at('08:30:00.000'),
    lastSuccessAt: at('09:31:12.700'),
    lastFailureAt: null,
    health: {
      state: 'healthy',
      blockedBy: null,
      reason: null,
      failingSince: null,
      consecutiveFailures: 0,
      lastError: null,
      lastStatus: 200,
      nextProbeAt: null,
      lostEvents: null,
    },
  };

  const destinationDelivery: DestinationDelivery = {
    deliveryId: id('dsd'),
    destinationId: id('dst'),
    status: 'succeeded',
    resource: { type: 'session', id: id('ses') },
    eventCount: 1,
    firstSequence: 4210,
    lastSequence: 4210,
    previousSequence: 4183,
    attemptCount: 1,
    createdAt: at('09:31:12.490'),
    nextAttemptAt: null,
    finishedAt: at('09:31:12.700'),
  };

  return {
    Destination: destination,
    DestinationDelivery: destinationDelivery,
    DestinationDeliveryWithAttempts: {
      ...destinationDelivery,
      attempts: [attempt],
      requestBody: JSON.stringify({ event: 'organization.events', events: [event] }),
    },
    RotatedSecret: {
      signingSecret: 'whsec_the_secret_is_shown_only_in_this_response',
      secretVersion: 3,
      previousSecretExpiresAt: at('10:30:00.000'),
    },
    CreatedDestination: {
      destination: { ...destination, confirmedSecretVersion: null, lastSuccessAt: null },
      signingSecret: 'whsec_the_secret_is_shown_only_in_this_response',
    },
  };
}
