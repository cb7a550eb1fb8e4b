import type { Environment, WebhookSubscription } from '@signalbox/client';
import { Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useApiQuery, useList, useOrganization } from '../../organization.tsx';
import { Button } from '../../ui/button.tsx';
import { type Column, List } from '../../ui/list.tsx';
import { Await, Page } from '../../ui/page.tsx';
import { Time } from '../../ui/time.tsx';
import { deliveredText, useDelivered } from './course.tsx';
import { CreateSubscription, type NewSigningSecret } from './create.tsx';
import { Destination, WebhookState } from './health.tsx';
import { NewSecret } from './new-secret.tsx';

// The event log has no events for successful and failed attempts.
const LOOK_EVERY_MS = 10_000;

export function WebhooksPage() {
  const { organizationId, may } = useOrganization();
  const navigate = useNavigate();
  const environments = useList(['environments'], (client, page) => client.environments.list(page));
  const subscriptions = useApiQuery(
    ['webhooks', 'by environment'],
    async (client) => {
      const all = new Map<string, WebhookSubscription>();
      for await (const one of client.webhookSubscriptions.list({ limit: 100 })) all.set(one.environment, one);
      return all;
    },
    { everyMs: LOOK_EVERY_MS },
  );
  const delivered = useDelivered();
  const [creating, setCreating] = useState<string>();
  const [created, setCreated] = useState<NewSigningSecret>();
  const goTo = (environment: string) =>
    void navigate({ to: '/$organizationId/webhooks/$environment', params: { organizationId, environment } });
  const columns = (all: ReadonlyMap<string, WebhookSubscription>): Column<Environment>[] => [
    {
      label: 'Environment',
      cell: ({ name }) =>
        all.has(name) ? (
          <Link to="/$organizationId/webhooks/$environment" params={{ organizationId, environment: name }}>
            <strong>{name}</strong>
          </Link>
        ) : (
          <strong>{name}</strong>
        ),
    },
    {
      label: 'State',
      cell: ({ name }) => {
        const subscription = all.get(name);
        return subscription ? <WebhookState subscription={subscription} /> : <span className="quiet">no webhook</span>;
      },
    },
    {
      label: 'Sent to',
      cell: ({ name }) => {
        const subscription = all.get(name);
        if (subscription) return <Destination url={subscription.url} />;
        if (!may('write')) return <span className="quiet">–</span>;
        return (
          <Button small aria-label={`Add webhook to ${name}`} onClick={() => setCreating(name)}>
            Add webhook
          </Button>
        );
      },
    },
    {
      label: 'Accepted, 24 h',
      cell: ({ name }) => {
        const one = delivered.get(name);
        return one ? <span className="number">{deliveredText(one)}</span> : <span className="quiet">–</span>;
      },
    },
    {
      label: 'Last accepted',
      cell: ({ name }) =>
        all.has(name) ? <Time at={all.get(name)!.lastSuccessAt} /> : <span className="quiet">–</span>,
    },
    {
      label: 'Last failure',
      cell: ({ name }) =>
        all.has(name) ? <Time at={all.get(name)!.lastFailureAt} /> : <span className="quiet">–</span>,
    },
  ];
  return (
    <Page
      title="Webhooks"
      operation="createWebhookSubscription"
      about="Signalbox sends the chunks of sessions to your endpoint, in signed requests. Each environment can have one webhook."
    >
      <Await query={subscriptions}>
        {(all) => (
          <List
            caption="Environments and their webhook subscriptions"
            query={environments}
            columns={columns(all)}
            rowKey={({ environmentId }) => environmentId}
            empty={<p>No environments. Create one to add a webhook.</p>}
          />
        )}
      </Await>
      {!may('write') && <p className="quiet small">You need the member role to add a webhook.</p>}
      {creating && (
        <CreateSubscription environment={creating} onClose={() => setCreating(undefined)} onCreated={setCreated} />
      )}
      {/* Opened after the form is gone, so that the focus returns to the page when it closes. */}
      {created && !creating && <NewSecret created={created} onClose={() => goTo(created.environment)} />}
    </Page>
  );
}
