import type { WebhookSubscription } from '@signalbox/client';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { useApiMutation, useApiQuery, useOrganization } from '../../organization.tsx';
import { Button } from '../../ui/button.tsx';
import { Menu } from '../../ui/menu.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { Await, Page } from '../../ui/page.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { Time } from '../../ui/time.tsx';
import { useToast } from '../../ui/toast.tsx';
import { DeliveryCharts } from './course.tsx';
import type { NewSigningSecret } from './create.tsx';
import { Deliveries } from './deliveries.tsx';
import { Destination, Health, WebhookState } from './health.tsx';
import { NewSecret } from './new-secret.tsx';
import { testReceiverUrl } from './reasons.ts';
import { ReceivedDeliveries } from './received.tsx';
import { RecoverDialog } from './recover.tsx';
import { RotateDialog, SigningSecret } from './rotation.tsx';
import { DeleteDialog, EditDialog } from './settings.tsx';
import { TestDelivery } from './test-delivery.tsx';

const LOOK_EVERY_MS = 5_000;

type OpenDialog = 'edit' | 'rotate' | 'recover' | 'delete';

export function SubscriptionPage() {
  const { environment } = useParams({ from: '/$organizationId/webhooks/$environment' });
  const { organizationId } = useOrganization();
  const query = useApiQuery(['webhooks', environment], (client) => client.webhookSubscriptions.get(environment), {
    everyMs: LOOK_EVERY_MS,
  });
  return (
    <Page
      title={`Webhooks of ${environment}`}
      about={
        <Link to="/$organizationId/webhooks" params={{ organizationId }}>
          All webhooks
        </Link>
      }
      actions={query.data && <Actions subscription={query.data} />}
    >
      <Await query={query}>{(subscription) => <Subscription subscription={subscription} />}</Await>
    </Page>
  );
}

function Actions({ subscription }: { subscription: WebhookSubscription }) {
  const { environment, status } = subscription;
  const { may } = useOrganization();
  const toast = useToast();
  const [dialog, setDialog] = useState<OpenDialog>();
  const [created, setCreated] = useState<NewSigningSecret>();
  const pause = useStatus(environment, 'paused');
  if (!may('write')) return null;
  const close = () => setDialog(undefined);
  return (
    <>
      <Button onClick={() => setDialog('rotate')}>Rotate secret</Button>
      <Menu
        label="Actions for this webhook"
        items={[
          { label: 'Edit', onSelect: () => setDialog('edit') },
          ...(status === 'enabled'
            ? [
                {
                  label: 'Pause',
                  onSelect: () => pause.mutate(undefined, { onSuccess: () => toast('Paused. Deliveries are queued.') }),
                },
              ]
            : []),
          { label: 'Resend since …', onSelect: () => setDialog('recover') },
          { label: 'Delete', danger: true, onSelect: () => setDialog('delete') },
        ]}
      />
      {pause.error !== null && <ErrorNotice error={pause.error} />}
      {dialog === 'edit' && <EditDialog subscription={subscription} onClose={close} />}
      {dialog === 'rotate' && <RotateDialog subscription={subscription} onClose={close} onCreated={setCreated} />}
      {dialog === 'recover' && <RecoverDialog environment={environment} onClose={close} />}
      {dialog === 'delete' && <DeleteDialog subscription={subscription} onClose={close} />}
      {created && dialog === undefined && <NewSecret created={created} onClose={() => setCreated(undefined)} />}
    </>
  );
}

function useStatus(environment: string, status: 'enabled' | 'paused') {
  return useApiMutation(
    (client, _: undefined) => client.webhookSubscriptions.update(environment, { status }),
    ['webhooks', 'overview'],
  );
}

function Subscription({ subscription }: { subscription: WebhookSubscription }) {
  const { environment, url } = subscription;
  const { tab } = useSearch({ from: '/$organizationId/webhooks/$environment' });
  const navigate = useNavigate();
  const isTest = url === testReceiverUrl;
  return (
    <>
      <Health subscription={subscription} actions={<EnableAction subscription={subscription} />} />
      <Tabs
        label="Webhook views"
        value={tab === 'received' && !isTest ? 'overview' : (tab ?? 'overview')}
        onChange={(next) => void navigate({ to: '.', search: next === 'overview' ? {} : { tab: next }, replace: true })}
        tabs={[
          { value: 'overview', label: 'Overview', content: <Overview subscription={subscription} /> },
          { value: 'deliveries', label: 'Deliveries', content: <Deliveries environment={environment} /> },
          ...(isTest
            ? [
                {
                  value: 'received' as const,
                  label: 'Test receiver',
                  content: <ReceivedDeliveries environment={environment} />,
                },
              ]
            : []),
        ]}
      />
    </>
  );
}

/** The actions after the receiver is fixed. */
function EnableAction({ subscription: { environment, status } }: { subscription: WebhookSubscription }) {
  const { may } = useOrganization();
  const toast = useToast();
  const enable = useStatus(environment, 'enabled');
  if (!may('write')) return <p className="quiet small">You need the member role to change this webhook.</p>;
  if (status === 'enabled') return null;
  return (
    <>
      <div>
        <Button
          look="primary"
          busy={enable.isPending}
          onClick={() =>
            enable.mutate(undefined, { onSuccess: () => toast('Enabled. Queued deliveries are being sent.') })
          }
        >
          Enable webhook
        </Button>
      </div>
      {enable.error !== null && <ErrorNotice error={enable.error} />}
    </>
  );
}

function Overview({ subscription }: { subscription: WebhookSubscription }) {
  const { organizationId } = useOrganization();
  const { url, chunkTypes, createdAt, lastSuccessAt, lastFailureAt } = subscription;
  return (
    <>
      <DeliveryCharts environment={subscription.environment} />
      <div className="columns">
        <section className="card" aria-labelledby="destination">
          <h2 id="destination">Destination</h2>
          <dl className="facts">
            <dt>State</dt>
            <dd>
              <WebhookState subscription={subscription} />
            </dd>
            <dt>Sent to</dt>
            <dd>
              <Destination url={url} />
            </dd>
            <dt>Last accepted</dt>
            <dd>
              <Time at={lastSuccessAt} />
            </dd>
            <dt>Last failure</dt>
            <dd>
              <Time at={lastFailureAt} />
            </dd>
            <dt>Chunk types</dt>
            <dd className="stack tight">
              {chunkTypes.map((type) => (
                <code key={type}>{type}</code>
              ))}
            </dd>
            <dt>Created</dt>
            <dd>
              <Time at={createdAt} />
            </dd>
          </dl>
          <p className="small">
            <Link
              to="/$organizationId/events"
              params={{ organizationId }}
              search={{ resourceId: subscription.webhookSubscriptionId }}
            >
              Change history
            </Link>
          </p>
        </section>
        <TestDelivery subscription={subscription} />
        <SigningSecret subscription={subscription} />
      </div>
    </>
  );
}
