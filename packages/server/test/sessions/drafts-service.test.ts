// Drafts through the API: who may run one, what is refused, and what webhooks, usage and the event log have of them.
import { beforeAll, expect, test } from 'vitest';
import { send } from '../support/raw.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let agentId: string;
beforeAll(async () => {
  service = await startTestService();
  ({ agentId } = await service.client.agents.create({ name: 'Saved', model: 'scripted/echo' }));
});

const definition = { name: 'Tried', model: 'scripted/echo' } as const;
const environment = 'production';
const draft = { definition };

const until = (sessionId: string, status: string) =>
  expect.poll(async () => (await service.client.sessions.get(sessionId)).status).toBe(status);
const clientOf = async (key: Parameters<typeof service.client.keys.create>[0]) =>
  service.clientWith((await service.client.keys.create(key)).secret!);
const refused = { code: 'insufficient_permission', status: 403 };

test('a draft takes the scope for changing agents as well, also as a fork', async () => {
  const { client } = service;
  const runs = await clientOf({ name: 'runs', scopes: ['sessions:run', 'sessions:read'] });
  const origin = await client.sessions.open({ agentId, environment, input: 'one' });
  await until(origin.sessionId, 'idle');
  await expect(runs.sessions.open({ draft, environment })).rejects.toMatchObject(refused);
  await expect(runs.sessions.open({ draft, agentId, environment })).rejects.toMatchObject(refused);
  await expect(runs.sessions.fork(origin.sessionId, { draft })).rejects.toMatchObject(refused);
  expect(await runs.sessions.fork(origin.sessionId)).toMatchObject({ draft: false });
  const { data } = await client.events.list({ type: 'access.denied' });
  expect(data.length).toBeGreaterThan(0);

  const writes = await clientOf({ name: 'writes', scopes: ['agents:write'] });
  await expect(writes.sessions.open({ draft, environment })).rejects.toMatchObject(refused);
  const both = await clientOf({ name: 'both', scopes: ['agents:write', 'sessions:run'] });
  const opened = await both.sessions.open({ draft, agentId, environment });
  expect(opened).toMatchObject({ draft: true });
  await expect(both.sessions.draft(opened.sessionId)).rejects.toMatchObject(refused);
  const reads = await clientOf({ name: 'reads', scopes: ['agents:read'] });
  expect(await reads.sessions.draft(opened.sessionId)).toMatchObject({ definition: { name: 'Tried' } });
  await expect(client.sessions.draft(origin.sessionId)).rejects.toMatchObject({ code: 'not_found' });
});

test('a key that is limited to environments runs no drafts, one that is limited to agents only theirs', async () => {
  const { client } = service;
  const inOne = await clientOf({ name: 'env', permission: 'write', environments: [environment] });
  await expect(inOne.sessions.open({ draft, agentId, environment })).rejects.toMatchObject(refused);

  const other = await client.agents.create({ name: 'Other', model: 'scripted/echo' });
  const ofOne = await clientOf({ name: 'agent', permission: 'write', agents: [agentId] });
  expect(await ofOne.sessions.open({ draft, agentId, environment })).toMatchObject({ agentId, draft: true });
  await expect(ofOne.sessions.open({ draft, agentId: other.agentId, environment })).rejects.toMatchObject(refused);
  // Its only agent is filled in.
  expect(await ofOne.sessions.open({ draft, environment })).toMatchObject({ agentId });
  const asks = { type: 'agent' as const, name: 'ask', description: 'Asks.', agentId: other.agentId };
  const reaching = { definition: { ...definition, tools: [asks] } };
  await expect(ofOne.sessions.open({ draft: reaching, agentId, environment })).rejects.toMatchObject(refused);
  const ofTwo = await clientOf({ name: 'agents', permission: 'write', agents: [agentId, other.agentId] });
  await expect(ofTwo.sessions.open({ draft, environment })).rejects.toMatchObject(refused);
  const drafts = await client.sessions.open({ draft, environment });
  await expect(ofTwo.sessions.get(drafts.sessionId)).rejects.toMatchObject(refused);
  await expect(client.keys.create({ name: 'no', permission: 'write', agents: [drafts.agentId] })).rejects.toMatchObject(
    {
      code: 'not_found',
    },
  );
});

test('a session token neither runs a draft nor reads one', async () => {
  const { client } = service;
  const endUser = { id: 'user_1' };
  const { token } = await client.sessionTokens.create({
    agentId,
    environment,
    endUser,
    scopes: ['read', 'send', 'open'],
  });
  const page = service.clientWith(token!);
  await expect(page.sessions.open({ draft, agentId, environment, endUser })).rejects.toMatchObject({
    status: expect.toSatisfy((status: number) => status >= 400 && status < 500),
  });
  const opened = await client.sessions.open({ draft, agentId, environment, endUser });
  await expect(page.sessions.draft(opened.sessionId)).rejects.toMatchObject({ code: 'not_found' });
  await expect(page.sessions.fork(opened.sessionId, { draft })).rejects.toMatchObject({
    status: expect.toSatisfy((status: number) => status >= 400 && status < 500),
  });
});

test('a wrong draft is refused with the path of each error', async () => {
  const pathsOf = async (body: object): Promise<string[]> => {
    const { status, json } = await send(service.url, 'POST', '/sessions', {
      key: service.adminKey,
      body: { environment, ...body },
    });
    expect(status).toBeGreaterThanOrEqual(400);
    return (json as { errors: { path: string }[] }).errors.map(({ path }) => path);
  };
  const tool = { type: 'client' as const, name: 'look', description: 'Looks.', inputSchema: { type: 'object' } };
  const tools = [tool];
  expect(await pathsOf({})).toEqual(['agentId']);
  expect(await pathsOf({ agentId, agentVersion: 1, draft })).toEqual(['agentVersion']);
  expect(await pathsOf({ draft: { definition: { ...definition, nmae: 'x' } } })).toEqual(['draft.definition.nmae']);
  expect(await pathsOf({ draft: { definition: { ...definition, tools: [tool, tool] } } })).toEqual([
    'draft.definition.tools[1].name',
  ]);
  const broken = [{ ...tool, inputSchema: { type: 'object', properties: { a: { type: 'nothing' } } } }];
  expect(await pathsOf({ draft: { definition: { ...definition, tools: broken } } })).toEqual([
    'draft.definition.tools[0].inputSchema',
  ]);
  const http = [{ ...tool, type: 'http', request: { method: 'GET', url: 'http://169.254.169.254/' } }];
  expect(await pathsOf({ draft: { definition: { ...definition, tools: http } } })).toEqual([
    'draft.definition.tools[0].request.url',
  ]);
  const mocks = {
    lok: { results: [{ output: 1 }] },
    look: { results: [{ output: 1 }, {}, { output: 1, error: 'x' }] },
  };
  expect(await pathsOf({ draft: { definition: { ...definition, tools }, mocks } })).toEqual([
    'draft.mocks.lok',
    'draft.mocks.look.results[1]',
    'draft.mocks.look.results[2]',
  ]);
  expect(await pathsOf({ draft: { definition: { ...definition, tools }, mocks: { look: { results: [] } } } })).toEqual([
    'draft.mocks.look.results',
  ]);
});

test('webhooks get nothing of a draft, also not when they are sent again', async () => {
  const { client } = service;
  await client.webhookSubscriptions.create({ environment: 'staging', url: 'signalbox:test-receiver' });
  const open = async (more: object) => {
    const { sessionId } = await client.sessions.open({ agentId, environment: 'staging', input: 'hi', ...more });
    await until(sessionId, 'idle');
    return sessionId;
  };
  const drafted = await open({ draft });
  const saved = await open({});
  const deliveriesOf = async (sessionId: string) =>
    (await client.webhookSubscriptions.deliveries.list('staging', { sessionId, status: 'succeeded' })).data;
  await expect.poll(async () => (await deliveriesOf(saved)).at(0)?.cursor).toMatch(/^turn_1:/);
  const before = (await deliveriesOf(saved)).length;
  for (const sessionId of [drafted, saved])
    await client.webhookSubscriptions.recover('staging', { sessionId, cursor: 'turn_0:seq_0' });
  await expect.poll(async () => (await deliveriesOf(saved)).length).toBeGreaterThan(before);
  await client.sessions.cancel(drafted);
  expect(await deliveriesOf(drafted)).toEqual([]);
});

test('the event log has the SHA-256 of a draft', async () => {
  const { client } = service;
  const opened = await client.sessions.open({ agentId, environment, draft, input: 'hi' });
  await until(opened.sessionId, 'idle');
  const { data } = await client.events.list({ type: 'session.created', sessionId: opened.sessionId });
  const sha256 = expect.stringMatching(/^[0-9a-f]{64}$/);
  expect(data).toMatchObject([{ changes: { draft: [null, { sha256 }] } }]);
  const forked = await client.sessions.fork(opened.sessionId, { draft });
  const [event] = (await client.events.list({ type: 'session.forked', sessionId: forked.sessionId })).data;
  expect(event).toMatchObject({ changes: { ...data[0]!.changes, forkedFrom: [null, {}] } });
  expect((await client.sessions.get(opened.sessionId)).usage.steps).toBe(1);
});

test('what drafts use is reported apart from the usage of agents, and their turns and failures are in no analytics', async () => {
  const { client } = service;
  const { agentId: tried } = await client.agents.create({ name: 'Tried and used', model: 'scripted/echo' });
  const failing = { definition: { name: 'Fails', model: 'openai/gpt-5' } } as const;
  const before = await client.usage.get({ draft: true });
  const run = async (with_: object) => {
    const { sessionId } = await client.sessions.open({
      agentId: tried,
      environment,
      input: 'hi',
      closeOnIdle: true,
      ...with_,
    });
    for await (const _ of client.sessions.stream(sessionId));
  };
  await run({});
  for (const tryOut of [draft, draft, failing]) await run({ draft: tryOut });
  const stepsOf = async (query: Parameters<typeof client.usage.get>[0]) => (await client.usage.get(query)).total.steps;
  expect(await stepsOf({ agentId: tried })).toBe(1);
  expect(await stepsOf({ agentId: tried, draft: true })).toBe(2);
  expect(await stepsOf({ draft: true })).toBe(before.total.steps + 2);
  expect((await stepsOf({ draft: false })) + (await stepsOf({ draft: true }))).toBe(await stepsOf({}));
  const { data } = await client.usage.get({ groupBy: 'agent' });
  expect(data.find(({ group }) => group === '')?.steps).toBe(before.total.steps + 2);
  await expect(client.usage.get({ groupBy: 'endUser', draft: false })).rejects.toMatchObject({
    errors: [{ path: 'draft' }],
  });
  // The session that ran a version was counted after the drafts' could have been.
  await run({});
  const analyticsOf = () => client.analytics.get({ groupBy: 'agent', agentId: tried });
  await expect
    .poll(async () => (await analyticsOf()).total, { interval: 500 })
    .toMatchObject({
      turns: { ended: 2, failed: 0 },
      sessions: { opened: 2, completed: 2, failed: 0 },
      modelCalls: { succeeded: 2 },
    });
  const { groups, total } = await client.analytics.get({ groupBy: 'agent' });
  expect(total.modelCalls.succeeded).toBe(await stepsOf({ draft: false }));
  expect(groups.filter(({ turns }) => turns.failed > 0)).toEqual([]);
});

test('a repeated request with the same idempotency key opens one session of a draft', async () => {
  const options = { idempotencyKey: 'draft once' };
  const [a, b] = [
    await service.client.sessions.open({ environment, draft }, options),
    await service.client.sessions.open({ environment, draft }, options),
  ];
  expect(b.sessionId).toBe(a.sessionId);
});
