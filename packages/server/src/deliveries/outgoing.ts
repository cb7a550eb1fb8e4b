// How the headers, the log lines and the traces of an attempt name the delivery of a session's chunks.
import { formatCursor } from '../journal/cursor.ts';
import { formatId } from '../lib/ids.ts';
import type { OutgoingDelivery } from './attempt.ts';
import type { Delivery } from './delivery.ts';
import type { Assignment } from './destinations/assignments.ts';

/** A delivery of a session's chunks as its headers and log lines name it. */
export function outgoing({
  deliveryId,
  sessionId,
  to,
  previousCursor,
  attemptCount,
}: Pick<Delivery, 'deliveryId' | 'to' | 'previousCursor' | 'attemptCount'> & {
  /** Null for a test delivery. */
  sessionId: string | null;
}): OutgoingDelivery {
  return {
    deliveryId: formatId('whd', deliveryId),
    sessionId: sessionId === null ? null : formatId('ses', sessionId),
    cursor: formatCursor(to),
    previousCursor,
    attemptCount,
  };
}

/** What a trace says about the subscription. */
export function attributesOf({ environment, webhookSubscriptionId }: Assignment): Record<string, string> {
  return {
    'signalbox.environment': environment,
    'signalbox.webhook_subscription.id': formatId('whs', webhookSubscriptionId),
  };
}
