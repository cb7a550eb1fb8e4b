import { useApiMutation, useApiQuery } from '../../data/organization.tsx';
import { Button } from '../../ui/button.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { Await } from '../../ui/page.tsx';
import { ReceivedWebhooks } from './received-webhooks.tsx';
import { Step, type StepState } from './step.tsx';

const TEST_RECEIVER = 'signalbox:test-receiver';

export function WebhookStep({
  state,
  environment,
  since,
}: {
  state: StepState;
  environment: string;
  /** When the session of the guide was opened: its webhooks are sent as well. */
  since: string | undefined;
}) {
  const subscription = useApiQuery(['webhooks', 'first-minutes'], async (client) => {
    const { data } = await client.webhookSubscriptions.list({ limit: 100 });
    return data.find((one) => one.environment === environment) ?? null;
  });
  return (
    <Step number={3} title="Receive webhooks" state={state}>
      <Await query={subscription}>
        {(found) => (
          <>
            {found === null && (
              <>
                <p>
                  Signalbox sends what happens in the sessions of <code>{environment}</code> to one URL, in signed
                  requests. Until you have a receiver of your own, use the built-in one.
                </p>
                <Subscribe environment={environment} since={since} isCurrent={state === 'current'} />
              </>
            )}
            {found !== null && found.url !== TEST_RECEIVER && (
              <p className="quiet">
                {environment} already sends webhooks to <code>{found.url}</code>.{' '}
                {state === 'done' ? 'Look for them there.' : 'The step is done when the receiver accepts one.'}
              </p>
            )}
            {found?.url === TEST_RECEIVER && <ReceivedWebhooks environment={environment} />}
          </>
        )}
      </Await>
    </Step>
  );
}

function Subscribe({
  environment,
  since,
  isCurrent,
}: {
  environment: string;
  since: string | undefined;
  isCurrent: boolean;
}) {
  const subscribe = useApiMutation(
    async (client, _: undefined) => {
      await client.webhookSubscriptions.create({ environment, url: TEST_RECEIVER });
      if (since !== undefined) await client.webhookSubscriptions.recover(environment, { since });
    },
    ['webhooks'],
  );
  return (
    <>
      <div className="row">
        <Button
          look={isCurrent ? 'primary' : undefined}
          busy={subscribe.isPending}
          onClick={() => subscribe.mutate(undefined)}
        >
          Use the built-in receiver
        </Button>
      </div>
      {subscribe.error && <ErrorNotice error={subscribe.error} />}
    </>
  );
}
