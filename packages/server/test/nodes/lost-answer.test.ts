// The database runs a statement, but its response is lost with the connection: the work is done and continues (P2, P8).
import type { Sql } from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { DatabaseUnavailable, type Db } from '../../src/db/db.ts';
import type { Platform } from '../../src/platform.ts';
import { cancelSession } from '../../src/sessions/end-session.ts';
import { answering, createWorld, is, outline, usage, type World } from '../support/session-world.ts';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(() => world.close());

const lost = () => new DatabaseUnavailable(new Error('Connection terminated unexpectedly'), true);

/** A node on whose database one statement breaks its connection: `when` selects it, `runs` sets whether it runs before that. */
function breakingOnce(node: Platform, when: (sql: Sql) => boolean, runs: boolean): Platform {
  let broken = false;
  const db: Db = {
    ...node.db,
    async query<Row>(sql: Sql) {
      if (broken || !when(sql)) return node.db.query<Row>(sql);
      broken = true;
      if (runs) await node.db.query<Row>(sql);
      throw lost();
    },
  };
  return { ...node, db };
}

test.each<[string, (sql: Sql) => boolean, boolean]>([
  ['of a claim', ({ text }) => text.includes('update sessions s set epoch'), true],
  ['of what a claim reads', ({ text }) => text.includes('from messages'), false],
])('a session whose claim was committed continues even if the response %s is lost', async (_, when, runs) => {
  const platform = breakingOnce(await world.anotherNode(), when, runs);
  const sessionId = await world.open(await world.agent());
  await world.work({ platform, ask: answering([{ text: 'here' }]) });
  const chunks = await world.until(sessionId, is('idle'));
  expect(outline(chunks)).toEqual(['running', '"here"', 'turn.completed endTurn', 'idle']);
});

test('text whose commit succeeds after its connection was given up is written once, and the turn continues', async () => {
  const node = await world.anotherNode();
  const failed = Promise.withResolvers<void>();
  let late: (() => Promise<unknown>) | undefined;
  let broken = false;
  const db: Db = {
    ...node.db,
    async batch<Row>(statements: readonly Sql[]) {
      if (!broken) {
        broken = true;
        late = () => node.db.batch(statements);
        failed.resolve();
        throw lost();
      }
      await late?.();
      late = undefined;
      return node.db.batch<Row>(statements);
    },
    async transaction(fn) {
      await late?.();
      late = undefined;
      return node.db.transaction(fn);
    },
  };
  const sessionId = await world.open(await world.agent());
  await world.work({
    platform: { ...node, db },
    async *ask() {
      yield { type: 'text', delta: 'all of it' };
      await failed.promise;
      yield { type: 'finish', reason: 'endTurn', usage };
    },
  });
  const chunks = await world.until(sessionId, is('idle'));
  const reset = chunks.findLastIndex((chunk) => chunk.type === 'message.reset');
  const text = chunks.slice(reset + 1).flatMap((chunk) => (chunk.type === 'message.chunk' ? [chunk.delta] : []));
  expect(text.join('')).toBe('all of it');
  expect(chunks.map(({ seq }) => seq)).toEqual(chunks.map((_, index) => index + 1));
});

test('a session cancelled on another node aborts its model, even if the wake-up is lost', async () => {
  const began = Promise.withResolvers<void>();
  const stopped = Promise.withResolvers<void>();
  await world.work({
    ask: async function* (_, signal) {
      began.resolve();
      await new Promise<never>((_, reject) =>
        signal.addEventListener('abort', () => {
          stopped.resolve();
          reject(signal.reason);
        }),
      );
    },
  });
  const sessionId = await world.open(await world.agent());
  await began.promise;
  const elsewhere = { ...world.ctx, ...(await world.anotherNode()) };
  await cancelSession(elsewhere, { sessionId });
  await stopped.promise;
});
