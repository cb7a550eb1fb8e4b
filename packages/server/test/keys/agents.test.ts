// Keys that are limited to some agents, on every route of the contract.
import { type Route, type RouteName, routes } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bodyExamples } from '../../src/http/reference/body-examples.ts';
import { uuidOf } from '../../src/lib/ids.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
  await service.client.webhookSubscriptions.create({ environment: 'production', url: 'http://127.0.0.1:1/' });
});
afterAll(() => service.stop());

const REFUSED = { status: 403, code: 'insufficient_permission' };
const FORBIDDEN = [403, 'insufficient_permission'];
const outcome = ({ status, code }: Outcome) => [status, code];

interface Outcome {
  status: number;
  /** The code of a refusal. */
  code?: string;
  /** Not of a stream. */
  text: string;
}

/** An agent, and one of everything that belongs to it. */
interface Owned {
  agentId: string;
  sessionId: string;
  operationId: string;
  scheduleId: string;
  workerTurnId: string;
  fileId: string;
}

async function upload(key = service.adminKey): Promise<string> {
  const response = await fetch(`${service.url}/api/v1/files?environment=production`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'text/plain', 'x-filename': 'a.txt' },
    body: 'a file',
  });
  return ((await response.json()) as { file: { fileId: string } }).file.fileId;
}

const fileMessage = (fileId: string) => [{ type: 'file' as const, fileId }];

async function pendingApproval(sessionId: string): Promise<string> {
  for await (const { chunks } of service.client.sessions.stream(sessionId)) {
    for (const chunk of chunks) {
      if (chunk.type === 'session.status' && chunk.status === 'waiting') return chunk.waitingFor!.operationIds[0]!;
    }
  }
  return expect.unreachable('it was to wait');
}

async function createOwned(name: string): Promise<Owned> {
  const { client } = service;
  const { agentId } = await client.agents.create({
    name,
    model: { provider: 'scripted', model: 'x', settings: { script: [{ toolCalls: [{ name: 'pay', input: {} }] }] } },
    tools: [{ type: 'client', name: 'pay', description: '', inputSchema: { type: 'object' }, approval: 'always' }],
  });
  const fileId = await upload();
  const { sessionId } = await client.sessions.open({ agentId, environment: 'production', input: fileMessage(fileId) });
  const operationId = await pendingApproval(sessionId);
  const { scheduleId } = await client.schedules.create({
    agentId,
    environment: 'production',
    cron: '0 9 * * *',
    timezone: 'UTC',
    input: 'x',
  });
  return { agentId, sessionId, operationId, scheduleId, workerTurnId: await claimedOf(agentId), fileId };
}

/** A worker turn of the agent: its session is given to a worker as a claim does it. */
async function claimedOf(agentId: string): Promise<string> {
  const queue = `q-${agentId}`;
  const worked = await service.client.agents.create({ name: queue, model: { provider: 'worker', queue } });
  await service.client.sessions.open({ agentId: worked.agentId, environment: 'production', input: 'go' });
  const turn = await service.client.workers.claim({ queue });
  await service.db.execute(sql`
    update sessions set agent_id = ${uuidOf('agt', agentId)}
    where organization_id = ${uuidOf('org', service.organizationId)} and agent_id = ${uuidOf('agt', worked.agentId)}`);
  return turn!.workerTurnId;
}

const limitedTo = async (...agents: string[]) =>
  (await service.client.keys.create({ name: 'limited', permission: 'admin', agents })).secret!;

/** A valid request of the route that names what belongs to `owned`, wherever it can. */
async function request(name: RouteName, route: Route, key: string, owned: Owned): Promise<Outcome> {
  const ids: Record<string, string> = {
    ...owned,
    env: 'production',
    name: 'X',
    budgetName: 'monthly',
    keyId: 'key_01k9xq3v7gf3pbt8zn5e6m2r4c',
    deliveryId: `${route.path.startsWith('/destinations') ? 'dsd' : 'whd'}_01k9xq3v7gf3pbt8zn5e6m2r4c`,
    eventId: 'evt_01k9xq3v7gf3pbt8zn5e6m2r4c',
    destinationId: 'dst_01k9xq3v7gf3pbt8zn5e6m2r4c',
    userId: 'usr_01k9xq3v7gf3pbt8zn5e6m2r4c',
    shareId: 'shr_01k9xq3v7gf3pbt8zn5e6m2r4c',
    invitationId: 'inv_01k9xq3v7gf3pbt8zn5e6m2r4c',
    endUserId: 'user_1',
  };
  const fields = (schema: unknown) => Object.keys((schema as { properties?: object } | undefined)?.properties ?? {});
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_, field: string) => ids[field] ?? expect.unreachable(field));
  const query = new URLSearchParams(
    fields(route.query)
      .filter((field) => field === 'agentId' || field === 'sessionId')
      .map((field) => [field, ids[field]!]),
  );
  if (route.upload) query.set('environment', 'production');
  if (fields(route.query).includes('provider')) query.set('provider', 'scripted');
  if (name === 'previewSchedule') query.set('cron', '0 9 * * *');
  const example = bodyExamples[name as keyof typeof bodyExamples] as Record<string, unknown> | undefined;
  const named: Record<string, unknown> = Object.fromEntries(
    fields(route.body).flatMap((field) => (field === 'agentId' || field === 'sessionId' ? [[field, ids[field]]] : [])),
  );
  if (route.each) named[route.each.ids] = [ids[route.each.id]];
  const response = await fetch(`${service.url}/api/v1${path}?${query}`, {
    method: route.method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(route.body && { body: JSON.stringify({ ...example, ...named }) }),
    ...(route.upload && { body: 'x' }),
  });
  const { status } = response;
  if (response.ok && route.stream) {
    await response.body?.cancel();
    return { status, text: '' };
  }
  const text = await response.text();
  return { status, text, ...(!response.ok && { code: JSON.parse(text).code }) };
}

describe('on every route', () => {
  let mine: Owned;
  let theirs: Owned;
  let key: string;
  beforeAll(async () => {
    [mine, theirs] = [await createOwned('Mine'), await createOwned('Theirs')];
    key = await limitedTo(mine.agentId);
  });

  /** These concern no agent, or show nothing of another one. */
  const open: readonly string[] = [
    'getMe',
    'getOrganization',
    'listEnvironments',
    'listAgents',
    'uploadFile',
    'previewSchedule',
  ];

  test.each(Object.entries(routes) as [RouteName, Route][])(
    '%s: nothing of another agent is reached',
    async (name, route) => {
      const response = await request(name, route, key, theirs);
      if (open.includes(name)) {
        expect(response.status).toBeLessThan(300);
        expect(response.text).not.toContain(theirs.agentId);
      } else if (route.each) {
        expect(JSON.parse(response.text).results).toMatchObject([{ status: null, error: REFUSED }]);
      } else if (route.byPerson) expect(outcome(response)).toEqual([403, 'person_required']);
      else expect(outcome(response)).toEqual(FORBIDDEN);
    },
  );

  const namesAgents = (route: Route) => {
    if (route.agents === 'closed') return false;
    const names = [route.params, route.query, route.body].flatMap((schema) =>
      Object.keys((schema as { properties?: object } | undefined)?.properties ?? {}),
    );
    return names.some((name) =>
      ['agentId', 'sessionId', 'operationId', 'scheduleId', 'workerTurnId', 'fileId'].includes(name),
    );
  };

  test.each((Object.entries(routes) as [RouteName, Route][]).filter(([, route]) => namesAgents(route)))(
    '%s: what belongs to the agent is reached',
    async (name, route) => {
      // Something else may be wrong with the example: what counts is that the limit is not.
      const { code } = await request(name, route, key, mine);
      expect([name, code]).not.toEqual([name, 'insufficient_permission']);
    },
  );
});

describe('lists', () => {
  test('show what belongs to the agent of the key, without naming it; a key with several agents names one', async () => {
    const [one, two, other] = [await createOwned('One'), await createOwned('Two'), await createOwned('Other')];
    const single = service.clientWith(await limitedTo(one.agentId));
    const both = service.clientWith(await limitedTo(one.agentId, two.agentId));

    expect((await single.agents.list()).data.map(({ agentId }) => agentId)).toEqual([one.agentId]);
    expect(new Set((await both.agents.list()).data.map(({ agentId }) => agentId))).toEqual(
      new Set([one.agentId, two.agentId]),
    );
    const lists = [
      (client: typeof single, query: object) => client.sessions.list(query),
      (client: typeof single, query: object) => client.approvals.list(query),
      (client: typeof single, query: object) => client.schedules.list(query),
    ];
    for (const list of lists) {
      const ofAgents = (items: readonly { agentId: string }[]) => [...new Set(items.map(({ agentId }) => agentId))];
      expect(ofAgents((await list(single, {})).data)).toEqual([one.agentId]);
      expect(ofAgents((await list(single, { environment: 'production' })).data)).toEqual([one.agentId]);
      expect(ofAgents((await list(both, { agentId: two.agentId })).data)).toEqual([two.agentId]);
      await expect(list(both, {})).rejects.toMatchObject({ ...REFUSED, detail: expect.stringContaining('`agentId`') });
      await expect(list(both, { agentId: other.agentId })).rejects.toMatchObject(REFUSED);
    }
    expect((await single.approvals.list({ status: 'pending' })).data.map(({ operationId }) => operationId)).toEqual([
      one.operationId,
    ]);
    expect(
      (await both.approvals.list({ sessionId: two.sessionId })).data.map(({ operationId }) => operationId),
    ).toEqual([two.operationId]);
    const { data: events } = await both.events.list({ sessionId: two.sessionId, limit: 100 });
    expect(new Set(events.map(({ sessionId }) => sessionId))).toEqual(new Set([two.sessionId]));
    await expect(both.events.list()).rejects.toMatchObject(REFUSED);

    const all = await service.client.usage.get({ groupBy: 'agent' });
    const own = await single.usage.get({ groupBy: 'agent' });
    expect(own.data.map(({ group }) => group)).toEqual([one.agentId]);
    expect(own.total.steps).toBe(all.data.find(({ group }) => group === one.agentId)!.steps);
  });
});

test('a child session belongs to the agent that runs it, not to the one that called it', async () => {
  const { client } = service;
  const child = await client.agents.create({
    name: 'Child',
    model: { provider: 'scripted', model: 'x', settings: { script: [{ toolCalls: [{ name: 'pay', input: {} }] }] } },
    tools: [{ type: 'client', name: 'pay', description: '', inputSchema: { type: 'object' }, approval: 'always' }],
  });
  const parent = await client.agents.create({
    name: 'Parent',
    model: {
      provider: 'scripted',
      model: 'x',
      settings: { script: [{ toolCalls: [{ name: 'ask', input: { input: 'x' } }] }] },
    },
    tools: [{ type: 'agent', name: 'ask', description: '', agentId: child.agentId }],
  });
  const { sessionId } = await client.sessions.open({ agentId: parent.agentId, environment: 'production', input: 'go' });
  await expect.poll(async () => (await client.sessions.list({ parentSessionId: sessionId })).data.length).toBe(1);
  const childId = (await client.sessions.list({ parentSessionId: sessionId })).data[0]!.sessionId;
  const operationId = await pendingApproval(childId);

  const ofParent = service.clientWith(await limitedTo(parent.agentId));
  expect((await ofParent.sessions.get(sessionId)).agentId).toBe(parent.agentId);
  expect((await ofParent.sessions.list({ parentSessionId: sessionId })).data).toEqual([]);
  await expect(ofParent.sessions.get(childId)).rejects.toMatchObject(REFUSED);
  await expect(ofParent.approvals.resolve(operationId, { decision: 'approved' })).rejects.toMatchObject(REFUSED);

  const ofChild = service.clientWith(await limitedTo(child.agentId));
  await expect(ofChild.sessions.get(sessionId)).rejects.toMatchObject(REFUSED);
  expect((await ofChild.sessions.get(childId)).parentSessionId).toBe(sessionId);

  const ofBoth = service.clientWith(await limitedTo(parent.agentId, child.agentId));
  const listed = await ofBoth.sessions.list({ parentSessionId: sessionId, agentId: child.agentId });
  expect(listed.data.map(({ sessionId }) => sessionId)).toEqual([childId]);
  expect((await ofBoth.approvals.resolve(operationId, { decision: 'denied' })).status).toBe('denied');
});

test('claims worker turns of its agents only, at once and while it waits, and by the id of a session', async () => {
  const { client } = service;
  const model = { provider: 'worker' as const, queue: 'shared' };
  const [mine, theirs] = [
    await client.agents.create({ name: 'M', model }),
    await client.agents.create({ name: 'T', model }),
  ];
  const key = service.clientWith(await limitedTo(mine.agentId));
  const open = async (agentId: string) =>
    (await client.sessions.open({ agentId, environment: 'production', input: 'go' })).sessionId;
  const other = await open(theirs.agentId);
  expect(await key.workers.claim({ queue: 'shared', waitSeconds: 0 })).toBeNull();
  await expect(key.workers.claim({ queue: 'shared', sessionId: other, waitSeconds: 0 })).rejects.toMatchObject(REFUSED);
  const waiting = key.workers.claim({ queue: 'shared' });
  const own = await open(mine.agentId);
  expect((await waiting)?.sessionId).toBe(own);
  expect((await client.workers.claim({ queue: 'shared' }))?.sessionId).toBe(other);
});

test('a message can name files of the agent and new ones, and none of another agent', async () => {
  const [mine, theirs] = [await createOwned('Mine'), await createOwned('Theirs')];
  const secret = await limitedTo(mine.agentId);
  const key = service.clientWith(secret);
  const open = (fileId: string) =>
    key.sessions.open({ agentId: mine.agentId, environment: 'production', input: fileMessage(fileId) });
  await open(mine.fileId);
  const fresh = await upload(secret);
  await expect(key.files.get(fresh)).rejects.toMatchObject(REFUSED);
  await open(fresh);
  expect((await key.files.get(fresh)).fileId).toBe(fresh);
  await expect(open(theirs.fileId)).rejects.toMatchObject({ code: 'file_invalid' });
  await expect(key.files.get(theirs.fileId)).rejects.toMatchObject(REFUSED);

  // Used by both: either can read it, and neither deletes it for the other.
  await service.client.sessions.open({ agentId: theirs.agentId, environment: 'production', input: fileMessage(fresh) });
  expect((await key.files.get(fresh)).fileId).toBe(fresh);
  await expect(key.files.delete(fresh)).rejects.toMatchObject(REFUSED);
  await key.files.delete(mine.fileId);
});

test('changes and archives its agents, creates none, and gives them no other agent as a tool', async () => {
  const { client } = service;
  const model = 'scripted/x';
  const [mine, helper, other] = await Promise.all(
    ['Mine', 'Helper', 'Other'].map(async (name) => (await client.agents.create({ name, model })).agentId),
  );
  const tool = (agentId: string, name: string) => ({ type: 'agent' as const, name, description: '', agentId });
  await client.agents.update(mine!, { tools: [tool(helper!, 'helper')] });
  const key = service.clientWith(await limitedTo(mine!));
  expect((await key.agents.update(mine!, { instructions: 'x', tools: [tool(helper!, 'helper')] })).version).toBe(3);
  const wider = key.agents.update(mine!, { tools: [tool(helper!, 'helper'), tool(other!, 'other')] });
  await expect(wider).rejects.toMatchObject(REFUSED);
  await expect(key.agents.create({ name: 'New', model })).rejects.toMatchObject(REFUSED);
  await key.agents.archive(mine!);
});

test('a key gains and loses agents from one request to the next; a permission stays what it is, and older nodes refuse the key', async () => {
  const [mine, theirs] = [await createOwned('Mine'), await createOwned('Theirs')];
  const { keyId, secret } = await service.client.keys.create({ name: 'k', permission: 'write' });
  const key = service.clientWith(secret!);
  const stored = async () =>
    (
      await service.db.query(sql`
        select permission, scopes from api_keys
        where organization_id = ${uuidOf('org', service.organizationId)} and key_id = ${uuidOf('key', keyId)}`)
    )[0];
  await key.sessions.get(theirs.sessionId);
  const limited = await service.client.keys.update(keyId, { agents: [mine.agentId] });
  expect(limited).toMatchObject({ permission: 'write', agents: [mine.agentId] });
  expect(await stored()).toEqual({ permission: null, scopes: ['write'] });
  await expect(key.sessions.get(theirs.sessionId)).rejects.toMatchObject(REFUSED);
  await key.sessions.get(mine.sessionId);
  expect((await key.me()).apiKey).toMatchObject({ permission: 'write', agents: [mine.agentId] });
  expect(await service.client.keys.update(keyId, { agents: null })).toMatchObject({
    permission: 'write',
    agents: null,
  });
  expect(await stored()).toEqual({ permission: 'write', scopes: null });
  await key.sessions.get(theirs.sessionId);
  const { data } = await service.client.events.list({ resourceId: keyId, limit: 10 });
  expect(data.map(({ changes }) => changes)).toEqual([
    { agents: [[mine.agentId], null] },
    { agents: [null, [mine.agentId]] },
    { name: [null, 'k'], permission: [null, 'write'] },
  ]);
});

test('a limited key rotates and deletes itself, and manages no other key', async () => {
  const { agentId } = await service.client.agents.create({ name: 'A', model: 'scripted/x' });
  const { keyId, secret } = await service.client.keys.create({ name: 'k', permission: 'admin', agents: [agentId] });
  const { keys } = service.clientWith(secret!);
  await expect(keys.create({ name: 'new', permission: 'read', agents: [agentId] })).rejects.toMatchObject(REFUSED);
  await expect(keys.update(keyId, { agents: null })).rejects.toMatchObject(REFUSED);
  await expect(keys.list()).rejects.toMatchObject(REFUSED);
  const renewed = await keys.rotate(keyId);
  expect(renewed.agents).toEqual([agentId]);
  await service.clientWith(renewed.secret!).keys.delete(keyId);
});

test('a key is not limited to agents that do not exist', async () => {
  const agents = ['agt_01k9xq3v7gf3pbt8zn5e6m2r4c'];
  await expect(service.client.keys.create({ name: 'k', permission: 'read', agents })).rejects.toMatchObject({
    code: 'not_found',
  });
  const { keyId } = await service.client.keys.create({ name: 'k', permission: 'read' });
  await expect(service.client.keys.update(keyId, { agents })).rejects.toMatchObject({ code: 'not_found' });
  await expect(service.client.keys.update(keyId, { agents: [] })).rejects.toMatchObject({ code: 'invalid_request' });
});
