// Retrying a failed turn: it continues from its last finished operation, once.
import type { Chunk } from '@signalbox/contract';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type AskModel, type ModelCall, ModelFailure } from '../../src/runtime/models/model.ts';
import { retrySession } from '../../src/sessions/retry.ts';
import { getSession } from '../../src/sessions/sessions.ts';
import { listTurns } from '../../src/sessions/timeline.ts';
import { answering, createWorld, httpTool, outline, usage, type World } from '../support/session-world.ts';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(() => world.close());

const is =
  (status: string, count = 1) =>
  (chunk: Chunk, all: Chunk[]) =>
    chunk.type === 'session.status' &&
    chunk.status === status &&
    all.filter((one) => one.type === 'session.status' && one.status === status).length >= count;

const sessionOf = async (sessionId: string) => (await getSession(world.ctx, { sessionId })).session;
const rejected = () => new ModelFailure('model_rejected', 'The provider refused the request.', { retryable: false });

/** The n-th model call of the session fails if `fails` has n, counted from 0. */
function failingAt(fails: readonly number[], ask: AskModel): AskModel {
  return async function* (call, signal) {
    if (fails.includes(call.callsBefore)) throw rejected();
    yield* ask(call, signal);
  };
}

test('a retried turn continues after its last finished step, and its journal after its failure', async () => {
  const calls: ModelCall[] = [];
  const runs: string[] = [];
  const responses = [{ text: 'Paying', calls: [['pay', {}] as [string, object]] }, {}, { text: 'Paid' }];
  await world.work({
    ask: failingAt(
      [1],
      answering(responses, (call) => calls.push(call)),
    ),
    run: async ({ operationId }) => ({ output: runs.push(operationId) }),
  });
  const sessionId = await world.open(await world.agent([httpTool('pay', { effectful: true })]));
  await world.until(sessionId, is('idle'));
  const { session } = await retrySession(world.ctx, { sessionId });
  expect(session).toMatchObject({ status: 'running', turn: 1, stopReason: null, error: null });
  const chunks = await world.until(sessionId, is('idle', 2));
  expect(outline(chunks)).toEqual([
    'running',
    '"Paying"',
    'tool.call',
    'tool.result',
    'turn.completed error',
    'idle',
    'running',
    '"Paid"',
    'turn.completed endTurn',
    'idle',
  ]);
  expect(chunks.map(({ turn, seq }) => [turn, seq])).toEqual(chunks.map((_, index) => [1, index + 1]));
  expect(runs).toHaveLength(1);
  expect(calls[1]!.transcript.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool']);
  // The usage is that of the whole turn.
  expect(chunks.at(-2)).toMatchObject({ usage: { steps: 2, toolCalls: 1, inputTokens: 2 * usage.inputTokens } });
  expect(await sessionOf(sessionId)).toMatchObject({ turn: 1, stopReason: 'endTurn', error: null });

  const { data } = await listTurns(world.ctx, { sessionId });
  expect(data).toMatchObject([{ turn: 1, status: 'completed', stopReason: 'endTurn', error: null }]);
  expect(data[0]!.operations.map(({ kind, step, status }) => [kind, step, status])).toEqual([
    ['model', 1, 'succeeded'],
    ['tool', 1, 'succeeded'],
    ['model', 2, 'failed'],
    ['model', 3, 'succeeded'],
  ]);
});
