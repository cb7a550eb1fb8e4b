// Requests of web pages: preflights, allowed origins, what a page can read, and the limits of its token.
import { type Route, routes } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createManualClock } from '../support/manual-clock.ts';
import { asProblem, send } from '../support/raw.ts';
import { startTestService, type TestService } from '../support/service.ts';

const ALLOWED = 'https://app.example.com';
const EVIL = 'https://evil.example';

let service: TestService;
let sessionId: string;
let token: string;
beforeAll(async () => {
  service = await startTestService();
  const { client } = service;
  const { agentId } = await client.agents.create({ name: 'A', model: 'scripted/echo' });
  ({ sessionId } = await client.sessions.open({ agentId, environment: 'production' }));
  token = (await client.sessions.createToken(sessionId, { scopes: ['read', 'send'] })).token!;
  await client.organization.set({ allowedOrigins: [ALLOWED, 'https://*.example.org'] });
});
afterAll(() => service.stop());

const corsHeaders = (headers: Headers) => [...headers.keys()].filter((name) => name.startsWith('access-control-'));
const read = (origin: string | undefined, key = token, path = `/sessions/${sessionId}`) =>
  send(service.url, 'GET', path, { key, ...(origin !== undefined && { headers: { origin } }) });
const preflight = (path: string, headers: Record<string, string> = { origin: EVIL }) =>
  send(service.url, 'OPTIONS', path, { headers: { 'access-control-request-method': 'GET', ...headers } });

/** While nothing can be read that a look-up of a caller needs. */
function withoutLookUps<T>(fn: () => Promise<T>): Promise<T> {
  return service.db.transaction(async (tx) => {
    await tx.query(sql`lock table api_keys, organizations, sessions in access exclusive mode`);
    return fn();
  });
}

test('a preflight of a route that tokens reach is answered for any origin, without credentials and without the database', async () => {
  const { status, headers, text } = await withoutLookUps(() => preflight(`/sessions/${sessionId}/messages`));
  expect([status, text]).toEqual([204, '']);
  expect(Object.fromEntries(corsHeaders(headers).map((name) => [name, headers.get(name)]))).toEqual({
    'access-control-allow-headers': expect.stringMatching(/^Authorization, Content-Type, Idempotency-Key, /),
    'access-control-allow-methods': 'GET, POST',
    'access-control-allow-origin': EVIL,
    'access-control-max-age': '600',
  });
  expect(headers.get('vary')).toBe('Origin');
});

test('every route that tokens reach has a preflight that permits its method, and no other route has one', async () => {
  const paths = Map.groupBy(Object.values<Route>(routes), ({ path }) => path);
  for (const [path, ofPath] of paths) {
    const { status, headers } = await preflight(path.replaceAll(/\{\w+\}/g, 'x'));
    const methods = ofPath.filter((route) => route.token).map(({ method }) => method);
    expect([path, status]).toEqual([path, methods.length > 0 ? 204 : 404]);
    expect(headers.get('access-control-allow-methods')).toBe(methods.length > 0 ? methods.sort().join(', ') : null);
  }
  for (const path of ['/healthz', '/docs', '/console/api/account', '/nothing'])
    expect((await preflight(service.url + path)).headers.get('access-control-allow-origin')).toBeNull();
});

test.each(['null', '', '*', 'file://', 'https://a.example,https://b.example', 'https://a.example/path', 'x\u00e9'])(
  'a preflight of %j, which is not the origin of a page, permits nothing',
  async (origin) => {
    const { status, headers } = await preflight('/sessions', { origin });
    expect([status, corsHeaders(headers)]).toEqual([204, []]);
  },
);

test('a page of an allowed origin can read the response and its headers, and another page only reads why it is refused', async () => {
  for (const origin of [ALLOWED, 'https://a.b.example.org']) {
    const { status, headers } = await read(origin);
    expect([status, headers.get('access-control-allow-origin')]).toEqual([200, origin]);
    expect(headers.get('access-control-expose-headers')).toMatch(/Retry-After.*X-Request-Id/);
    expect(headers.get('vary')).toBe('Origin');
    expect(headers.get('access-control-allow-credentials')).toBeNull();
  }
  for (const origin of [EVIL, 'null', '', 'http://app.example.com', 'https://example.org', `${ALLOWED}.evil.example`]) {
    const answer = await read(origin);
    expect(asProblem(answer)).toMatchObject({ status: 403, code: 'origin_not_allowed' });
    // So that a developer sees what is missing, and not a network error. Such an origin as `null` is that of no page.
    expect(answer.headers.get('access-control-allow-origin')).toBe(origin.startsWith('http') ? origin : null);
    const sent = await send(service.url, 'POST', `/sessions/${sessionId}/messages`, {
      key: token,
      body: { content: 'from elsewhere' },
      headers: { origin },
    });
    expect(asProblem(sent).code).toBe('origin_not_allowed');
  }
  const { data } = await service.client.sessions.messages(sessionId);
  expect(data).toEqual([]);
  const { data: denied } = await service.client.events.list({ type: 'access.denied' });
  expect(denied.map(({ actor, changes }) => [actor.type, changes?.code])).toEqual([
    ['end_user', [null, 'origin_not_allowed']],
  ]);
  expect((await read(undefined)).status).toBe(200);
});

test('a page can also read why it was refused, and the stream', async () => {
  const { client } = service;
  const { keyId, secret } = await client.keys.create({ name: 'k', permission: 'write' });
  const revoked = await service.clientWith(secret!).sessions.createToken(sessionId, { scopes: ['read'] });
  await client.keys.delete(keyId);
  const answers = [
    await read(ALLOWED, revoked.token),
    await read(ALLOWED, token, '/agents'),
    await read(ALLOWED, token, `/sessions/${sessionId}?limit=1`),
    await read(ALLOWED, token, `/sessions/${sessionId.slice(0, -4)}0000`),
    await read(ALLOWED, `${token}x`),
    await send(service.url, 'GET', `/sessions/${sessionId}`, { headers: { origin: ALLOWED } }),
  ];
  expect(answers.map(({ status }) => status)).toEqual([401, 404, 400, 404, 401, 401]);
  // Other routes have no preflight, so no page gets this far; it may read that there is nothing.
  for (const { headers } of answers) expect(headers.get('access-control-allow-origin')).toBe(ALLOWED);
  const gone = new AbortController();
  const stream = await fetch(`${service.url}/api/v1/sessions/${sessionId}/stream`, {
    headers: { authorization: `Bearer ${token}`, origin: ALLOWED },
    signal: gone.signal,
  });
  expect([stream.status, stream.headers.get('access-control-allow-origin')]).toEqual([200, ALLOWED]);
  gone.abort();
});

test('requests with an API key get no CORS headers, whatever their origin', async () => {
  for (const origin of [ALLOWED, EVIL]) {
    const { status, headers } = await read(origin, service.adminKey);
    expect([status, corsHeaders(headers)]).toEqual([200, []]);
  }
});

test('a forged token costs no look-up, and is refused like a guess', async () => {
  const forged = [
    token.slice(0, -1) + (token.endsWith('A') ? 'B' : 'A'),
    'sbt_',
    `sbt_${'a'.repeat(100)}.${'a'.repeat(43)}`,
    `sbt_${'a'.repeat(9_000)}`,
  ];
  for (const one of forged)
    expect(asProblem(await withoutLookUps(() => read(ALLOWED, one))).code).toBe('session_token_invalid');
});

test('all tokens of a session or an end user share 60 requests a minute and 3 streams, and use up no limit of their key', async () => {
  const clock = createManualClock(new Date());
  const limited = await startTestService({ clock, config: { rateLimits: { reads: 100, writes: 100 } } });
  const { client } = limited;
  const { agentId } = await client.agents.create({ name: 'A', model: 'scripted/echo' });
  const open = async () => (await client.sessions.open({ agentId, environment: 'production' })).sessionId;
  const [own, other] = [await open(), await open()];
  const newToken = async (id: string) => (await client.sessions.createToken(id, { scopes: ['read'] })).token!;
  const statusOf = async (key: string, id: string) =>
    (await send(limited.url, 'GET', `/sessions/${id}`, { key })).status;
  const tokens = [await newToken(own), await newToken(own), await newToken(own)];
  const statuses = [];
  for (let count = 0; count < 66; count += 1) statuses.push(await statusOf(tokens[count % 3]!, own));
  expect(statuses).toEqual([...Array(60).fill(200), ...Array(6).fill(429)]);
  const refused = await send(limited.url, 'GET', `/sessions/${own}`, { key: tokens[0]! });
  expect(refused.headers.get('ratelimit-policy')).toBe('"tokens";q=60;w=60');
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(await statusOf(await newToken(other), other)).toBe(200);
  // The key has made no read of its own.
  const ofKey = await send(limited.url, 'GET', '/agents', { key: limited.adminKey });
  expect(ofKey.headers.get('ratelimit')).toMatch(/^"reads";r=99;/);

  await clock.advance(60_000);
  const closes: AbortController[] = [];
  // A response that nothing refers to is collected, and its stream ends.
  const responses: Response[] = [];
  const stream = async (key: string) => {
    const gone = new AbortController();
    closes.push(gone);
    const response = await fetch(`${limited.url}/api/v1/sessions/${own}/stream`, {
      headers: { authorization: `Bearer ${key}` },
      signal: gone.signal,
    });
    responses.push(response);
    return response.status;
  };
  expect([await stream(tokens[0]!), await stream(tokens[1]!), await stream(tokens[2]!)]).toEqual([200, 200, 200]);
  expect([await stream(tokens[0]!), await stream(await newToken(own))]).toEqual([429, 429]);
  closes[0]!.abort();
  await expect.poll(() => stream(tokens[0]!)).toBe(200);
  for (const gone of closes) gone.abort();
  await clock.passWhile(limited.stop());
});
