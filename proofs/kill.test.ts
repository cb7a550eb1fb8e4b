// Three nodes on one database are killed with kill -9: repeatedly while sessions run, and in the middle of an effect.
// (P1–P5, P7, P8)
import type { Chunk } from '@signalbox/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../packages/server/test/support/postgres.ts';
import { createRandom } from '../packages/server/test/support/random.ts';
import { startLoad } from './support/load.ts';
import { faults, type Nodes, startNodes } from './support/nodes.ts';
import { startToolServer } from './support/tool-server.ts';

const NODES = 3;
const { seed, times } = faults;

let database: TestDatabase;
let nodes: Nodes;
beforeAll(async () => {
  database = await createTestDatabase();
  nodes = await startNodes(NODES, database.url);
}, 180_000);
afterAll(async () => {
  await nodes?.end();
  await database.drop();
});

test('an effect whose node is killed is not repeated, and the model, the stream and the event log report this', {
  timeout: 120_000,
}, async () => {
  const held = { pay: Promise.withResolvers<void>(), look: Promise.withResolvers<void>() };
  const again = Promise.withResolvers<void>();
  const tools = await startToolServer(async ({ tool, times }) => {
    if (times > 1) {
      again.resolve();
      return 'seen';
    }
    held[tool as 'pay' | 'look'].resolve();
    // The client of the first call is gone.
    return new Promise(() => {});
  });
  const [one, other] = nodes.clients;
  const { agentId } = await one!.agents.create({
    name: 'Payer',
    model: {
      provider: 'scripted',
      model: 'any',
      settings: {
        script: [{ toolCalls: [{ name: 'look' }, { name: 'pay' }] }, { text: 'I heard: {{lastToolResult}}' }],
      },
    },
    tools: [tools.tool('pay'), tools.tool('look', { idempotent: true })],
  });
  const opened = { agentId, environment: 'production', input: 'go', closeOnIdle: true };
  const { sessionId } = await one!.sessions.open(opened);
  await Promise.all([held.pay.promise, held.look.promise]);
  const killed = await nodes.driverOf(sessionId, database.url);
  await nodes.kill(killed);
  await again.promise;

  const chunks: Chunk[] = [];
  for await (const { chunks: more } of other!.sessions.stream(sessionId)) chunks.push(...more);
  const callOf = (name: string) => chunks.find((chunk) => chunk.type === 'tool.call' && chunk.tool === name);
  const resultsOf = (name: string) => {
    const { toolCallId } = callOf(name) as Chunk & { toolCallId: string };
    return chunks.filter((chunk) => chunk.type === 'tool.result' && chunk.toolCallId === toolCallId);
  };
  expect(resultsOf('pay')).toMatchObject([{ outcomeUnknown: true }]);
  expect(resultsOf('look')).toMatchObject([{ output: 'seen' }]);
  // The second has the Idempotency-Key of the first: otherwise it would be another call.
  expect([...tools.calls.values()].toSorted((a, b) => a.times - b.times)).toEqual([
    { tool: 'pay', times: 1, answered: 0 },
    { tool: 'look', times: 2, answered: 1 },
  ]);
  const told = chunks.flatMap((chunk) => (chunk.type === 'message.chunk' ? [chunk.delta] : [])).join('');
  expect(told).toMatch(/^I heard: .* may or may not have taken effect\.$/);
  const events = await other!.events.list({ type: 'tool_call.outcome_unknown', sessionId });
  expect(events.data).toMatchObject([{ outcome: 'failure', resource: { type: 'tool_call' } }]);
  await tools.close();
});

test(`any node is killed repeatedly: nothing shown is lost, no effect is repeated, every session ends (seed ${seed})`, {
  timeout: 240_000 + times * 20_000,
}, async () => {
  const random = createRandom(seed);
  const load = await startLoad({ nodes, random: random.fork(), databaseUrl: () => database.url });
  const broken = await load.during(async () => {
    for (let kills = 0; kills < times; kills += 1) {
      // Some chunks later, at any point of the work.
      await load.shown(20 + random.below(60));
      await nodes.kill(random.below(NODES));
    }
  });
  await load.close();
  expect(broken).toEqual([]);
});
