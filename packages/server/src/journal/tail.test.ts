import sql from 'sql-template-tag';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createTestPlatform, type TestPlatform } from '../../test/support/platform.ts';
import { createAgent } from '../agents/agents.ts';
import type { Db } from '../db/db.ts';
import { createEnvironment } from '../environments/environments.ts';
import { newUuid, uuidOf } from '../lib/ids.ts';
import { claim } from '../node/claims/claim.ts';
import { lockSession } from '../session-rows/session.ts';
import { openSession } from '../sessions/sessions.ts';
import { createWebhookSubscription } from '../webhooks/subscriptions.ts';
import { Fenced, foldTail, foldTails, writeTransition } from './append.ts';
import { type Appender, createAppender, type TextHead } from './appender.ts';
import { beginning, type Position } from './cursor.ts';
import { readAfterEach, readJournalInfo, readSegments, readSome } from './read.ts';
import { chunksOf, type Segment } from './segment.ts';
import { deleteFromTail, dropFolded, flushStatement } from './tail.ts';

let node: TestPlatform;
let agentId: string;
let appender: Appender;
const nodeId = newUuid();

beforeAll(async () => {
  node = await createTestPlatform();
  agentId = (await createAgent(node.ctx, { name: 'A', model: 'scripted/x' })).agent.agentId;
  appender = newAppender(node.platform.db, nodeId);
});
afterAll(() => node.close());

type Head = TextHead & { fenced: Promise<void> };

async function newHead(environment = 'production'): Promise<Head> {
  const { session } = await openSession(node.ctx, { agentId, environment, input: 'x' });
  const fenced = Promise.withResolvers<void>();
  return {
    organizationId: node.organizationId,
    environment,
    sessionId: uuidOf('ses', session.sessionId),
    epoch: 0,
    turn: 1,
    nextSeq: 2,
    pending: [],
    carry: '',
    first: true,
    writing: undefined,
    onFenced: fenced.resolve,
    fenced: fenced.promise,
  };
}

/** A node of its own: flushes of a node are numbered. */
const newAppender = (db: Db = node.platform.db, id = newUuid()) =>
  createAppender({ ...node.platform, db }, { nodeId: id, isAllowed: () => true });

/** Each in a flush of its own, the first in a segment. */
const say = (head: TextHead, ...deltas: string[]) => sayBy(appender, head, ...deltas);
async function sayBy(appender: Appender, head: TextHead, ...deltas: string[]): Promise<void> {
  for (const delta of deltas) {
    await appender.append(head, delta);
    await appender.close();
  }
}

const textIn = (segments: readonly Segment[], after: Position = beginning) => {
  let at = after;
  const chunks = segments.flatMap((segment) => {
    const found = chunksOf(segment, at);
    at = { turn: segment.turn, seq: segment.seqTo };
    return found;
  });
  expect(chunks.map(({ seq }) => seq)).toEqual(chunks.map((_, index) => after.seq + 1 + index));
  return chunks.flatMap((chunk) => (chunk.type === 'message.chunk' ? [chunk.delta] : [])).join('');
};
const stored = async ({ sessionId }: TextHead) =>
  textIn(await readSegments(node.platform.db, node.organizationId, sessionId, beginning, 1_000));
const shown = async ({ sessionId }: TextHead) =>
  textIn((await readSome(node.platform.db, node.organizationId, sessionId, beginning, 1_000)).segments);
const lock = (head: TextHead) =>
  node.platform.db.transaction((tx) => lockSession(tx, node.organizationId, head.sessionId));
const raise = ({ sessionId }: TextHead) =>
  node.platform.db.execute(sql`
    update sessions set epoch = epoch + 1 where organization_id = ${node.organizationId} and session_id = ${sessionId}`);
const rowsLeft = () =>
  node.platform.db.execute(sql`select 1 from journal_tail where organization_id = ${node.organizationId}`);

test('the first delta is in a segment and what follows in the tail, and every reader sees both', async () => {
  const head = await newHead();
  await say(head, 'a', 'b', 'c');
  expect([await stored(head), await shown(head)]).toEqual(['a', 'abc']);
  const { organizationId, sessionId } = head;
  const end = { turn: 1, seq: 4 };
  expect((await readJournalInfo(node.platform.db, organizationId, sessionId)).position).toEqual(end);
  for (const seq of [0, 2, 3, 4]) {
    const after = { turn: seq === 0 ? 0 : 1, seq };
    const [part] = await readAfterEach(node.platform.db, [{ organizationId, sessionId, after }]);
    expect(textIn(part!.segments, after)).toBe('abc'.slice(Math.max(0, seq - 1)));
  }
  const [first] = await readAfterEach(node.platform.db, [{ organizationId, sessionId, after: { turn: 1, seq: 2 } }]);
  await say(head, 'd');
  const [more] = await readAfterEach(node.platform.db, [{ organizationId, sessionId, after: end, mark: first!.mark }]);
  expect(textIn(more!.segments, end)).toBe('d');
});

test('a transition moves the text to one segment, and the rows go', async () => {
  const head = await newHead();
  await say(head, 'a', 'b', 'c');
  await node.platform.db.transaction((tx) =>
    writeTransition(node.platform, tx, head, {
      runs: [{ turn: 1, items: ['d', { type: 'session.status', status: 'idle', waitingFor: null }] }],
      patch: [],
      now: new Date(),
    }),
  );
  expect([await stored(head), head.nextSeq]).toEqual(['abcd', 7]);
  // With the one that its opening wrote.
  expect(
    await node.platform.db.execute(sql`
      select 1 from segments where organization_id = ${node.organizationId} and session_id = ${head.sessionId}`),
  ).toBe(3);
  expect(await lock(head)).toMatchObject({ nextSeq: 7, tailNode: null });
});

test('a claim moves what was shown to segments, whatever its writer does before it and after it', async () => {
  const head = await newHead();
  await say(head, 'a', 'b');
  await raise(head);
  await say(head, 'never said');
  await head.fenced;
  const row = await lock(head);
  await foldTails(node.platform, [row], new Date());
  expect([await stored(head), await shown(head), row.nextSeq]).toEqual(['ab', 'ab', 4]);
  expect(await lock(head)).toMatchObject({ nextSeq: 4, tailNode: null });
});

test('a transition that does not know of text in the tail is refused', async () => {
  const head = await newHead();
  await say(head, 'a', 'b');
  const row = await lock(head);
  const write = node.platform.db.transaction((tx) =>
    writeTransition(node.platform, tx, row, { runs: [{ turn: 1, items: ['x'] }], patch: [], now: new Date() }),
  );
  await expect(write).rejects.toThrow(Fenced);
});

test('a session is not claimed while a flush with its text is not committed, and then with that text', async () => {
  const [head, nodeId] = [await newHead(), newUuid()];
  await sayBy(newAppender(node.platform.db, nodeId), head, 'a', 'b');
  const { organizationId, sessionId } = head;
  await node.platform.db.execute(sql`
    update sessions set node_id = ${nodeId} where organization_id = ${organizationId} and session_id = ${sessionId}`);
  const claimIt = () =>
    claim(node.platform, newUuid(), [{ organizationId, sessionId, epoch: 0, nodeId, crashes: 0 }], [nodeId]);
  await node.platform.db.transaction(async (tx) => {
    const entry = { head, seqTo: head.nextSeq, body: '["c"]' };
    expect(await tx.query(flushStatement(nodeId, 2, [entry], new Date()))).toHaveLength(1);
    expect(await claimIt()).toEqual([]);
  });
  const [row] = await claimIt();
  await foldTails(node.platform, [row!], new Date());
  expect(await stored(head)).toBe('abc');
});

test('nothing is added after segments that the database has lost', async () => {
  const head = await newHead();
  await say(head, 'a', 'b');
  await node.platform.db.execute(sql`
    update sessions set next_seq = next_seq - 1
    where organization_id = ${node.organizationId} and session_id = ${head.sessionId}`);
  const before = await rowsLeft();
  await say(head, 'c');
  await head.fenced;
  expect(await rowsLeft()).toBe(before);
});

test('text in the tail is moved to a segment although its session shows nothing more', async () => {
  const clock = createManualClock();
  const appender = createAppender({ ...node.platform, clock }, { nodeId: newUuid(), isAllowed: () => true });
  const [head, other] = [await newHead(), await newHead()];
  await sayBy(appender, head, 'a', 'b');
  await clock.pass(9_000);
  await sayBy(appender, other, 'a', 'b');
  await clock.pass(1_000);
  appender.foldOld();
  await appender.close();
  expect([await stored(head), await stored(other)]).toEqual(['ab', 'a']);
  await sayBy(appender, head, 'c');
  expect([await stored(head), await shown(head)]).toEqual(['ab', 'abc']);
  // Its transition moves it, and nothing overtakes that.
  await clock.pass(20_000);
  await appender.take(head);
  appender.foldOld();
  await appender.close();
  expect(await stored(head)).toBe('ab');
});

test('a session that is delivered has no text in the tail, and one whose subscription is new not for long', async () => {
  const { environment } = await createEnvironment(node.ctx, { name: 'delivered' });
  const head = await newHead(environment.name);
  await say(head, 'a', 'b', 'c');
  await createWebhookSubscription(node.ctx, { environment: environment.name, url: 'https://example.com/hook' });
  await say(head, 'd');
  expect(await stored(head)).toBe('a');
  // Ten seconds later.
  head.unfolded!.since -= 10_000;
  await say(head, 'e', 'f', 'g');
  expect([await stored(head), await shown(head)]).toEqual(['abcdefg', 'abcdefg']);
  // What was in the tail is delivered, in order: it follows what was in segments.
  const [row] = await node.platform.db.query(sql`
    select delivered_turn as turn, delivered_seq as seq, delivery_due as due, tail_node as "tailNode" from sessions
    where organization_id = ${node.organizationId} and session_id = ${head.sessionId}`);
  expect(row).toEqual({ turn: 1, seq: 2, due: true, tailNode: null });
});

test('a flush that meets a locked row adds nothing, and follows if the lock is given up', async () => {
  const head = await newHead();
  await say(head, 'a', 'b');
  const undo = new Error('undo');
  const cancel = node.platform.db.transaction(async (tx) => {
    const row = await lockSession(tx, node.organizationId, head.sessionId);
    await say(head, 'c');
    await foldTail(node.platform, tx, row, new Date());
    expect(row.nextSeq).toBe(4);
    throw undo;
  });
  await expect(cancel).rejects.toBe(undo);
  await appender.close();
  await appender.close();
  expect(await shown(head)).toBe('abc');
});

test.each(['arrives', 'does not arrive', 'arrives after the text was appended'])(
  'text of a flush without an answer that %s is written once, and shown once',
  async (how) => {
    const head = await newHead();
    const { db } = node.platform;
    let late: (() => Promise<unknown>) | undefined;
    let isLost = true;
    const losing: Db = {
      ...db,
      async batch<Row>(statements: Parameters<Db['batch']>[0]): Promise<Row[][]> {
        if (isLost) return db.batch<Row>(statements);
        isLost = true;
        if (how === 'arrives') await db.batch(statements);
        else if (how !== 'does not arrive') late = () => db.batch(statements);
        throw new Error('Connection terminated');
      },
    };
    const appender = newAppender(losing);
    await sayBy(appender, head, 'a', 'b');
    isLost = false;
    await sayBy(appender, head, 'c', 'd');
    await appender.close();
    await late?.();
    expect(await shown(head)).toBe('abcd');
    await sayBy(appender, head, 'e');
    expect(await shown(head)).toBe('abcde');
  },
);

test('rows go when no session needs them any more, also those of a node that is gone', async () => {
  const [head, other] = [await newHead(), await newHead()];
  await say(head, 'a', 'b');
  await say(other, 'a', 'b');
  for (const id of [nodeId, newUuid()]) {
    await dropFolded(node.platform, id);
    expect(await shown(head)).toBe('ab');
  }
  await foldTails(node.platform, [await lock(head), await lock(other)], new Date());
  await node.platform.db.execute(sql`
    update sessions set tail_node = null, tail_from = null where organization_id = ${node.organizationId}`);
  await dropFolded(node.platform, newUuid());
  expect(await rowsLeft()).toBe(0);
});

test('the text of a deleted session is not in the tail, and that of its neighbours is', async () => {
  const [gone, stays] = [await newHead(), await newHead()];
  for (const delta of ['a', 'secret']) {
    for (const head of [gone, stays]) await appender.append(head, delta);
    await appender.close();
  }
  await node.platform.db.execute(deleteFromTail(node.organizationId, [gone.sessionId]));
  expect([await shown(gone), await shown(stays)]).toEqual(['a', 'asecret']);
});
