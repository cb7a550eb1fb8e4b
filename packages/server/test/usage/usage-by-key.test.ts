// Usage by API key: what counts for which key, also after the key was deleted.
import sql from 'sql-template-tag';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createShards } from '../../src/db/shards.ts';
import { dropRetiredSecrets } from '../../src/keys/retired.ts';
import { uuidOf } from '../../src/lib/ids.ts';
import { compactUsage } from '../../src/usage/compact.ts';
import { createPrices } from '../../src/usage/prices.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { startTestService, type TestService } from '../support/service.ts';

const clock = createManualClock();
let service: TestService;
beforeAll(async () => {
  service = await startTestService({
    clock,
    config: { prices: createPrices({ 'scripted/*': { inputUsd: 10, outputUsd: 10 } }) },
  });
});
afterAll(() => clock.passWhile(service.stop()));

async function untilIdle(sessionId: string): Promise<void> {
  while (!['idle', 'completed'].includes((await service.client.sessions.get(sessionId)).status)) {
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

async function groups() {
  const { data } = await service.client.usage.get({ groupBy: 'apiKey' });
  return data.map(({ group, name, steps }) => [group, name, steps]).toSorted();
}

async function compact(): Promise<void> {
  while (await compactUsage(service.db, uuidOf('org', service.organizationId), 2));
}

test('what a key opens counts for it, with children, forks and schedules; a deleted key keeps its name for good', async () => {
  const { client } = service;
  const model = (script: object[]) => ({ provider: 'scripted' as const, model: 'x', settings: { script } });
  const helper = await client.agents.create({ name: 'Helper', model: model([{ text: 'ok' }]) });
  const parent = await client.agents.create({
    name: 'Parent',
    model: model([{ toolCalls: [{ name: 'help', input: { input: 'x' } }] }, { text: 'Done' }]),
    tools: [{ type: 'agent', name: 'help', description: '', agentId: helper.agentId }],
  });
  const keys = await Promise.all(['first', 'second'].map((name) => client.keys.create({ name, permission: 'write' })));
  const [first, second] = keys.map(({ secret }) => service.clientWith(secret!)) as [typeof client, typeof client];
  const [firstId, secondId] = keys.map(({ keyId }) => keyId) as [string, string];
  const environment = 'production';

  // Three calls: two of the parent and one of the child.
  const opened = await first.sessions.open({ agentId: parent.agentId, environment, input: 'go' });
  await untilIdle(opened.sessionId);
  // A message of another key is still for the session of the first one.
  await second.sessions.sendMessage(opened.sessionId, { content: 'more' });
  await untilIdle(opened.sessionId);
  const forked = await second.sessions.fork(opened.sessionId, { atTurn: 1, input: 'again' });
  await untilIdle(forked.sessionId);
  const at = new Date(clock.now().getTime() + 60_000).toISOString();
  const { scheduleId } = await second.schedules.create({ agentId: helper.agentId, environment, input: 'go', at });
  await clock.advance(60_000);
  while ((await client.schedules.get(scheduleId)).lastRun === null)
    await new Promise<void>((resolve) => setImmediate(resolve));
  const { lastRun } = await client.schedules.get(scheduleId);
  await untilIdle(lastRun!.sessionId!);

  const stepsOf = async (sessionId: string) => (await client.sessions.get(sessionId)).usage.steps;
  const child = async (sessionId: string) => {
    let steps = 0;
    for await (const one of client.sessions.list({ limit: 100 })) {
      if (one.parentSessionId === sessionId) steps += one.usage.steps;
    }
    return steps;
  };
  const total = async (sessionId: string) => (await stepsOf(sessionId)) + (await child(sessionId));
  expect(await child(opened.sessionId)).toBeGreaterThan(0);
  const wanted = [
    [firstId, 'first', await total(opened.sessionId)],
    [secondId, 'second', (await total(forked.sessionId)) + (await total(lastRun!.sessionId!))],
  ].toSorted();
  expect(await groups()).toEqual(wanted);
  expect((await client.keys.get(firstId)).name).toBe('first');

  await compact();
  expect(await groups()).toEqual(wanted);
  const staging = await client.usage.get({ groupBy: 'apiKey', environment: 'staging' });
  expect(staging.data).toEqual([]);
  const ofHelper = await client.usage.get({ groupBy: 'apiKey', agentId: helper.agentId });
  expect(ofHelper.data.reduce((sum, { steps }) => sum + steps, 0)).toBe(ofHelper.total.steps);
  expect(ofHelper.data.map(({ name }) => name).toSorted()).toEqual(['first', 'second']);

  await client.keys.delete(firstId);
  expect(await groups()).toEqual(wanted);
  // 90 days later nothing else is left of the key.
  await dropRetiredSecrets(
    { shards: createShards(service.db) },
    new Date(clock.now().getTime() + 91 * 24 * 3600_000),
    new AbortController().signal,
  );
  expect(
    await service.db.query(sql`
      select 1 from api_keys
      where organization_id = ${uuidOf('org', service.organizationId)} and key_id = ${uuidOf('key', firstId)}`),
  ).toEqual([]);
  expect(await groups()).toEqual(wanted);
});

test('groups by key and the group "" for calls without one add up to the total, before and after compaction', async () => {
  const organizationId = uuidOf('org', service.organizationId);
  const before = await service.client.usage.get({ groupBy: 'apiKey' });
  // As a session of a person, or one that was opened before keys were recorded.
  const agent = await service.client.agents.create({ name: 'A', model: 'scripted/x' });
  const { sessionId } = await service.client.sessions.open({ agentId: agent.agentId, environment: 'staging' });
  await service.db.execute(sql`
    update sessions set key_id = null
    where organization_id = ${organizationId} and session_id = ${uuidOf('ses', sessionId)}`);
  await service.client.sessions.sendMessage(sessionId, { content: 'go' });
  await untilIdle(sessionId);
  const { data, total } = await service.client.usage.get({ groupBy: 'apiKey' });
  expect(total.steps).toBe(before.total.steps + 1);
  expect(data.reduce((sum, { steps }) => sum + steps, 0)).toBe(total.steps);
  const none = data.find(({ group }) => group === '');
  expect(none).toMatchObject({ steps: 1 });
  expect(none).not.toHaveProperty('name');
  await compact();
  expect(await service.client.usage.get({ groupBy: 'apiKey' })).toMatchObject({ data, total });
});
