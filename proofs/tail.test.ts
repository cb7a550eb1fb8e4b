// Nodes with SIGNALBOX_TAIL=on are killed with kill -9 while text of a response is in the tail: what a reader on another node has seen is in
// the journal, in its place, and the session ends. (P1–P4, P8)
import type { Chunk } from '@signalbox/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ask } from '../packages/embedded-postgres/test/support/ask.ts';
import { uuidOf } from '../packages/server/src/lib/ids.ts';
import { leftoversIn } from '../packages/server/test/support/database-state.ts';
import { type OpenAiServer, startOpenAiServer } from '../packages/server/test/support/openai-server.ts';
import { createTestDatabase, type TestDatabase } from '../packages/server/test/support/postgres.ts';
import { begin, write } from '../packages/server/test/support/provider-server.ts';
import { type Nodes, startNodes } from './support/nodes.ts';

const NODES = 2;
const WORDS = 80;
const SEEN_WORDS = 30;
const WORD_MS = 25;
// A node uses the tail a minute after its start.
const MOST_MS = 100_000;

let database: TestDatabase;
let nodes: Nodes;
let model: OpenAiServer;
let agentId: string;
beforeAll(async () => {
  database = await createTestDatabase();
  nodes = await startNodes(NODES, database.url, { SIGNALBOX_TAIL: 'on' });
  model = await startOpenAiServer(async (response) => {
    begin(response);
    const send = (choice: object) => write(response, `data: ${JSON.stringify({ id: 'x', choices: [choice] })}\n\n`);
    for (let word = 1; word <= WORDS && !response.destroyed; word += 1) {
      await send({ index: 0, delta: { content: `${word} ` }, finish_reason: null });
      await new Promise((resolve) => setTimeout(resolve, WORD_MS));
    }
    await send({ index: 0, delta: {}, finish_reason: 'stop' });
    response.end('data: [DONE]\n\n');
  });
  const { agentId: id } = await nodes.clients[0]!.agents.create({
    name: 'Slow',
    model: { provider: 'openai-compatible', model: 'slow', baseUrl: model.url },
  });
  agentId = id;
}, 180_000);
afterAll(async () => {
  await nodes?.end();
  await model?.close();
  await database.drop();
});

const usesTail = (index: number) => nodes.metric(index, /^signalbox_append_duration_seconds_count\{path="tail"\}/);
const isText = (chunk: Chunk) => chunk.type === 'message.chunk';

test('text that was in the tail of a killed node is in the journal, as it was shown', {
  timeout: 3 * MOST_MS,
}, async () => {
  const open = (index: number) =>
    nodes.clients[index]!.sessions.open({ agentId, environment: 'production', input: 'go', closeOnIdle: true });
  for (let index = 0; index < NODES; index += 1) {
    await expect
      .poll(
        async () => {
          const { sessionId } = await open(index);
          for await (const _ of nodes.clients[index]!.sessions.stream(sessionId));
          return usesTail(index);
        },
        { timeout: MOST_MS, interval: 1_000 },
      )
      .toBeGreaterThan(0);
    const { sessionId } = await open(index);
    expect(await nodes.driverOf(sessionId, database.url)).toBe(index);
    const seen: Chunk[] = [];
    const enough = Promise.withResolvers<void>();
    const reading = (async () => {
      for await (const { chunks } of nodes.clients[1 - index]!.sessions.stream(sessionId)) {
        seen.push(...chunks);
        if (seen.filter(isText).length >= SEEN_WORDS) enough.resolve();
      }
    })();
    await enough.promise;
    const before = seen.length;
    await nodes.kill(index);
    await reading;
    const { data } = await nodes.clients[1 - index]!.sessions.chunks(sessionId, { limit: 1000 });
    expect(data.flatMap(({ chunks }) => chunks)).toEqual(seen);
    expect(before).toBeGreaterThan(SEEN_WORDS);
    // The text of the call that was cut off is void, and that of the next one whole.
    const reset = seen.findIndex(({ type }) => type === 'message.reset');
    const text = (chunks: Chunk[]) => chunks.map((chunk) => ('delta' in chunk ? chunk.delta : '')).join('');
    expect(text(seen.slice(reset))).toBe(Array.from({ length: WORDS }, (_, n) => `${n + 1} `).join(''));
    // What was shown before was in the tail: it is one segment.
    const rows = await ask<{ seq_from: number; seq_to: number }>(
      database.url,
      `select seq_from, seq_to from segments where session_id = '${uuidOf('ses', sessionId)}' order by seq_to`,
    );
    expect(rows.some(({ seq_from, seq_to }) => Number(seq_to) - Number(seq_from) > 10)).toBe(true);
  }
  expect(await leftoversIn(database.url)).toEqual([]);
  expect(nodes.errors).toEqual([]);
});
