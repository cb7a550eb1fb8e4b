// Agents, environments, secrets and the separation of organizations, through the client.
import { ConflictError, NotFoundError, type SetModelLimit, type Signalbox } from '@signalbox/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { addOrganization } from '../support/organization.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

const scripted = { name: 'A', model: 'scripted/x' } as const;

test('every change of an agent is a new version, and versions never change', async () => {
  const { client } = service;
  const first = await client.agents.create({ ...scripted, instructions: 'one', metadata: { a: 1 } });
  expect(first).toMatchObject({ version: 1, model: { provider: 'scripted', model: 'x' }, archivedAt: null });
  expect(await client.agents.update(first.agentId, { name: 'A' })).toEqual(first);
  const second = await client.agents.update(first.agentId, { instructions: 'two', limits: { maxStepsPerTurn: 3 } });
  expect(second).toMatchObject({
    version: 2,
    instructions: 'two',
    limits: { maxStepsPerTurn: 3, maxOutputTokens: null },
  });
  const { data } = await client.agents.versions(first.agentId);
  expect(data.map(({ version, instructions }) => [version, instructions])).toEqual([
    [2, 'two'],
    [1, 'one'],
  ]);
});

test('concurrent changes create versions one after the other', async () => {
  const { agentId } = await service.client.agents.create(scripted);
  await Promise.all(
    Array.from({ length: 8 }, (_, n) => service.client.agents.update(agentId, { instructions: `${n}` })),
  );
  const { data } = await service.client.agents.versions(agentId);
  expect(data.map(({ version }) => version)).toEqual([9, 8, 7, 6, 5, 4, 3, 2, 1]);
});

test('a change that expects a version is applied only to that version', async () => {
  const { client } = service;
  const { agentId } = await client.agents.create(scripted);
  const change = (n: number, expectedVersion: number) =>
    client.agents.update(agentId, { instructions: `${n}`, expectedVersion });
  const made = await Promise.allSettled(Array.from({ length: 5 }, (_, n) => change(n, 1)));
  expect(made.map(({ status }) => status).toSorted()).toEqual(['fulfilled', ...Array(4).fill('rejected')]);
  await expect(change(9, 1)).rejects.toMatchObject({
    status: 409,
    code: 'conflict',
    detail: expect.stringContaining('2'),
  });
  // Even if nothing would change: the caller assumes another version to be the latest.
  await expect(client.agents.update(agentId, { expectedVersion: 1 })).rejects.toMatchObject({ code: 'conflict' });
  expect((await change(9, 2)).version).toBe(3);
});

test('an archived agent accepts no new sessions, messages or changes, and is listed separately', async () => {
  const { client } = service;
  const { agentId } = await client.agents.create(scripted);
  const session = await client.sessions.open({ agentId, environment: 'production' });
  const archived = await client.agents.archive(agentId);
  const { archivedAt } = await client.agents.get(agentId);
  expect(archived).toEqual({ agentId, deleted: true, archivedAt });
  expect(await client.agents.archive(agentId)).toEqual(archived);
  const refused = { code: 'agent_archived', status: 409 };
  await expect(client.sessions.open({ agentId, environment: 'production' })).rejects.toMatchObject(refused);
  await expect(client.sessions.sendMessage(session.sessionId, { content: 'x' })).rejects.toMatchObject(refused);
  await expect(client.agents.update(agentId, { name: 'B' })).rejects.toMatchObject(refused);
  expect((await client.agents.get(agentId)).archivedAt).not.toBeNull();
  const ids = async (archived: boolean) =>
    (await client.agents.list({ archived, limit: 100 })).data.map((agent) => agent.agentId);
  expect(await ids(true)).toContain(agentId);
  expect(await ids(false)).not.toContain(agentId);
});

test('production and staging exist from the start; a name is unique', async () => {
  const { client } = service;
  const names = (await client.environments.list()).data.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(['production', 'staging']));
  await client.environments.create({ name: 'eu_west-1' });
  await expect(client.environments.create({ name: 'eu_west-1' })).rejects.toMatchObject({ code: 'environment_exists' });
  expect(await client.environments.delete('eu_west-1')).toMatchObject({ deleted: true });
  await expect(client.environments.delete('eu_west-1')).rejects.toThrow(NotFoundError);
});

test('an environment with open sessions or a subscription is not deleted', async () => {
  const { client } = service;
  await client.environments.create({ name: 'busy' });
  const { agentId } = await client.agents.create(scripted);
  const { sessionId } = await client.sessions.open({ agentId, environment: 'busy' });
  await expect(client.environments.delete('busy')).rejects.toThrow(ConflictError);
  await client.sessions.close(sessionId);
  await client.webhookSubscriptions.create({ environment: 'busy', url: 'https://example.com/' });
  await expect(client.environments.delete('busy')).rejects.toThrow(ConflictError);
  await client.webhookSubscriptions.delete('busy');
  await client.environments.delete('busy');
  expect((await client.sessions.get(sessionId)).environment).toBe('busy');
});

test('a secret is set, counted and listed, and its value can be read nowhere', async () => {
  const { client } = service;
  const set = await client.environments.secrets.set('staging', 'TOKEN', {
    value: 'p4ssw0rd-one',
    allowedHosts: ['API.example.com:8443'],
  });
  expect(set).toMatchObject({ name: 'TOKEN', version: 1, allowedHosts: ['api.example.com:8443'] });
  const again = await client.environments.secrets.set('staging', 'TOKEN', {
    value: 'p4ssw0rd-two',
    allowedHosts: ['*.example.com'],
  });
  expect(again.version).toBe(2);
  const { data } = await client.environments.secrets.list('staging');
  expect(data).toEqual([again]);
  expect(JSON.stringify(data)).not.toContain('p4ssw0rd');
  const events = await client.events.list({ type: 'environment_secret.set', order: 'asc' });
  expect(events.data.map(({ changes }) => changes)).toEqual([
    { version: [null, 1], allowedHosts: [null, ['api.example.com:8443']] },
    { version: [1, 2], allowedHosts: [['api.example.com:8443'], ['*.example.com']] },
  ]);
  await expect(client.environments.secrets.list('nowhere')).rejects.toThrow(NotFoundError);
});

test('another organization sees nothing of this one: the same 404 as for what does not exist', async () => {
  const { client } = service;
  const other = service.clientWith(await addOrganization(service, 'Other'));

  const agent = await client.agents.create(scripted);
  const session = await client.sessions.open({
    agentId: agent.agentId,
    environment: 'production',
    metadata: { a: 'b' },
  });
  const key = await client.keys.create({ name: 'k', permission: 'read' });
  await client.webhookSubscriptions.create({ environment: 'production', url: 'https://example.com/' });
  await client.environments.secrets.set('production', 'X', { value: 'hidden-value', allowedHosts: ['example.com'] });
  const [event] = (await client.events.list({ limit: 1 })).data;

  for (const attempt of [
    () => other.agents.get(agent.agentId),
    () => other.agents.update(agent.agentId, { name: 'mine' }),
    () => other.agents.archive(agent.agentId),
    () => other.sessions.get(session.sessionId),
    () => other.sessions.open({ agentId: agent.agentId, environment: 'production' }),
    () => other.sessions.sendMessage(session.sessionId, { content: 'x' }),
    () => other.sessions.cancel(session.sessionId),
    () => other.sessions.chunks(session.sessionId),
    () => other.keys.get(key.keyId),
    () => other.keys.rotate(key.keyId),
    () => other.webhookSubscriptions.get('production'),
    () => other.webhookSubscriptions.rotateSecret('production'),
    () => other.environments.secrets.delete('production', 'X'),
    () => other.events.get(event!.eventId),
  ]) {
    await expect(attempt(), attempt.toString()).rejects.toThrow(NotFoundError);
  }
  expect((await other.agents.list()).data).toEqual([]);
  expect((await other.sessions.list({ metadata: { a: 'b' } })).data).toEqual([]);
  expect((await other.keys.list()).data.map(({ name }) => name)).toEqual(['Other']);
  expect((await client.sessions.list({ metadata: { a: 'b' } })).data).toMatchObject([{ sessionId: session.sessionId }]);
});

test('an environment says how many secrets it has, to callers who may manage secrets only', async () => {
  const { client } = service;
  const created = await client.environments.create({ name: 'counted' });
  expect(created.secretCount).toBe(0);
  for (const name of ['FIRST', 'SECOND']) {
    await client.environments.secrets.set('counted', name, { value: 'x', allowedHosts: ['example.com'] });
  }
  const countFor = async (caller: Signalbox) =>
    (await caller.environments.list({ limit: 100 })).data.find(({ name }) => name === 'counted')?.secretCount;
  expect(await countFor(client)).toBe(2);
  expect((await client.environments.update('counted', { keepSessionsDays: 3 })).secretCount).toBe(2);
  const write = await client.keys.create({ name: 'write', permission: 'write' });
  expect(await countFor(service.clientWith(write.secret!))).toBe(null);
  await client.environments.delete('counted');
});

test.each<[string, object[], RegExp]>([
  ['zero', [{ model: '*', requestsPerMinute: 0 }], /modelLimits\[0\]\.requestsPerMinute.*1/],
  ['a negative number', [{ model: '*', tokensPerMinute: -5 }], /modelLimits\[0\]\.tokensPerMinute/],
  ['a fraction', [{ model: '*', requestsPerMinute: 0.5 }], /modelLimits\[0\]\.requestsPerMinute/],
  ['text', [{ model: '*', requestsPerMinute: '60' }], /modelLimits\[0\]\.requestsPerMinute/],
  ['no number', [{ model: '*', requestsPerMinute: null }], /modelLimits\[0\]: needs requestsPerMinute/],
  ['a misspelt field', [{ model: '*', requestPerMinute: 5 }], /requestsPerMinute/],
  [
    'a misspelt provider',
    [{ model: 'opnai/gpt-6.1-terra', requestsPerMinute: 5 }],
    /modelLimits\[0\]\.model.*openai\/gpt-6\.1-terra/,
  ],
  ['no provider', [{ model: 'gpt-6.1-terra', requestsPerMinute: 5 }], /modelLimits\[0\]\.model.*openai/],
  ['no model', [{ model: 'openai/', requestsPerMinute: 5 }], /modelLimits\[0\]\.model/],
  ['a queue of workers', [{ model: 'worker/support', requestsPerMinute: 5 }], /modelLimits\[0\]\.model/],
  [
    'the same model twice',
    [
      { model: '*', requestsPerMinute: 5 },
      { model: '*', tokensPerMinute: 5 },
    ],
    /modelLimits\[1\]\.model/,
  ],
])('a limit for models with %s is refused, and the error names the field', async (_, modelLimits, message) => {
  const { environments } = service.client;
  const before = (await environments.list()).data;
  await expect(
    environments.update('production', { modelLimits: modelLimits as SetModelLimit[] }),
  ).rejects.toMatchObject({
    status: 400,
    code: 'invalid_request',
    message: expect.stringMatching(message),
  });
  expect((await environments.list()).data).toEqual(before);
});

test('limits for models are set when an environment is created and later, and the event log has the change', async () => {
  const { client } = service;
  const none = { waiting: 0, waitingSince: null };
  const all = { model: '*', requestsPerMinute: 60, tokensPerMinute: null };
  const one = { model: 'openai-compatible/any:8b', requestsPerMinute: null, tokensPerMinute: 100_000 };
  const created = await client.environments.create({ name: 'limited', modelLimits: [one, all] });
  expect(created.modelLimits).toEqual([
    { ...all, ...none },
    { ...one, ...none },
  ]);
  const raised = { ...all, requestsPerMinute: 120 };
  const update = { modelLimits: [raised] };
  expect((await client.environments.update('limited', update)).modelLimits).toEqual([{ ...raised, ...none }]);
  expect((await client.environments.update('limited', update)).modelLimits).toEqual([{ ...raised, ...none }]);
  expect((await client.environments.update('limited', { keepSessionsDays: 3 })).modelLimits).toHaveLength(1);
  const { data: events } = await client.events.list({ environment: 'limited' });
  expect(events.toReversed().map(({ type, changes }) => [type, changes?.modelLimits])).toEqual([
    ['environment.created', [null, [all, one]]],
    ['environment.updated', [[all, one], [raised]]],
    ['environment.updated', undefined],
  ]);
  expect((await client.environments.update('limited', { modelLimits: [] })).modelLimits).toEqual([]);
  await client.environments.delete('limited');
});
