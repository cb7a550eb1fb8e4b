// Sessions whose model and fallback are down are parked while nodes are killed with kill -9, and continue by themselves when the
// fallback is back: each finishes its turn once, and no effect from before the outage is repeated. (P2–P4, P7, P8)
import type { Chunk } from '@signalbox/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { chatCompletions } from '../packages/server/test/support/openai-server.ts';
import { createTestDatabase, type TestDatabase } from '../packages/server/test/support/postgres.ts';
import { type ProviderServer, refuse, startProviderServer } from '../packages/server/test/support/provider-server.ts';
import { createRandom } from '../packages/server/test/support/random.ts';
import { faults, type Nodes, startNodes } from './support/nodes.ts';
import { startToolServer } from './support/tool-server.ts';

const NODES = 3;
const { seed, times, isLong } = faults;
const SESSIONS = isLong ? 20 : 8;

let database: TestDatabase;
let nodes: Nodes;
let first: ProviderServer;
let fallback: ProviderServer;
let isDown = true;
beforeAll(async () => {
  database = await createTestDatabase();
  nodes = await startNodes(NODES, database.url);
  first = await startProviderServer('/v1', async (response, request) => {
    // The first step pays; every later call meets an outage.
    const isFirstStep = !request.text.includes('"role":"tool"');
    const pay = chatCompletions.respond({ parts: [{ call: 'pay', input: {} }] });
    await (isFirstStep ? pay : refuse(503))(response, request);
  });
  fallback = await startProviderServer('/v1', async (response, request) => {
    const answer = chatCompletions.respond({ parts: [{ text: ['Paid, ', 'and done.'] }] });
    await (isDown ? refuse(503) : answer)(response, request);
  });
}, 180_000);
afterAll(async () => {
  await nodes?.end();
  await Promise.all([first?.close(), fallback?.close()]);
  await database.drop();
});

test(`parked sessions survive killed nodes, and each finishes its turn once when a model is back (seed ${seed})`, {
  timeout: 240_000 + times * 20_000,
}, async () => {
  const random = createRandom(seed);
  const tools = await startToolServer(async () => 'paid');
  const ref = (model: string, { url }: ProviderServer) => ({
    provider: 'openai-compatible' as const,
    model,
    baseUrl: url,
  });
  const client = () => nodes.clients[random.below(NODES)]!;
  const { agentId } = await client().agents.create({
    name: 'Payer',
    model: { ...ref('first', first), fallbacks: [ref('fallback', fallback)] },
    tools: [tools.tool('pay')],
  });
  const sessionIds = await Promise.all(
    Array.from({ length: SESSIONS }, async () => {
      const opened = { agentId, environment: 'production', input: 'go', closeOnIdle: true };
      return (await client().sessions.open(opened)).sessionId;
    }),
  );
  await expect
    .poll(async () => (await client().sessions.list({ status: 'waiting', limit: 100 })).data.length, {
      timeout: 120_000,
      interval: 200,
    })
    .toBe(SESSIONS);
  for (const { waitingFor } of (await client().sessions.list({ status: 'waiting', limit: 100 })).data) {
    expect(waitingFor).toMatchObject({ type: 'model', error: { code: 'model_unavailable' } });
  }

  const reading = sessionIds.map(async (sessionId) => {
    const chunks: Chunk[] = [];
    for await (const { chunks: more } of client().sessions.stream(sessionId)) chunks.push(...more);
    return chunks;
  });
  for (let kills = 0; kills < times; kills += 1) {
    await nodes.kill(random.below(NODES));
    // From then on, nodes are killed while sessions continue.
    if (kills === Math.floor(times / 2)) isDown = false;
  }
  isDown = false;

  for (const [index, chunks] of (await Promise.all(reading)).entries()) {
    const sessionId = sessionIds[index]!;
    const voidFrom = (turn: number, seq: number) =>
      chunks.some(
        (chunk) => chunk.type === 'message.reset' && chunk.turn === turn && chunk.fromSeq <= seq && chunk.seq > seq,
      );
    const text = chunks.flatMap((chunk) =>
      chunk.type === 'message.chunk' && !voidFrom(chunk.turn, chunk.seq) ? [chunk.delta] : [],
    );
    expect(text.join('')).toBe('Paid, and done.');
    expect(chunks.filter(({ type }) => type === 'turn.completed')).toMatchObject([{ turn: 1, stopReason: 'endTurn' }]);
    expect(chunks.map(({ seq }) => seq)).toEqual(chunks.map((_, position) => position + 1));
    expect(chunks.filter(({ type }) => type === 'tool.call')).toHaveLength(1);
    const session = await client().sessions.get(sessionId);
    expect(session).toMatchObject({ status: 'completed', turn: 1, waitingFor: null, usage: { steps: 2 } });
    const [turn] = (await client().sessions.turns(sessionId)).data;
    expect(turn!.operations.map(({ name, status }) => [name, status])).toEqual([
      ['openai-compatible/first', 'succeeded'],
      ['pay', 'succeeded'],
      ['openai-compatible/fallback', 'succeeded'],
    ]);
  }
  expect([...tools.calls.values()].map(({ times: made }) => made)).toEqual(sessionIds.map(() => 1));
  await tools.close();
});
