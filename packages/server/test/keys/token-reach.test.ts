// What session tokens reach: every route of the contract and of the console with every kind of token, and every id that a token might
// name. What a token does not reach is a 404 with the same body as what does not exist.
import type { Session } from '@signalbox/client';
import { type Route, type RouteName, routes, type TokenScope, tokenScopes } from '@signalbox/contract';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { consoleCalls } from '../api/fuzz/console-calls.ts';
import { type RawResponse, send } from '../support/raw.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { createTenant } from '../support/tenant.ts';

const MARA = { id: 'user_mara', name: 'Mara' };
const BEN = { id: 'user_ben' };
const NOBODY = '0000000000000000000000000';

/** A session with everything that can be named. */
interface Place {
  session: Session;
  operationId: string;
  fileId: string;
}

let service: TestService;
let agentId: string;
let otherAgentId: string;
/** Mara's place, and the places that no token of hers reaches. */
let own: Place;
let sibling: Place;
let others: Record<string, Place>;
let requests = 0;

beforeAll(async () => {
  service = await startTestService({ config: { rateLimits: { tokens: 1_000_000 } } });
  const { client } = service;
  const tools = [{ type: 'client' as const, name: 'ask', description: 'Asks.', inputSchema: { type: 'object' } }];
  const script = [
    {
      toolCalls: [
        { name: 'pay', input: {} },
        { name: 'ask', input: {} },
      ],
    },
  ];
  const define = async (name: string) =>
    (
      await client.agents.create({
        name,
        model: { provider: 'scripted', model: 'x', settings: { script } },
        tools: [...tools, { ...tools[0]!, name: 'pay', approval: 'always' }],
      })
    ).agentId;
  agentId = await define('A');
  otherAgentId = await define('B');
  const place = (more: { agentId?: string; environment?: string; endUser?: typeof BEN | null } = {}) =>
    fill(service.adminKey, { agentId, environment: 'production', endUser: MARA, ...more });
  own = await place();
  sibling = await place();
  const tenant = await createTenant(service);
  const foreign = service.clientWith(tenant.key);
  const { agentId: foreignAgent } = await foreign.agents.create({
    name: 'A',
    model: { provider: 'scripted', model: 'x', settings: { script } },
    tools: [...tools, { ...tools[0]!, name: 'pay', approval: 'always' }],
  });
  others = {
    'another end user': await place({ endUser: BEN }),
    'nobody in particular': await place({ endUser: null }),
    'another agent': await place({ agentId: otherAgentId }),
    'another environment': await place({ environment: 'staging' }),
    'another organization': await fill(tenant.key, { agentId: foreignAgent, environment: 'production', endUser: MARA }),
  };
});
afterAll(() => service.stop());

async function fill(
  key: string,
  target: { agentId: string; environment: string; endUser: { id: string } | null },
): Promise<Place> {
  const client = service.clientWith(key);
  const { fileId } = await client.files.upload(Buffer.from(`of ${JSON.stringify(target)}`), {
    environment: target.environment,
  });
  const session = await client.sessions.open({ ...target, input: [{ type: 'file', fileId }] });
  for await (const { chunks } of client.sessions.stream(session.sessionId))
    if (chunks.some(({ type }) => type === 'approval.requested')) break;
  const { data } = await client.approvals.list({ sessionId: session.sessionId });
  return { session, operationId: data[0]!.operationId, fileId };
}

const ofSession = async ({ session }: Place, scopes: Exclude<TokenScope, 'open'>[]) =>
  (await service.client.sessions.createToken(session.sessionId, { scopes })).token!;
const ofEndUser = async (scopes: readonly TokenScope[], endUser: { id: string } = MARA) =>
  (await service.client.sessionTokens.create({ agentId, environment: 'production', endUser, scopes: [...scopes] }))
    .token!;

/** Everything of a refusal but its request. */
function withoutRequest({ status, json }: RawResponse): unknown {
  const { requestId: _, ...body } = json ?? {};
  return { status, body };
}

const unknownId = (id: string) => `${id.slice(0, id.indexOf('_') + 1)}0${NOBODY}`;

function pathOf(route: Route, place: Place): string {
  const ids: Record<string, string> = {
    sessionId: place.session.sessionId,
    operationId: place.operationId,
    fileId: place.fileId,
    agentId: place.session.agentId,
    env: place.session.environment,
    name: 'NAME',
  };
  return route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => ids[name] ?? 'none');
}

const nowhere = (place: Place): Place => ({
  session: { ...place.session, sessionId: unknownId(place.session.sessionId) },
  operationId: unknownId(place.operationId),
  fileId: unknownId(place.fileId),
});

/** Harmless to the place: nothing that it needs later ends. */
const bodies: Partial<Record<RouteName, unknown>> = {
  openSession: {},
  forkSession: { atTurn: 0 },
  sendMessage: { content: 'Hello' },
  sendToolResult: { toolCallId: `call_0${NOBODY}`, output: 1 },
  resolveApproval: { decision: 'approved' },
};

async function call(name: string, route: Route, token: string, place: Place): Promise<RawResponse> {
  requests += 1;
  const hasBody = route.method !== 'GET' && !route.upload;
  const path = pathOf(route, place);
  const query = name === 'listApprovals' ? `?sessionId=${place.session.sessionId}` : '';
  const gone = new AbortController();
  const whole = path.startsWith('/console') ? service.url + path : `${service.url}/api/v1${path}`;
  const response = await fetch(whole + query, {
    method: route.method,
    signal: gone.signal,
    headers: {
      ...(token !== '' && { authorization: `Bearer ${token}` }),
      ...(hasBody && { 'content-type': 'application/json' }),
    },
    ...(hasBody && { body: JSON.stringify(bodies[name as RouteName] ?? {}) }),
    ...(route.upload && { body: 'content' }),
  });
  // Earlier streams of the same end user are still being closed.
  if (response.status === 429) {
    await response.text();
    return call(name, route, token, place);
  }
  // A stream has no end.
  if (route.stream && response.ok) {
    gone.abort();
    return { status: response.status, headers: response.headers, text: '', json: undefined };
  }
  const text = await response.text();
  const isJson = /json/.test(response.headers.get('content-type') ?? '');
  const json = isJson ? JSON.parse(text) : undefined;
  return { status: response.status, headers: response.headers, text, json };
}

const everyRoute = Object.entries<Route>(routes);
const reachable = everyRoute.filter(([, { token }]) => token !== undefined);
const unreachable = everyRoute.filter(([, { token }]) => token === undefined);
/** Routes that name something in their path or query. */
const naming = reachable.filter(([name, { path }]) => path.includes('{') || name === 'listApprovals');

describe('a route that tokens do not reach', () => {
  test.each(unreachable)('%s is not found, whatever it names and whichever token asks', async (name, route) => {
    const answers = new Set<string>();
    const tokens = [await ofSession(own, ['read', 'send', 'decide']), await ofEndUser(tokenScopes)];
    for (const token of tokens) {
      for (const place of [own, ...Object.values(others), nowhere(own)])
        answers.add(JSON.stringify(withoutRequest(await call(name, route, token, place))));
    }
    expect(answers.size).toBe(1);
    expect([...answers][0]).toContain('"status":404');
  });

  test.each(Object.entries(consoleCalls))('%s of the console takes no token for a sign-in', async (name, route) => {
    const shape = ({ status, json }: RawResponse) => [status, json?.code, Object.keys(json ?? {})];
    const answer = await call(name, route, await ofEndUser(tokenScopes), own);
    expect(shape(answer)).toEqual(shape(await call(name, route, '', own)));
    if (name === 'GET /account') expect(answer.json.user).toBeNull();
  });
});

describe('a route that tokens reach', () => {
  test.each(reachable)('%s is not found without its scope', async (name, route) => {
    const missing = { status: 404, body: { code: 'not_found', detail: 'Not found.' } };
    const without = tokenScopes.filter((scope) => scope !== route.token);
    const tokens = [
      await ofEndUser(without),
      await ofSession(
        own,
        without.filter((scope) => scope !== 'open'),
      ),
    ];
    for (const token of tokens) expect(withoutRequest(await call(name, route, token, own))).toMatchObject(missing);
  });

  test.each(reachable)('%s serves a token with its scope alone', async (name, route) => {
    const tokens = [
      await ofEndUser([route.token!]),
      ...(route.token === 'open' ? [] : [await ofSession(own, [route.token as 'read'])]),
    ];
    for (const token of tokens) {
      const { status, json } = await call(name, route, token, own);
      if (name === 'resolveApproval') expect(json).toMatchObject({ status: 403, code: 'not_an_approver' });
      else if (status >= 300) expect(['conflict', 'turn_not_failed', 'not_found']).toContain(json.code);
      // The call of that id does not exist in the session, which does.
      if (status === 404) expect(name).toBe('sendToolResult');
    }
  });

  test.each(naming)('%s shows nothing of other sessions, as if they did not exist', async (name, route) => {
    const scope = [route.token!];
    const tokens = [
      await ofEndUser(scope),
      ...(route.token === 'open' ? [] : [await ofSession(own, scope as ['read'])]),
    ];
    for (const [index, token] of tokens.entries()) {
      const missing = withoutRequest(await call(name, route, token, nowhere(own)));
      expect(missing).toMatchObject({ status: 404, body: { code: 'not_found' } });
      const places = { ...others, ...(index === 1 && { 'the same end user': sibling }) };
      for (const [whose, place] of Object.entries(places))
        expect(withoutRequest(await call(name, route, token, place)), whose).toEqual(missing);
    }
  });
});

test('a token of an end user lists the sessions of that end user with its agent and environment, and no other', async () => {
  const { json } = await send(service.url, 'GET', '/sessions?limit=100', { key: await ofEndUser(['open']) });
  const listed = new Set((json.data as Session[]).map(({ sessionId }) => sessionId));
  expect(listed).toContain(own.session.sessionId);
  expect(listed).toContain(sibling.session.sessionId);
  for (const { session } of Object.values(others)) expect(listed).not.toContain(session.sessionId);
  for (const session of json.data as Session[]) {
    expect(session).toMatchObject({ agentId, environment: 'production', endUser: { id: MARA.id } });
  }
});

test('a session that a token opens or forks belongs to its end user, agent and environment, whatever the request says', async () => {
  const token = await ofEndUser(['open', 'read']);
  const open = (body: unknown) => send(service.url, 'POST', '/sessions', { key: token, body });
  const { session } = (await open({})).json;
  expect(session).toMatchObject({ agentId, environment: 'production', endUser: MARA });
  expect((await open({ agentId, environment: 'production', endUser: MARA })).status).toBe(201);
  for (const [field, value] of Object.entries({
    agentId: otherAgentId,
    environment: 'staging',
    endUser: BEN,
  })) {
    expect((await open({ [field]: value })).status, field).toBe(404);
  }
  expect((await open({ endUser: null })).status).toBe(404);
  for (const field of ['metadata', 'budget', 'agentVersion', 'closeOnIdle', '__proto__', 'constructor']) {
    const answer = await send(service.url, 'POST', '/sessions', { key: token, raw: `{"${field}":{}}` });
    expect(answer.json, field).toMatchObject({ status: 400, code: 'invalid_request' });
  }
  const query = await send(service.url, 'GET', '/sessions?metadata[a]=b', { key: token });
  expect(query.json.errors).toEqual([{ path: 'metadata', message: 'cannot be sent with a session token' }]);
  const fork = await send(service.url, 'POST', `/sessions/${session.sessionId}/fork`, { key: token, body: {} });
  expect(fork.json.session).toMatchObject({ agentId, environment: 'production', endUser: MARA });
});

test('a file that one token uploads can be named and read by tokens of the same reach, and by no other', async () => {
  const mine = await ofSession(own, ['read', 'send']);
  const upload = async (token: string) => {
    const { json } = await send(service.url, 'POST', '/files', {
      key: token,
      raw: `of ${token.slice(-8)}`,
      headers: { 'content-type': 'text/plain' },
    });
    return (json as { file: { fileId: string } }).file.fileId;
  };
  const fileId = await upload(mine);
  const sent = (token: string, { session }: Place, id: string) =>
    send(service.url, 'POST', `/sessions/${session.sessionId}/messages`, {
      key: token,
      body: { content: [{ type: 'file', fileId: id }] },
    });
  const read = (token: string, id = fileId) => send(service.url, 'GET', `/files/${id}/content`, { key: token });
  const tokens = [await ofSession(sibling, ['read', 'send']), await ofEndUser(['read', 'send'], BEN)];
  for (const token of tokens) {
    expect((await read(token)).status).toBe(404);
    const answer = await sent(token, token === tokens[0] ? sibling : others['another end user']!, fileId);
    const nothing = await sent(token, token === tokens[0] ? sibling : others['another end user']!, unknownId(fileId));
    expect(answer.json).toMatchObject({ status: 422, code: 'file_invalid' });
    expect(answer.json.detail.replace(fileId, '')).toBe(nothing.json.detail.replace(unknownId(fileId), ''));
  }
  expect((await read(await ofSession(own, ['read']))).text).toBe(`of ${mine.slice(-8)}`);
  // A file of another session of the same end user, uploaded with a key, is not for this session's token either.
  expect((await sent(mine, own, sibling.fileId)).json).toMatchObject({ status: 422, code: 'file_invalid' });
  expect((await sent(mine, own, fileId)).status).toBe(202);
  expect((await sent(mine, own, own.fileId)).status).toBe(202);
  // It is now in a message of the session, which a token of the end user reaches too.
  expect((await read(await ofEndUser(['read']))).status).toBe(200);
});

test('two end users who send the same Idempotency-Key get their own sessions, and a renewed token the first response', async () => {
  const open = async (token: string) => {
    const answer = await send(service.url, 'POST', '/sessions', {
      key: token,
      body: {},
      headers: { 'idempotency-key': 'same' },
    });
    return (answer.json as { session: Session }).session;
  };
  const ofMara = await open(await ofEndUser(['open']));
  const ofBen = await open(await ofEndUser(['open'], BEN));
  expect(ofBen.endUser).toEqual(BEN);
  expect(await open(await ofEndUser(['open', 'read']))).toEqual(ofMara);
});

test('every route was asked', () => {
  expect(reachable.length + unreachable.length).toBe(Object.keys(routes).length);
  expect(requests).toBeGreaterThan(everyRoute.length * 8);
});
