import type { WebhookDelivery } from '@signalbox/client';
import { useSearch } from '@tanstack/react-router';
import { Send } from 'lucide-react';
import { useState } from 'react';
import { useList, useOrganization } from '../../data/organization.tsx';
import { useChangeSearch } from '../../lib/change-search.ts';
import { sessionIdPattern, withFilter } from '../../lib/search-params.ts';
import { counted } from '../../lib/text-format.ts';
import { Status } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { EmptyState, NoMatches } from '../../ui/empty-state.tsx';
import { FilterBar } from '../../ui/filter-bar.tsx';
import { Segmented } from '../../ui/segmented.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { FirstAttempt, NextAttempt } from './next-attempt.tsx';
import { RecoverDialog } from './recover.tsx';
import type { SubscriptionSearch } from './search-params.ts';
import './webhooks.css';

const LOOK_EVERY_MS = 5_000;

const statuses = [
  { value: 'all', label: 'All' },
  { value: 'pending', label: 'Pending' },
  { value: 'succeeded', label: 'Succeeded' },
  { value: 'exhausted', label: 'Exhausted' },
  { value: 'cancelled', label: 'Cancelled' },
] as const;

/** Deliveries, newest first. The filters are in the URL, and so is the delivery that is open in the drawer. */
export function Deliveries({ environment }: { environment: string }) {
  const { organizationId, may } = useOrganization();
  const search = useSearch({ from: '/$organizationId/webhooks/$environment' });
  const change = useChangeSearch<SubscriptionSearch>();
  const [recovering, setRecovering] = useState(false);
  const { status, sessionId } = search;
  const filters = { ...(status && { status }), ...(sessionId && { sessionId }) };
  const deliveries = useList(
    ['webhooks', environment, 'deliveries', filters],
    (client, page) => client.webhookSubscriptions.deliveries.list(environment, { ...page, ...filters }),
    { everyMs: LOOK_EVERY_MS },
  );
  const show = (next: SubscriptionSearch) => change(() => ({ tab: 'deliveries', ...next }));
  return (
    <div className="stack">
      <FilterBar
        filters={[
          {
            label: 'Session',
            value: sessionId,
            pattern: sessionIdPattern,
            refusal: 'Enter the whole id of a session.',
            placeholder: 'ses_…',
            onChange: (next) => show(withFilter(filters, 'sessionId', next ?? '')),
          },
        ]}
      >
        <Segmented
          label="Status"
          value={status ?? 'all'}
          options={statuses}
          onChange={(next) => show(withFilter(filters, 'status', next === 'all' ? '' : next))}
        />
        {may('write') && (
          <Button className="resend-since" onClick={() => setRecovering(true)}>
            Resend since…
          </Button>
        )}
      </FilterBar>
      <Table
        name="deliveries"
        caption={`Deliveries of ${environment}, newest first`}
        query={deliveries}
        columns={deliveryColumns}
        rowKey={({ deliveryId }) => deliveryId}
        rowLink={({ deliveryId }) => ({
          to: '/$organizationId/webhooks/$environment',
          params: { organizationId, environment },
          search: { ...search, delivery: deliveryId },
          resetScroll: false,
        })}
        empty={
          status || sessionId ? (
            <NoMatches icon={Send} what="deliveries" onClear={() => show({})} />
          ) : (
            <EmptyState icon={Send} title="No deliveries yet">
              They appear here when a session runs in {environment}.
            </EmptyState>
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

const deliveryColumns: Column<WebhookDelivery>[] = [
  {
    id: 'session',
    label: 'Session',
    cell: ({ sessionId, cursor }) => (
      <>
        <span className="mono" title={sessionId}>
          ses_…{sessionId.slice(-6)}
        </span>{' '}
        <span className="quiet small">to {cursor}</span>
      </>
    ),
  },
  {
    id: 'status',
    label: 'Status',
    width: '8rem',
    phone: 'aside',
    cell: ({ status }) => <Status value={status} />,
  },
  {
    id: 'attempts',
    label: 'Attempts',
    width: '30%',
    phone: 'under',
    cell: (delivery) => <Attempts delivery={delivery} />,
  },
  {
    id: 'id',
    label: 'ID',
    width: '9rem',
    choice: 'hidden',
    from: 'desktop',
    cell: ({ deliveryId }) => (
      <span className="mono quiet" title={deliveryId}>
        whd_…{deliveryId.slice(-6)}
      </span>
    ),
  },
  {
    id: 'created',
    label: 'Created',
    width: '7rem',
    end: true,
    phone: 'under-aside',
    cell: ({ createdAt }) => <Time at={createdAt} />,
  },
];

/** How many, and when the next one is if the receiver has not accepted it yet. */
function Attempts({ delivery }: { delivery: WebhookDelivery }) {
  const { environment, status, nextAttemptAt, attemptCount } = delivery;
  if (status === 'pending' && attemptCount === 0) return <FirstAttempt delivery={delivery} />;
  return (
    <>
      {counted(attemptCount, 'attempt')}
      {nextAttemptAt && (
        <>
          , next <NextAttempt environment={environment} at={nextAttemptAt} />
        </>
      )}
    </>
  );
}
