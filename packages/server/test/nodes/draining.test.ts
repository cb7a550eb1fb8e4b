// A node that is asked to stop behind a load balancer: it is no longer ready, but serves requests until the balancer has noticed.
import { get } from 'node:http';
import { connect } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { idle } from '../support/idle.ts';
import { createManualClock, type ManualClock } from '../support/manual-clock.ts';
import { asProblem, send } from '../support/raw.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let clock: ManualClock;
let sessionId: string;
beforeEach(async () => {
  clock = createManualClock();
  service = await startTestService({ clock, config: { drainSeconds: 4 } });
  const { agentId } = await service.client.agents.create({ name: 'A', model: 'scripted/x' });
  ({ sessionId } = await service.client.sessions.open({ agentId, environment: 'production' }));
});
afterEach(() => clock.passWhile(service.stop()));

const ready = () => send(service.url, 'GET', `${service.url}/readyz`);

/** Resolves when the stream has begun; `ended` resolves when it ended properly, and rejects when it was cut off. */
async function openStream(): Promise<{ ended: Promise<void>; isOpen(): boolean }> {
  const response = await service.fetch(`/api/v1/sessions/${sessionId}/stream`);
  let open = true;
  const ended = response.text().then(() => {
    open = false;
  });
  return { ended, isOpen: () => open };
}

/** The headers of a response on a connection that the client would keep open. */
function connectionHeader(): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    get(`${service.url}/healthz`, { headers: { connection: 'keep-alive' } }, (response) => {
      response.resume();
      resolve(response.headers.connection);
    }).on('error', reject);
  });
}

test('a draining node is not ready from the start, but still serves requests, on connections that end with the response', async () => {
  expect((await ready()).status).toBe(200);
  expect(await connectionHeader()).toBe('keep-alive');
  const drained = service.drain();
  expect(asProblem(await ready())).toMatchObject({ status: 503, code: 'unavailable' });
  expect(await connectionHeader()).toBe('close');
  for (let second = 0; second < 4; second += 1) {
    await clock.pass(900);
    expect((await send(service.url, 'GET', '/me', { key: service.adminKey })).status).toBe(200);
    const { agentId } = await service.client.agents.create({ name: `A${second}`, model: 'scripted/x' });
    expect((await service.client.agents.get(agentId)).name).toBe(`A${second}`);
  }
  await clock.passWhile(drained);
  await clock.passWhile(service.stop());
  await expect(fetch(`${service.url}/healthz`)).rejects.toThrow();
});

test('streams end one after another in the second half of the drain, and can be resumed', async () => {
  const streams = await Promise.all(Array.from({ length: 20 }, openStream));
  const open = () => streams.filter(({ isOpen }) => isOpen()).length;
  const drained = service.drain();
  await clock.pass(1900);
  expect(open()).toBe(20);
  await clock.pass(1100);
  await expect.poll(open).toBe(10);
  // A stream that is opened only now is served as well.
  const late = await openStream();
  await clock.passWhile(drained);
  await Promise.all(streams.map(({ ended }) => ended));
  expect(late.isOpen()).toBe(true);
  await clock.passWhile(service.stop());
  await late.ended;
});

/** Begins a request. Resolves when its first line has arrived; the returned function sends the rest, and resolves with the response. */
async function beginRequest(method: string, path: string, body?: object): Promise<() => Promise<string>> {
  const { hostname, port } = new URL(service.url);
  const text = body === undefined ? '' : JSON.stringify(body);
  const socket = connect(Number(port), hostname);
  socket.write(`${method} /api/v1${path} HTTP/1.1\r\nHost: ${hostname}:${port}\r\n`);
  await expect.poll(() => socket.bytesWritten).toBeGreaterThan(0);
  // The node has accepted the connection once it responds on another.
  await ready();
  return async () => {
    const headers = `Authorization: Bearer ${service.adminKey}\r\nContent-Type: application/json\r\nContent-Length: ${text.length}\r\n`;
    socket.write(`${headers}Connection: close\r\n\r\n${text}`);
    let response = '';
    for await (const data of socket) response += data;
    return response;
  };
}

test('what arrives while the node closes is served: a stream or a long poll ends at once, and its client continues on another node', async () => {
  const { agentId } = await service.client.agents.create({ name: 'B', model: 'scripted/x' });
  const open = { agentId, environment: 'production' };
  const begun = [
    await beginRequest('GET', `/sessions/${sessionId}/stream`),
    await beginRequest('POST', '/worker_turns/claim', { queue: 'q', waitSeconds: 20 }),
    await beginRequest('POST', '/sessions/close', { sessionIds: [sessionId] }),
    await beginRequest('POST', '/sessions', open),
  ];
  await clock.passWhile(service.drain());
  const stopped = service.stop();
  const responses = await clock.passWhile(Promise.all(begun.map((send) => send())));
  await clock.passWhile(stopped);
  expect(responses.map((response) => response.split('\r\n')[0])).toEqual([
    'HTTP/1.1 200 OK',
    'HTTP/1.1 200 OK',
    'HTTP/1.1 200 OK',
    'HTTP/1.1 201 Created',
  ]);
  expect(responses[0]).toContain('text/event-stream');
  expect(responses[1]).toContain('{"workerTurn":null}');
  expect(responses[2]).toContain('"status":"completed"');
});

test('a long poll ends with what there is, and its client polls another node', async () => {
  const begun = clock.now().getTime();
  const poll = send(service.url, 'POST', '/worker_turns/claim', {
    key: service.adminKey,
    body: { queue: 'q', waitSeconds: 20 },
  });
  await idle();
  const drained = service.drain();
  await clock.passWhile(drained);
  const answer = await clock.passWhile(poll);
  expect([answer.status, answer.json]).toEqual([200, { workerTurn: null }]);
  expect(clock.now().getTime() - begun).toBeLessThan(6_000);
});
