// A webhook receiver. It verifies the signature of each delivery before anything else.
//
//   SIGNALBOX_SIGNING_SECRET=whsec_… PORT=8080 npm exec -c 'node examples/receiver.ts'
import './explain.ts';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { webhooks } from '@signalbox/client';

// While you rotate the secret, set both: SIGNALBOX_SIGNING_SECRET=whsec_new…,whsec_old…
const secrets = (process.env.SIGNALBOX_SIGNING_SECRET ?? '').split(',');
// Delivery is at least once: use the delivery id to detect duplicates. A real program would keep the ids in its database.
const seen = new Set<string>();

const receiver = webhooks.receiver({
  secrets,
  onChunks({ sessionId, cursor, chunks }, { deliveryId, previousCursor }) {
    if (seen.has(deliveryId)) return;
    console.log(`${sessionId} ${previousCursor ?? 'start'} → ${cursor}: ${chunks.map(({ type }) => type).join(' ')}`);
    // Mark it as seen last, once everything is stored. After this returns, the service counts it as delivered.
    seen.add(deliveryId);
  },
});

const server = createServer(receiver.node).listen(Number(process.env.PORT ?? 8080), '127.0.0.1');
await once(server, 'listening');
console.log(`listening on http://127.0.0.1:${(server.address() as AddressInfo).port}`);
