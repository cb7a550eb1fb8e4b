import type { WebhookDelivery } from '@signalbox/client';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { useList, useOrganization } from '../../organization.tsx';
import { sessionIdPattern, withFilter } from '../../search-params.ts';
import { Status } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Select } from '../../ui/field.tsx';
import { FilterField } from '../../ui/filter.tsx';
import { type Column, List } from '../../ui/list.tsx';
import { SessionLink } from '../../ui/session-link.tsx';
import { Time } from '../../ui/time.tsx';
import { NextAttempt } from './next-attempt.tsx';
import { RecoverDialog } from './recover.tsx';
import type { SubscriptionSearch } from './search-params.ts';

const LOOK_EVERY_MS = 5_000;

const statusOptions = [
  { value: '', label: 'Any' },
  { value: 'pending', label: 'pending: waiting or being sent' },
  { value: 'succeeded', label: 'succeeded: accepted by the receiver' },
  { value: 'exhausted', label: 'exhausted: no retries left' },
  { value: 'cancelled', label: 'cancelled: replaced by others' },
];

/** Deliveries, newest first. The filters are in the URL. */
export function Deliveries({ environment }: { environment: string }) {
  const { organizationId, may } = useOrganization();
  const { status, sessionId } = useSearch({ from: '/$organizationId/webhooks/$environment' });
  const navigate = useNavigate();
  const [recovering, setRecovering] = useState(false);
  const filters = { ...(status && { status }), ...(sessionId && { sessionId }) };
  const deliveries = useList(
    ['webhooks', environment, 'deliveries', filters],
    (client, page) => client.webhookSubscriptions.deliveries.list(environment, { ...page, ...filters }),
    { everyMs: LOOK_EVERY_MS },
  );
  const show = (search: SubscriptionSearch) =>
    void navigate({
      to: '/$organizationId/webhooks/$environment',
      params: { organizationId, environment },
      search: { tab: 'deliveries', ...search },
      replace: true,
    });
  const columns: Column<WebhookDelivery>[] = [
    {
      label: 'Delivery',
      cell: ({ deliveryId }) => (
        <Link
          className="mono nowrap"
          to="/$organizationId/webhooks/$environment/deliveries/$deliveryId"
          params={{ organizationId, environment, deliveryId }}
          title={deliveryId}
        >
          whd_…{deliveryId.slice(-6)}
        </Link>
      ),
    },
    { label: 'Created', cell: ({ createdAt }) => <Time at={createdAt} /> },
    { label: 'Status', cell: (delivery) => <Status value={delivery.status} /> },
    { label: 'Session', cell: (delivery) => <SessionLink sessionId={delivery.sessionId} /> },
    { label: 'Cursor', cell: ({ cursor }) => <span className="mono">{cursor}</span> },
    { label: 'Attempts', cell: ({ attemptCount }) => <span className="number">{attemptCount}</span> },
    {
      label: 'Next attempt',
      cell: ({ status: state, nextAttemptAt, attemptCount }) =>
        nextAttemptAt ? (
          <NextAttempt environment={environment} at={nextAttemptAt} />
        ) : state !== 'pending' ? (
          <span className="quiet">–</span>
        ) : (
          <span className="quiet">{attemptCount === 0 ? 'being sent' : 'now'}</span>
        ),
    },
  ];
  return (
    <div className="stack">
      <div className="row apart">
        <div className="filters">
          <Select
            label="Status"
            options={statusOptions}
            value={status ?? ''}
            onChange={(event) =>
              show(withFilter(filters, 'status', event.currentTarget.value as WebhookDelivery['status'] | ''))
            }
          />
          <FilterField
            label="Session"
            placeholder="ses_…"
            value={sessionId ?? ''}
            pattern={sessionIdPattern}
            refusal="A session ID starts with ses_"
            onChange={(next) => show(withFilter(filters, 'sessionId', next))}
          />
        </div>
        {may('write') && <Button onClick={() => setRecovering(true)}>Resend since …</Button>}
      </div>
      <List
        caption={`Deliveries of ${environment}`}
        query={deliveries}
        columns={columns}
        rowKey={({ deliveryId }) => deliveryId}
        empty={
          status || sessionId ? (
            <p>No matching deliveries. Change the filters to see others.</p>
          ) : (
            <p>No deliveries yet. They appear here when a session runs in {environment}.</p>
          )
        }
      />
      {recovering && (
        <RecoverDialog
          environment={environment}
          {...(sessionId && { sessionId })}
          onClose={() => setRecovering(false)}
        />
      )}
    </div>
  );
}
