// Limits against abuse: what is refused and with which code. Other callers are not affected.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import sql, { raw as rawSql } from 'sql-template-tag';
import { afterEach, expect, test } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { newSecret } from '../../src/keys/secret.ts';
import { newUuid, uuidOf } from '../../src/lib/ids.ts';
import { createManualClock, type ManualClock } from '../support/manual-clock.ts';
import { addOrganization } from '../support/organization.ts';
import { asProblem, send } from '../support/raw.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let clock: ManualClock;
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await service.stop();
});

/** So many requests whose response waits for a lock. `end` resolves with their statuses. */
async function blockRequests(sessionId: string, count: number): Promise<{ end(): Promise<number[]> }> {
  const { db } = service;
  const held = Promise.withResolvers<void>();
  const locked = Promise.withResolvers<void>();
  const holding = db.transaction(async (tx) => {
    await tx.query(sql`
      select 1 from sessions where organization_id = ${uuidOf('org', service.organizationId)} for update`);
    locked.resolve();
    await held.promise;
  });
  await locked.promise;
  const waiting = Array.from({ length: count }, () =>
    send(service.url, 'PATCH', `/sessions/${sessionId}`, { key: service.adminKey, body: { metadata: { a: 1 } } }),
  );
  const blocked = async () => {
    const [row] = await db.query<{ count: number }>(sql`
      select count(*)::integer as count from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`);
    return row!.count;
  };
  while ((await blocked()) < count) await new Promise<void>((resolve) => setImmediate(resolve));
  return {
    async end() {
      held.resolve();
      await holding;
      return (await Promise.all(waiting)).map(({ status }) => status);
    },
  };
}

async function start(config: Partial<Config>): Promise<void> {
  clock = createManualClock();
  service = await startTestService({ clock, config });
}

const get = (path: string, key = service.adminKey, headers: Record<string, string> = {}) =>
  send(service.url, 'GET', path, { key, headers });

/** Sends these bytes; resolves with everything received until the other end closes. */
async function raw(text: string): Promise<string> {
  const socket = connect(Number(new URL(service.url).port), '127.0.0.1');
  sockets.push(socket.on('error', () => {}));
  let answer = '';
  socket.on('data', (data) => {
    answer += data;
  });
  socket.write(text);
  await once(socket, 'close');
  return answer;
}

/** Locks a table until the returned function is called. */
async function lockTable(name: string): Promise<() => Promise<void>> {
  const held = Promise.withResolvers<void>();
  const locked = Promise.withResolvers<void>();
  const holding = service.db.transaction(async (tx) => {
    await tx.query(sql`lock table ${rawSql(name)} in access exclusive mode`);
    locked.resolve();
    await held.promise;
  });
  await locked.promise;
  return () => {
    held.resolve();
    return holding;
  };
}

/** Opens a stream and resolves when its response has begun. */
async function openStream(sessionId: string, key = service.adminKey): Promise<Response & { end(): Promise<void> }> {
  const gone = new AbortController();
  const response = await fetch(`${service.url}/api/v1/sessions/${sessionId}/stream`, {
    headers: { authorization: `Bearer ${key}` },
    signal: gone.signal,
  });
  return Object.assign(response, {
    async end() {
      gone.abort();
      await response.body?.cancel().catch(() => {});
    },
  });
}

test('requests of a key are limited by kind, every response reports it, and the limit resets after a minute', async () => {
  await start({ rateLimits: { reads: 3, keys: 1 } });
  const other = await service.client.keys.create({ name: 'other', permission: 'admin' });
  expect((await get('/me')).headers.get('ratelimit-policy')).toBe('"reads";q=3;w=60');
  await clock.advance(20_000);
  expect((await get('/me')).headers.get('ratelimit')).toBe('"reads";r=1;t=40');
  // A refused request counts as well, and its headers say the same.
  expect((await get('/sessions/ses_01k9xq3v7gf3pbt8zn5e6m2r4c')).headers.get('ratelimit')).toBe('"reads";r=0;t=40');
  const refused = await get('/me');
  expect(asProblem(refused)).toMatchObject({ status: 429, code: 'rate_limited' });
  expect(refused.headers.get('retry-after')).toBe('40');
  expect(refused.headers.get('ratelimit')).toBe('"reads";r=0;t=40');

  // Other keys, and requests of another kind, are not limited.
  expect((await get('/me', other.secret)).status).toBe(200);
  const agent = await send(service.url, 'POST', '/agents', {
    key: service.adminKey,
    body: { name: 'A', model: 'scripted/x' },
  });
  expect([agent.status, agent.headers.get('ratelimit')]).toEqual([201, null]);
  const rotate = () => send(service.url, 'POST', `/api_keys/${other.keyId}/rotate`, { key: service.adminKey });
  expect((await rotate()).status).toBe(429);

  await clock.advance(40_000);
  expect((await get('/me')).status).toBe(200);
  expect((await rotate()).status).toBe(200);
});

test('no more concurrent requests pass than the limit', async () => {
  await start({ rateLimits: { writes: 5 } });
  const create = (n: number) =>
    send(service.url, 'POST', '/agents', { key: service.adminKey, body: { name: `A${n}`, model: 'scripted/x' } });
  const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => create(n)));
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(5);
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(15);
  expect((await service.client.agents.list()).data).toHaveLength(5);
});

test('without the operator’s setting nothing is limited and no limit header is sent', async () => {
  await start({});
  const answer = await get('/me');
  expect([answer.headers.get('ratelimit'), answer.headers.get('ratelimit-policy')]).toEqual([null, null]);
});

test('an address that is refused too often has to wait; keys that were valid recently still work', async () => {
  await start({ authFailuresPerMinute: 3 });
  const organizationId = uuidOf('org', service.organizationId);
  const guess = () => newSecret(organizationId, newUuid());
  const good = await service.client.keys.create({ name: 'good', permission: 'read' });
  const unseen = await service.client.keys.create({ name: 'unseen', permission: 'read' });
  expect((await get('/me', good.secret)).status).toBe(200);

  // A request without a key is not a guess.
  for (let n = 0; n < 10; n++) expect((await send(service.url, 'GET', '/me')).status).toBe(401);
  for (let n = 0; n < 3; n++) expect((await get('/me', guess())).status).toBe(401);
  await clock.advance(10_000);
  const refused = await get('/me', guess());
  expect(asProblem(refused)).toMatchObject({ status: 429, code: 'rate_limited' });
  expect(refused.headers.get('retry-after')).toBe('50');
  expect((await get('/me', unseen.secret)).status).toBe(429);
  expect((await get('/me', good.secret)).status).toBe(200);
  // A recently valid key is still looked up each time.
  await service.client.keys.delete(good.keyId);
  expect(asProblem(await get('/me', good.secret)).code).toBe('token_revoked');

  await clock.advance(50_000);
  expect((await get('/me', guess())).status).toBe(401);
  expect((await get('/me', unseen.secret)).status).toBe(200);
});

test('the address is the connection’s, or the one that a trusted proxy reports; no other header is believed', async () => {
  await start({ authFailuresPerMinute: 2, trustProxy: ['127.0.0.1'] });
  const organizationId = uuidOf('org', service.organizationId);
  const guessFrom = async (address: string) =>
    (await get('/me', newSecret(organizationId, newUuid()), { 'x-forwarded-for': address })).status;
  expect([await guessFrom('10.0.0.1'), await guessFrom('10.0.0.1'), await guessFrom('10.0.0.1')]).toEqual([
    401, 401, 429,
  ]);
  // The client can set whatever precedes the address that the proxy added.
  expect(await guessFrom('10.0.0.9, 10.0.0.1')).toBe(429);
  expect(await guessFrom('10.0.0.2')).toBe(401);
  const near = ['2001:db8:1:2::1', '2001:db8:1:2::2', '2001:db8:1:2:3::'];
  expect([await guessFrom(near[0]!), await guessFrom(near[1]!), await guessFrom(near[2]!)]).toEqual([401, 401, 429]);

  const limited = await service.client.keys.create({ name: 'l', permission: 'read', allowedIps: ['10.1.0.0/16'] });
  expect((await get('/me', limited.secret, { 'x-forwarded-for': '10.1.2.3' })).status).toBe(200);
  expect((await get('/me', limited.secret, { 'x-forwarded-for': '10.2.2.3' })).status).toBe(403);
  expect((await get('/me', limited.secret)).status).toBe(403);
});

test('a key’s open streams and long polls are limited, and one that ends makes room', async () => {
  await start({ maxStreamsPerKey: 2 });
  const { agentId } = await service.client.agents.create({ name: 'A', model: 'scripted/x' });
  const { sessionId } = await service.client.sessions.open({ agentId, environment: 'production' });
  const other = await service.client.keys.create({ name: 'other', permission: 'write' });
  const streams = [await openStream(sessionId), await openStream(sessionId)];
  expect(streams.map(({ status }) => status)).toEqual([200, 200]);
  const refused = await openStream(sessionId);
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1']);
  const poll = (key: string) =>
    send(service.url, 'POST', '/worker_turns/claim', { key, body: { queue: 'q', waitSeconds: 0 } });
  expect((await poll(service.adminKey)).status).toBe(429);
  expect((await poll(other.secret!)).status).toBe(200);
  expect((await get('/me')).status).toBe(200);

  await streams[0]!.end();
  let again = await openStream(sessionId);
  // The server notices asynchronously.
  while (again.status === 429) again = await openStream(sessionId);
  expect(again.status).toBe(200);
  await Promise.all([again.end(), streams[1]!.end()]);
});

test('beyond its requests in flight a node responds 503 before it uses the database; streams do not count', async () => {
  await start({ maxRequestsInFlight: 3 });
  const { agentId } = await service.client.agents.create({ name: 'A', model: 'scripted/x' });
  const { sessionId } = await service.client.sessions.open({ agentId, environment: 'production' });
  const streams = await Promise.all(Array.from({ length: 2 }, () => openStream(sessionId)));
  streams.push(...(await Promise.all(Array.from({ length: 2 }, () => openStream(sessionId)))));
  expect(streams.map(({ status }) => status)).toEqual([200, 200, 200, 200]);

  const blocked = await blockRequests(sessionId, 3);
  const refused = await get('/me');
  expect(asProblem(refused)).toMatchObject({ status: 503, code: 'unavailable' });
  expect(refused.headers.get('retry-after')).toBe('1');
  // Health checks still work.
  expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
  expect(await blocked.end()).toEqual([200, 200, 200]);
  expect((await get('/me')).status).toBe(200);
  await Promise.all(streams.map((stream) => stream.end()));
});

test('one organization can’t have all requests in flight of a node', async () => {
  await start({ maxRequestsInFlight: 10 });
  const other = await addOrganization(service, 'Other');
  const { agentId } = await service.client.agents.create({ name: 'A', model: 'scripted/x' });
  const { sessionId } = await service.client.sessions.open({ agentId, environment: 'production' });
  const blocked = await blockRequests(sessionId, 9);
  expect(asProblem(await get('/me'))).toMatchObject({
    status: 429,
    detail: 'The organization has its share of the requests in flight on this node. Retry in a moment.',
  });
  expect((await send(service.url, 'GET', '/me', { key: other })).status).toBe(200);
  expect(await blocked.end()).toEqual(Array(9).fill(200));
  expect((await get('/me')).status).toBe(200);
});

test('a caller has three exports open at a time', async () => {
  await start({});
  const held = Promise.withResolvers<void>();
  const locked = Promise.withResolvers<void>();
  const holding = service.db.transaction(async (tx) => {
    await tx.query(sql`lock table sessions in access exclusive mode`);
    locked.resolve();
    await held.promise;
  });
  await locked.promise;
  const all = Array.from({ length: 4 }, () => get('/sessions/export'));
  const refused = await Promise.race(all);
  held.resolve();
  await holding;
  expect(asProblem(refused)).toMatchObject({
    status: 429,
    detail: 'The caller has 3 exports open, which is the limit.',
  });
  const statuses = (await Promise.all(all)).map(({ status }) => status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(3);
  expect((await get('/sessions/export')).status).toBe(200);
});

test('an organization’s open sessions are limited; one that ends makes room', async () => {
  service = await startTestService({ config: { maxOpenSessions: 2 } });
  const { agentId } = await service.client.agents.create({ name: 'A', model: 'scripted/x' });
  const open = (headers = {}) =>
    send(service.url, 'POST', '/sessions', {
      key: service.adminKey,
      body: { agentId, environment: 'production' },
      headers,
    });
  const key = { 'idempotency-key': 'one' };
  const first = await open(key);
  expect([first.status, (await open()).status]).toEqual([201, 201]);
  expect(asProblem(await open())).toMatchObject({ status: 429, code: 'rate_limited' });
  // A retry gets the stored response.
  expect((await open(key)).json).toEqual(first.json);
  const { sessionId } = first.json.session;
  const fork = () => send(service.url, 'POST', `/sessions/${sessionId}/fork`, { key: service.adminKey, body: {} });
  expect(asProblem(await fork())).toMatchObject({ status: 429, code: 'rate_limited' });
  await service.client.sessions.cancel(sessionId);
  // A fork is an open session too.
  expect((await fork()).status).toBe(201);
  expect(asProblem(await open())).toMatchObject({ status: 429, code: 'rate_limited' });
  expect(asProblem(await fork())).toMatchObject({ status: 429, code: 'rate_limited' });
});

test('headers, URLs and requests that are too long or too slow have their codes, and their connection is closed', async () => {
  await start({ maxHeaderBytes: 16_384, requestTimeoutSeconds: 1 });
  const url = await send(service.url, 'GET', `/me?x=${'a'.repeat(9000)}`, { key: service.adminKey });
  expect(asProblem(url)).toMatchObject({ status: 414, code: 'uri_too_long' });

  const problemIn = (answer: string) => {
    const [head = '', body = ''] = answer.split('\r\n\r\n');
    expect(head).toMatch(/content-type: application\/problem\+json/i);
    expect(head).toMatch(/cache-control: no-store/i);
    const problem = JSON.parse(body);
    expect(head).toContain(`X-Request-Id: ${problem.requestId}`);
    expect(head).toMatch(new RegExp(`^HTTP/1.1 ${problem.status} `));
    return problem;
  };
  const tooLong = await raw(`GET /api/v1/me HTTP/1.1\r\nHost: x\r\nX-A: ${'a'.repeat(20_000)}\r\n\r\n`);
  expect(problemIn(tooLong)).toMatchObject({ status: 431, code: 'headers_too_large' });
  expect(problemIn(await raw('GET / HTTP/9.9\r\n\r\n'))).toMatchObject({ status: 400, code: 'invalid_request' });
  const slow = await raw(`POST /api/v1/agents HTTP/1.1\r\nHost: x\r\nX-A: `);
  expect(problemIn(slow)).toMatchObject({ status: 408, code: 'request_timeout' });
  // A connection that sends nothing is treated the same.
  expect(problemIn(await raw(''))).toMatchObject({ status: 408, code: 'request_timeout' });
  const incomplete = `POST /api/v1/agents HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${service.adminKey}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{`;
  expect(problemIn(await clock.passWhile(raw(incomplete)))).toMatchObject({ status: 408, code: 'request_timeout' });
});

test('a node’s connections are limited; one more is closed, and one that ends makes room', async () => {
  await start({ maxConnections: 2 });
  const port = Number(new URL(service.url).port);
  const idle = async () => {
    const socket = connect(port, '127.0.0.1');
    sockets.push(socket);
    await once(socket, 'connect');
    return socket;
  };
  const ask = () => raw('GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  const [first] = [await idle(), await idle()];
  expect(await ask()).toBe('');
  const reported = () => service.logLines.filter((line) => line.includes('connections were refused'));
  await expect.poll(reported).toHaveLength(1);
  first!.destroy();
  let answer = '';
  // The server notices asynchronously.
  while (answer === '') answer = await ask();
  expect(answer).toMatch(/^HTTP\/1.1 200/);
});

test('a statement that takes too long is cancelled, and the client is asked to retry', async () => {
  await start({ statementTimeoutSeconds: 1 });
  const { agentId } = await service.client.agents.create({ name: 'A', model: 'scripted/x' });
  const held = Promise.withResolvers<void>();
  const locked = Promise.withResolvers<void>();
  const holding = service.db.transaction(async (tx) => {
    await tx.query(sql`
      select 1 from agents where organization_id = ${uuidOf('org', service.organizationId)} for update`);
    locked.resolve();
    await held.promise;
  });
  await locked.promise;
  const answer = await send(service.url, 'PATCH', `/agents/${agentId}`, { key: service.adminKey, body: { name: 'B' } });
  expect(asProblem(answer)).toMatchObject({ status: 503, code: 'unavailable' });
  expect(answer.headers.get('retry-after')).toBe('1');
  held.resolve();
  await holding;
});

test('streams of clients that leave during the key look-up are not counted', async () => {
  await start({ maxStreamsPerKey: 5 });
  const { agentId } = await service.client.agents.create({ name: 'A', model: 'scripted/x' });
  const { sessionId } = await service.client.sessions.open({ agentId, environment: 'production' });
  const closed: Promise<unknown>[] = [];
  const watch = (message: unknown) => {
    const { response } = message as { response: ServerResponse };
    closed.push(once(response, 'close'));
  };
  subscribe('http.server.request.start', watch);
  const release = await lockTable('api_keys');
  const path = `/api/v1/sessions/${sessionId}/stream`;
  const leavers = Array.from({ length: 5 }, () => {
    const socket = connect(Number(new URL(service.url).port), '127.0.0.1');
    sockets.push(socket);
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${service.adminKey}\r\n\r\n`);
    return socket;
  });
  await expect.poll(() => closed.length).toBe(5);
  for (const socket of leavers) socket.destroy();
  await Promise.all(closed);
  unsubscribe('http.server.request.start', watch);
  await release();
  const streams = await Promise.all(Array.from({ length: 5 }, () => openStream(sessionId)));
  expect(streams.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  await Promise.all(streams.map((stream) => stream.end()));
});
