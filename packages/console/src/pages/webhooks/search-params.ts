import type { WebhookDelivery } from '@signalbox/client';
import { oneOf, sessionIdPattern, textIn } from '../../search-params.ts';

/** What the page of a subscription shows; `status` and `sessionId` of deliveries. */
export interface SubscriptionSearch {
  tab?: 'deliveries' | 'received';
  status?: WebhookDelivery['status'];
  sessionId?: string;
}

export function subscriptionSearch(search: Record<string, unknown>): SubscriptionSearch {
  return {
    ...oneOf(search, 'tab', ['deliveries', 'received']),
    ...oneOf(search, 'status', ['pending', 'succeeded', 'exhausted', 'cancelled']),
    ...textIn(search, 'sessionId', sessionIdPattern),
  };
}
