// What is sent again when a server closes a kept connection as the next request goes out.
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createEgress, type Egress } from './egress.ts';
import { EgressError } from './errors.ts';
import { parseEgressAllow } from './policy.ts';

const RESPONSE = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';

interface Received {
  connection: number;
  method: string;
  body: string;
}

/** Handles the requests of a connection after the first; the first is answered. */
let later: (socket: Socket) => unknown;
let received: Received[];
let connections: number;
let url: string;
let egress: Egress;
let server: ReturnType<typeof createServer>;
const sockets = new Set<Socket>();

beforeEach(async () => {
  received = [];
  connections = 0;
  server = createServer((socket) => {
    connections += 1;
    const connection = connections;
    let count = 0;
    sockets.add(socket.on('error', () => {}));
    socket.on('data', (bytes) => {
      const [head = '', body = ''] = bytes.toString().split('\r\n\r\n');
      received.push({ connection, method: head.split(' ')[0]!, body });
      count += 1;
      if (count === 1) socket.write(RESPONSE);
      else later(socket);
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  egress = createEgress({ policy: parseEgressAllow('127.0.0.1'), maxPerOrigin: 1 });
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  sockets.clear();
  server.close();
  await egress.close();
});

type Way = 'request' | 'open' | 'fetch';
type Sent = { method: string; body?: string; repeatable?: boolean; timeoutMs?: number };

/** The body of the response, or how the request failed. */
async function send(way: Way, { timeoutMs = 5000, ...request }: Sent): Promise<string> {
  const { fetch, open, request: exchange } = egress.of('a');
  try {
    if (way === 'fetch') return await (await fetch(url, request)).text();
    if (way === 'open') return (await buffer((await open({ ...request, url, timeoutMs })).body)).toString();
    return (await exchange({ ...request, url, timeoutMs, maxResponseBytes: 100 })).body.toString();
  } catch (error) {
    const reason = error instanceof EgressError ? error : (error as Error).cause;
    return (reason as EgressError).kind;
  }
}

const ways: Way[] = ['request', 'open', 'fetch'];
const closes: [string, (socket: Socket) => unknown][] = [
  ['closes', (socket) => socket.end()],
  ['drops', (socket) => socket.destroy()],
  ['resets', (socket) => socket.resetAndDestroy()],
];

test.each(ways.flatMap((way) => closes.map(([title, close]) => [way, title, close] as const)))(
  '%s: a request that may run twice is sent again on a new connection if the server %s the kept one',
  async (way, _title, close) => {
    later = close;
    expect(await send(way, { method: 'GET' })).toBe('ok');
    for (const [method, body] of [['GET'], ['POST', 'hällo'], ['PUT', '']] as const)
      expect(await send(way, { method, repeatable: true, ...(body !== undefined && { body }) })).toBe('ok');
    const twice = (method: string, body: string, connection: number) =>
      [connection, connection + 1].map((each) => ({ connection: each, method, body }));
    const [, ...after] = received;
    expect(after).toEqual([...twice('GET', '', 1), ...twice('POST', 'hällo', 2), ...twice('PUT', '', 3)]);
  },
);

test.each(ways)('%s: any other request is sent once', async (way) => {
  later = (socket) => socket.destroy();
  await send(way, { method: 'GET' });
  expect(await send(way, { method: 'POST', body: 'a' })).toBe('reset');
  expect(received).toHaveLength(2);
  // Also without a body: a GET of a tool may have an effect.
  await send(way, { method: 'GET' });
  expect(await send(way, { method: 'GET' })).toBe('reset');
  expect(received).toHaveLength(4);
});

test.each(ways)('%s: nothing is sent again after a part of the response, or a third time', async (way) => {
  const request = { method: 'GET', repeatable: true };
  later = (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nab');
  await send(way, request);
  expect(await send(way, request)).toBe('reset');
  expect(received).toHaveLength(2);

  server.on('connection', (socket) => socket.removeAllListeners('data').on('data', () => socket.destroy()));
  expect(await send(way, request)).toBe('reset');
  expect(connections).toBe(2);
});

test.each<Way>(['request', 'open'])('%s: the repetition has no time of its own', async (way) => {
  const request = { method: 'GET', repeatable: true };
  later = (socket) => {
    // The connection that follows gets no response.
    server.on('connection', (next) => next.removeAllListeners('data'));
    socket.destroy();
  };
  await send(way, request);
  expect(await send(way, { ...request, timeoutMs: 50 })).toBe('timeout');
});
