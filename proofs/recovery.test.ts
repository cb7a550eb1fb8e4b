// 500 sessions wait on two nodes for a model that is down. When it is back, a person who retries has a response within seconds, and all
// others follow by themselves, without a call that is refused. (P8)
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { chatCompletions } from '../packages/server/test/support/openai-server.ts';
import { createTestDatabase, type TestDatabase } from '../packages/server/test/support/postgres.ts';
import { type ProviderServer, refuse, startProviderServer } from '../packages/server/test/support/provider-server.ts';
import { type Nodes, startNodes } from './support/nodes.ts';

const SESSIONS = 500;
// Without a wake-up a session waits for 15 to 300 seconds.
const WITHIN_MS = 30_000;
const PERSON_WITHIN_MS = 2_000;

let database: TestDatabase;
let nodes: Nodes;
let provider: ProviderServer;
let isDown = true;
let refused = 0;
beforeAll(async () => {
  database = await createTestDatabase();
  nodes = await startNodes(2, database.url);
  const answer = chatCompletions.respond({ parts: [{ text: ['Here ', 'again.'] }] });
  provider = await startProviderServer('/v1', async (response, request) => {
    if (isDown) refused += 1;
    await (isDown ? refuse(503) : answer)(response, request);
  });
}, 180_000);
afterAll(async () => {
  await nodes?.end();
  await provider?.close();
  await database.drop();
});

test('a person’s retry finds that a model is back, and 500 parked sessions of two nodes follow within 30 seconds', async () => {
  const [here, there] = [nodes.clients[0]!, nodes.clients[1]!];
  const model = { provider: 'openai-compatible' as const, model: 'm', baseUrl: provider.url };
  const { agentId } = await here.agents.create({ name: 'Patient', model });
  const { agentId: impatientId } = await here.agents.create({
    name: 'Impatient',
    model,
    limits: { modelOutageSeconds: 0 },
  });
  const open = (client: typeof here, id: string) =>
    client.sessions.open({ agentId: id, environment: 'production', input: 'go' });
  await Promise.all(Array.from({ length: SESSIONS }, (_, n) => open(n % 2 === 0 ? here : there, agentId)));
  const { sessionId } = await open(here, impatientId);
  const rows = new pg.Client(database.url);
  await rows.connect();
  const count = async (status: string) =>
    (await rows.query('select count(*)::integer as count from sessions where status = $1', [status])).rows[0].count;
  const patience = { timeout: 120_000, interval: 100 };
  await expect.poll(() => count('waiting'), patience).toBe(SESSIONS);
  await expect.poll(async () => (await here.sessions.get(sessionId)).error?.code, patience).toBe('model_unavailable');
  const refusedBefore = refused;
  // Few of the calls were made: five until each node knew, and one a second at most since then.
  expect(refusedBefore).toBeLessThan(SESSIONS / 2);

  isDown = false;
  const backAt = performance.now();
  await here.sessions.retry(sessionId);
  for await (const { chunks } of here.sessions.stream(sessionId)) {
    if (chunks.some(({ type }) => type === 'message.chunk')) break;
  }
  const personMs = performance.now() - backAt;
  await expect.poll(() => count('idle'), patience).toBe(SESSIONS + 1);
  const allMs = performance.now() - backAt;
  console.log(
    `The person had a response after ${Math.round(personMs)} ms, all ${SESSIONS} sessions after ${Math.round(allMs)} ms`,
  );
  expect(personMs).toBeLessThan(PERSON_WITHIN_MS);
  expect(allMs).toBeLessThan(WITHIN_MS);
  expect(refused).toBe(refusedBefore);
  const { rows: ends } = await rows.query('select distinct turn, steps, stop_reason from sessions');
  expect(ends).toEqual([{ turn: 1, steps: 1, stop_reason: 'endTurn' }]);
  await rows.end();
}, 240_000);
