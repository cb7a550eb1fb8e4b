import { useApiQuery } from '../../organization.tsx';

/** Whether the environment has a webhook subscription. */
export function useSubscription(environment: string): boolean {
  const { data } = useApiQuery(['webhooks', environment, 'exists'], async (client) => {
    for await (const one of client.webhookSubscriptions.list({ limit: 100 })) {
      if (one.environment === environment) return true;
    }
    return false;
  });
  return data === true;
}
