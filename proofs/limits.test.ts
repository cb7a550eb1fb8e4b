// A limit of model calls while every node is killed with kill -9, with calls under way and calls that wait: no minute has more calls than
// the limit, what the dead nodes took is free again a minute later, and each session ends.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { chatCompletions } from '../packages/server/test/support/openai-server.ts';
import { createTestDatabase, type TestDatabase } from '../packages/server/test/support/postgres.ts';
import { type ProviderServer, startProviderServer } from '../packages/server/test/support/provider-server.ts';
import { faults, type Nodes, startNodes } from './support/nodes.ts';

const PER_MINUTE = 2;
const SESSIONS = 3;
// The first minute is lost with the nodes that called, and so is that after each other kill.
const KILLS = faults.isLong ? 3 : 1;
const MOST_MS = (KILLS + 2) * 70_000;

let database: TestDatabase;
let nodes: Nodes;
let provider: ProviderServer;
/** When each call came. */
const called: number[] = [];
let kills = 0;
beforeAll(async () => {
  database = await createTestDatabase();
  nodes = await startNodes(2, database.url);
  provider = await startProviderServer('/v1', async (response, request) => {
    called.push(performance.now());
    if (kills < KILLS) await new Promise(() => {});
    await chatCompletions.respond({ parts: [{ text: ['Done.'] }] })(response, request);
  });
}, 180_000);
afterAll(async () => {
  await nodes?.end();
  await provider?.close();
  await database.drop();
});

test('killed nodes neither keep what they took of a limit nor let it be exceeded', {
  timeout: MOST_MS + 120_000,
}, async () => {
  const [client] = nodes.clients;
  const limit = { model: 'openai-compatible/held', requestsPerMinute: PER_MINUTE };
  await client!.environments.update('production', { modelLimits: [limit] });
  const { agentId } = await client!.agents.create({
    name: 'Held',
    model: { provider: 'openai-compatible', model: 'held', baseUrl: provider.url },
  });
  for (let n = 0; n < SESSIONS; n++)
    await nodes.clients[n % 2]!.sessions.open({ agentId, environment: 'production', input: 'go', closeOnIdle: true });
  const withStatus = async (status: 'waiting' | 'completed') =>
    (await client!.sessions.list({ status, limit: 100 })).data.length;
  await expect.poll(() => withStatus('waiting'), { timeout: 60_000, interval: 200 }).toBe(SESSIONS - PER_MINUTE);
  await expect.poll(() => called.length, { timeout: 60_000, interval: 50 }).toBe(PER_MINUTE);

  while (kills < KILLS) {
    // At the first call of each minute: others may have their turn and not have been made yet.
    const before = called.length;
    if (kills > 0) await expect.poll(() => called.length, { timeout: 90_000, interval: 50 }).toBeGreaterThan(before);
    await Promise.all([nodes.kill(0), nodes.kill(1)]);
    kills += 1;
  }
  await expect.poll(() => withStatus('completed'), { timeout: MOST_MS, interval: 500 }).toBe(SESSIONS);

  const inMinute = called.map((from) => called.filter((at) => at >= from && at < from + 60_000).length);
  expect(Math.max(...inMinute)).toBe(PER_MINUTE);
  // Each call that was under way is made once more, and takes of the limit again.
  expect(called.length).toBeGreaterThanOrEqual(SESSIONS + PER_MINUTE);
  expect((await client!.environments.list()).data.find(({ name }) => name === 'production')?.modelLimits).toMatchObject(
    [{ waiting: 0 }],
  );
});
