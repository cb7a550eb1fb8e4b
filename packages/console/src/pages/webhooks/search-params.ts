import type { WebhookDelivery } from '@signalbox/client';
import { oneOf, sessionIdPattern, textIn } from '../../lib/search-params.ts';

/** The search parameters of a subscription's page; `status` and `sessionId` filter deliveries. */
export interface SubscriptionSearch {
  tab?: 'deliveries' | 'received';
  status?: WebhookDelivery['status'];
  sessionId?: string;
  /** The delivery that is open in the drawer. */
  delivery?: string;
}

export function subscriptionSearch(search: Record<string, unknown>): SubscriptionSearch {
  return {
    ...oneOf(search, 'tab', ['deliveries', 'received']),
    ...oneOf(search, 'status', ['pending', 'succeeded', 'exhausted', 'cancelled']),
    ...textIn(search, 'sessionId', sessionIdPattern),
    ...textIn(search, 'delivery', /^whd_[0-9a-z]{26}$/),
  };
}
