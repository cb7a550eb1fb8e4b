import type { WebhookAttempt, WebhookSubscription } from '@signalbox/client';
import { useApiMutation, useOrganization } from '../../data/organization.tsx';
import { Button } from '../../ui/button.tsx';
import { ErrorNotice, Notice } from '../../ui/notice.tsx';
import { duration } from '../../ui/time.tsx';
import { ReceiverResponse } from './attempt.tsx';
import { Explained } from './health.tsx';
import { outcomeOf } from './reasons.ts';

/** Sends a signed test delivery without a session and shows the response. */
export function TestDelivery({ subscription: { environment } }: { subscription: WebhookSubscription }) {
  const { may } = useOrganization();
  const test = useApiMutation((client, _: undefined) => client.webhookSubscriptions.test(environment), ['webhooks']);
  return (
    <section className="card" aria-labelledby="test">
      <h2 id="test">Test</h2>
      <p>
        Sends a signed test delivery now (session <code>ses_test</code>), even if paused. A failed test doesn’t count as
        a failure.
      </p>
      {may('write') ? (
        <div>
          <Button busy={test.isPending} onClick={() => test.mutate(undefined)}>
            Send test delivery
          </Button>
        </div>
      ) : (
        <p className="quiet small">You need the member role to send a test delivery.</p>
      )}
      {test.error !== null && <ErrorNotice error={test.error} />}
      {test.data && !test.isPending && <Outcome attempt={test.data} />}
    </section>
  );
}

function Outcome({ attempt }: { attempt: WebhookAttempt }) {
  return (
    <Notice kind={attempt.error === null ? 'good' : 'bad'} title={`${outcomeOf(attempt)}.`} live>
      <p className="small">
        Took {duration(attempt.durationMs)}. Signed with secret version {attempt.secretVersion}.
      </p>
      <Explained attempt={attempt} />
      <ReceiverResponse attempt={attempt} />
    </Notice>
  );
}
