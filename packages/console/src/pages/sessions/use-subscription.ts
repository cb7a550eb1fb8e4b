import { useApiQuery } from '../../data/organization.tsx';

/** Whether the environment has a webhook subscription. */
export function useHasSubscription(environment: string) {
  return useApiQuery(['webhooks', environment, 'exists'], async (client) => {
    for await (const one of client.webhookSubscriptions.list({ limit: 100 })) {
      if (one.environment === environment) return true;
    }
    return false;
  });
}
