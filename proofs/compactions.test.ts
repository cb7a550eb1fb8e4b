// Sessions that are compacted again and again, while nodes are killed with kill -9 in the middle of a summary: each turn ends once, the
// transcript has each message once, each compaction has one summary, and no model call is longer than the window. (P1, P2, P8)
import type { Chunk } from '@signalbox/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type OpenAiServer, respond, startOpenAiServer } from '../packages/server/test/support/openai-server.ts';
import { createTestDatabase, type TestDatabase } from '../packages/server/test/support/postgres.ts';
import { createRandom } from '../packages/server/test/support/random.ts';
import { faults, type Nodes, startNodes } from './support/nodes.ts';

const NODES = 2;
const SESSIONS = 6;
/** In each session, at least: enough for several compactions. */
const MIN_TURNS = 12;
const WINDOW_TOKENS = 2_000;
const { seed, times } = faults;

let database: TestDatabase;
let nodes: Nodes;
let model: OpenAiServer;
/** The sizes of all calls, in tokens of three bytes, and what was wrong with a call. */
const sizes: number[] = [];
const faulty: string[] = [];
let summaries = 0;
/** While set, summaries are not written. Their sessions, by number. */
let held: Map<number, () => void> | undefined;

beforeAll(async () => {
  database = await createTestDatabase();
  nodes = await startNodes(NODES, database.url);
  model = await startOpenAiServer(async (response, request) => {
    const said = JSON.stringify(request.body.messages);
    const tokens = Math.ceil(Buffer.byteLength(said) / 3);
    sizes.push(tokens);
    const session = Number(/session (\d+)/.exec(said)?.[1]);
    const others = [...said.matchAll(/session (\d+)/g)].filter(([, other]) => Number(other) !== session);
    if (others.length > 0) faulty.push(`has another session: ${said}`);
    const usage = { prompt: tokens, completion: 100 };
    if (request.body.model === 'summaries') {
      summaries += 1;
      const waiting = held;
      if (waiting) await new Promise<void>((resolve) => waiting.set(session, resolve));
      return await respond({ text: ['Summary of ', `session ${session}.`], usage })(response, request);
    }
    if (!said.includes(textOf(session, 1).slice(0, 40))) faulty.push(`is without the first message: ${said}`);
    const last = JSON.stringify(request.body.messages.findLast(({ role }) => role === 'user'));
    const turn = Number([...last.matchAll(/message (\d+) of/g)].at(-1)?.[1]);
    await respond({ text: ['I read ', textOf(session, turn)], usage })(response, request);
  });
}, 180_000);
afterAll(async () => {
  await nodes?.end();
  await model?.close();
  await database.drop();
});

function textOf(session: number, turn: number): string {
  return `message ${turn} of session ${session}, ${'with many words '.repeat(25)}`;
}

test(`sessions are compacted while nodes are killed, and lose and repeat nothing (seed ${seed})`, {
  timeout: 240_000 + times * 20_000,
}, async () => {
  const random = createRandom(seed);
  const client = () => nodes.clients[random.below(NODES)]!;
  const ref = { provider: 'openai-compatible' as const, baseUrl: model.url, contextTokens: WINDOW_TOKENS };
  const { agentId } = await client().agents.create({
    name: 'Reader',
    model: { ...ref, model: 'reader', compaction: { ...ref, model: 'summaries' } },
  });
  const sessionIds = await Promise.all(
    Array.from({ length: SESSIONS }, async () => {
      return (await client().sessions.open({ agentId, environment: 'production' })).sessionId;
    }),
  );

  let isOver = false;
  async function converse(sessionId: string, session: number): Promise<number> {
    let turn = 0;
    while (!isOver || turn < MIN_TURNS) {
      turn += 1;
      await client().sessions.sendMessage(sessionId, { content: textOf(session, turn) });
      await expect
        .poll(
          async () => {
            const { status, turn, error } = await client().sessions.get(sessionId);
            return [status, turn, error];
          },
          { timeout: 120_000, interval: 50 },
        )
        .toEqual(['idle', turn, null]);
    }
    return turn;
  }
  async function kill(): Promise<void> {
    for (let kills = 0; kills < times; kills += 1) {
      held = new Map();
      await expect.poll(() => held!.size, { timeout: 60_000, interval: 20 }).toBeGreaterThan(0);
      const [session] = held.keys();
      await nodes.kill(await nodes.driverOf(sessionIds[session!]!, database.url));
      const waiting = held;
      held = undefined;
      for (const resume of waiting.values()) resume();
    }
    isOver = true;
  }
  const [, ...turns] = await Promise.all([kill(), ...sessionIds.map(converse)]);

  expect(faulty).toEqual([]);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(WINDOW_TOKENS);
  let compactions = 0;
  for (const [session, sessionId] of sessionIds.entries()) {
    const expected = Array.from({ length: turns[session]! }, (_, index) => index + 1);
    const lines: string[] = [];
    for await (const { turn, role, content } of client().sessions.messages(sessionId, { limit: 100 }))
      for (const part of content) lines.push(`${turn} ${role} ${part.type === 'text' ? part.text : part.type}`);
    expect(lines).toEqual(
      expected.flatMap((turn) => [
        `${turn} user ${textOf(session, turn)}`,
        `${turn} assistant I read ${textOf(session, turn)}`,
      ]),
    );

    const chunks: Chunk[] = [];
    for await (const { chunks: more } of client().sessions.chunks(sessionId, { limit: 100 })) chunks.push(...more);
    const ends = chunks.flatMap((chunk) => (chunk.type === 'turn.completed' ? [[chunk.turn, chunk.stopReason]] : []));
    expect(ends).toEqual(expected.map((turn) => [turn, 'endTurn']));
    for (const turn of expected) {
      const seqs = chunks.flatMap((chunk) => (chunk.turn === turn ? [chunk.seq] : []));
      expect(seqs).toEqual(seqs.map((_, position) => position + 1));
    }

    const operations: string[] = [];
    for await (const turn of client().sessions.turns(sessionId, { limit: 100 })) {
      for (const { kind, status, operationId, compaction } of turn.operations) {
        // A compaction that a kill interrupted may not be needed any more.
        if (kind === 'compaction' && status === 'cancelled') continue;
        expect(status).toBe('succeeded');
        if (kind === 'compaction') operations.push(`${operationId} ${compaction!.summary}`);
      }
    }
    const compacted = chunks.flatMap((chunk) =>
      chunk.type === 'context.compacted' ? [`${chunk.operationId} ${chunk.summary}`] : [],
    );
    expect(compacted.toSorted()).toEqual(operations.toSorted());
    expect(new Set(compacted).size).toBe(compacted.length);
    expect(compacted.every((one) => one.endsWith(` Summary of session ${session}.`))).toBe(true);
    expect(compacted.length).toBeGreaterThan(1);
    compactions += compacted.length;
  }
  // Each kill interrupted one, which was then requested again.
  expect(summaries).toBeGreaterThanOrEqual(compactions + times);
});
