// A turn that fails ends with its error, whatever the cause, and the conversation continues.
import type { Chunk } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { listEvents } from '../../src/events/events.ts';
import { type AskModel, type ModelCall, ModelFailure } from '../../src/models/model/model.ts';
import { closeSession } from '../../src/sessions/end-session.ts';
import { sendMessage } from '../../src/sessions/messages.ts';
import { listTurns } from '../../src/sessions/reading/timeline.ts';
import { getSession } from '../../src/sessions/sessions.ts';
import {
  agentTool,
  answering,
  byModel,
  createWorld,
  httpTool,
  outline,
  usage,
  type World,
} from '../support/session-world.ts';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(() => world.close());

const is =
  (status: string, turn = 1) =>
  (chunk: Chunk) =>
    chunk.type === 'session.status' && chunk.status === status && chunk.turn === turn;

const sessionOf = async (sessionId: string) => (await getSession(world.ctx, { sessionId })).session;
const REJECTED = { code: 'model_rejected', message: 'The provider refused the request (HTTP 401).' };
const rejected = () => new ModelFailure(REJECTED.code, REJECTED.message, { retryable: false });

/** Fails in these turns; in others, responds with the number of the turn. */
function failingIn(turns: readonly number[], seen: (call: ModelCall) => void = () => {}): AskModel {
  return async function* ask(call) {
    seen(structuredClone(call));
    const turn = call.transcript.filter(({ role }) => role === 'user').length;
    if (turns.includes(turn)) throw rejected();
    yield { type: 'text', delta: `turn ${turn}` };
    yield { type: 'finish', reason: 'endTurn', usage };
  };
}

test('a turn that fails shows why, and leaves an idle session whose next message starts the next turn', async () => {
  const calls: ModelCall[] = [];
  await world.work({ ask: failingIn([1], (call) => calls.push(call)) });
  const sessionId = await world.open(await world.agent());
  const chunks = await world.until(sessionId, is('idle'));
  expect(outline(chunks)).toEqual(['running', 'turn.completed error', 'idle']);
  expect(chunks.slice(-2)).toMatchObject([
    { type: 'turn.completed', stopReason: 'error', error: REJECTED },
    { type: 'session.status', status: 'idle', waitingFor: null, stopReason: 'error', error: REJECTED },
  ]);
  expect(await sessionOf(sessionId)).toMatchObject({ status: 'idle', stopReason: 'error', error: REJECTED });

  await sendMessage(world.ctx, { sessionId, content: 'still there?' });
  const later = (await world.until(sessionId, is('idle', 2))).filter(({ turn }) => turn === 2);
  expect(outline(later)).toEqual(['running', '"turn 2"', 'turn.completed endTurn', 'idle']);
  expect(later.filter((chunk) => 'error' in chunk)).toEqual([]);
  expect(await sessionOf(sessionId)).toMatchObject({
    status: 'idle',
    stopReason: 'endTurn',
    error: null,
    endedAt: null,
  });
  expect(calls[1]!.transcript.map(({ role, content }) => [role, content])).toEqual([
    ['user', [{ type: 'text', text: 'go' }]],
    ['user', [{ type: 'text', text: 'still there?' }]],
  ]);
});

test('text of the model call with which a turn fails is void, also for the next turn', async () => {
  const shown = Promise.withResolvers<void>();
  const calls: ModelCall[] = [];
  await world.work({
    ask: async function* (call, signal) {
      if (call.callsBefore > 0) return yield* answering([{ text: 'Yes' }], (one) => calls.push(one))(call, signal);
      yield { type: 'text', delta: 'Once upon' };
      await shown.promise;
      throw rejected();
    },
  });
  const sessionId = await world.open(await world.agent());
  await world.until(sessionId, ({ type }) => type === 'message.chunk');
  shown.resolve();
  const chunks = await world.until(sessionId, is('idle'));
  expect(outline(chunks)).toEqual(['running', '"Once upon"', 'message.reset 2', 'turn.completed error', 'idle']);
  await sendMessage(world.ctx, { sessionId, content: 'again' });
  await world.until(sessionId, is('idle', 2));
  expect(calls[0]!.transcript.map(({ role }) => role)).toEqual(['user', 'user']);
});

test('the error is gone from the session as soon as the next turn starts', async () => {
  await world.work({ ask: failingIn([1]) });
  const sessionId = await world.open(await world.agent());
  await world.until(sessionId, is('idle'));
  const { session } = await sendMessage(world.ctx, { sessionId, content: 'again' });
  expect(session).toMatchObject({ status: 'running', stopReason: null, error: null });
});

test('messages that were queued get their turns after a turn that failed', async () => {
  const hold = Promise.withResolvers<void>();
  const ask = failingIn([1, 2]);
  await world.work({
    ask: async function* (call, signal) {
      await hold.promise;
      yield* ask(call, signal);
    },
  });
  const sessionId = await world.open(await world.agent());
  await sendMessage(world.ctx, { sessionId, content: 'two' });
  await sendMessage(world.ctx, { sessionId, content: 'three' });
  hold.resolve();
  const chunks = await world.until(sessionId, is('idle', 3));
  expect(outline(chunks)).toEqual([
    'running',
    'turn.completed error',
    'running',
    'turn.completed error',
    'running',
    '"turn 3"',
    'turn.completed endTurn',
    'idle',
  ]);
  expect(await sessionOf(sessionId)).toMatchObject({ stopReason: 'endTurn', error: null });
  const { data } = await listTurns(world.ctx, { sessionId });
  expect(data.map(({ turn, status, error }) => [turn, status, error])).toEqual([
    [3, 'completed', null],
    [2, 'failed', REJECTED],
    [1, 'failed', REJECTED],
  ]);
});

test('a session that closes with its turn fails with it, and not before the messages that were queued', async () => {
  const hold = Promise.withResolvers<void>();
  const ask = failingIn([1, 2]);
  await world.work({
    ask: async function* (call, signal) {
      await hold.promise;
      yield* ask(call, signal);
    },
  });
  const agentId = await world.agent();
  const closing = await world.open(agentId);
  await sendMessage(world.ctx, { sessionId: closing, content: 'two' });
  await closeSession(world.ctx, { sessionId: closing });
  const recovering = await world.open(agentId, { closeOnIdle: true });
  await sendMessage(world.ctx, { sessionId: recovering, content: 'two' });
  await sendMessage(world.ctx, { sessionId: recovering, content: 'three' });
  const alone = await world.open(agentId, { closeOnIdle: true });
  hold.resolve();
  for (const [sessionId, turn] of [[closing, 2] as const, [alone, 1] as const]) {
    const chunks = await world.until(sessionId, is('failed', turn));
    expect(chunks.at(-1)).toMatchObject({ status: 'failed', stopReason: 'error', error: REJECTED });
    expect(await sessionOf(sessionId)).toMatchObject({ status: 'failed', error: REJECTED });
    await expect(sendMessage(world.ctx, { sessionId, content: 'x' })).rejects.toMatchObject({ code: 'session_ended' });
  }
  await world.until(recovering, is('completed', 3));
  expect(await sessionOf(recovering)).toMatchObject({ status: 'completed', error: null });
});

test('a child whose turn fails is failed, and the model of its parent gets the reason', async () => {
  const calls: ModelCall[] = [];
  await world.work({
    ask: byModel({
      parent: answering([{ calls: [['ask', { input: 'x' }]] }, { text: 'I see' }], (call) => calls.push(call)),
      child: failingIn([1]),
    }),
  });
  const child = await world.agent([], { model: 'scripted/child' });
  const sessionId = await world.open(await world.agent([agentTool('ask', child)], { model: 'scripted/parent' }));
  await world.until(sessionId, is('idle'));
  expect(calls[1]!.transcript.at(-1)!.content).toMatchObject([{ error: `The agent failed: ${REJECTED.message}` }]);
});

describe('whatever the cause, a turn that fails ends in the same way:', () => {
  const outputSchema = { type: 'object', required: ['total'] };
  const causes: [string, { ask: AskModel; agent?: object; crashes?: number }][] = [
    ['model_rejected', { ask: failingIn([1]) }],
    ['output_invalid', { ask: answering([{ text: 'no' }]), agent: { outputSchema } }],
    ['step_crashed', { ask: answering([]), crashes: 3 }],
  ];

  test.each(causes)('%s', async (code, { ask, agent = {}, crashes = 0 }) => {
    const sessionId = await world.open(await world.agent([httpTool('read')], agent));
    await world.platform.db.execute(sql`update sessions set crashes = ${crashes}`);
    await world.work({ ask, run: async () => ({ output: 'x'.repeat(1_000_000) }) });
    const chunks = await world.until(sessionId, is('idle'));
    const error = { code, message: expect.any(String) };
    expect(chunks.slice(-2)).toMatchObject([
      { type: 'turn.completed', stopReason: 'error', error },
      { type: 'session.status', status: 'idle', stopReason: 'error', error },
    ]);
    expect(await sessionOf(sessionId)).toMatchObject({ status: 'idle', stopReason: 'error', error, endedAt: null });
    const { data } = await listEvents(world.ctx, { type: 'turn.failed' });
    expect(data).toMatchObject([
      { outcome: 'failure', actor: { type: 'agent' }, sessionId, changes: { turn: [null, 1], error: [null, code] } },
    ]);
  });
});

test('after results that did not fit, every call that the next model call shows has a result', async () => {
  const calls: ModelCall[] = [];
  const reads: [string, unknown][] = Array.from({ length: 5 }, () => ['read', {}]);
  await world.work({
    ask: answering([{ calls: reads }, { text: 'I see' }], (call) => calls.push(call)),
    run: async () => ({ output: 'x'.repeat(1_000_000) }),
  });
  const sessionId = await world.open(await world.agent([httpTool('read')]));
  await world.until(sessionId, is('idle'));
  const [, next] = calls;
  expect(next!.transcript.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool']);
  const results = next!.transcript[2]!.content;
  expect(results).toHaveLength(5);
  expect(results.filter((part) => 'error' in part)).toMatchObject([{ error: expect.stringContaining('4 MiB') }]);
});

test('the results of a last allowed step reach the next model call once', async () => {
  const hold = Promise.withResolvers<void>();
  const calls: ModelCall[] = [];
  await world.work({
    ask: answering([{ calls: [['read', {}]] }, { text: 'I see' }], (call) => calls.push(call)),
    run: async () => {
      await hold.promise;
      return { output: 1 };
    },
  });
  const sessionId = await world.open(await world.agent([httpTool('read')], { limits: { maxStepsPerTurn: 1 } }));
  await sendMessage(world.ctx, { sessionId, content: 'And?' });
  hold.resolve();
  await world.until(sessionId, is('idle', 2));
  expect(calls[1]!.transcript.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user']);
});
