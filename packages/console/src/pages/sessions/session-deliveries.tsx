// What the environment's webhook subscription delivered of a session.
import type { Session, WebhookDelivery } from '@signalbox/client';
import { Webhook } from 'lucide-react';
import { useList, useOrganization } from '../../data/organization.tsx';
import { Status } from '../../ui/badge.tsx';
import { ButtonLink } from '../../ui/button.tsx';
import { EmptyState } from '../../ui/empty-state.tsx';
import { IdChip } from '../../ui/id-chip.tsx';
import { Await } from '../../ui/page.tsx';
import { SkeletonRows } from '../../ui/skeleton.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { useHasSubscription } from './use-subscription.ts';

const EVERY_MS = 5_000;

export function SessionDeliveries({ session }: { session: Session }) {
  const { environment } = session;
  return (
    <Await query={useHasSubscription(environment)} skeleton={<SkeletonRows />}>
      {(hasSubscription) =>
        hasSubscription ? <Deliveries session={session} /> : <NoSubscription {...{ environment }} />
      }
    </Await>
  );
}

function NoSubscription({ environment }: { environment: string }) {
  return (
    <EmptyState
      icon={Webhook}
      title={`${environment} has no webhook`}
      action={
        <ButtonLink from="/$organizationId" to="/$organizationId/webhooks" search={{ environment }}>
          Open webhooks
        </ButtonLink>
      }
    >
      With one, your endpoint receives what happens in sessions.
    </EmptyState>
  );
}

function Deliveries({ session: { sessionId, environment } }: { session: Session }) {
  const { organizationId } = useOrganization();
  const deliveries = useList(
    ['webhooks', environment, 'deliveries', 'of', sessionId],
    (client, page) => client.webhookSubscriptions.deliveries.list(environment, { ...page, sessionId }),
    { everyMs: EVERY_MS },
  );
  return (
    <Table
      name="session-deliveries"
      caption="Deliveries of this session, newest first"
      query={deliveries}
      rowKey={({ deliveryId }) => deliveryId}
      rowLink={({ deliveryId }) => ({
        to: '/$organizationId/webhooks/$environment/deliveries/$deliveryId',
        params: { organizationId, environment, deliveryId },
      })}
      columns={columns}
      empty={
        <EmptyState icon={Webhook} title="No deliveries">
          Nothing of this session was delivered yet, or its deliveries were deleted.
        </EmptyState>
      }
    />
  );
}

/** `turn_1:seq_20` as in the list of chunks: `1:20`. */
const shortCursor = (cursor: string) => cursor.replace(/^turn_(\d+):seq_(\d+)$/, '$1:$2');

const columns: Column<WebhookDelivery>[] = [
  { id: 'delivery', label: 'Delivery', cell: ({ deliveryId }) => <IdChip value={deliveryId} />, phone: 'title' },
  { id: 'status', label: 'Status', cell: ({ status }) => <Status value={status} />, phone: 'aside' },
  {
    id: 'chunks',
    label: 'Chunks',
    cell: ({ previousCursor, cursor }) => (
      <span className="mono">
        {previousCursor === null ? 'start' : shortCursor(previousCursor)} – {shortCursor(cursor)}
      </span>
    ),
    phone: 'under',
  },
  { id: 'attempts', label: 'Attempts', cell: ({ attemptCount }) => attemptCount, end: true },
  { id: 'created', label: 'Created', cell: ({ createdAt }) => <Time at={createdAt} />, phone: 'under-aside' },
];
