// A place for webhooks to arrive: each one's signature is checked before anything is done with it.
//
//   SIGNALBOX_SIGNING_SECRET=whsec_… PORT=8080 npm exec -c 'node examples/receiver.ts'
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { webhooks } from '@signalbox/client';

// While a secret is being rotated, set both: SIGNALBOX_SIGNING_SECRET=whsec_new…,whsec_old…
const secrets = (process.env.SIGNALBOX_SIGNING_SECRET ?? '').split(',');
// A delivery can come twice: it is told by its id. A real program keeps these where its other data is.
const seen = new Set<string>();

const receiver = webhooks.receiver({
  secrets,
  onChunks({ sessionId, cursor, chunks }, { deliveryId, previousCursor }) {
    if (seen.has(deliveryId)) return;
    console.log(`${sessionId} ${previousCursor ?? 'start'} → ${cursor}: ${chunks.map(({ type }) => type).join(' ')}`);
    // Last, when everything is kept: from here on the service counts it as delivered.
    seen.add(deliveryId);
  },
});

const server = createServer(receiver.node).listen(Number(process.env.PORT ?? 8080), '127.0.0.1');
await once(server, 'listening');
console.log(`receiving at http://127.0.0.1:${(server.address() as AddressInfo).port}`);
