// The integrator's side of the demo, on one local port: a shop that the agents' tools call, and a webhook receiver.
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
  /** The refunds it made, as text. */
  readonly accounts: string;
  /** The highest number of lookups that were in progress at once. */
  readonly lookupsAtOnce: number;
  /** The webhooks received, in order, with a valid signature. */
  readonly received: readonly Received[];
  /** Starts accepting webhooks. */
  receive(signingSecret: string): void;
  /** Resolves when webhooks have reported the end of each session. Rejects if they have not within `timeoutMs`. */
  ended(sessionIds: readonly string[], signal: AbortSignal, timeoutMs: number): Promise<void>;
  close(): Promise<void>;
}

/** The shop's orders. */
const orders: Record<string, { state: string; parcel: string | null }> = {
  1042: { state: 'delivered', parcel: 'P-77' },
  1043: { state: 'shipped', parcel: 'P-81' },
  1044: { state: 'packing', parcel: null },
};

/** Lookups are answered together, once this many have arrived or LOOKUP_MAX_MS after the first. This shows that they run in parallel. */
const LOOKED_UP_TOGETHER = 3;
const LOOKUP_MAX_MS = 5_000;
/** The pause between one response and the next. */
const LOOKUP_PAUSE_MS = 150;

export async function openShop(): Promise<Shop> {
  const received: Received[] = [];
  const refunds: number[] = [];
  const lookups = openLookups();
  const ended = new Set<string>();
  let endCame = Promise.withResolvers<void>();
  let receiver: ReturnType<typeof webhooks.receiver> | undefined;

  async function refund(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { orderId, amount } = (await json(request)) as { orderId: string; amount: number };
    refunds.push(amount);
    const receipt = `rf_${orderId}_${refunds.length}`;
    response.writeHead(200, { 'content-type': 'text/plain' });
    response.end(`Refunded ${amount.toFixed(2)} EUR, receipt ${receipt}.`);
  }

  async function lookUp(orderId: string, response: ServerResponse): Promise<void> {
    await lookups.wait();
    const order = orders[orderId];
    response.writeHead(order ? 200 : 404, { 'content-type': 'application/json' });
    response.end(JSON.stringify(order ? { orderId, ...order } : { error: 'no such order' }));
  }

  const server = createServer((request, response) => {
    const { method, url = '' } = request;
    const [, orderId] = /^\/orders\/(\w+)$/.exec(url) ?? [];
    if (url === '/webhooks' && receiver) return void receiver.node(request, response);
    if (method === 'POST' && url === '/refunds') return void refund(request, response);
    if (method === 'GET' && orderId) return void lookUp(orderId, response);
    response.writeHead(404).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    get accounts() {
      const amounts = refunds.map((amount) => `${amount.toFixed(2)} EUR`);
      return `${refunds.length} made by the shop${refunds.length === 0 ? '' : `: ${amounts.join(', ')}`}`;
    },
    get lookupsAtOnce() {
      return lookups.atOnce;
    },
    receive(signingSecret) {
      receiver = webhooks.receiver({
        secrets: signingSecret,
        onChunks(envelope, delivery) {
          received.push({ envelope, delivery });
          if (!envelope.chunks.some(isEnd)) return;
          ended.add(envelope.sessionId);
          endCame.resolve();
          endCame = Promise.withResolvers();
        },
      });
    },
    async ended(sessionIds, signal, timeoutMs) {
      const late = setTimeout(timeoutMs, 'late', { signal, ref: false }).catch(() => signal.throwIfAborted());
      while (!sessionIds.every((sessionId) => ended.has(sessionId))) {
        if ((await Promise.race([endCame.promise, late])) === 'late')
          throw new Error(`No webhook reported the end of the session within ${timeoutMs / 1000} s.`);
      }
    },
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

/** Lookups that wait for one another. The last to arrive is answered first. */
function openLookups() {
  const waiting: (() => void)[] = [];
  let atOnce = 0;

  async function answerAll(): Promise<void> {
    for (let last = waiting.pop(); last; last = waiting.pop()) {
      last();
      await setTimeout(LOOKUP_PAUSE_MS, undefined, { ref: false });
    }
  }

  return {
    get atOnce() {
      return atOnce;
    },
    async wait() {
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.push(resolve);
      atOnce = Math.max(atOnce, waiting.length);
      if (waiting.length === 1) void setTimeout(LOOKUP_MAX_MS, undefined, { ref: false }).then(answerAll);
      if (waiting.length === LOOKED_UP_TOGETHER) void answerAll();
      await promise;
    },
  };
}

function isEnd(chunk: Envelope['chunks'][number]): boolean {
  return chunk.type === 'session.status' && ['completed', 'failed', 'cancelled'].includes(chunk.status);
}
