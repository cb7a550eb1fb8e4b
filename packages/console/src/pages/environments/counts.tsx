// What an environment has. The lists are the same for all environments, so they are requested once.
import { useApiQuery } from '../../data/organization.tsx';
import { capped } from '../../lib/text-format.ts';
import { Bone } from '../../ui/skeleton.tsx';
import { WebhookState } from '../webhooks/health.tsx';

export const useCounts = (environment: string) =>
  useApiQuery(['sessions', 'counts', environment], async (client) => (await client.overview({ environment })).sessions);

export function OpenSessions({ environment }: { environment: string }) {
  const { data } = useCounts(environment);
  if (!data) return <Bone />;
  const { idle, running, waiting } = data;
  return <>{capped(idle + running + waiting)}</>;
}

export const useSubscription = (environment: string) => {
  const { data } = useApiQuery(
    ['webhooks', 'all'],
    async (client) => (await client.webhookSubscriptions.list({ limit: 100 })).data,
  );
  return data && (data.find((one) => one.environment === environment) ?? null);
};

export function WebhookStatus({ environment }: { environment: string }) {
  const subscription = useSubscription(environment);
  if (subscription === undefined) return <Bone />;
  if (subscription === null) return <span className="quiet">none</span>;
  return <WebhookState subscription={subscription} />;
}

const MOST_KEYS = 100;

/** The keys that can use the environment. */
function useKeyCount(environment: string): string | undefined {
  const { data } = useApiQuery(['keys', 'reach'], (client) => client.keys.list({ limit: MOST_KEYS }));
  if (!data) return undefined;
  const count = data.data.filter(({ environments }) => environments?.includes(environment) ?? true).length;
  return `${count}${data.hasMore ? '+' : ''}`;
}

export function KeyCount({ environment }: { environment: string }) {
  return <>{useKeyCount(environment) ?? <Bone />}</>;
}
