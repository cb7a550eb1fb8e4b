// Budgets of an organization: what counts for them, alerts, and stopping turns.
import { ConflictError, type Draft, NotFoundError } from '@signalbox/client';
import sql from 'sql-template-tag';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { alertBudgets, alertBudgetsIn, organizationsToAlert } from '../../src/budgets/alerts.ts';
import { endOf, startOf } from '../../src/budgets/budgets.ts';
import type { Tx } from '../../src/db/db.ts';
import { createShards } from '../../src/db/shards.ts';
import { formatId, newUuid, uuidOf } from '../../src/lib/ids.ts';
import { compactUsage } from '../../src/usage/compact.ts';
import { createPrices } from '../../src/usage/prices.ts';
import { insertUsage } from '../../src/usage/usage.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { startTestService, type TestService } from '../support/service.ts';

const NOON = new Date('2026-03-10T12:00:00.000Z');
let now = NOON;
const clock = { ...createManualClock(NOON), now: () => now };
const prices = createPrices({ 'scripted/echo': { inputUsd: 10_000, outputUsd: 10_000 } });
let service: TestService;
let other: TestService;
let organizationId: string;
let agentId: string;
beforeAll(async () => {
  service = await startTestService({ config: { prices } });
  other = await startTestService({ config: { prices }, database: service.database });
  organizationId = uuidOf('org', service.organizationId);
  ({ agentId } = await service.client.agents.create({ name: 'Echo', model: 'scripted/echo' }));
});
afterAll(async () => {
  await other.stop();
  await service.stop();
});

/** A model call of a session. */
function spend(
  costUsd: number,
  of: { at?: Date; environment?: string; agentId?: string; keyId?: string; pinnedVersion?: number } = {},
) {
  const { at = new Date(), environment = 'production', keyId = null, pinnedVersion = null } = of;
  return service.db.query(
    insertUsage(
      {
        organizationId,
        agentId: of.agentId ?? uuidOf('agt', agentId),
        environment,
        endUserId: null,
        keyId,
        pinnedVersion,
      },
      {
        operationId: newUuid(),
        model: 'openai/a',
        usage: { inputTokens: 1, outputTokens: 1, cachedTokens: 0, costUsd },
      },
      at,
    ),
  );
}

const budgetOf = async (name: string) => (await service.client.budgets.list()).find((one) => one.name === name)!;
const alertsOf = async (name: string) =>
  (await service.client.events.list({ type: 'budget.threshold_reached', resourceId: name, limit: 100 })).data
    .map(({ changes }) => changes!.threshold![1])
    .reverse();

test('a budget that is only created replaces none, however many are created at once', async () => {
  const { budgets } = service.client;
  const results = await Promise.allSettled(
    [service, other].flatMap((node) =>
      [1, 2, 3].map((limitUsd) => node.client.budgets.create('once', { limitUsd, period: 'day' })),
    ),
  );
  const created = results.flatMap((result) => (result.status === 'fulfilled' ? result.value : []));
  expect(created).toHaveLength(1);
  expect(await budgetOf('once')).toMatchObject({ limitUsd: created[0]!.limitUsd });
  const refused = await budgets.create('once', { limitUsd: 9, period: 'day' }).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(ConflictError);
  const errors = [{ path: 'budgetName', message: 'is taken by another budget' }];
  expect(refused).toMatchObject({ status: 412, code: 'precondition_failed', errors });
  // Also one of something else, which `set` refuses with 409.
  await expect(budgets.create('once', { limitUsd: 9, period: 'month' })).rejects.toMatchObject({ status: 412 });
  expect((await budgets.set('once', { limitUsd: 9, period: 'day' })).limitUsd).toBe(9);
  const { data } = await service.client.events.list({ resourceId: 'once' });
  expect(data.map(({ type }) => type)).toEqual(['budget.updated', 'budget.created']);
  await budgets.delete('once');
  expect((await budgets.create('once', { limitUsd: 8, period: 'day' })).limitUsd).toBe(8);
  await budgets.delete('once');
});

test('a budget counts what its sessions cost in its period, before and after compaction', async () => {
  const { budgets } = service.client;
  const key = await service.client.keys.create({ name: 'mine', permission: 'write' });
  const second = await service.client.agents.create({ name: 'Second', model: 'scripted/echo' });
  const month = { limitUsd: 100, period: 'month' } as const;
  await budgets.set('all', month);
  await budgets.set('today', { limitUsd: 10, period: 'day' });
  await budgets.set('staging', { ...month, environment: 'staging' });
  await budgets.set('second', { ...month, agentId: second.agentId });
  await budgets.set('key', { ...month, keyId: key.keyId });
  await budgets.set('both', { ...month, keyId: key.keyId, agentId: second.agentId });
  const start = new Date();
  await spend(1);
  await spend(2, { environment: 'staging', keyId: uuidOf('key', key.keyId) });
  await spend(4, { agentId: uuidOf('agt', second.agentId) });
  // The costs of its drafts.
  await spend(8, { agentId: uuidOf('agt', second.agentId), pinnedVersion: -1 });
  await spend(16, { agentId: uuidOf('agt', second.agentId), pinnedVersion: -2, keyId: uuidOf('key', key.keyId) });
  await spend(32, { agentId: organizationId, pinnedVersion: -1 });
  // A cost of the month before.
  await spend(64, { at: new Date(startOf('month', start).getTime() - 1) });
  const spent = async () =>
    Object.fromEntries((await budgets.list()).map(({ name, spentUsd }) => [name, spentUsd] as const));
  const expected = { all: 63, today: 63, staging: 2, second: 28, key: 18, both: 16 };
  expect(await spent()).toEqual(expected);
  while (await compactUsage(service.db, organizationId, 2));
  expect(await spent()).toEqual(expected);
  expect((await budgets.list({ environment: 'staging' })).map(({ name }) => name)).toEqual(['staging']);
  expect((await budgets.list({ agentId: second.agentId })).map(({ name }) => name)).toEqual(['both', 'second']);
  for (const name of Object.keys(expected)) await budgets.delete(name);
  expect(await budgets.list()).toEqual([]);
});

test('each threshold alerts once a period, on two nodes and when it is looked for again, and anew if the limit is raised', async () => {
  const { client, db } = service;
  const before = (await client.usage.get()).total.costUsd!;
  await client.budgets.set('alerts', { limitUsd: 1000 + before, period: 'month', thresholds: [80, 100, 50] });
  expect((await budgetOf('alerts')).thresholds).toEqual([50, 80, 100]);
  const look = async () => {
    await Promise.all(
      [service, other].flatMap((node) => [1, 2].map(() => alertBudgets(node.db, organizationId, new Date()))),
    );
    return alertsOf('alerts');
  };
  await spend(900);
  expect(new Set(await look())).toEqual(new Set([50, 80]));
  expect(await look()).toHaveLength(2);
  expect((await budgetOf('alerts')).alerts).toMatchObject([{ threshold: 50 }, { threshold: 80 }]);
  // Nothing of this changes what was reached.
  await client.budgets.set('alerts', { limitUsd: 1100 + before, period: 'month', thresholds: [50, 80, 100] });
  expect(await look()).toHaveLength(2);
  await client.budgets.set('alerts', { limitUsd: 1500 + before, period: 'month', thresholds: [50, 80, 100] });
  expect((await budgetOf('alerts')).alerts).toMatchObject([{ threshold: 50 }]);
  await spend(700);
  expect((await look()).toSorted()).toEqual([100, 50, 80, 80].toSorted());
  // In the next month, all of them can alert again.
  const next = new Date(endOf('month', new Date()).getTime() + 1000);
  await spend(2000 + before, { at: next });
  await Promise.all([alertBudgets(db, organizationId, next), alertBudgets(db, organizationId, next)]);
  expect(await alertsOf('alerts')).toHaveLength(7);
  await client.budgets.delete('alerts');
});

test('a threshold that is reached in the last seconds of a period alerts after its end, once, and for that period', async () => {
  const { client, db } = service;
  const own = await client.agents.create({ name: 'Late', model: 'scripted/echo' });
  const end = endOf('month', new Date());
  const at = (seconds: number) => new Date(end.getTime() + seconds * 1000);
  const look = async (seconds: number) => {
    await Promise.all(
      [service, other].flatMap((node) => [1, 2].map(() => alertBudgets(node.db, organizationId, at(seconds)))),
    );
    return { day: await alertsOf('late-day'), month: await alertsOf('late-month') };
  };
  for (const period of ['day', 'month'] as const) {
    await client.budgets.set(`late-${period}`, {
      limitUsd: 100,
      period,
      thresholds: [50, 80],
      agentId: own.agentId,
    });
  }
  expect(await look(-10)).toEqual({ day: [], month: [] });
  await spend(60, { at: at(-5), agentId: uuidOf('agt', own.agentId) });
  // What is spent in the next period counts only for that one.
  await spend(40, { at: at(1), agentId: uuidOf('agt', own.agentId) });
  expect(await look(5)).toEqual({ day: [50], month: [50] });
  expect(await look(20)).toEqual({ day: [50], month: [50] });
  const { data } = await client.events.list({ type: 'budget.threshold_reached', resourceId: 'late-day' });
  expect(data[0]!.changes).toMatchObject({
    spentUsd: [null, 60],
    periodStartsAt: [null, startOf('day', at(-1)).toISOString()],
  });
  // A limit that is changed after the end is not the one that was reached before it.
  await db.execute(sql`
    update budgets set limit_usd = 75, updated_at = ${at(30)}
    where organization_id = ${organizationId} and name like 'late-%'`);
  expect(await look(40)).toEqual({ day: [50, 50], month: [50, 50] });
  const { data: later } = await client.events.list({ type: 'budget.threshold_reached', resourceId: 'late-day' });
  expect(later[0]!.changes).toMatchObject({ spentUsd: [null, 40], periodStartsAt: [null, end.toISOString()] });
  for (const name of ['late-day', 'late-month']) await client.budgets.delete(name);
});

test('only organizations with new calls or a new budget are looked at, and calls that are compacted between two looks alert', async () => {
  const { client, db } = service;
  const own = await client.agents.create({ name: 'Compacted', model: 'scripted/echo' });
  while (await compactUsage(db, organizationId));
  await client.budgets.set('compacted', { limitUsd: 100, period: 'month', thresholds: [50, 80], agentId: own.agentId });
  const due = (since: Date) => organizationsToAlert({ shards: createShards(service.db) }, since);
  const before = new Date(Date.now() - 60_000);
  const later = new Date(Date.now() + 60_000);
  expect(await due(before)).toEqual([organizationId]);
  expect(await due(later)).toEqual([]);
  await spend(60, { agentId: uuidOf('agt', own.agentId) });
  expect(await due(later)).toEqual([organizationId]);
  const compact = (after: (tx: Tx) => Promise<unknown>) => compactUsage(db, organizationId, 1_000, after);
  const alertToo = (tx: Tx) => alertBudgetsIn(tx, organizationId, new Date());
  // A node that dies before the commit has neither compacted nor alerted.
  const dying = compact(async (tx) => {
    expect(await alertToo(tx)).toBe(1);
    throw new Error('killed');
  });
  await expect(dying).rejects.toThrow('killed');
  expect([await alertsOf('compacted'), await due(later)]).toEqual([[], [organizationId]]);
  expect(await compact(alertToo)).toBe(false);
  expect([await alertsOf('compacted'), await due(later)]).toEqual([[50], []]);
  // Two nodes that compact at the same time see each other's calls, in the sums or not.
  await spend(15, { agentId: uuidOf('agt', own.agentId) });
  await spend(15, { agentId: uuidOf('agt', own.agentId) });
  await Promise.all([1, 2].map(() => compactUsage(db, organizationId, 1, alertToo)));
  expect([await alertsOf('compacted'), await due(later)]).toEqual([[50, 80], []]);
  await client.budgets.delete('compacted');
});

test('what a budget is for does not change, and it is for something that exists', async () => {
  const { budgets } = service.client;
  const month = { limitUsd: 1, period: 'month' } as const;
  await budgets.set('mine', month);
  await expect(budgets.set('mine', { ...month, environment: 'staging' })).rejects.toBeInstanceOf(ConflictError);
  await expect(budgets.set('mine', { ...month, period: 'day' })).rejects.toBeInstanceOf(ConflictError);
  await expect(budgets.set('x', { ...month, environment: 'nowhere' })).rejects.toBeInstanceOf(NotFoundError);
  await expect(budgets.set('x', { ...month, agentId: formatId('agt', newUuid()) })).rejects.toBeInstanceOf(
    NotFoundError,
  );
  await expect(budgets.set('x', { ...month, keyId: formatId('key', newUuid()) })).rejects.toBeInstanceOf(NotFoundError);
  await budgets.delete('mine');
  await expect(budgets.delete('mine')).rejects.toBeInstanceOf(NotFoundError);
  const types = (await service.client.events.list({ resourceId: 'mine' })).data.map(({ type }) => type);
  expect(types).toEqual(['budget.deleted', 'budget.created']);
});

test('a key that is limited to an environment sees and sets only budgets of that environment', async () => {
  const { secret } = await service.client.keys.create({
    name: 'staging',
    scopes: ['usage:read', 'organization:manage'],
    environments: ['staging'],
  });
  const { budgets } = service.clientWith(secret!);
  const month = { limitUsd: 1, period: 'month' } as const;
  await service.client.budgets.set('whole', month);
  expect(await budgets.set('own', month)).toMatchObject({ environment: 'staging' });
  expect((await budgets.list()).map(({ name }) => name)).toEqual(['own']);
  await expect(budgets.set('whole', month)).rejects.toBeInstanceOf(ConflictError);
  await expect(budgets.set('own', { ...month, environment: 'production' })).rejects.toMatchObject({
    code: 'insufficient_permission',
  });
  for (const name of ['whole', 'own']) await service.client.budgets.delete(name);
});

async function ended(sessionId: string) {
  return await service.client.sessions.get(sessionId).then(async (session) => {
    for (let last = session; ; last = await service.client.sessions.get(sessionId)) {
      if (!['running', 'waiting'].includes(last.status)) return last;
    }
  });
}

test('once it is used up, a budget with `stop` refuses sessions on every node, and ends turns before their next model call', async () => {
  const { client } = service;
  const open = (node: TestService, environment = 'staging') =>
    node.client.sessions.open({ agentId, environment, input: 'go' });
  const first = await ended((await open(service)).sessionId);
  const idle = await client.sessions.open({ agentId, environment: 'staging' });
  const cost = first.usage.costUsd!;
  const spentBefore = (await client.usage.get({ environment: 'staging' })).total.costUsd!;
  await client.budgets.set('stops', {
    limitUsd: spentBefore + 0.5 * cost,
    period: 'month',
    environment: 'staging',
    stop: true,
  });
  const last = await ended((await open(service)).sessionId);
  expect(last).toMatchObject({ status: 'idle', stopReason: 'endTurn' });
  const refused = { code: 'budget_exceeded', status: 429 };
  await expect(open(service)).rejects.toMatchObject(refused);
  // The other node may not have looked for budgets within its last ten seconds; no request is refused before.
  await expect.poll(() => open(other).catch(({ code }) => code), { interval: 500 }).toBe('budget_exceeded');
  await expect(client.sessions.sendMessage(idle.sessionId, { content: 'go' })).rejects.toMatchObject(refused);
  // Sessions of another environment go on.
  expect(await ended((await open(service, 'production')).sessionId)).toMatchObject({ stopReason: 'endTurn' });
  await client.budgets.delete('stops');
  expect(await ended((await open(service)).sessionId)).toMatchObject({ stopReason: 'endTurn' });
});

test('a budget with `stop` fails turns whose model has no price, which it could not stop', async () => {
  const { client } = service;
  await client.budgets.set('unpriced', { limitUsd: 1_000, period: 'month', environment: 'staging', stop: true });
  const free = await client.agents.create({ name: 'Unpriced', model: 'scripted/free' });
  const open = async (environment: string) =>
    await ended((await client.sessions.open({ agentId: free.agentId, environment, input: 'go' })).sessionId);
  expect(await open('staging')).toMatchObject({
    stopReason: 'error',
    error: {
      code: 'budget_invalid',
      message: 'The budget "unpriced" is in money, and no price is configured for scripted/free.',
    },
  });
  expect(await open('production')).toMatchObject({ stopReason: 'endTurn' });
  await client.budgets.delete('unpriced');
  expect(await open('staging')).toMatchObject({ stopReason: 'endTurn' });
});

test('a fork counts for the key that creates it, whichever key opened the session', async () => {
  const { client } = service;
  const keys = await Promise.all(['a', 'b'].map((name) => client.keys.create({ name, permission: 'write' })));
  const [a, b] = keys.map(({ secret }) => service.clientWith(secret!));
  const input = { agentId, environment: 'production', input: 'go' };
  const [ofA, ofB] = await Promise.all([a!.sessions.open(input), b!.sessions.open(input)]);
  await ended(ofB.sessionId);
  const { usage } = await ended(ofA.sessionId);
  const limit = { limitUsd: usage.costUsd! / 2, period: 'month' as const, keyId: keys[0]!.keyId, stop: true };
  await client.budgets.set('only-a', limit);
  const again = { input: 'again' };
  await expect
    .poll(() => a!.sessions.fork(ofB.sessionId, again).catch(({ code }) => code), { interval: 500 })
    .toBe('budget_exceeded');
  const fork = await b!.sessions.fork(ofA.sessionId, again);
  expect(await ended(fork.sessionId)).toMatchObject({ stopReason: 'endTurn' });
  await client.budgets.delete('only-a');
});

test('drafts of an agent use up its budget, on every node, and are refused then; drafts without an agent are not', async () => {
  const { client } = service;
  const tried = await client.agents.create({ name: 'Tried', model: 'scripted/echo' });
  const draft: Draft = { definition: { name: 'Tried', model: 'scripted/echo' } };
  const open = (node: TestService, of: { agentId: string } | { agentId?: string; draft: Draft }) =>
    node.client.sessions.open({ environment: 'production', input: 'go', ...of });
  await client.budgets.set('tried', { limitUsd: 0.0001, period: 'month', agentId: tried.agentId, stop: true });
  const first = await ended((await open(service, { agentId: tried.agentId, draft })).sessionId);
  expect((await budgetOf('tried')).spentUsd).toBe(first.usage.costUsd);
  for (const node of [service, other]) {
    for (const of of [{ agentId: tried.agentId }, { agentId: tried.agentId, draft }]) {
      await expect.poll(() => open(node, of).catch(({ code }) => code), { interval: 500 }).toBe('budget_exceeded');
    }
    expect(await open(node, { draft })).toMatchObject({ draft: true });
  }
  await client.budgets.delete('tried');
});

test('a day and a month of UTC begin and end at midnight, also at the end of a year', () => {
  now = new Date('2026-12-31T23:59:59.999Z');
  expect([startOf('day', clock.now()), endOf('day', clock.now())].map((one) => one.toISOString())).toEqual([
    '2026-12-31T00:00:00.000Z',
    '2027-01-01T00:00:00.000Z',
  ]);
  expect([startOf('month', now), endOf('month', now)].map((one) => one.toISOString())).toEqual([
    '2026-12-01T00:00:00.000Z',
    '2027-01-01T00:00:00.000Z',
  ]);
});
