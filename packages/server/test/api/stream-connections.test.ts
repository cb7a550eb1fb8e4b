// The connection of an open stream: what stays in memory for it, and what its client may send or do.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { collectGarbage } from '../support/garbage.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let sessionId: string;
const sockets: Socket[] = [];

beforeAll(async () => {
  service = await startTestService();
  const { agentId } = await service.client.agents.create({ name: 'Echo', model: 'scripted/echo' });
  ({ sessionId } = await service.client.sessions.open({ agentId, environment: 'production' }));
});
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});
afterAll(() => service.stop());

interface OpenConnection {
  socket: Socket;
  /** What has been received. */
  text(): string;
}

/** Sends requests on one connection. */
function ask(...heads: string[]): OpenConnection {
  const socket = connect({ port: Number(new URL(service.url).port), host: '127.0.0.1', allowHalfOpen: true });
  sockets.push(socket);
  let received = '';
  socket
    .setEncoding('utf8')
    .on('error', () => {})
    .on('data', (data: string) => {
      received += data;
    });
  for (const head of heads) socket.write(`${head}\r\nHost: x\r\nAuthorization: Bearer ${service.adminKey}\r\n\r\n`);
  return { socket, text: () => received };
}

const streamOf = (version = '1.1') => `GET /api/v1/sessions/${sessionId}/stream HTTP/${version}`;

async function receives({ text }: OpenConnection, part: string): Promise<void> {
  await expect.poll(text).toContain(part);
}

/** Something happens in the session, and the stream has it. */
async function receivesNews({ text }: OpenConnection): Promise<void> {
  const events = () => text().split('event: session.chunks').length;
  const before = events();
  await service.client.sessions.sendMessage(sessionId, { content: 'news' });
  await expect.poll(events).toBeGreaterThan(before);
}

/** The requests and responses that node:http creates during a test. */
function noteRequests(): { retained(): Promise<number>; stop(): void } {
  const noted: WeakRef<object>[] = [];
  const note = (message: unknown) => {
    const { request, response } = message as { request: IncomingMessage; response: ServerResponse };
    noted.push(new WeakRef(request), new WeakRef(response));
  };
  subscribe('http.server.request.start', note);
  return {
    async retained() {
      await collectGarbage();
      return noted.filter((one) => one.deref() !== undefined).length;
    },
    stop: () => unsubscribe('http.server.request.start', note),
  };
}

test.each([
  ['a session', () => streamOf()],
  ['an environment', () => 'GET /api/v1/environments/production/stream HTTP/1.1'],
])('an open stream of %s keeps neither its request nor its response in memory', async (_, path) => {
  const requests = noteRequests();
  const stream = ask(path());
  await receives(stream, ': connected');
  requests.stop();
  await expect.poll(requests.retained).toBe(0);
  await receivesNews(stream);
});

test('a request that was sent right after that for a stream does not end the stream', async () => {
  const stream = ask(streamOf(), 'GET /api/v1/me HTTP/1.1');
  await receives(stream, ': connected');
  await receivesNews(stream);
  expect(stream.text().match(/^HTTP\/1\.1 /gm)).toHaveLength(1);
});

test('what a client sends while it reads its stream has no effect', async () => {
  const stream = ask(streamOf());
  await receives(stream, ': connected');
  stream.socket.write(`GET /api/v1/me HTTP/1.1\r\nHost: x\r\n\r\n${'x'.repeat(1024 * 1024)}`);
  await receivesNews(stream);
  await receivesNews(stream);
  expect(stream.text().match(/^HTTP\/1\.1 /gm)).toHaveLength(1);
});

test('a client of HTTP/1.0 gets its events without the chunked coding', async () => {
  const stream = ask(streamOf('1.0'));
  await receives(stream, ': connected');
  await receivesNews(stream);
  expect(stream.text()).toContain('\r\n\r\n: connected\n');
  expect(stream.text().toLowerCase()).not.toContain('transfer-encoding');
});

test('a client that ends its side of the connection ends its stream, which is logged once', async () => {
  const stream = ask(streamOf());
  await receives(stream, ': connected');
  const [, requestId] = /x-request-id: (\S+)/i.exec(stream.text())!;
  const logged = () => service.logLines.filter((line) => line.includes(requestId!) && line.includes('"request"'));
  expect(logged()).toEqual([]);
  stream.socket.end();
  await once(stream.socket, 'close');
  await expect.poll(logged).toHaveLength(1);
  expect(JSON.parse(logged()[0]!)).toMatchObject({
    method: 'GET',
    status: 200,
    actorId: expect.stringMatching(/^key_/),
  });
});

test('a stream that has ended is complete for its client, with all that was sent before', async () => {
  const { agentId } = await service.client.agents.create({ name: 'Echo 2', model: 'scripted/echo' });
  const opened = await service.client.sessions.open({ agentId, environment: 'production' });
  const response = await fetch(`${service.url}/api/v1/sessions/${opened.sessionId}/stream`, {
    headers: { authorization: `Bearer ${service.adminKey}` },
  });
  await service.client.sessions.sendMessage(opened.sessionId, { content: '€'.repeat(60_000) });
  await service.client.sessions.close(opened.sessionId);
  const text = await response.text();
  const seqs = Array.from(text.matchAll(/"seq":(\d+)\}/g), ([, seq]) => Number(seq));
  expect(seqs).toEqual(seqs.map((_, at) => at + 1));
  expect(text.match(/"status":"completed"/g)).toHaveLength(1);
});
