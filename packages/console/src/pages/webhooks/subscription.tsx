import type { WebhookSubscription } from '@signalbox/client';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { useEnvironmentNames } from '../../data/environment-names.ts';
import { useApiQuery, useOrganization } from '../../data/organization.tsx';
import { useChangeSearch } from '../../lib/change-search.ts';
import { Button } from '../../ui/button.tsx';
import { ChangeHistory } from '../../ui/change-history.tsx';
import { Missing } from '../../ui/empty-state.tsx';
import { Menu } from '../../ui/menu.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { Await, Page } from '../../ui/page.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { Breakable } from '../../ui/text.tsx';
import { Time } from '../../ui/time.tsx';
import { useToast } from '../../ui/toast.tsx';
import { DeliveryCharts } from './course.tsx';
import { CreateSubscription, type NewSigningSecret } from './create.tsx';
import { Deliveries } from './deliveries.tsx';
import { DeliveryDrawer } from './delivery-drawer.tsx';
import { Health, WebhookState } from './health.tsx';
import { NewSecret } from './new-secret.tsx';
import { NoWebhook } from './no-webhook.tsx';
import { destinationText, testReceiverUrl } from './reasons.ts';
import { ReceivedDeliveries } from './received.tsx';
import { RecoverDialog } from './recover.tsx';
import { RotateDialog, SigningSecret } from './rotation.tsx';
import { changedText, useStatusChange } from './row-menu.tsx';
import type { SubscriptionSearch } from './search-params.ts';
import { DeleteDialog, EditDialog } from './settings.tsx';
import { TestDelivery } from './test-delivery.tsx';

const LOOK_EVERY_MS = 5_000;

type OpenDialog = 'edit' | 'rotate' | 'recover' | 'delete';

export function SubscriptionPage() {
  const { environment } = useParams({ from: '/$organizationId/webhooks/$environment' });
  const { delivery, ...search } = useSearch({ from: '/$organizationId/webhooks/$environment' });
  const navigate = useNavigate();
  const [isCreating, setCreating] = useState(false);
  const [created, setCreated] = useState<NewSigningSecret>();
  const query = useApiQuery(['webhooks', environment], (client) => client.webhookSubscriptions.get(environment), {
    everyMs: LOOK_EVERY_MS,
  });
  return (
    <Page
      title={`Webhook of ${environment}`}
      about={
        query.data && (
          <span className="badge-and-words">
            <WebhookState subscription={query.data} />{' '}
            <span className="nowrap" title={query.data.url}>
              {destinationText(query.data.url)}
            </span>
          </span>
        )
      }
      actions={query.data && <Actions subscription={query.data} />}
    >
      <Await query={query} missing={<Absent environment={environment} onAdd={() => setCreating(true)} />}>
        {(subscription) => <Subscription subscription={subscription} />}
      </Await>
      {isCreating && (
        <CreateSubscription environments={[environment]} onClose={() => setCreating(false)} onCreated={setCreated} />
      )}
      {created && !isCreating && <NewSecret created={created} onClose={() => setCreated(undefined)} />}
      {delivery && (
        <DeliveryDrawer
          environment={environment}
          deliveryId={delivery}
          onClose={() =>
            void navigate({
              to: '.',
              search,
              replace: true,
              resetScroll: false,
            })
          }
        />
      )}
    </Page>
  );
}

/** In place of the webhook of an environment that has none, or of one that is not there. */
function Absent({ environment, onAdd }: { environment: string; onAdd: () => void }) {
  const { organizationId, may } = useOrganization();
  const names = useEnvironmentNames();
  const list = (
    <Link to="/$organizationId/webhooks" params={{ organizationId }}>
      All webhooks
    </Link>
  );
  if (names?.includes(environment) === false)
    return (
      <Missing what="environment" to="/$organizationId/webhooks" params={{ organizationId }}>
        All webhooks
      </Missing>
    );
  return (
    <NoWebhook
      title={`${environment} has no webhook`}
      action={
        may('write') && names ? (
          <Button look="primary" onClick={onAdd}>
            Add webhook
          </Button>
        ) : (
          list
        )
      }
    />
  );
}

function Actions({ subscription }: { subscription: WebhookSubscription }) {
  const { environment, status } = subscription;
  const { may } = useOrganization();
  const toast = useToast();
  const [dialog, setDialog] = useState<OpenDialog>();
  const [created, setCreated] = useState<NewSigningSecret>();
  const change = useStatusChange(environment);
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
                  onSelect: () => change.mutate('paused', { onSuccess: () => toast(changedText.paused) }),
                },
              ]
            : []),
          { label: 'Resend since…', onSelect: () => setDialog('recover') },
          { label: 'Delete', danger: true, onSelect: () => setDialog('delete') },
        ]}
      />
      {change.error !== null && <ErrorNotice error={change.error} />}
      {dialog === 'edit' && <EditDialog subscription={subscription} onClose={close} />}
      {dialog === 'rotate' && <RotateDialog subscription={subscription} onClose={close} onCreated={setCreated} />}
      {dialog === 'recover' && <RecoverDialog environment={environment} onClose={close} />}
      {dialog === 'delete' && <DeleteDialog subscription={subscription} onClose={close} />}
      {created && dialog === undefined && <NewSecret created={created} onClose={() => setCreated(undefined)} />}
    </>
  );
}

function Subscription({ subscription }: { subscription: WebhookSubscription }) {
  const { environment, url } = subscription;
  const { tab } = useSearch({ from: '/$organizationId/webhooks/$environment' });
  const change = useChangeSearch<SubscriptionSearch>();
  const isTest = url === testReceiverUrl;
  return (
    <>
      <Health subscription={subscription} actions={<EnableAction subscription={subscription} />} />
      <Tabs
        label="Webhook views"
        value={tab === 'received' && !isTest ? 'overview' : (tab ?? 'overview')}
        onChange={(next) => change(() => (next === 'overview' ? {} : { tab: next }))}
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
  const enable = useStatusChange(environment);
  if (!may('write')) return <p className="quiet small">You need the member role to change this webhook.</p>;
  if (status === 'enabled') return null;
  return (
    <>
      <div>
        <Button
          look="primary"
          busy={enable.isPending}
          onClick={() => enable.mutate('enabled', { onSuccess: () => toast(changedText.enabled) })}
        >
          Enable webhook
        </Button>
      </div>
      {enable.error !== null && <ErrorNotice error={enable.error} />}
    </>
  );
}

function Overview({ subscription }: { subscription: WebhookSubscription }) {
  const { url, chunkTypes, createdAt, lastSuccessAt, lastFailureAt } = subscription;
  return (
    <>
      <DeliveryCharts environment={subscription.environment} />
      <div className="columns">
        <section className="card" aria-labelledby="details">
          <div className="row apart">
            <h2 id="details">Details</h2>
            <ChangeHistory resourceId={subscription.webhookSubscriptionId} />
          </div>
          <dl className="facts">
            <dt>Destination</dt>
            <dd>
              <Breakable text={destinationText(url)} />
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
            <dd className="row">
              {chunkTypes.map((type) => (
                <code key={type}>{type}</code>
              ))}
            </dd>
            <dt>Created</dt>
            <dd>
              <Time at={createdAt} />
            </dd>
          </dl>
        </section>
        <div className="stack">
          <TestDelivery subscription={subscription} />
          <SigningSecret subscription={subscription} />
        </div>
      </div>
    </>
  );
}
