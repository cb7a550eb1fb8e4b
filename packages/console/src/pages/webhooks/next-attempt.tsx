import type { WebhookDelivery, WebhookSubscription } from '@signalbox/client';
import type { ReactNode } from 'react';
import { useApiQuery } from '../../data/organization.tsx';
import { Time, useNow } from '../../ui/time.tsx';

/** When a delivery is retried: while its destination is probed, not before the next probe. */
export function NextAttempt({ environment, at }: { environment: string; at: string }) {
  const now = useNow();
  const probeAt = useDestination(environment)?.health.nextProbeAt ?? null;
  if (probeAt !== null && probeAt > at) {
    return (
      <>
        <Time at={probeAt} />, after a probe
      </>
    );
  }
  return Date.parse(at) <= now ? <span className="quiet">now</span> : <Time at={at} />;
}

/** What a delivery without an attempt waits for. */
export function FirstAttempt({ delivery: { environment, sessionId } }: { delivery: WebhookDelivery }) {
  const destination = useDestination(environment);
  return <span className="quiet">{destination ? reasonToWait(destination, sessionId) : 'not sent yet'}</span>;
}

function reasonToWait({ status, health }: WebhookSubscription, sessionId: string): ReactNode {
  if (status !== 'enabled') return 'waits until the webhook is enabled';
  if (health.state === 'blocked') return 'waits, deliveries are blocked';
  const { nextProbeAt, failingSessionId } = health;
  // If all failures are from one session, those of others continue.
  if (nextProbeAt !== null && (failingSessionId === null || failingSessionId === sessionId)) {
    return (
      <>
        waits for the next probe, <Time at={nextProbeAt} />
      </>
    );
  }
  return 'being sent';
}

function useDestination(environment: string): WebhookSubscription | undefined {
  return useApiQuery(['webhooks', environment], (client) => client.webhookSubscriptions.get(environment)).data;
}
