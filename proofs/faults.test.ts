// Three nodes that reach their database through a proxy: nodes are suspended past their lease, responses to commits are lost with
// their connection, and wake-ups are lost. (P1–P5, P7, P8)
import type { Chunk, CreateAgent } from '@signalbox/client';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { countSessionsOf, endListenersOn, listenersOn } from '../packages/server/test/support/database-state.ts';
import { type Reply, respond, startOpenAiServer } from '../packages/server/test/support/openai-server.ts';
import { createTestDatabase, type TestDatabase } from '../packages/server/test/support/postgres.ts';
import { type PostgresProxy, startPostgresProxy } from '../packages/server/test/support/postgres-proxy.ts';
import { createRandom } from '../packages/server/test/support/random.ts';
import { type Load, startLoad } from './support/load.ts';
import { faults, type Nodes, startNodes } from './support/nodes.ts';
import { startToolServer } from './support/tool-server.ts';

const NODES = 3;
const TIMEOUT_MS = 240_000 + faults.times * 20_000;
/** The share of responses to commits that are lost; more of those to text, which is the journal's fast path. */
const LOST = 0.03;
const LOST_OF_TEXT = 0.15;
const LOSSES_A_TIME = 3;

const random = createRandom(faults.seed);
const indices = Array.from({ length: NODES }, (_, index) => index);
let database: TestDatabase;
let proxy: PostgresProxy;
let nodes: Nodes;
let load: Load;
beforeAll(async () => {
  database = await createTestDatabase();
  proxy = await startPostgresProxy(database.url);
  nodes = await startNodes(NODES, proxy.url);
  load = await startLoad({ nodes, random: random.fork(), databaseUrl: () => database.url });
}, 180_000);
afterEach(() => {
  proxy.losesResponse = () => false;
  proxy.isDeaf = false;
});
afterAll(async () => {
  await nodes?.end();
  await load?.close();
  await proxy?.close();
  await database.drop();
});

const lossesOf = (index: number) => nodes.metric(index, /^signalbox_lease_losses_total\b/);
const heardOf = (index: number) => nodes.metric(index, /^signalbox_wakeups_total\{.*origin="elsewhere"/);

const said = ['said to the one that stood still', 'said to the one that went on'];

/** An external request that a turn waits for: it reports the first and second call, and responds when released. */
type Source = (asked: (index: number) => Promise<void>) => Promise<{ agent: CreateAgent; close(): Promise<void> }>;

const sources: [string, Source][] = [
  [
    'the result of a tool',
    async (asked) => {
      const tools = await startToolServer(async ({ times }) => {
        await asked(times - 1);
        return said[times - 1];
      });
      const script = [{ toolCalls: [{ name: 'look' }] }, { text: '{{lastToolResult}}' }];
      const model = { provider: 'scripted' as const, model: 'any', settings: { script } };
      return { agent: { name: 'Looks', model, tools: [tools.tool('look', { idempotent: true })] }, close: tools.close };
    },
  ],
  [
    'the text of a model',
    async (asked) => {
      const server = await startOpenAiServer();
      const replies = said.map(
        (text, index): Reply =>
          async (response, request) => {
            await asked(index);
            // With its end in the response, the text would be written as part of the transition.
            await respond({ text, end: index === 0 ? 'hang' : 'done' })(response, request);
          },
      );
      server.next(...replies);
      const model = { provider: 'openai-compatible' as const, model: 'any', baseUrl: server.url };
      return { agent: { name: 'Talks', model }, close: server.close };
    },
  ],
];

test.each(sources)(
  'a node that was suspended past its lease does not write %s, even if no other node has written yet',
  {
    timeout: TIMEOUT_MS,
  },
  async (_, start) => {
    const came = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const mayAnswer = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const { agent, close } = await start((index) => {
      came[index]!.resolve();
      return mayAnswer[index]!.promise;
    });
    const { agentId } = await nodes.clients[0]!.agents.create(agent);
    const opened = { agentId, environment: 'staging', input: 'go', closeOnIdle: true };
    const { sessionId } = await nodes.clients[0]!.sessions.open(opened);
    await came[0]!.promise;
    const stopped = await nodes.driverOf(sessionId, database.url);
    const losses = await lossesOf(stopped);
    nodes.pause(stopped);
    // Another node has claimed the session and repeated the call: the journal is as the first node left it.
    await came[1]!.promise;
    mayAnswer[0]!.resolve();
    nodes.proceed(stopped);
    await expect.poll(() => lossesOf(stopped)).toBeGreaterThan(losses);
    mayAnswer[1]!.resolve();

    for (const client of nodes.clients) {
      const chunks: Chunk[] = [];
      for await (const { chunks: more } of client.sessions.stream(sessionId)) chunks.push(...more);
      const results = chunks.flatMap((chunk) => (chunk.type === 'tool.result' ? [chunk.output] : []));
      expect(results.filter((output) => output !== said[1])).toEqual([]);
      const text = chunks.flatMap((chunk) => (chunk.type === 'message.chunk' ? [chunk.delta] : [])).join('');
      expect(text).toBe(said[1]);
    }
    await close();
  },
);

test(`nodes are suspended past their lease, one after another, under load (seed ${faults.seed})`, {
  timeout: TIMEOUT_MS,
}, async () => {
  const chances = random.fork();
  const held = (index: number) => countSessionsOf(database.url, nodes.nodeId(index));
  const broken = await load.during(async () => {
    for (let stops = 0; stops < faults.times; ) {
      await load.shown(10 + chances.below(40));
      const index = chances.below(NODES);
      nodes.pause(index);
      if ((await held(index)) > 0) {
        stops += 1;
        await expect.poll(() => held(index)).toBe(0);
      }
      nodes.proceed(index);
    }
  });
  expect(broken).toEqual([]);
});

test(`responses to commits are lost with their connections: nothing is lost or duplicated (seed ${faults.seed})`, {
  timeout: TIMEOUT_MS,
}, async () => {
  const chances = random.fork();
  const lost = { text: 0, others: 0 };
  proxy.losesResponse = (tags) => {
    const kind = /^BEGIN,SELECT 1,UPDATE [1-9]\d*,COMMIT$/.test(tags.join()) ? 'text' : 'others';
    const isLost = chances.chance(kind === 'text' ? LOST_OF_TEXT : LOST);
    if (isLost) lost[kind] += 1;
    return isLost;
  };
  const broken = await load.during(async () => {
    while (Math.min(lost.text, lost.others) < LOSSES_A_TIME * faults.times) await load.shown(20);
    proxy.losesResponse = () => false;
  });
  expect(broken).toEqual([]);
});

test(`without wake-ups between nodes, everything still arrives (seed ${faults.seed})`, {
  timeout: TIMEOUT_MS,
}, async () => {
  proxy.isDeaf = true;
  const before = proxy.notificationsLost;
  const heard = await Promise.all(indices.map(heardOf));
  const broken = await load.during(() => load.shown(100 * faults.times));
  expect(broken).toEqual([]);
  expect(proxy.notificationsLost).toBeGreaterThan(before);
  expect(await Promise.all(indices.map(heardOf)), 'wake-ups of other nodes').toEqual(heard);
});

test('without wake-ups between nodes, a turn stops when another node gets the request', {
  timeout: TIMEOUT_MS,
}, async () => {
  const came = Promise.withResolvers<void>();
  const tools = await startToolServer(() => {
    came.resolve();
    return new Promise(() => {});
  });
  const [client] = nodes.clients;
  const { agentId } = await client!.agents.create({
    name: 'Interrupted',
    model: { provider: 'scripted', model: 'any', settings: { script: [{ toolCalls: [{ name: 'look' }] }] } },
    tools: [tools.tool('look')],
  });
  proxy.isDeaf = true;
  const opened = { agentId, environment: 'staging', input: 'go', closeOnIdle: true };
  const { sessionId } = await client!.sessions.open(opened);
  await came.promise;
  const driver = await nodes.driverOf(sessionId, database.url);
  const elsewhere = nodes.clients[(driver + 1) % NODES]!;
  await elsewhere.sessions.interrupt(sessionId);
  const chunks: Chunk[] = [];
  for await (const { chunks: more } of elsewhere.sessions.stream(sessionId)) chunks.push(...more);
  expect(chunks.filter(({ type }) => type === 'turn.completed')).toMatchObject([{ stopReason: 'interrupted' }]);
  await tools.close();
});

test(`listening connections are closed repeatedly: nodes listen again and get notifications (seed ${faults.seed})`, {
  timeout: TIMEOUT_MS,
}, async () => {
  const broken = await load.during(async () => {
    for (let ends = 0; ends < faults.times; ends += 1) {
      await load.shown(20);
      const ended = await endListenersOn(database.url);
      expect(ended).toHaveLength(NODES);
      const fresh = async () => (await listenersOn(database.url)).filter((pid) => !ended.includes(pid)).length;
      await expect.poll(fresh).toBe(NODES);
      const heard = await Promise.all(indices.map(heardOf));
      for (const index of indices) await expect.poll(() => heardOf(index)).toBeGreaterThan(heard[index]!);
    }
  });
  expect(broken).toEqual([]);
});
