import type { ReceivedWebhook } from '@signalbox/client';
import { Link } from '@tanstack/react-router';
import { useList, useOrganization } from '../../organization.tsx';
import { Badge } from '../../ui/badge.tsx';
import { type Column, List } from '../../ui/list.tsx';
import { Time } from '../../ui/time.tsx';

const columns: Column<ReceivedWebhook>[] = [
  { label: 'Received', cell: ({ receivedAt }) => <Time at={receivedAt} /> },
  {
    label: 'Signature',
    cell: ({ verified }) => (verified ? <Badge tone="good">verified</Badge> : <Badge tone="bad">invalid</Badge>),
  },
  { label: 'Contains', cell: ({ body }) => kindsIn(body) },
];

/** Webhooks at the built-in receiver, newest first. */
export function ReceivedWebhooks({ environment }: { environment: string }) {
  const { organizationId } = useOrganization();
  // Received webhooks write no events, so they are polled.
  const received = useList(
    ['webhooks', environment, 'arrived'],
    (client, page) => client.webhookSubscriptions.received(environment, { ...page, limit: 10 }),
    { everyMs: 2000 },
  );
  return (
    <>
      <List
        caption="Received webhooks"
        query={received}
        columns={columns}
        rowKey={({ deliveryId, attempt }) => `${deliveryId} ${attempt}`}
        empty={<p>Nothing received yet. Run the agent in step 4: its messages, statuses and approvals arrive here.</p>}
      />
      <p>
        <Link to="/$organizationId/webhooks/$environment" params={{ organizationId, environment }}>
          View webhooks of {environment}
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
