// The integrator's side of the demo, on one port of this machine: a shop that the Agent's tool calls, and the place where
// webhooks arrive.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import { type Delivery, type Envelope, webhooks } from '@signalbox/client';

export interface Received {
  envelope: Envelope;
  delivery: Delivery;
}

export interface Shop {
  readonly url: string;
  /** How many refunds it made. */
  readonly refunds: number;
  /** Webhooks that arrived and whose signature was right, in order. */
  readonly received: readonly Received[];
  /** Takes webhooks from now on. */
  receive(signingSecret: string): void;
  /** Resolves when a webhook has told that the Session is over; rejects where none has in time. */
  ended(signal: AbortSignal, timeoutMs: number): Promise<void>;
  close(): Promise<void>;
}

export async function openShop(): Promise<Shop> {
  const received: Received[] = [];
  const ended = Promise.withResolvers<void>();
  let refunds = 0;
  let receiver: ReturnType<typeof webhooks.receiver> | undefined;

  async function refund(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { orderId, amount } = (await json(request)) as { orderId: string; amount: number };
    refunds += 1;
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ refundId: `rf_${orderId}_1`, amount, status: 'refunded' }));
  }

  const server = createServer((request, response) => {
    if (request.url === '/webhooks' && receiver) return void receiver.node(request, response);
    if (request.method === 'POST' && request.url === '/refunds') return void refund(request, response);
    response.writeHead(404).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    get refunds() {
      return refunds;
    },
    receive(signingSecret) {
      receiver = webhooks.receiver({
        secrets: signingSecret,
        onChunks(envelope, delivery) {
          received.push({ envelope, delivery });
          if (envelope.chunks.some(isEnd)) ended.resolve();
        },
      });
    },
    async ended(signal, timeoutMs) {
      const late = setTimeout(timeoutMs, 'late', { signal, ref: false }).catch(() => signal.throwIfAborted());
      if ((await Promise.race([ended.promise, late])) === 'late') {
        throw new Error(`No webhook told of the Session's end within ${timeoutMs / 1000} s.`);
      }
    },
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

function isEnd(chunk: Envelope['chunks'][number]): boolean {
  return chunk.type === 'session.status' && ['completed', 'failed', 'cancelled'].includes(chunk.status);
}
