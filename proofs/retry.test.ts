// Turns that fail are retried while nodes are killed: no effect happens twice, the journal has no gaps, and of two retries of the
// same failure, on any nodes, one is accepted. (P1, P2, P4, P5, P7, P8)
import { type Chunk, ConflictError, type Session, type Signalbox } from '@signalbox/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { chunkTypes } from '../packages/contract/src/chunks.ts';
import { leftoversIn } from '../packages/server/test/support/database-state.ts';
import { operationOf } from '../packages/server/test/support/history.ts';
import { createTestDatabase, type TestDatabase } from '../packages/server/test/support/postgres.ts';
import { createRandom, type Random } from '../packages/server/test/support/random.ts';
import { createReceiver } from '../packages/server/test/support/receiver.ts';
import { createCounter } from './support/load.ts';
import { faults, type Nodes, startNodes } from './support/nodes.ts';
import { startToolServer } from './support/tool-server.ts';

const NODES = 3;
const TOOL_TAKES_MS = 60;
const { seed, times, isLong } = faults;
const AT_ONCE = isLong ? 8 : 4;

// The second and the fourth model call fail: each turn fails twice and is retried twice.
const PAYS = { tokenDelayMs: 20, toolCalls: [{ name: 'pay' }, { name: 'look' }] };
const script = [
  { ...PAYS, text: 'one two three ' },
  { failWith: 'rejected' as const },
  { ...PAYS, text: 'four five six ' },
  { failWith: 'rejected' as const },
  { text: 'and the end.', tokenDelayMs: 20 },
];
const FAILURES = 2;

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

test(`failed turns are retried while nodes are killed: nothing is repeated, lost or retried twice (seed ${seed})`, {
  timeout: 240_000 + times * 20_000,
}, async () => {
  const random = createRandom(seed);
  const tools = await startToolServer(async () => {
    await new Promise((resolve) => setTimeout(resolve, TOOL_TAKES_MS));
    return { ok: true };
  });
  const delivered = new Map<string, Map<string, Chunk[]>>();
  const receiver = await createReceiver(({ deliveryId, envelope: { sessionId, chunks } }) => {
    const ofSession = delivered.get(sessionId) ?? new Map<string, Chunk[]>();
    delivered.set(sessionId, ofSession);
    // A duplicate is the same chunks.
    ofSession.set(deliveryId, chunks as Chunk[]);
    return 200;
  });
  const [first] = nodes.clients;
  await first!.webhookSubscriptions.create({
    environment: 'production',
    url: receiver.url,
    chunkTypes: [...chunkTypes],
  });
  const { agentId } = await first!.agents.create({
    name: 'Failing',
    model: { provider: 'scripted', model: 'any', settings: { script } },
    tools: [tools.tool('pay'), tools.tool('look', { idempotent: true })],
  });
  const shown = createCounter();
  const any = (chances: Random): Signalbox => chances.pick(nodes.clients);

  /** Two clients on any two nodes ask for the same retry. Returns how many of them were accepted. */
  async function retryTwice(sessionId: string, chances: Random): Promise<number> {
    const outcomes = [any(chances), any(chances)].map(async ({ sessions }) => {
      try {
        await sessions.retry(sessionId);
        return 1;
      } catch (error) {
        if (error instanceof ConflictError && error.code === 'turn_not_failed') return 0;
        throw error;
      }
    });
    return (await Promise.all(outcomes)).reduce<number>((sum, one) => sum + one, 0);
  }

  /** Runs a session to its end. Returns what is wrong with it. */
  async function converse(chances: Random): Promise<string[]> {
    const { sessionId } = await any(chances).sessions.open({ agentId, environment: 'production', input: 'go' });
    const wrong: string[] = [];
    const check = (kept: boolean, promise: string) => {
      if (!kept) wrong.push(`${sessionId}: ${promise}`);
    };
    const read: Chunk[] = [];
    let failures = 0;
    let accepted = 0;
    for await (const { chunks } of any(chances).sessions.stream(sessionId)) {
      read.push(...chunks);
      shown.add(chunks.length);
      for (const chunk of chunks) {
        if (chunk.type !== 'session.status' || chunk.status !== 'idle') continue;
        if (chunk.stopReason !== 'error') await any(chances).sessions.close(sessionId);
        else {
          failures += 1;
          check(chunk.error?.code === 'model_rejected', 'a failed turn says why');
          accepted += await retryTwice(sessionId, chances.fork());
        }
      }
    }
    const stored: Chunk[] = [];
    for await (const { chunks } of any(chances).sessions.chunks(sessionId, { limit: 1000 })) stored.push(...chunks);
    check(failures === FAILURES, `the turn failed ${failures} times, as its model did ${FAILURES} times`);
    check(accepted === FAILURES, `${FAILURES} retries were accepted, not ${accepted}`);
    check(JSON.stringify(read) === JSON.stringify(stored), 'the stream is the journal');
    check(
      stored.every(({ turn, seq }, index) => turn === 1 && seq === index + 1),
      'the journal is one turn without gaps',
    );
    const ends = stored.flatMap((chunk) => (chunk.type === 'turn.completed' ? [chunk] : []));
    const reasons = ends.map(({ stopReason }) => stopReason).join(' ');
    check(reasons === 'error error endTurn', `the turn ended as ${reasons}`);
    check(textOf(stored) === 'one two three four five six and the end.', `it says: ${textOf(stored)}`);
    const { usage, error }: Session = await any(chances).sessions.get(sessionId);
    check(usage.steps === 3 && usage.toolCalls === 4 && error === null, 'its usage is that of one turn');

    const started = stored.flatMap((chunk) => (chunk.type === 'tool.call' ? [chunk] : []));
    check(started.length === 4, `4 calls were made, not ${started.length}`);
    for (const { toolCallId, tool } of started) {
      const results = stored.flatMap((chunk) =>
        chunk.type === 'tool.result' && chunk.toolCallId === toolCallId ? [chunk] : [],
      );
      const times = tools.calls.get(operationOf(toolCallId))?.times ?? 0;
      check(results.length === 1, `${tool} has one result, not ${results.length}`);
      if (tool === 'pay') check(times <= 1, `pay ran ${times} times`);
      if (times === 0) check(results[0]?.outcomeUnknown === true, `${tool} has a result, but did not run`);
    }
    const last = stored.at(-1)!;
    const isWhole = () => [...(delivered.get(sessionId)?.values() ?? [])].flat().some(({ seq }) => seq === last.seq);
    await expect.poll(isWhole, { timeout: 120_000 }).toBe(true);
    const received = [...delivered.get(sessionId)!.values()].flat();
    check(JSON.stringify(received) === JSON.stringify(stored), 'the deliveries add up to the journal');
    return wrong;
  }

  let isOver = false;
  async function lane(chances: Random): Promise<string[]> {
    const wrong: string[] = [];
    do {
      wrong.push(...(await converse(chances.fork())));
    } while (!isOver);
    return wrong;
  }
  const lanes = Promise.all(Array.from({ length: AT_ONCE }, () => lane(random.fork())));
  const failed = lanes.then(() => new Promise<never>(() => {}));
  for (let kills = 0; kills < times; kills += 1) {
    // Some chunks later, at any point of the work.
    await Promise.race([shown.reaches(shown.count + 40 + random.below(120)), failed]);
    await nodes.kill(random.below(NODES));
  }
  isOver = true;
  const wrong = (await lanes).flat();
  await Promise.all([tools.close(), receiver.close()]);
  expect(wrong).toEqual([]);
  expect(await leftoversIn(database.url)).toEqual([]);
});

/** Without what was reset. */
function textOf(chunks: readonly Chunk[]): string {
  let kept: { seq: number; delta: string }[] = [];
  for (const chunk of chunks) {
    if (chunk.type === 'message.reset') kept = kept.filter(({ seq }) => seq < chunk.fromSeq);
    if (chunk.type === 'message.chunk') kept.push(chunk);
  }
  return kept.map(({ delta }) => delta).join('');
}
