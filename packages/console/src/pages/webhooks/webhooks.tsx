import type { WebhookSubscription } from '@signalbox/client';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useEnvironment } from '../../data/environment.ts';
import { useEnvironmentNames } from '../../data/environment-names.ts';
import { useOpenNew } from '../../data/open-new.ts';
import { useList, useOrganization } from '../../data/organization.tsx';
import { Button } from '../../ui/button.tsx';
import { Page } from '../../ui/page.tsx';
import { Table } from '../../ui/table.tsx';
import { webhookColumns } from './columns.tsx';
import { useDelivered } from './course.tsx';
import { CreateSubscription, type NewSigningSecret } from './create.tsx';
import { NewSecret } from './new-secret.tsx';
import { NoWebhook } from './no-webhook.tsx';
import { WebhookRowMenu } from './row-menu.tsx';

// The event log has no events for successful and failed attempts.
const LOOK_EVERY_MS = 10_000;

export function WebhooksPage() {
  const { organizationId, may } = useOrganization();
  const environment = useEnvironment();
  const navigate = useNavigate();
  const subscriptions = useList(
    ['webhooks', 'subscriptions', environment ?? 'all'],
    (client, page) => client.webhookSubscriptions.list({ ...page, ...(environment && { environment }) }),
    { everyMs: LOOK_EVERY_MS },
  );
  const free = useFreeEnvironments(subscriptions.data, environment);
  const delivered = useDelivered();
  const [isCreating, setCreating] = useState(false);
  const [created, setCreated] = useState<NewSigningSecret>();
  useOpenNew(() => setCreating(true), may('write'));
  const add = may('write') && free.length > 0 && (
    <Button look="primary" onClick={() => setCreating(true)}>
      Add webhook
    </Button>
  );
  return (
    <Page
      title="Webhooks"
      operation="createWebhookSubscription"
      about="Signed requests with the chunks of sessions, to one endpoint per environment."
      actions={may('write') ? add : <span className="quiet small">You need the member role to add a webhook.</span>}
    >
      <Table
        name="webhooks"
        caption="Webhooks, newest first"
        query={subscriptions}
        columns={webhookColumns(delivered)}
        rowKey={({ webhookSubscriptionId }) => webhookSubscriptionId}
        rowLink={(one) => ({
          to: '/$organizationId/webhooks/$environment',
          params: { organizationId, environment: one.environment },
        })}
        {...(may('write') && { actions: (one: WebhookSubscription) => <WebhookRowMenu subscription={one} /> })}
        empty={<NoWebhook title={environment ? `${environment} has no webhook` : 'No webhooks yet'} action={add} />}
      />
      {isCreating && (
        <CreateSubscription environments={free} onClose={() => setCreating(false)} onCreated={setCreated} />
      )}
      {/* Opened after the form is gone, so that the focus returns to the page when it closes. */}
      {created && !isCreating && (
        <NewSecret
          created={created}
          onClose={() =>
            void navigate({
              to: '/$organizationId/webhooks/$environment',
              params: { organizationId, environment: created.environment },
            })
          }
        />
      )}
    </Page>
  );
}

/** The environments without a webhook, as far as the list is loaded: the service refuses a second one. */
function useFreeEnvironments(
  subscriptions: readonly WebhookSubscription[] | undefined,
  environment: string | undefined,
): readonly string[] {
  const names = useEnvironmentNames();
  if (!names || !subscriptions) return [];
  const taken = new Set(subscriptions.map((one) => one.environment));
  return names.filter((name) => !taken.has(name) && (environment === undefined || name === environment));
}
