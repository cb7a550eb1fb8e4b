// What a key may use: requests in a minute, and what its sessions cost in a day. Both hold over all nodes.
import type { UpdateKey } from '@signalbox/client';
import sql from 'sql-template-tag';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createKeySpending } from '../../src/budgets/key-spending.ts';
import { createRequestLimits } from '../../src/keys/request-limits.ts';
import { newUuid, uuidOf } from '../../src/lib/ids.ts';
import { compactUsage } from '../../src/usage/compact.ts';
import { createPrices } from '../../src/usage/prices.ts';
import { insertUsage } from '../../src/usage/usage.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { asProblem, send } from '../support/raw.ts';
import { startTestService, type TestService } from '../support/service.ts';

const NOON = new Date('2026-03-10T12:00:00.000Z');
const clock = createManualClock(NOON);
// Nodes of an installation rarely agree on the time. The requests of a minute are counted by the clock of the database.
const otherClock = createManualClock(new Date(NOON.getTime() + 7_200_000));
let service: TestService;
let other: TestService;
let organizationId: string;
let agentId: string;
beforeAll(async () => {
  const config = { prices: createPrices({ 'scripted/*': { inputUsd: 1_000, outputUsd: 1_000 } }) };
  service = await startTestService({ clock, config });
  other = await startTestService({ clock: otherClock, database: service.database });
  organizationId = uuidOf('org', service.organizationId);
  agentId = (await service.client.agents.create({ name: 'A', model: 'scripted/echo' })).agentId;
});
afterAll(async () => {
  await otherClock.passWhile(other.stop());
  await clock.passWhile(service.stop());
});

/** As if the minute of the key had passed. */
async function endMinute(keyId: string): Promise<void> {
  await service.db.execute(sql`
    update key_request_windows set ends_at = now()
    where organization_id = ${organizationId} and key_id = ${uuidOf('key', keyId)}`);
  await clock.advance(60_000);
  await otherClock.advance(60_000);
}

const create = (more: object) => service.client.keys.create({ name: 'k', permission: 'write', ...more });
const get = (url: string, key: string | undefined) => send(url, 'GET', '/agents', { key: key! });

// ── Requests in a minute ─────────────────────────────────────────────────────────────────────────────────────────────

test.each([1, 7, 100, 400])(
  'of 500 concurrent requests on two nodes a key with %i a minute gets as many, and the next minute again',
  async (requestsPerMinute) => {
    const { secret, keyId, ...key } = await create({ requestsPerMinute });
    expect(key).toMatchObject({ requestsPerMinute, maxCostUsdPerDay: null });
    for (let minute = 0; minute < 2; minute += 1) {
      const answers = await Promise.all(
        Array.from({ length: 500 }, (_, n) => get((n % 2 ? service : other).url, secret)),
      );
      const admitted = answers.filter(({ status }) => status === 200).length;
      expect(admitted).toBeLessThanOrEqual(requestsPerMinute);
      expect(admitted).toBeGreaterThanOrEqual(0.95 * requestsPerMinute);
      const refused = answers.filter(({ status }) => status !== 200);
      expect(new Set(refused.map((answer) => asProblem(answer).code))).toEqual(new Set(['rate_limited']));
      for (const { headers } of refused) {
        expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
        expect(Number(headers.get('retry-after'))).toBeLessThanOrEqual(60);
      }
      await endMinute(keyId);
    }
  },
);

test('responses say how many requests are left, and other keys and people are not counted', async () => {
  const limited = await create({ requestsPerMinute: 2 });
  const free = await create({});
  const first = await get(service.url, limited.secret);
  expect(first.headers.get('ratelimit-policy')).toContain('"key";q=2;w=60');
  expect(first.headers.get('ratelimit')).toMatch(/"key";r=1;t=\d+/);
  expect((await get(other.url, limited.secret)).headers.get('ratelimit')).toMatch(/"key";r=0;t=\d+/);
  expect((await get(service.url, limited.secret)).status).toBe(429);
  const unlimited = await get(service.url, free.secret);
  expect([unlimited.status, unlimited.headers.get('ratelimit-policy') ?? '']).toEqual([
    200,
    expect.not.stringContaining('"key"'),
  ]);
});

test('a limit that is raised, lowered or removed applies from the next request on, on every node', async () => {
  const { keyId, secret } = await create({ requestsPerMinute: 1 });
  const statuses = async () => [(await get(service.url, secret)).status, (await get(other.url, secret)).status];
  expect(await statuses()).toEqual([200, 429]);
  await service.client.keys.update(keyId, { requestsPerMinute: 1_000 });
  expect(await statuses()).toEqual([200, 200]);
  await service.client.keys.update(keyId, { requestsPerMinute: 1 });
  expect(await statuses()).toEqual([429, 429]);
  await service.client.keys.update(keyId, { requestsPerMinute: null });
  expect(await statuses()).toEqual([200, 200]);
});

test('five nodes leave less than 5 % of a limit unused, and write one row for many requests', async () => {
  const limit = 10_000;
  const { keyId } = await create({});
  const key = { organizationId, keyId: uuidOf('key', keyId) };
  let writes = 0;
  const db = {
    ...service.db,
    query: (...args: Parameters<typeof service.db.query>) => {
      writes += 1;
      return service.db.query(...args);
    },
  } as typeof service.db;
  const nodes = Array.from({ length: 5 }, () => createRequestLimits({ db, clock }));
  // Four nodes get one request each and keep the rest of their slice.
  for (const node of nodes) expect((await node.count(key, limit)).isAdmitted).toBe(true);
  let admitted = nodes.length;
  while ((await nodes[0]!.count(key, limit)).isAdmitted) admitted += 1;
  expect(admitted).toBeLessThanOrEqual(limit);
  expect(admitted).toBeGreaterThanOrEqual(0.95 * limit);
  expect(writes).toBeLessThan(0.04 * limit);
  const before = writes;
  for (let n = 0; n < 100; n += 1) expect((await nodes[0]!.count(key, limit)).isAdmitted).toBe(false);
  expect(writes).toBe(before);
});

test.each([
  ['requestsPerMinute', [0, -1, 1.5, 1_000_001]],
  ['maxCostUsdPerDay', [0, -1]],
])('an invalid %s is refused', async (field, values) => {
  for (const value of values) {
    const body = { name: 'x', permission: 'read', [field]: value };
    const refused = asProblem(await send(service.url, 'POST', '/api_keys', { key: service.adminKey, body }));
    expect(refused).toMatchObject({ status: 400, errors: [{ path: field }] });
  }
});

test('a key with limits manages no key with higher ones or none, itself included', async () => {
  const limits = { requestsPerMinute: 100, maxCostUsdPerDay: 5 };
  const manager = await service.client.keys.create({ name: 'm', permission: 'admin', ...limits });
  const { keys } = service.clientWith(manager.secret!);
  const refused = { code: 'insufficient_permission' };
  const wider: Pick<UpdateKey, 'requestsPerMinute' | 'maxCostUsdPerDay'>[] = [
    {},
    { ...limits, requestsPerMinute: 101 },
    { ...limits, maxCostUsdPerDay: null },
  ];
  for (const more of wider) {
    await expect(keys.create({ ...more, name: 'x', permission: 'read' })).rejects.toMatchObject(refused);
    if ('requestsPerMinute' in more) await expect(keys.update(manager.keyId, more)).rejects.toMatchObject(refused);
  }
  expect(await keys.create({ name: 'x', permission: 'read', ...limits })).toMatchObject(limits);
});

// ── Cost in a day ────────────────────────────────────────────────────────────────────────────────────────────────────

async function untilOver(sessionId: string) {
  while (true) {
    const session = await service.client.sessions.get(sessionId);
    if (!['running', 'waiting'].includes(session.status)) return session;
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

/** What a call of the agent `echo` with the input `go` costs. */
async function costOfCall(): Promise<number> {
  const { sessionId } = await service.client.sessions.open({ agentId, environment: 'production', input: 'go' });
  return (await untilOver(sessionId)).usage.costUsd!;
}

test('once its sessions cost the limit, a key starts nothing more until the next UTC day, and sees what they cost', async () => {
  const cost = await costOfCall();
  const { keyId, secret } = await create({ maxCostUsdPerDay: 1.5 * cost });
  const mine = service.clientWith(secret!);
  const open = () =>
    send(service.url, 'POST', '/sessions', { key: secret!, body: { agentId, environment: 'production', input: 'go' } });
  const spent = async () => (await service.client.keys.get(keyId)).costUsdToday;
  expect(await spent()).toBe(0);
  const { sessionId } = await mine.sessions.open({ agentId, environment: 'production', input: 'go' });
  await untilOver(sessionId);
  expect(await spent()).toBeCloseTo(cost, 9);
  const second = await open();
  expect(second.status).toBe(201);
  await untilOver(second.json.session.sessionId);
  expect(await spent()).toBeCloseTo(2 * cost, 9);
  while (await compactUsage(service.db, organizationId));
  expect(await spent()).toBeCloseTo(2 * cost, 9);
  expect((await service.client.keys.list()).data.find((one) => one.keyId === keyId)!.costUsdToday).toBeCloseTo(
    2 * cost,
    9,
  );

  for (const [method, path, body] of [
    ['POST', '/sessions', { agentId, environment: 'production' }],
    ['POST', `/sessions/${sessionId}/messages`, { content: 'go' }],
    ['POST', `/sessions/${sessionId}/fork`, {}],
    ['POST', `/sessions/${sessionId}/retry`, undefined],
    ['POST', `/sessions/${sessionId}/compact`, undefined],
  ] as const) {
    const answer = await send(service.url, method, path, { key: secret!, ...(body && { body }) });
    expect([path, asProblem(answer).code]).toEqual([path, 'key_budget_exceeded']);
    expect(answer.status).toBe(429);
    expect(answer.headers.get('retry-after')).toBe(String(12 * 3600 - (clock.now().getTime() - NOON.getTime()) / 1000));
  }
  // It still reads, and stops what it started.
  expect((await get(service.url, secret)).status).toBe(200);
  expect((await mine.sessions.close(sessionId)).status).toBe('completed');
  // Another key may write to its session, whose turn counts for the key that opened it.
  const idle = second.json.session.sessionId;
  await service.client.sessions.sendMessage(idle, { content: 'go' });
  expect(await untilOver(idle)).toMatchObject({ status: 'idle', stopReason: 'budgetReached', usage: { steps: 1 } });

  await service.client.keys.update(keyId, { maxCostUsdPerDay: 2.5 * cost });
  await clock.advance(1_000);
  const third = await open();
  expect(third.status).toBe(201);
  await untilOver(third.json.session.sessionId);
  expect((await open()).status).toBe(429);
  await clock.advance(24 * 3600_000);
  expect(await spent()).toBe(0);
  expect((await open()).status).toBe(201);
});

test('a limit in money that a key gets, or loses, applies from the next request on', async () => {
  const { secret, keyId } = await create({});
  const { sessionId } = await service
    .clientWith(secret!)
    .sessions.open({ agentId, environment: 'production', input: 'go' });
  await untilOver(sessionId);
  const open = async () =>
    (await send(service.url, 'POST', '/sessions', { key: secret!, body: { agentId, environment: 'production' } }))
      .status;
  expect(await open()).toBe(201);
  await service.client.keys.update(keyId, { maxCostUsdPerDay: 0.000_001 });
  expect(await open()).toBe(429);
  await service.client.keys.update(keyId, { maxCostUsdPerDay: null });
  expect(await open()).toBe(201);
});

test('a turn that reaches the limit of its key ends before its next model call, in child sessions as well', async () => {
  const cost = await costOfCall();
  const loop = Array.from({ length: 20 }, () => ({ toolCalls: [{ name: 'none', input: {} }] }));
  const model = { provider: 'scripted' as const, model: 'x', settings: { script: loop } };
  const child = await service.client.agents.create({ name: 'Child', model });
  const parent = await service.client.agents.create({
    name: 'Parent',
    model: {
      ...model,
      settings: { script: [{ toolCalls: [{ name: 'ask', input: { input: 'go' } }] }, { text: 'Done' }] },
    },
    tools: [{ type: 'agent', name: 'ask', description: '', agentId: child.agentId }],
  });
  const { secret, keyId } = await create({ maxCostUsdPerDay: 4 * cost });
  const { sessions } = service.clientWith(secret!);
  const { sessionId } = await sessions.open({ agentId: parent.agentId, environment: 'production', input: 'go' });
  expect(await untilOver(sessionId)).toMatchObject({ stopReason: 'budgetReached', usage: { steps: 1 } });
  const { maxCostUsdPerDay, costUsdToday } = await service.client.keys.get(keyId);
  expect(costUsdToday).toBeGreaterThanOrEqual(maxCostUsdPerDay!);
  const children = (await service.client.sessions.list({ limit: 100 })).data.filter(
    (one) => one.parentSessionId === sessionId,
  );
  expect(children.map(({ stopReason }) => stopReason)).toEqual(['budgetReached']);
  expect(children[0]!.usage.steps).toBeLessThan(20);
});

test('a model without a price fails the turn of a key with a limit rather than spend an unknown amount', async () => {
  const free = await service.client.agents.create({ name: 'F', model: { provider: 'worker', queue: 'q' } });
  const { secret } = await create({ maxCostUsdPerDay: 1 });
  const { sessions } = service.clientWith(secret!);
  const { sessionId } = await sessions.open({ agentId: free.agentId, environment: 'production', input: 'go' });
  expect(await untilOver(sessionId)).toMatchObject({ status: 'idle', error: { code: 'budget_invalid' } });
});

test('a node knows its own calls at once and those of another node within a second, and reads no more often', async () => {
  const { keyId } = await create({ maxCostUsdPerDay: 10 });
  const key = uuidOf('key', keyId);
  let reads = 0;
  const db = {
    ...service.db,
    query: (...args: Parameters<typeof service.db.query>) => {
      reads += 1;
      return service.db.query(...args);
    },
  } as typeof service.db;
  const [one, two] = [createKeySpending({ db, clock }), createKeySpending({ db, clock })];
  const spent = async (node: typeof one) => (await node.of(organizationId, key))!.spentUsd;
  const use = (costUsd: number) =>
    service.db.query(
      insertUsage(
        { organizationId, agentId: uuidOf('agt', agentId), environment: 'production', endUserId: null, keyId: key },
        { operationId: newUuid(), model: 'x', usage: { inputTokens: 1, outputTokens: 1, cachedTokens: 0, costUsd } },
        clock.now(),
      ),
    );
  expect([await spent(one), await spent(two)]).toEqual([0, 0]);
  await use(3);
  one.add(organizationId, key, 3);
  expect([await spent(one), await spent(two), reads]).toEqual([3, 0, 2]);
  await clock.advance(1_000);
  expect(await Promise.all([one, one, two, two].map(spent))).toEqual([3, 3, 3, 3]);
  expect(reads).toBe(4);
  // Nothing is known of a key without a limit, and it is looked up rarely.
  const free = uuidOf('key', (await create({})).keyId);
  for (let n = 0; n < 9; n += 1) {
    expect(await one.of(organizationId, free)).toBeUndefined();
    await clock.advance(1_000);
  }
  expect(reads).toBe(5);
});
