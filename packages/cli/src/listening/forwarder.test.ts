import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { type Envelope, webhooks } from '@signalbox/client';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Attempt, Forwarder } from './forwarder.ts';

const secret = webhooks.createSigningSecret();

interface Received {
  headers: IncomingMessage['headers'];
  envelope: Envelope;
}

let server: Server;
let received: Received[];
/** The statuses to respond with, by session; 200 when there are no more. */
let statuses: Map<string, number[]>;
let attempts: (Attempt & { sessionId: string })[];
let over: AbortController;
/** Sleepers, with what they wait for. */
let asleep: { ms: number; wake(): void }[];

beforeEach(async () => {
  [received, statuses, attempts, asleep, over] = [[], new Map(), [], [], new AbortController()];
  server = createServer(async (request, response) => {
    const body = await text(request);
    const envelope = await webhooks.verify(body, request.headers as Record<string, string>, secret);
    received.push({ headers: request.headers, envelope });
    const status = statuses.get(envelope.sessionId)?.shift() ?? 200;
    response.writeHead(status, status === 302 ? { location: '/elsewhere' } : {}).end('{}');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
});
afterEach(async () => {
  over.abort();
  server.closeAllConnections();
  server.close();
});

function forwarderTo(port = (server.address() as AddressInfo).port): Forwarder {
  return new Forwarder({
    url: `http://127.0.0.1:${port}/hook`,
    secret,
    clock: { now: () => Date.now(), sleep },
    onAttempt: ({ sessionId }, attempt) => attempts.push({ sessionId, ...attempt }),
    signal: over.signal,
  });
}

function envelopeOf(sessionId: string, seq: number, status: 'running' | 'completed' = 'running'): Envelope {
  const chunks = [{ type: 'session.status' as const, status, waitingFor: null, turn: 1, seq }];
  const cursor = `turn_1:seq_${seq}`;
  return {
    event: 'session.chunks',
    environment: 'staging',
    agentId: 'agt_1',
    sessionId,
    cursor,
    timestamp: '',
    chunks,
  };
}

/** The time limit of an attempt is not waited for. */
function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((wake, reject) => {
    if (ms === 15_000) signal.addEventListener('abort', () => reject(signal.reason));
    else asleep.push({ ms, wake });
  });
}

const cursorsOf = (sessionId: string) =>
  received.filter(({ envelope }) => envelope.sessionId === sessionId).map(({ envelope }) => envelope.cursor);
const wakeNext = async (ms: number) => {
  await expect.poll(() => asleep.length).toBeGreaterThan(0);
  const next = asleep.shift()!;
  expect(next.ms).toBe(ms);
  next.wake();
};

test('each session is forwarded in order and one at a time, with the cursor that was acknowledged before', async () => {
  const forwarder = forwarderTo();
  for (let seq = 1; seq <= 20; seq += 1)
    for (const id of ['ses_a', 'ses_b']) await forwarder.accept(envelopeOf(id, seq));
  await expect.poll(() => received.length).toBe(40);
  for (const id of ['ses_a', 'ses_b']) {
    expect(cursorsOf(id)).toEqual(Array.from({ length: 20 }, (_, index) => `turn_1:seq_${index + 1}`));
    const own = received.filter(({ envelope }) => envelope.sessionId === id);
    const previous = own.map(({ headers }) => headers['x-service-previous-cursor']);
    expect(previous).toEqual(['', ...cursorsOf(id).slice(0, -1)]);
  }
  expect(new Set(received.map(({ headers }) => headers['x-service-delivery-id'])).size).toBe(40);
  for (const { headers } of received)
    expect(headers['x-service-delivery-id']).toMatch(/^whd_[0-7][0-9a-hjkmnp-tv-z]{25}$/);
});

test('a failed delivery is retried with the same id while other sessions continue, then given up, and the gap shows', async () => {
  statuses.set('ses_a', [200, 500, 302, 404, 500]);
  const forwarder = forwarderTo();
  await forwarder.accept(envelopeOf('ses_a', 1));
  await expect.poll(() => attempts.length).toBe(1);
  await forwarder.accept(envelopeOf('ses_a', 2));
  await forwarder.accept(envelopeOf('ses_a', 3));
  await expect.poll(() => asleep.length).toBe(1);
  await forwarder.accept(envelopeOf('ses_b', 1));
  await expect.poll(() => cursorsOf('ses_b').length).toBe(1);
  for (const ms of [5_000, 30_000, 120_000]) await wakeNext(ms);
  await expect.poll(() => cursorsOf('ses_a').at(-1)).toBe('turn_1:seq_3');
  const own = attempts.filter(({ sessionId }) => sessionId === 'ses_a');
  await expect.poll(() => attempts.filter(({ sessionId }) => sessionId === 'ses_a').length).toBe(6);
  expect(own.slice(1, 5).map(({ attempt, status, retryMs }) => [attempt, status, retryMs])).toEqual([
    [1, 500, 5_000],
    [2, 302, 30_000],
    [3, 404, 120_000],
    [4, 500, null],
  ]);
  expect(new Set(own.slice(1, 5).map(({ deliveryId }) => deliveryId)).size).toBe(1);
  // The second was never acknowledged.
  expect(received.at(-1)!.headers['x-service-previous-cursor']).toBe('turn_1:seq_1');
});

test('a receiver that is not running is tried every two seconds without end, and 410 is not retried', async () => {
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  const forwarder = forwarderTo(port);
  await forwarder.accept(envelopeOf('ses_a', 1));
  for (let n = 0; n < 6; n += 1) await wakeNext(2_000);
  await expect.poll(() => asleep.length).toBe(1);
  statuses.set('ses_a', [410]);
  await once(server.listen(port, '127.0.0.1'), 'listening');
  await wakeNext(2_000);
  await expect.poll(() => attempts.at(-1)).toMatchObject({ status: 410, retryMs: null });
  expect(attempts.slice(0, -1).every(({ status, error }) => status === null && error === 'connect')).toBe(true);
});

test('with a thousand envelopes waiting, no more are taken until one is delivered', async () => {
  statuses.set('ses_a', [500]);
  const forwarder = forwarderTo();
  let taken = 0;
  const feeding = (async () => {
    for (let seq = 1; seq <= 1_200; seq += 1) {
      await forwarder.accept(envelopeOf('ses_a', seq));
      taken = seq;
    }
  })();
  await expect.poll(() => asleep.length).toBe(1);
  await expect.poll(() => taken).toBe(999);
  await wakeNext(5_000);
  await feeding;
  await expect.poll(() => cursorsOf('ses_a').length, { timeout: 30_000 }).toBe(1_201);
});
