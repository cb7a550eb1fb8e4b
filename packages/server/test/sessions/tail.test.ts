// Text that waits in the tail of the journal (journal/tail.ts) while something takes its session away from the node that writes it, or ends
// it: what was shown stays shown, in its place, and a deleted session leaves nothing there.
import type { Chunk } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { listChunks } from '../../src/journal/read.ts';
import { uuidOf } from '../../src/lib/ids.ts';
import type { AskModel } from '../../src/models/model/model.ts';
import { cancelSession, closeSession, interruptSession } from '../../src/sessions/end-session.ts';
import { forkSession } from '../../src/sessions/forks.ts';
import { listMessages, sendMessage } from '../../src/sessions/messages.ts';
import { deleteSession, getSession } from '../../src/sessions/sessions.ts';
import { until } from '../support/idle.ts';
import { createManualClock, type ManualClock } from '../support/manual-clock.ts';
import { createWorld, is, never, outline, usage, type World } from '../support/session-world.ts';

let clock: ManualClock;
let world: World;
beforeEach(async () => {
  clock = createManualClock();
  world = await createWorld({ clock });
});
afterEach(() => clock.passWhile(world.close()));

const WORDS = ['one ', 'two ', 'three '];

/** Says each word once the one before is shown. In its first turn, and whenever it is asked again for the same, it hangs then. */
const stuckModel: AskModel = async function* (call, signal) {
  const isLater = call.transcript.some(({ role }) => role === 'assistant');
  if (!isLater) {
    for (const [index, delta] of WORDS.entries()) {
      yield { type: 'text', delta };
      await until(async () => (await shownWords()) > index);
    }
    await never(signal);
  }
  yield { type: 'text', delta: 'Again' };
  yield { type: 'finish', reason: 'endTurn', usage };
};

let current = '';
async function shown(sessionId = current): Promise<Chunk[]> {
  const { data } = await listChunks(world.ctx, { sessionId, limit: 1000 });
  return data.flatMap(({ chunks }) => chunks);
}
const shownWords = async () =>
  current === '' ? 0 : (await shown()).filter(({ type }) => type === 'message.chunk').length;
const stored = (sessionId = current) => world.chunks(sessionId);
const rowOf = async (sessionId = current) => {
  const [row] = await world.platform.db.query<{ tailNode: string | null }>(sql`
    select tail_node as "tailNode" from sessions
    where organization_id = ${world.organizationId} and session_id = ${uuidOf('ses', sessionId)}`);
  return row;
};

/** A session with its first word in a segment and the others in the tail. */
async function streaming(): Promise<{ sessionId: string; nodeId: string }> {
  const { nodeId } = await world.work({ ask: stuckModel, tail: true });
  const sessionId = await world.open(await world.agent());
  current = sessionId;
  await clock.passWhile(until(async () => (await shownWords()) === WORDS.length));
  expect((await stored()).filter(({ type }) => type === 'message.chunk')).toHaveLength(1);
  expect(await rowOf()).toEqual({ tailNode: nodeId });
  return { sessionId, nodeId };
}

const SHOWN = ['running', '"one "', '"two "', '"three "'];
const positions = (chunks: readonly Chunk[]) => chunks.map(({ turn, seq }) => `${turn}:${seq}`);

test('what reads a session sees the text: its chunks do, and its cursor is that of a chunk before it', async () => {
  const { sessionId } = await streaming();
  expect(outline(await shown())).toEqual(SHOWN);
  const { session } = await getSession(world.ctx, { sessionId });
  const { data } = await listChunks(world.ctx, { sessionId, cursor: session.cursor!, limit: 100 });
  expect(outline(data.flatMap(({ chunks }) => chunks))).toEqual(SHOWN.slice(2));
});

test.each<[string, () => Promise<unknown>, string[], string]>([
  ['a cancel', () => cancelSession(world.ctx, { sessionId: current }), ['cancelled'], 'one two three '],
  [
    'an interruption',
    () => interruptSession(world.ctx, { sessionId: current }),
    ['turn.completed interrupted', 'idle'],
    'one two three ',
  ],
  [
    'a close that follows an interruption',
    async () => {
      await closeSession(world.ctx, { sessionId: current });
      await interruptSession(world.ctx, { sessionId: current });
    },
    ['turn.completed interrupted', 'completed'],
    'one two three ',
  ],
])('%s keeps what was shown, in its place, and in the transcript', async (_, act, end, said) => {
  const { sessionId } = await streaming();
  const before = await shown();
  await act();
  await clock.passWhile(world.until(sessionId, is(end.at(-1)!)));
  expect(outline(await stored())).toEqual([...SHOWN, ...end]);
  expect(positions(await stored()).slice(0, before.length)).toEqual(positions(before));
  expect(await rowOf()).toEqual({ tailNode: null });
  const { data } = await listMessages(world.ctx, { sessionId });
  expect(data.at(-1)).toMatchObject({ role: 'assistant', content: [{ type: 'text', text: said }] });
});

test('a message that steers, and a fork, get what was shown', async () => {
  const { sessionId } = await streaming();
  await sendMessage(world.ctx, { sessionId, content: 'Another way', onBusy: 'steer' });
  await clock.passWhile(world.until(sessionId, is('idle', 2)));
  expect(outline(await stored())).toEqual([
    ...SHOWN,
    'turn.completed interrupted',
    'running',
    '"Again"',
    'turn.completed endTurn',
    'idle',
  ]);
  const { session } = await forkSession(world.ctx, { sessionId, atTurn: 1, input: 'On' });
  await clock.passWhile(world.until(session.sessionId, is('idle')));
  const { data } = await listMessages(world.ctx, { sessionId: session.sessionId });
  expect(data.flatMap(({ content }) => content)).toContainEqual({ type: 'text', text: 'one two three ' });
});

test('the sessions of a node that dies continue on another, after all that was shown', async () => {
  const { sessionId, nodeId } = await streaming();
  const before = await shown();
  await world.expireLease(nodeId);
  const other = await world.work({
    tail: true,
    ask: async function* () {
      yield { type: 'text', delta: 'Anew' };
      yield { type: 'finish', reason: 'endTurn', usage };
    },
  });
  await clock.passWhile(world.until(sessionId, is('idle')));
  expect(other.nodeId).not.toBe(nodeId);
  expect(outline(await stored())).toEqual([...SHOWN, 'message.reset 2', '"Anew"', 'turn.completed endTurn', 'idle']);
  expect(positions(await stored()).slice(0, before.length)).toEqual(positions(before));
});

test('a deleted session leaves nothing in the tail', async () => {
  const { sessionId } = await streaming();
  const texts = async () => {
    const rows = await world.platform.db.query<{ bodies: string[] }>(sql`
      select bodies from journal_tail where organization_id = ${world.organizationId}`);
    return rows.flatMap(({ bodies }) => bodies);
  };
  await cancelSession(world.ctx, { sessionId });
  expect(await texts()).toEqual(['["two "]', '["three "]']);
  await deleteSession(world.ctx, { sessionId });
  expect(await texts()).toEqual([]);
});
