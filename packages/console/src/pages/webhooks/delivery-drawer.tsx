import type { WebhookDeliveryWithAttempts } from '@signalbox/client';
import { useState } from 'react';
import { useApiMutation, useApiQuery, useOrganization } from '../../data/organization.tsx';
import { counted } from '../../lib/text-format.ts';
import { Status } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Drawer } from '../../ui/drawer.tsx';
import { IdChip } from '../../ui/id-chip.tsx';
import { errorText, Notice } from '../../ui/notice.tsx';
import { Await } from '../../ui/page.tsx';
import { SessionLink } from '../../ui/session-link.tsx';
import { ExactTime } from '../../ui/time.tsx';
import { useToast } from '../../ui/toast.tsx';
import { Attempt, RequestBody } from './attempt.tsx';
import { FirstAttempt, NextAttempt } from './next-attempt.tsx';
import { RecoverDialog } from './recover.tsx';

const LOOK_EVERY_MS = 3_000;

/** One delivery with its attempts and its body, next to the page. */
export function DeliveryDrawer({
  environment,
  deliveryId,
  onClose,
}: {
  environment: string;
  deliveryId: string;
  onClose: () => void;
}) {
  const query = useApiQuery(
    ['webhooks', environment, 'deliveries', deliveryId],
    (client) => client.webhookSubscriptions.deliveries.get(environment, deliveryId),
    { everyMs: LOOK_EVERY_MS },
  );
  return (
    <Drawer title="Delivery" actions={query.data && <Resend delivery={query.data} />} onClose={onClose}>
      <Await query={query}>{(delivery) => <Delivery key={deliveryId} delivery={delivery} />}</Await>
    </Drawer>
  );
}

function Resend({ delivery: { environment, deliveryId, status } }: { delivery: WebhookDeliveryWithAttempts }) {
  const { may } = useOrganization();
  const toast = useToast();
  const resend = useApiMutation(
    (client, _: undefined) => client.webhookSubscriptions.deliveries.resend(environment, deliveryId),
    ['webhooks'],
  );
  if (!may('write')) return null;
  return (
    <Button
      small
      busy={resend.isPending}
      onClick={() =>
        resend.mutate(undefined, {
          onSuccess: () => toast('Sending. The attempt appears below.'),
          onError: (error) => toast(errorText(error)),
        })
      }
    >
      {status === 'pending' ? 'Retry now' : 'Resend'}
    </Button>
  );
}

/** An exhausted delivery, which leaves a gap at the receiver: later deliveries were sent. */
function GivenUp({ delivery: { environment, sessionId, previousCursor } }: { delivery: WebhookDeliveryWithAttempts }) {
  const { may } = useOrganization();
  const [recovering, setRecovering] = useState(false);
  return (
    <Notice kind="bad" title="Delivery failed after the last retry">
      <p>
        Later deliveries of this session were sent without it, so the receiver is missing its content. Fix the receiver,
        then resend this delivery, or resend the session from here to send everything since then in order.
      </p>
      {may('write') && (
        <div>
          <Button onClick={() => setRecovering(true)}>Resend the session from here</Button>
        </div>
      )}
      {recovering && (
        <RecoverDialog
          environment={environment}
          sessionId={sessionId}
          cursor={previousCursor}
          onClose={() => setRecovering(false)}
        />
      )}
    </Notice>
  );
}

function Delivery({ delivery }: { delivery: WebhookDeliveryWithAttempts }) {
  const { deliveryId, status, sessionId, previousCursor, cursor, attemptCount, attempts } = delivery;
  const { createdAt, nextAttemptAt, finishedAt, requestBody } = delivery;
  return (
    <>
      {status === 'exhausted' && <GivenUp delivery={delivery} />}
      <section aria-label="The delivery">
        <dl className="facts">
          <dt>Status</dt>
          <dd>
            <Status value={status} /> <span className="quiet small">{about[status]}</span>
          </dd>
          <dt>ID</dt>
          <dd>
            <IdChip value={deliveryId} />
          </dd>
          <dt>Session</dt>
          <dd>
            <SessionLink sessionId={sessionId} />
          </dd>
          <dt>Contains</dt>
          <dd>
            {previousCursor === null ? (
              'start'
            ) : (
              <>
                after <span className="mono">{previousCursor}</span>
              </>
            )}{' '}
            to <span className="mono">{cursor}</span>
          </dd>
          <dt>Created</dt>
          <dd>
            <ExactTime at={createdAt} />
          </dd>
          {status === 'pending' && attemptCount === 0 && (
            <>
              <dt>First attempt</dt>
              <dd>
                <FirstAttempt delivery={delivery} />
              </dd>
            </>
          )}
          {nextAttemptAt && attemptCount > 0 && (
            <>
              <dt>Next attempt</dt>
              <dd>
                <NextAttempt environment={delivery.environment} at={nextAttemptAt} />
              </dd>
            </>
          )}
          {finishedAt && (
            <>
              <dt>Finished</dt>
              <dd>
                <ExactTime at={finishedAt} />
              </dd>
            </>
          )}
        </dl>
      </section>
      <section className="stack" aria-labelledby="attempts">
        <div className="row apart">
          <h2 id="attempts">Attempts</h2>
          <p className="quiet small" role="status">
            {attemptCount === 0 ? 'None yet' : `${counted(attemptCount, 'attempt')} so far`}
            {attemptCount > attempts.length && `, the last ${attempts.length} are stored`}
          </p>
        </div>
        {attempts.toReversed().map((attempt, index) => (
          <Attempt key={attempt.attempt} delivery={delivery} attempt={attempt} open={index === 0} />
        ))}
      </section>
      <section className="stack" aria-labelledby="body">
        <div className="row apart">
          <h2 id="body">Request body</h2>
          <p className="quiet small">Identical in every attempt</p>
        </div>
        <RequestBody text={requestBody} />
      </section>
    </>
  );
}

const about: Record<WebhookDeliveryWithAttempts['status'], string> = {
  pending: 'queued for delivery or retry',
  succeeded: 'the receiver returned 2xx',
  exhausted: 'the last retry failed; later deliveries were sent without it',
  cancelled: 'its chunks are in other deliveries, or the webhook was deleted',
};
