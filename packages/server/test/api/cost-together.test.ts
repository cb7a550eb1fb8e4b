// Expensive requests that arrive together do not delay other requests: however many callers send at once, the event loop is
// never blocked for more than 250 ms of its thread's CPU time (test/api/cost.test.ts tests each request alone). Most groups
// block it for twice as long if all of a group runs at once.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { Tool } from '@signalbox/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestService, type TestService } from '../support/service.ts';
import { expectUnblocked } from './fuzz/loop-watch.ts';

const MEBIBYTE = 1024 * 1024;

let service: TestService;
let port: number;

beforeAll(async () => {
  service = await startTestService();
  port = Number(new URL(service.url).port);
});
afterAll(() => service.stop());

interface Request {
  method: 'GET' | 'POST';
  path: string;
  body?: string;
  headers?: Record<string, string>;
}

function bytesOf({ method, path, body = '', headers = {} }: Request): Buffer {
  const lines = {
    Host: `127.0.0.1:${port}`,
    Authorization: `Bearer ${service.adminKey}`,
    Connection: 'close',
    ...(body !== '' && { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }),
    ...headers,
  };
  const head = Object.entries(lines).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(`${method} /api/v1${path} HTTP/1.1\r\n${head.join('')}\r\n${body}`);
}

/** Reads no more of the response than the status: the reader is on the same thread as the service. */
async function statusOf(socket: Socket): Promise<number> {
  let status = 0;
  socket.on('data', (part: Buffer) => (status ||= Number(part.toString('latin1', 9, 12))));
  await once(socket, 'close');
  return status;
}

/** Sends all requests at once, each on its own connection, and returns their statuses. */
async function sendTogether(requests: readonly Buffer[]): Promise<number[]> {
  const sockets = await Promise.all(
    requests.map(async () => {
      const socket = connect({ port, host: '127.0.0.1' });
      // The service accepts one new connection in each iteration of its event loop, so the connections are opened first.
      socket.write(`GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
      await once(socket, 'data');
      return socket;
    }),
  );
  const statuses = sockets.map(statusOf);
  for (const [index, socket] of sockets.entries()) socket.write(requests[index]!);
  return Promise.all(statuses);
}

/** The statuses. Fails if the event loop is blocked meanwhile. */
async function sentTogether(count: number, requestOf: (index: number) => Request): Promise<number[]> {
  const statuses = new Set<number>();
  let sent = 0;
  let requests: Buffer[] = [];
  await expectUnblocked(
    async () => {
      for (const status of await sendTogether(requests)) statuses.add(status);
    },
    {
      before: () => {
        requests = Array.from({ length: count }, () => bytesOf(requestOf(sent++)));
      },
    },
  );
  return [...statuses];
}

const repeated = (text: string, bytes = MEBIBYTE - 100) => text.repeat(Math.floor(bytes / text.length));
const scattered = Object.fromEntries(
  Array.from({ length: 60_000 }, (_, index) => [`k${Math.imul(index, 2_654_435_761).toString(36)}`, 'v']),
);
const neverComes = JSON.stringify({
  agentId: 'agt_00000000000000000000000000',
  environment: 'production',
  cron: '* * 1 * +MON#5',
});

test.each<[string, number, (index: number) => Request]>([
  ['schedules that never come', 80, () => ({ method: 'POST', path: '/schedules', body: neverComes })],
  ['long bodies that end too early', 24, () => ({ method: 'POST', path: '/agents', body: `[${repeated('{},')}` })],
  [
    'long bodies of lines that are not JSON',
    40,
    () => ({ method: 'POST', path: '/agents', body: `[${repeated('\n')}x` }),
  ],
  [
    'long lines that are not JSON',
    40,
    () => ({ method: 'POST', path: '/agents', body: `["${repeated('é', MEBIBYTE / 2 - 100)}` }),
  ],
  [
    'long bodies that are refused',
    24,
    () => ({ method: 'POST', path: '/agents', body: `{"tools":[${repeated('{},')}{}]}` }),
  ],
  [
    'bodies of many fields with a key each',
    20,
    (index) => ({
      method: 'POST',
      path: '/sessions/ses_00000000000000000000000000/tool_results',
      headers: { 'Idempotency-Key': `fields-${index}` },
      body: JSON.stringify({ toolCallId: 'call_00000000000000000000000000', output: scattered }),
    }),
  ],
])('%s', { timeout: 120_000 }, async (_, count, requestOf) => {
  const statuses = await sentTogether(count, requestOf);
  expect(
    statuses.filter((status) => !(status >= 400 && status < 500)),
    'statuses',
  ).toEqual([]);
});

test('pages of long lists', { timeout: 120_000 }, async () => {
  const tool = (index: number): Tool => ({
    type: 'client',
    name: `t${index}`,
    description: '',
    inputSchema: { type: 'object', properties: { a: { enum: Array(40_000).fill(0) } } },
  });
  const tools = Array.from({ length: 10 }, (_, index) => tool(index));
  for (let agents = 0; agents < 6; agents++)
    await service.client.agents.create({ name: 'Long', model: 'scripted/x', tools });
  expect(await sentTogether(8, () => ({ method: 'GET', path: '/agents' }))).toEqual([200]);
});
