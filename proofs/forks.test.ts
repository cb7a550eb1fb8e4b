// Sessions are forked, continued and deleted at the same time, forks of forks among them, while nodes are killed with kill -9: each fork
// has the conversation up to its turn and its own, and what no session needs any more is gone. (P1, P2, P8)
import { type Session, SignalboxError } from '@signalbox/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ask } from '../packages/embedded-postgres/test/support/ask.ts';
import { createTestDatabase, type TestDatabase } from '../packages/server/test/support/postgres.ts';
import { createRandom } from '../packages/server/test/support/random.ts';
import { faults, type Nodes, startNodes } from './support/nodes.ts';

const NODES = 2;
/** Concurrent actions. */
const LANES = 6;
const ORIGINS = 4;
/** Between two kills. */
const ACTIONS = 40;
/** In all, whatever the seed and the speed of the machine. */
const MIN_FORKS = 6;
const MIN_DELETIONS = 2;
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

interface Known {
  sessionId: string;
  /** The message of each turn. The model repeats it. */
  said: string[];
  isDeleted: boolean;
  /** Turns whose response may be cut: their session was cancelled, to be deleted, and was forked before it was gone. */
  cut: readonly number[];
  /** The last message is accepted. */
  sent: Promise<unknown>;
}

test(`forks, messages and deletions at once, while nodes are killed, keep every conversation apart (seed ${seed})`, {
  timeout: 240_000 + times * 20_000,
}, async () => {
  const random = createRandom(seed);
  const client = () => nodes.clients[random.below(NODES)]!;
  const { agentId } = await client().agents.create({
    name: 'Echo',
    model: { provider: 'scripted', model: 'any', settings: { script: [{ text: '{{input}}', tokenDelayMs: 3 }] } },
  });
  const sessions: Known[] = [];
  let actions = 0;
  let isOver = false;
  const counts = { messages: 0, forks: 0, deletions: 0, refused: 0 };

  const add = ({ sessionId }: Session, said: string[], cut: readonly number[] = []) =>
    sessions.push({ sessionId, said, isDeleted: false, cut, sent: Promise.resolve() });

  async function say(known: Known): Promise<void> {
    const content = `message ${actions} of many words, one after another`;
    // One after another, so that the n-th message is that of the n-th turn.
    known.sent = known.sent.then(async () => {
      if (known.isDeleted) return;
      await client().sessions.sendMessage(known.sessionId, { content });
      known.said.push(content);
      counts.messages += 1;
    });
    await known.sent;
  }

  async function fork(known: Known): Promise<void> {
    const input = `fork ${actions} with other words`;
    const before = [...known.said];
    const opened = await client().sessions.fork(known.sessionId, { input });
    const { turn } = opened.forkedFrom!;
    // A message may have been sent and its turn finished in the meantime.
    await known.sent.catch(() => {});
    const inherited = (turn <= before.length ? before : known.said).slice(0, turn);
    expect(inherited).toHaveLength(turn);
    const cut = known.cut.filter((one) => one <= turn);
    add(opened, [...inherited, input], known.isDeleted ? [...cut, turn] : cut);
    counts.forks += 1;
  }

  async function remove(known: Known): Promise<void> {
    if (sessions.filter(({ isDeleted }) => !isDeleted).length <= ORIGINS) return;
    known.isDeleted = true;
    await known.sent.catch(() => {});
    await client().sessions.cancel(known.sessionId);
    await client().sessions.delete(known.sessionId);
    counts.deletions += 1;
  }

  async function lane(): Promise<void> {
    while (!isOver) {
      const living = sessions.filter(({ isDeleted }) => !isDeleted);
      const known = living[random.below(living.length)]!;
      const act = [say, say, fork, fork, remove][random.below(5)]!;
      actions += 1;
      await act(known).catch((error) => {
        // Another lane deleted or cancelled the session.
        const isGone = error instanceof SignalboxError && ['not_found', 'session_ended'].includes(error.code);
        if (!isGone || !known.isDeleted) throw error;
        counts.refused += 1;
      });
    }
  }

  for (let origin = 0; origin < ORIGINS; origin += 1) {
    const input = `origin ${origin}`;
    add(await client().sessions.open({ agentId, environment: 'production', input }), [input]);
  }
  const lanes = Promise.all(Array.from({ length: LANES }, lane));
  // One that fails ends the kills too.
  lanes.catch(() => {
    isOver = true;
  });
  const enough = async (count: number) => {
    while (!isOver && actions < count) await new Promise<void>((resolve) => setTimeout(resolve, 20));
  };
  const kill = async () => {
    for (let kills = 0; kills < times; kills += 1) {
      await enough(actions + ACTIONS);
      await nodes.kill(random.below(NODES));
    }
    while (!isOver && (counts.forks < MIN_FORKS || counts.deletions < MIN_DELETIONS)) await enough(actions + 1);
    isOver = true;
  };
  await Promise.all([kill(), lanes]);

  for (const { sessionId, said, isDeleted, cut } of sessions) {
    if (isDeleted) continue;
    await expect
      .poll(
        async () => {
          const { status, turn } = await client().sessions.get(sessionId);
          return [status, turn];
        },
        { timeout: 60_000 },
      )
      .toEqual(['idle', said.length]);
    const lines: string[] = [];
    for await (const { turn, role, content } of client().sessions.messages(sessionId, { limit: 100 }))
      for (const part of content) lines.push(`${turn} ${role} ${part.type === 'text' ? part.text : part.type}`);
    const expected = said.flatMap((text, index) => [`${index + 1} user ${text}`, `${index + 1} assistant ${text}`]);
    const mayBeCut = (line: string) => cut.some((turn) => line.startsWith(`${turn} assistant `));
    expect(lines.filter((line) => !mayBeCut(line))).toEqual(expected.filter((line) => !mayBeCut(line)));
    for (const line of lines.filter(mayBeCut))
      expect(
        expected.some((whole) => whole.startsWith(line)),
        line,
      ).toBe(true);
  }

  // Sessions that a kill interrupted between cancelling and deleting are there too.
  for await (const { sessionId, endedAt } of client().sessions.list({ limit: 100 })) {
    if (!endedAt) await client().sessions.cancel(sessionId);
    await client().sessions.delete(sessionId);
  }
  for (const table of ['sessions', 'messages', 'kept_transcripts', 'inherited_turns', 'session_forks'])
    expect(await ask(database.url, `select count(*)::int as n from ${table}`), table).toEqual([{ n: 0 }]);
});
