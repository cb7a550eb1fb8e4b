// A turn that begins on a node that runs sessions is that node's from its first commit: no claim is needed. If the node is not
// notified, the session is found by a search (P8), and still has one writer (P3).
import type { Chunk } from '@signalbox/contract';
import sql, { type Sql } from 'sql-template-tag';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { DatabaseUnavailable, type Db } from '../../src/db/db.ts';
import { newUuid, uuidOf } from '../../src/lib/ids.ts';
import type { AskModel } from '../../src/models/model/model.ts';
import { interruptSession } from '../../src/sessions/end-session.ts';
import { sendMessage } from '../../src/sessions/messages.ts';
import { listSessions } from '../../src/sessions/reading/list.ts';
import { openSession } from '../../src/sessions/sessions.ts';
import { idle } from '../support/idle.ts';
import { createManualClock, type ManualClock } from '../support/manual-clock.ts';
import { answering, createWorld, is, never, outline, queryingBy, type World } from '../support/session-world.ts';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(() => world.close());

const isIdleOf = (turn: number) => (chunk: Chunk) => is('idle')(chunk) && chunk.turn === turn;
const isClaim = ({ text }: Sql) => text.includes('update sessions s set epoch');

const epochOf = async (sessionId: string) =>
  (
    await world.platform.db.query<{ epoch: number }>(sql`
      select epoch from sessions
      where organization_id = ${world.organizationId} and session_id = ${uuidOf('ses', sessionId)}`)
  )[0]?.epoch;

/** A runner of this node that is assigned sessions and is never notified. */
function deafWorker(): () => void {
  return world.platform.localRunners.join({ nodeId: newUuid(), hasRoom: () => true, take() {} });
}

test('first turns and turns of messages run without a claim, with the whole transcript', async () => {
  const seen: string[][] = [];
  const claims: string[] = [];
  await world.work({
    platform: queryingBy(world.platform, async (statement) => {
      if (isClaim(statement)) claims.push(statement.text);
    }),
    async *ask(call, signal) {
      seen.push(call.transcript.map(({ role, content }) => `${role} ${JSON.stringify(content)}`));
      yield* answering([{ text: `answer ${seen.length}` }])(call, signal);
    },
  });
  const sessionId = await world.open(await world.agent());
  await world.until(sessionId, isIdleOf(1));
  await sendMessage(world.ctx, { sessionId, content: 'more' });
  const chunks = await world.until(sessionId, isIdleOf(2));
  expect(outline(chunks)).toEqual([
    ...['running', '"answer 1"', 'turn.completed endTurn', 'idle'],
    ...['running', '"answer 2"', 'turn.completed endTurn', 'idle'],
  ]);
  expect(seen.map((entries) => entries.length)).toEqual([1, 3]);
  expect(seen[1]?.[2]).toContain('more');
  expect(claims).toEqual([]);
  expect(await epochOf(sessionId)).toBe(2);
});

test('a node without the runtime role leaves them to other nodes', async () => {
  const sessionId = await world.open(await world.agent());
  await world.work({ platform: await world.anotherNode() });
  await world.until(sessionId, isIdleOf(1));
  await sendMessage(world.ctx, { sessionId, content: 'more' });
  await world.until(sessionId, isIdleOf(2));
});

test('a node that is stopping or has no room is assigned nothing', async () => {
  const { localRunners } = world.platform;
  const leave = deafWorker();
  expect(localRunners.withRoom(world.organizationId)).toBeDefined();
  leave();
  expect(localRunners.withRoom(world.organizationId)).toBeUndefined();
  const full = localRunners.join({ nodeId: newUuid(), hasRoom: () => false, take() {} });
  expect(localRunners.withRoom(world.organizationId)).toBeUndefined();
  full();
  const worker = await world.work({});
  expect(localRunners.withRoom(world.organizationId)?.nodeId).toBe(worker.nodeId);
  await worker.stop();
  expect(localRunners.withRoom(world.organizationId)).toBeUndefined();
});

describe('a session continues', () => {
  test('if the node dies before its runner is notified: opened, or with a message', async () => {
    const leave = deafWorker();
    const opened = await world.open(await world.agent());
    leave();
    await world.work({ platform: await world.anotherNode(), ask: answering([{ text: 'here' }]) });
    const chunks = await world.until(opened, isIdleOf(1));
    expect(outline(chunks)).toEqual(['running', '"here"', 'turn.completed endTurn', 'idle']);
    deafWorker();
    await sendMessage(world.ctx, { sessionId: opened, content: 'more' });
    await world.until(opened, isIdleOf(2));
  });

  test.each(['opened', 'told more'])('if the acknowledgement of the commit is lost: %s', async (how) => {
    await world.work({ ask: answering([{ text: 'here' }]) });
    const agentId = await world.agent();
    const before = how === 'opened' ? undefined : await world.open(agentId);
    if (before) await world.until(before, isIdleOf(1));
    const ctx = { ...world.ctx, db: withoutAnswers(world.platform.db) };
    const call = before
      ? sendMessage(ctx, { sessionId: before, content: 'more' })
      : openSession(ctx, { agentId, environment: 'production', input: 'go' });
    await expect(call).rejects.toBeInstanceOf(DatabaseUnavailable);
    const sessionId = before ?? (await only());
    await world.until(sessionId, isIdleOf(before ? 2 : 1));
  });

  test('if the commit is acknowledged after a search has found the session', async () => {
    const asked = Promise.withResolvers<void>();
    const acknowledged = Promise.withResolvers<void>();
    const calls: AbortSignal[] = [];
    await world.work({
      async *ask(call, signal) {
        calls.push(signal);
        asked.resolve();
        await acknowledged.promise;
        yield* answering([{ text: 'here' }])(call, signal);
      },
    });
    const db = answeringLate(world.platform.db, asked.promise);
    const agentId = await world.agent();
    const { session } = await openSession({ ...world.ctx, db }, { agentId, environment: 'production', input: 'go' });
    acknowledged.resolve();
    await world.until(session.sessionId, is('idle'));
    expect(calls).toHaveLength(1);
    expect(calls[0]?.aborted).toBe(false);
    expect(await epochOf(session.sessionId)).toBe(2);
  });

  test('if its transcript can’t be read at once', async () => {
    let broken = false;
    await world.work({
      platform: queryingBy(world.platform, async ({ text }) => {
        if (!text.includes('from messages') || broken) return;
        broken = true;
        throw new DatabaseUnavailable(new Error('Connection terminated unexpectedly'));
      }),
    });
    const sessionId = await world.open(await world.agent());
    await world.until(sessionId, isIdleOf(1));
    await sendMessage(world.ctx, { sessionId, content: 'more' });
    await world.until(sessionId, isIdleOf(2));
    expect(broken).toBe(true);
  });
});

test('what arrives while a node reads the transcript is noticed without a poll', async () => {
  await world.close();
  world = await createWorld({ clock: createManualClock() });
  const reading = Promise.withResolvers<void>();
  const proceed = Promise.withResolvers<void>();
  await world.work({
    platform: queryingBy(world.platform, async ({ text }) => {
      if (!text.includes('from messages')) return;
      reading.resolve();
      await proceed.promise;
    }),
    async *ask(call, signal) {
      if (call.transcript.length === 1) return yield* answering([{ text: 'first' }])(call, signal);
      await never(signal);
    },
  });
  const sessionId = await world.open(await world.agent());
  await world.until(sessionId, isIdleOf(1));
  await sendMessage(world.ctx, { sessionId, content: 'more' });
  await reading.promise;
  await interruptSession(world.ctx, { sessionId });
  proceed.resolve();
  const chunks = await world.until(sessionId, isIdleOf(2));
  expect(outline(chunks).slice(-2)).toEqual(['turn.completed interrupted', 'idle']);
});

describe('a search of the node that begins a turn leaves it to its runner, and the model is called once', () => {
  let clock: ManualClock;
  const seen: number[] = [];
  const ask: AskModel = (call, signal) => {
    seen.push(call.transcript.length);
    return answering([{ text: 'once' }])(call, signal);
  };
  beforeEach(async () => {
    await world.close();
    clock = createManualClock();
    world = await createWorld({ clock });
    seen.length = 0;
  });

  test('while the runner reads the transcript', async () => {
    const [reading, taken, claimed] = Array.from({ length: 3 }, () => Promise.withResolvers<void>());
    let reads = 0;
    await world.work({
      platform: queryingBy(world.platform, async ({ text }) => {
        if (!text.includes('from messages')) return;
        reads += 1;
        reading!.resolve();
        await (reads === 1 ? taken : claimed)!.promise;
      }),
      ask,
    });
    const sessionId = await world.open(await world.agent());
    await world.until(sessionId, isIdleOf(1));
    await sendMessage(world.ctx, { sessionId, content: 'more' });
    await reading!.promise;
    await clock.pass(5_000);
    taken!.resolve();
    await idle();
    claimed!.resolve();
    await world.until(sessionId, isIdleOf(2));
    expect(seen).toEqual([1, 3]);
    expect(await epochOf(sessionId)).toBe(2);
  });

  test('before the commit is acknowledged', async () => {
    await world.work({ ask });
    const acknowledged = Promise.withResolvers<void>();
    const ctx = { ...world.ctx, db: answeringLate(world.platform.db, acknowledged.promise) };
    const opening = openSession(ctx, { agentId: await world.agent(), environment: 'production', input: 'go' });
    await clock.advance(1_000);
    acknowledged.resolve();
    const { session } = await opening;
    await world.until(session.sessionId, isIdleOf(1));
    expect(seen).toEqual([1]);
    expect(await epochOf(session.sessionId)).toBe(1);
  });
});

/** Commits, and never reports it. */
function withoutAnswers(db: Db): Db {
  return {
    ...db,
    async transaction(fn) {
      await db.transaction((tx) => fn({ ...tx, afterCommit() {} }));
      throw new DatabaseUnavailable(new Error('Connection terminated unexpectedly'), true);
    },
  };
}

/** Commits, and reports it when `then` resolves. */
function answeringLate(db: Db, then: Promise<void>): Db {
  return {
    ...db,
    async transaction(fn) {
      const afterCommits: (() => void)[] = [];
      const value = await db.transaction((tx) => fn({ ...tx, afterCommit: (act) => afterCommits.push(act) }));
      await then;
      for (const act of afterCommits) act();
      return value;
    },
  };
}

async function only(): Promise<string> {
  const { data } = await listSessions(world.ctx, {});
  return data[0]!.sessionId;
}
