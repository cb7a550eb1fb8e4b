import type { ReceivedWebhook } from '@signalbox/client';
import { Link } from '@tanstack/react-router';
import { useList, useOrganization } from '../../data/organization.tsx';
import { Badge } from '../../ui/badge.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';

const columns: Column<ReceivedWebhook>[] = [
  { id: 'contains', label: 'Contains', cell: ({ body }) => <span title={kindsIn(body)}>{kindsIn(body)}</span> },
  {
    id: 'signature',
    label: 'Signature',
    width: '8rem',
    phone: 'aside',
    cell: ({ verified }) => (verified ? <Badge tone="good">verified</Badge> : <Badge tone="bad">invalid</Badge>),
  },
  {
    id: 'received',
    label: 'Received',
    width: '8rem',
    phone: 'under',
    cell: ({ receivedAt }) => <Time at={receivedAt} />,
  },
];

/** Webhooks at the built-in receiver, newest first. */
export function ReceivedWebhooks({ environment }: { environment: string }) {
  const { organizationId } = useOrganization();
  // Received webhooks write no events, so they are polled.
  const received = useList(
    ['webhooks', environment, 'arrived'],
    (client, page) => client.webhookSubscriptions.received(environment, { ...page, limit: 5 }),
    { everyMs: 2000 },
  );
  return (
    <>
      <Table
        name="received"
        caption="Received webhooks"
        query={{ ...received, hasNextPage: false }}
        columns={columns}
        rowKey={({ deliveryId, attempt }) => `${deliveryId} ${attempt}`}
        empty={<p className="quiet nothing">Nothing received yet. Each session of {environment} shows up here.</p>}
      />
      <p>
        <Link to="/$organizationId/webhooks/$environment" params={{ organizationId, environment }}>
          All webhooks of {environment}
        </Link>
      </p>
    </>
  );
}

/** The distinct types of the chunks in an envelope. */
function kindsIn(body: string): string {
  try {
    const { chunks } = JSON.parse(body) as { chunks: { type: string }[] };
    return [...new Set(chunks.map(({ type }) => type))].join(', ');
  } catch {
    return 'not JSON';
  }
}
