// The health of a destination and how to fix it.
import type { Signalbox, WebhookAttempt, WebhookSubscription } from '@signalbox/client';
import { Link, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useApiQuery, useOrganization } from '../../data/organization.tsx';
import { Badge } from '../../ui/badge.tsx';
import { Notice } from '../../ui/notice.tsx';
import { ExactTime, Time } from '../../ui/time.tsx';
import { outcomeOf, reasonOf } from './reasons.ts';

// The interval of the subscription's page.
const LOOK_EVERY_MS = 5_000;
// The limit of the service (deliveries/destinations/health-rules.ts).
const DISABLED_AFTER_MS = 5 * 86_400_000;

/** A badge: the status, or the health of the destination if the subscription is enabled. */
export function WebhookState({
  subscription: { status, health, lastSuccessAt },
}: {
  subscription: WebhookSubscription;
}) {
  if (status !== 'enabled') return <Badge tone={status === 'paused' ? 'warn' : 'bad'}>{status}</Badge>;
  if (health.state === 'blocked') return <Badge tone="bad">blocked</Badge>;
  if (health.state === 'degraded') return <Badge tone="bad">degraded</Badge>;
  if (health.state === 'failing') return <Badge tone="warn">failing</Badge>;
  return lastSuccessAt === null ? <Badge>nothing sent yet</Badge> : <Badge tone="good">healthy</Badge>;
}

/** Why it is blocked, failing, degraded, paused or disabled, and how to fix it. Renders nothing if it is healthy. */
export function Health({ subscription, actions }: { subscription: WebhookSubscription; actions: ReactNode }) {
  const { status, disabledReason, health } = subscription;
  if (status === 'paused') {
    return (
      <Notice kind="warn" title="Paused">
        <p>Deliveries are queued. Enable the webhook to send them in order.</p>
        {actions}
      </Notice>
    );
  }
  if (status === 'disabled') {
    const why =
      disabledReason === 'gone'
        ? 'Disabled because the receiver returned 410'
        : 'Disabled because the receiver failed for 5 days';
    return (
      <Notice kind="bad" title={why}>
        <LastFailure subscription={subscription} />
        <p>Deliveries are queued. Fix the receiver, then enable the webhook to send them in order.</p>
        {actions}
      </Notice>
    );
  }
  if (health.state === 'blocked') {
    return (
      <Notice kind="bad" title="Deliveries are blocked">
        <p>{health.reason} Deliveries are queued and will be sent in order afterwards.</p>
        {actions}
      </Notice>
    );
  }
  if (health.state === 'healthy' || health.failingSince === null) return null;
  return (
    <Notice
      kind={health.state === 'degraded' ? 'bad' : 'warn'}
      title={health.state === 'degraded' ? 'Degraded: failing for more than a day' : 'The last attempt failed'}
    >
      <LastFailure subscription={subscription} />
      <p>
        Failing since <ExactTime at={health.failingSince} />.{' '}
        {health.nextProbeAt ? (
          <>
            Next retry <Time at={health.nextProbeAt} />.{' '}
            {health.failingSessionId
              ? 'Deliveries of other sessions continue.'
              : 'Deliveries are queued and will be sent in order once it recovers.'}
          </>
        ) : (
          'It is retried automatically, and nothing is lost.'
        )}{' '}
        {health.state === 'degraded' && (
          <>
            If it keeps failing, it will be disabled on <ExactTime at={disabledAt(health.failingSince)} />.
          </>
        )}
      </p>
      {health.nextProbeAt && health.failingSessionId && (
        <OneSession environment={subscription.environment} sessionId={health.failingSessionId} />
      )}
      {actions}
    </Notice>
  );
}

function disabledAt(failingSince: string): string {
  return new Date(new Date(failingSince).getTime() + DISABLED_AFTER_MS).toISOString();
}

function OneSession({ environment, sessionId }: { environment: string; sessionId: string }) {
  const { organizationId } = useOrganization();
  return (
    <p>
      All failures are from one session. The receiver may not accept its content.{' '}
      <Link
        to="/$organizationId/webhooks/$environment"
        params={{ organizationId, environment }}
        search={{ tab: 'deliveries', sessionId }}
      >
        Show its deliveries
      </Link>
    </p>
  );
}

/** The last failed attempt, among pending and exhausted deliveries. */
function LastFailure({ subscription: { environment } }: { subscription: WebhookSubscription }) {
  const { organizationId } = useOrganization();
  const look = async (client: Signalbox) => {
    const { deliveries } = client.webhookSubscriptions;
    for (const status of ['pending', 'exhausted'] as const) {
      const { data: some } = await deliveries.list(environment, { status, limit: 20 });
      const failed = some.find(({ attemptCount }) => attemptCount > 0);
      if (!failed) continue;
      const { deliveryId, attempts } = await deliveries.get(environment, failed.deliveryId);
      const attempt = attempts.findLast(({ error }) => error !== null);
      if (attempt) return { deliveryId, attempt };
    }
    return null;
  };
  const search = useSearch({ from: '/$organizationId/webhooks/$environment' });
  const { data } = useApiQuery(['webhooks', environment, 'last failure'], look, { everyMs: LOOK_EVERY_MS });
  if (!data) return null;
  return (
    <>
      <Explained attempt={data.attempt} />
      <p>
        <Link
          to="/$organizationId/webhooks/$environment"
          params={{ organizationId, environment }}
          search={{ ...search, delivery: data.deliveryId }}
          resetScroll={false}
        >
          Show the delivery and the response
        </Link>{' '}
        <span className="quiet small">
          {outcomeOf(data.attempt)}, <Time at={data.attempt.at} />
        </span>
      </p>
    </>
  );
}

/** What a failed attempt means and how to fix it. */
export function Explained({ attempt }: { attempt: Pick<WebhookAttempt, 'status' | 'error'> }) {
  const reason = reasonOf(attempt);
  if (!reason) return null;
  return (
    <p>
      {reason.what} {reason.fix}
    </p>
  );
}
