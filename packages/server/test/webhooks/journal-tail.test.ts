// What a loop knows of its session's journal saves reads, and changes nothing about what is delivered.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { formatCursor } from '../../src/journal/cursor.ts';
import type { Item } from '../../src/journal/segment.ts';
import { formatId } from '../../src/lib/ids.ts';
import { idle } from '../support/idle.ts';
import { createRandom } from '../support/random.ts';
import type { Received } from '../support/receiver.ts';
import { append, createWorld, status, type TestSession, text, toolResult, type World } from '../support/webhooks.ts';

let world: World;

beforeEach(async () => {
  world = await createWorld();
});

afterEach(() => world.end());

const reads = () => world.statementsLike(/^select w\.epoch, s\.session_id/);

/** Every chunk once, in order, and each delivery names the one that was accepted before it. */
function expectInOrder(received: readonly Received[], expected: readonly string[]): void {
  const seen = new Set<string>();
  const first = received.filter(({ deliveryId }) => !seen.has(deliveryId) && seen.add(deliveryId));
  expect(first.flatMap(({ envelope }) => envelope.chunks.map(formatCursor))).toEqual(expected);
  expect(first.map(({ previousCursor }) => previousCursor)).toEqual(
    ['', ...first.map(({ envelope }) => envelope.cursor)].slice(0, -1),
  );
}

/** Once the dispatcher polls again only when the clock moves. */
async function startNode(): Promise<void> {
  await world.node();
  await idle();
}

/** Everything is delivered before the next poll. */
async function deliveredWithoutPoll(session: TestSession): Promise<void> {
  await world.clock.pass(900);
  expect(await world.isDelivered(session)).toBe(true);
}

const upTo = (count: number) => Array.from({ length: count }, (_, index) => `turn_1:seq_${index + 1}`);

test('chunks that are committed on this node during a delivery are delivered without reading them', async () => {
  let session: TestSession;
  const receiver = await world.receiver(async () => {
    if (session.seq < 20) await append(world, session, [status()]);
    return 200;
  });
  await world.subscribe(receiver.url);
  session = await world.session();
  await world.node();
  const read = reads();
  await append(world, session, [status()]);
  await receiver.first(20);
  await world.delivered(session);
  expectInOrder(receiver.received, upTo(20));
  // A poll that finds the session at first wakes its loop, which then reads once more.
  expect(read.count()).toBeLessThanOrEqual(2);
});

test('a chunk that another node committed in between is read', async () => {
  let session: TestSession;
  const receiver = await world.receiver(async () => {
    if (session.seq < 20) {
      await append(world, session, [status()], { isElsewhere: session.seq % 4 === 1, isQuiet: session.seq % 4 === 3 });
      await append(world, session, [status()]);
    }
    return 200;
  });
  await world.subscribe(receiver.url);
  session = await world.session();
  await world.node();
  await append(world, session, [status()]);
  await world.delivered(session);
  expect(session.seq).toBeGreaterThanOrEqual(20);
  expectInOrder(receiver.received, upTo(session.seq));
});

test('text that waits for more text is not read again each time more of it is committed', async () => {
  const receiver = await world.receiver();
  await world.subscribe(receiver.url);
  const session = await world.session();
  await startNode();
  const read = reads();
  await append(world, session, [text('one')]);
  for (const word of [' two', ' three', ' four', ' five']) {
    await idle();
    await append(world, session, [text(word)]);
    await world.clock.advance(25);
  }
  await world.delivered(session);
  expect(receiver.received.map(({ envelope }) => envelope.chunks.length)).toEqual([5]);
  expect(read.count()).toBe(1);
});

test('a chunk that must not wait is not held up by text, even if another node committed it', async () => {
  const receiver = await world.receiver();
  await world.subscribe(receiver.url);
  const session = await world.session();
  await startNode();
  await append(world, session, [text('one')]);
  await idle();
  await append(world, session, [status()], { isElsewhere: true });
  await deliveredWithoutPoll(session);
  expect(receiver.received.map(({ envelope }) => envelope.chunks.length)).toEqual([2]);
});

test('a chunk that is committed while the journal is being read is not forgotten by what is known of it since', async () => {
  const receiver = await world.receiver();
  await world.subscribe(receiver.url);
  const session = await world.session();
  const { db } = world.platform;
  const read = reads();
  Object.assign(world.platform, {
    db: {
      ...db,
      async batch(...args: Parameters<typeof db.batch>) {
        const before = read.count();
        const result = await db.batch(...args);
        if (before === 0 && read.count() === 1) await append(world, session, [status()]);
        return result;
      },
    },
  });
  await startNode();
  await append(world, session, [text('one')]);
  await deliveredWithoutPoll(session);
  // Otherwise the text waits for more text, and the status for the text.
  expect(receiver.received.map(({ envelope }) => envelope.chunks.length)).toEqual([2]);
});

test('a backlog is sent in full deliveries, several for each read', async () => {
  const receiver = await world.receiver();
  await world.subscribe(receiver.url);
  const session = await world.session();
  // More segments than one read returns, whose chunks do not fill the last of its deliveries.
  await append(world, session, [text('word ')], { isQuiet: true });
  for (let n = 0; n < 150; n += 1) await append(world, session, Array(10).fill(text('word ')), { isQuiet: true });
  const read = reads();
  await world.node();
  await world.advanceUntil(() => world.isDelivered(session), 100);
  expectInOrder(receiver.received, upTo(1_501));
  expect(receiver.received.map(({ envelope }) => envelope.chunks.length)).toEqual([...Array(15).fill(100), 1]);
  expect(read.count()).toBeLessThan(6);
});

test.each([1, 2, 3, 4, 5, 6])(
  'whatever is committed where, and whichever attempts fail, chunks arrive in order (seed %i)',
  async (seed) => {
    const random = createRandom(seed);
    const receiver = await world.receiver(async ({ envelope }) => {
      const session = sessions.find(({ sessionId }) => formatId('ses', sessionId) === envelope.sessionId)!;
      await commitSome(session);
      return random.chance(0.1) ? 500 : 200;
    });
    await world.subscribe(receiver.url, { chunkTypes: ['message.chunk', 'session.status', 'tool.result'] });
    const sessions = await Promise.all(Array.from({ length: 5 }, () => world.session()));
    const expected = new Map(sessions.map(({ sessionId }) => [sessionId, [] as string[]]));
    const committing = new Map<string, Promise<void>>();

    /** Commits up to three segments, one after the other. */
    function commitSome(session: TestSession): Promise<void> {
      const before = committing.get(session.sessionId) ?? Promise.resolve();
      const done = before.then(async () => {
        for (let left = random.below(4); left > 0 && expected.get(session.sessionId)!.length < 150; left -= 1) {
          const items: Item[] = Array.from({ length: 1 + random.below(3) }, () =>
            random.chance(0.7) ? text('word ') : random.pick([status(), toolResult()]),
          );
          const turn = Math.max(session.turn, 1) + (random.chance(0.1) ? 1 : 0);
          const isElsewhere = random.chance(0.2);
          await append(world, session, items, { turn, isElsewhere, isQuiet: random.chance(0.1) });
          for (const index of items.keys())
            expected.get(session.sessionId)!.push(formatCursor({ turn, seq: session.seq - items.length + 1 + index }));
        }
      });
      committing.set(session.sessionId, done);
      return done;
    }

    await Promise.all([world.node(), world.node()]);
    for (let round = 0; round < 60; round += 1) {
      await Promise.all(sessions.map(commitSome));
      world.clock.leap(random.below(200));
    }
    await world.advanceUntil(() => world.isDelivered(...sessions));
    for (const { sessionId } of sessions) {
      const own = receiver.received.filter(({ envelope }) => envelope.sessionId === formatId('ses', sessionId));
      expectInOrder(own, expected.get(sessionId)!);
    }
  },
);
