// The operator creates organizations over HTTP. Only the token of SIGNALBOX_OPERATOR_TOKEN lets them, and it opens nothing else.
import { operatorRoutes, type Route, routes } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { Compile } from 'typebox/compile';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openBrowser, tokenOf } from '../support/browser.ts';
import { password, setUp } from '../support/people.ts';
import { asProblem, type RawResponse, send } from '../support/raw.ts';
import { startTestService, type TestService, watchSecret } from '../support/service.ts';

const TOKEN = 'operator-token-0123456789abcdef';
const METRICS_TOKEN = 'metrics-token-0123456789abcdef';
let service: TestService;
beforeAll(async () => {
  watchSecret(TOKEN);
  service = await startTestService({
    config: { operatorToken: TOKEN, metricsToken: METRICS_TOKEN, authFailuresPerMinute: 0 },
  });
});
afterAll(() => service.stop());

const asOperator = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
  send(service.url, method, `/operator/organizations${path}`, {
    key: TOKEN,
    headers,
    ...(body !== undefined && { body }),
  });
const codeOf = (answer: RawResponse) => asProblem(answer).code;
const pathOf = ({ path }: Route) => path.replace('{organizationId}', service.organizationId);
const rowsOf = async (name: string) =>
  (await service.db.query(sql`select 1 from organizations where name = ${name}`)).length;

test('no other caller can use a route of the operator, and each is refused before its body is looked at', async () => {
  const owner = await setUp(service);
  const { agentId } = await service.client.agents.create({ name: 'A', model: 'scripted/demo' });
  const { sessionId } = await service.client.sessions.open({ agentId, environment: 'staging' });
  const { token: sessionToken } = await service.client.sessions.createToken(sessionId, { scopes: ['read'] });
  watchSecret(sessionToken!);
  const callers: [who: string, authorization: string | undefined, code: string][] = [
    ['a stranger', undefined, 'missing_token'],
    ['an admin key', `Bearer ${service.adminKey}`, 'invalid_token'],
    ['a session token', `Bearer ${sessionToken}`, 'invalid_token'],
    ['the token for metrics', `Bearer ${METRICS_TOKEN}`, 'invalid_token'],
    ['a longer token', `Bearer ${TOKEN}0`, 'invalid_token'],
    ['a shorter token', `Bearer ${TOKEN.slice(0, -1)}`, 'invalid_token'],
    ['another scheme', `Basic ${TOKEN}`, 'invalid_token'],
    ['an empty token', 'Bearer ', 'invalid_token'],
  ];
  for (const [name, route] of Object.entries<Route>(operatorRoutes)) {
    for (const [who, authorization, code] of callers) {
      const answer = await send(service.url, route.method, pathOf(route), {
        headers: { ...(authorization !== undefined && { authorization }) },
        ...(route.method === 'POST' && { body: { nonsense: true } }),
      });
      expect([answer.status, codeOf(answer)], `${name} as ${who}`).toEqual([401, code]);
    }
    const signedIn = await owner.api(route.method, pathOf(route), route.method === 'POST' ? { name: 'B' } : undefined);
    expect([signedIn.status, codeOf(signedIn)], `${name} as an owner`).toEqual([401, 'missing_token']);
  }
});

test('the token of the operator opens no other route', async () => {
  for (const [name, { method, path }] of Object.entries<Route>(routes)) {
    const answer = await send(service.url, method, path.replaceAll(/\{\w+\}/g, 'none'), {
      key: TOKEN,
      ...(method !== 'GET' && { body: {} }),
    });
    expect(codeOf(answer), name).toBe('malformed_token');
  }
});

test('without a token in the configuration the routes are closed, and say how to open them', async () => {
  const closed = await startTestService({ database: service.database });
  try {
    for (const route of Object.values<Route>(operatorRoutes)) {
      const answer = await send(closed.url, route.method, pathOf(route), { key: TOKEN });
      expect(asProblem(answer)).toMatchObject({ status: 403, code: 'insufficient_permission' });
      expect(answer.json.detail).toContain('SIGNALBOX_OPERATOR_TOKEN');
    }
  } finally {
    await closed.stop();
  }
});

test('a new organization works at once: with a key, with people, and apart from the others', async () => {
  const created = await asOperator('POST', '', { name: 'Blue Boats' });
  expect(created.status, created.text).toBe(201);
  expect([...Compile(operatorRoutes.createOrganization.result).Errors(created.json)]).toEqual([]);
  const { organizationId, name } = created.json.organization;
  expect(name).toBe('Blue Boats');

  const made = await asOperator('POST', `/${organizationId}/api_keys`, { name: 'First', permission: 'admin' });
  expect([made.status, ...Compile(operatorRoutes.createOrganizationKey.result).Errors(made.json)]).toEqual([201]);
  watchSecret(made.json.apiKey.secret);
  const client = service.clientWith(made.json.apiKey.secret);
  expect((await client.me()).organization).toEqual({ organizationId, name: 'Blue Boats' });
  const environments = (await client.environments.list()).data.map((one) => one.name);
  expect(environments.toSorted()).toEqual(['production', 'staging']);
  const events = (await client.events.list()).data;
  expect(events.map(({ type, actor }) => [type, actor.type])).toEqual(
    expect.arrayContaining([
      ['organization.created', 'system'],
      ['api_key.created', 'system'],
    ]),
  );
  expect(events[0]!.context.requestId).toMatch(/^req_/);

  const voided = await asOperator('POST', `/${organizationId}/setup_link`);
  const linked = await asOperator('POST', `/${organizationId}/setup_link`);
  expect([linked.status, ...Compile(operatorRoutes.createSetupLink.result).Errors(linked.json)]).toEqual([201]);
  const visitor = openBrowser(service);
  const person = { name: 'Ola', email: 'ola@example.com', password, organizationName: 'Blue Boats' };
  const late = await visitor.post('/links/accept', { ...person, token: tokenOf(voided.json.link) });
  expect(codeOf(late)).toBe('link_invalid');
  const accepted = await visitor.post('/links/accept', { ...person, token: tokenOf(linked.json.link) });
  expect(accepted.json.organizations).toMatchObject([{ organizationId, role: 'owner' }]);
  expect(codeOf(await asOperator('POST', `/${organizationId}/setup_link`))).toBe('conflict');

  const page = await asOperator('GET', '?limit=1');
  expect([...Compile(operatorRoutes.listOrganizations.result).Errors(page.json)]).toEqual([]);
  expect(page.json).toMatchObject({ data: [{ organizationId }], page: { hasMore: true } });
  const rest = await asOperator('GET', `?cursor=${page.json.page.nextCursor}`);
  expect(rest.json.data.map((one: { organizationId: string }) => one.organizationId)).toContain(service.organizationId);
});

test('with an Idempotency-Key, an organization, a key and a link are created once', async () => {
  const once = { 'idempotency-key': 'order-17' };
  const [first, second] = [
    await asOperator('POST', '', { name: 'Once' }, once),
    await asOperator('POST', '', { name: 'Once' }, once),
  ];
  expect(second.json).toEqual(first.json);
  expect([first, second].map(({ headers }) => headers.get('idempotent-replayed'))).toEqual([null, 'true']);
  expect(await rowsOf('Once')).toBe(1);
  const other = await asOperator('POST', '', { name: 'Twice' }, once);
  expect([other.status, codeOf(other)]).toEqual([409, 'idempotency_conflict']);
  expect(await rowsOf('Twice')).toBe(0);
  const { organizationId } = first.json.organization;
  for (const [path, body, field] of [
    ['api_keys', { name: 'K', permission: 'read' }, 'apiKey'],
    ['setup_link', undefined, 'link'],
  ] as const) {
    const answers = [
      await asOperator('POST', `/${organizationId}/${path}`, body, { 'idempotency-key': path }),
      await asOperator('POST', `/${organizationId}/${path}`, body, { 'idempotency-key': path }),
    ];
    // Its secret too: a client whose response was lost needs it.
    expect(answers[1]!.json).toEqual(answers[0]!.json);
    const given = answers[0]!.json[field];
    watchSecret(field === 'link' ? tokenOf(given) : given.secret);
  }
  const count = await service.db.query(sql`
    select 1 from api_keys k join organizations o on o.organization_id = k.organization_id where o.name = 'Once'`);
  expect(count).toHaveLength(1);
});

test.each([
  ['', {}, 400, 'name'],
  ['', { name: '' }, 400, 'name'],
  ['', { name: 'x'.repeat(201) }, 400, 'name'],
  ['', { name: 17 }, 400, 'name'],
  ['', { name: 'A', plan: 'gold' }, 400, 'plan'],
  ['/org_01k9xq3v7gf3pbt8zn5e6m2r4c/api_keys', { name: 'K', permission: 'read' }, 404, undefined],
  ['/acme/api_keys', { name: 'K', permission: 'read' }, 404, undefined],
  ['/org_01k9xq3v7gf3pbt8zn5e6m2r4c/setup_link', undefined, 404, undefined],
  ['/own/api_keys', { name: 'K', permission: 'king' }, 400, 'permission'],
  ['/own/api_keys', { name: 'K', permission: 'read', expiresAt: '2001-01-01T00:00:00Z' }, 400, 'expiresAt'],
  ['/own/api_keys', { name: 'K', permission: 'read', environments: ['nowhere'] }, 404, undefined],
])('POST %s with %j is refused with %i and the field', async (path, body, status, field) => {
  const answer = await asOperator('POST', path.replace('/own/', `/${service.organizationId}/`), body);
  expect(answer.status, answer.text).toBe(status);
  if (field !== undefined) expect(answer.json.errors[0].path).toBe(field);
});
