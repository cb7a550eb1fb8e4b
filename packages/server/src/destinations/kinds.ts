// The types of destinations. `webhook` sends the records as they are, in deliveries that are retried until they are accepted.
//
// A type for people will mark what a record is about as due, and its sender will show the present state of that: a row for each card.
import type { Destination } from '@signalbox/contract';
import type { DestinationKind } from './destination/kind.ts';
import { dueDeliveries } from './webhook/deliveries.ts';
import { WebhookSender } from './webhook/sender.ts';

export const kinds: Readonly<Record<Destination['type'], DestinationKind>> = {
  webhook: {
    due: dueDeliveries,
    createSender: (platform, assignment, options) => new WebhookSender(platform, assignment, options),
  },
};
