import sql from 'sql-template-tag';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { hasEndings, recordEndings } from '../../src/agents/model-endings.ts';
import { createRound } from '../../src/db/rounds.ts';
import { createShards } from '../../src/db/shards.ts';
import { uuidOf } from '../../src/lib/ids.ts';
import { knownModels } from '../../src/usage/known-models.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { startTestService, type TestService } from '../support/service.ts';

const DAY_MS = 86_400_000;
const [known, { endsAt }] = Object.entries(knownModels().models).find(
  ([name, model]) => model.endsAt !== null && /^(openai|anthropic)\//.test(name),
)!;
const [provider, model] = known.split('/') as ['openai' | 'anthropic', string];
/** At noon, so many days before the end. */
const before = (days: number) => new Date(Date.parse(endsAt!) - days * DAY_MS - DAY_MS / 2);

// What the nodes read as the time; only this moves.
let now = before(100);
const clock = { ...createManualClock(now), now: () => now };

let service: TestService;
let other: TestService;
let organizationId: string;
beforeAll(async () => {
  service = await startTestService({ clock });
  other = await startTestService({ database: service.database, clock });
  organizationId = uuidOf('org', service.organizationId);
});
afterAll(async () => {
  await other.stop();
  await service.stop();
});

const endings = async () => (await service.client.events.list({ type: 'model.ending' })).data.toReversed();
/** The organizations that a round would look at. */
async function due(now: Date): Promise<string[]> {
  const shards = createShards(service.db);
  const page = await createRound({ shards }, 'models that end', (id, within) => hasEndings(id, now, within))();
  return page.organizationIds;
}
/** Two passes on each of two nodes, at once. Returns how many events they recorded together. */
async function look(now: Date): Promise<number> {
  const passes = [service, other, service, other].map(({ db }) => recordEndings(db, organizationId, now));
  return (await Promise.all(passes)).reduce((sum, count) => sum + count, 0);
}

test('an announced end is an event at 60, 14 and 1 days, once on all nodes, with the agents that use the model at its provider', async () => {
  const { client } = service;
  const using = await client.agents.create({ name: 'Uses it', model: { provider, model } });
  const falling = await client.agents.create({
    name: 'Falls back to it',
    model: { provider: 'scripted', model: 'x', fallbacks: [{ provider, model }] },
  });
  const gone = await client.agents.create({ name: 'Archived', model: { provider, model } });
  await client.agents.archive(gone.agentId);
  await client.agents.create({ name: 'Other', model: 'scripted/x' });
  const gateway = await client.agents.create({
    name: 'Gateway',
    model: { provider, model, baseUrl: 'https://models.example.com/v1' },
  });

  expect(await look(before(61))).toBe(0);
  expect(await due(before(30))).toEqual([organizationId]);
  expect(await due(before(-2))).toEqual([]);
  for (const days of [59, 58, 15, 13, 2, 0.6, 0]) await look(before(days));
  expect(await look(before(-2))).toBe(0);
  const found = await endings();
  expect(found.map(({ resource }) => resource)).toEqual([1, 2, 3].map(() => ({ type: 'model', id: known })));
  expect(found[0]).toMatchObject({
    actor: { type: 'system' },
    changes: { endsAt: [null, endsAt], agentCount: [null, 2] },
  });
  expect(new Set(found[0]!.changes!.agents![1] as string[])).toEqual(new Set([using.agentId, falling.agentId]));
  for (const { agentId } of [using, falling, gateway]) await client.agents.archive(agentId);
  expect(await due(before(30))).toEqual([]);
});

test('of the thresholds that have passed when an agent begins to use a model, only the nearest is an event', async () => {
  await service.db.execute(sql`delete from model_endings where organization_id = ${organizationId}`);
  const earlier = (await endings()).length;
  const late = await service.client.agents.create({ name: 'Late', model: { provider, model } });
  expect(await look(before(5))).toBe(1);
  expect((await endings()).slice(earlier).map(({ changes }) => changes!.agents)).toEqual([[null, [late.agentId]]]);
});

test('an agent that is given a model that ends soon is an event at once, unless the organization already has it', async () => {
  await service.db.execute(sql`delete from model_endings where organization_id = ${organizationId}`);
  const { client } = service;
  const plain = await client.agents.create({ name: 'Plain', model: 'scripted/x' });
  now = before(10);
  const earlier = (await endings()).length;
  const recent = async () => (await endings()).slice(earlier).map(({ changes }) => changes);

  await client.agents.update(plain.agentId, { name: 'Plainer' });
  expect(await recent()).toEqual([]);
  await client.agents.update(plain.agentId, {
    model: { provider: 'scripted', model: 'x', fallbacks: [{ provider, model }] },
  });
  expect(await recent()).toMatchObject([
    { endsAt: [null, endsAt], agents: [null, [plain.agentId]], agentCount: [null, 1] },
  ]);
  await client.agents.create({ name: 'Second', model: { provider, model } });
  expect(await recent()).toHaveLength(1);
  now = before(0);
  const third = await client.agents.create({ name: 'Third', model: { provider, model } });
  expect((await recent()).slice(1)).toMatchObject([{ agents: [null, [third.agentId]] }]);
});
