import { useApiQuery } from '../../organization.tsx';
import { Time, useNow } from '../../ui/time.tsx';

/** When a delivery is retried: while its destination is probed, not before the next probe. */
export function NextAttempt({ environment, at }: { environment: string; at: string }) {
  const now = useNow();
  const { data } = useApiQuery(['webhooks', environment], (client) => client.webhookSubscriptions.get(environment));
  const probeAt = data?.health.nextProbeAt ?? null;
  if (probeAt !== null && probeAt > at) {
    return (
      <>
        after the next probe, <Time at={probeAt} />
      </>
    );
  }
  return Date.parse(at) <= now ? <span className="quiet">now</span> : <Time at={at} />;
}
