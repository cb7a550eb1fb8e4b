// Retrying a failed turn: it continues from its last finished operation, once.
import type { Chunk } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { archiveAgent, updateAgent } from '../../src/agents/agents.ts';
import { listEvents } from '../../src/events/events.ts';
import { type AskModel, type ModelCall, ModelFailure } from '../../src/models/model/model.ts';
import { cancelSession, closeSession } from '../../src/sessions/end-session.ts';
import { listMessages, sendMessage } from '../../src/sessions/messages.ts';
import { listTurns } from '../../src/sessions/reading/timeline.ts';
import { retrySession } from '../../src/sessions/retry.ts';
import { getSession } from '../../src/sessions/sessions.ts';
import { createManualClock } from '../support/manual-clock.ts';
import {
  answering,
  createWorld,
  httpTool,
  never,
  outline,
  type ScriptedResponse,
  usage,
  type World,
} from '../support/session-world.ts';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(() => world.close());

/** The session has had this status so many times. */
const is =
  (status: string, count = 1) =>
  (_: Chunk, all: Chunk[]) =>
    all.filter((chunk) => chunk.type === 'session.status' && chunk.status === status).length >= count;

const sessionOf = async (sessionId: string) => (await getSession(world.ctx, { sessionId })).session;
const rejected = () => new ModelFailure('model_rejected', 'The provider refused the request.', { retryable: false });
const PAYS: ScriptedResponse = { text: 'Paying', calls: [['pay', {}]] };
const NONE: ScriptedResponse = {};
const pay = httpTool('pay', { effectful: true });

/** The n-th model call of the session, counted from 0, fails if `fails` has n. */
function failingAt(fails: readonly number[], ask: AskModel): AskModel {
  return async function* (call, signal) {
    if (fails.includes(call.callsBefore)) throw rejected();
    yield* ask(call, signal);
  };
}

/** A session whose first turn has failed. */
async function failedSession(more: { agent?: object; open?: object } = {}): Promise<{ agentId: string; id: string }> {
  const agentId = await world.agent([pay], more.agent);
  const id = await world.open(agentId, more.open);
  await world.until(id, is('idle'));
  return { agentId, id };
}

test('a retried turn continues after its last finished step, and its journal after its failure', async () => {
  const calls: ModelCall[] = [];
  const runs: string[] = [];
  await world.work({
    ask: failingAt(
      [1],
      answering([PAYS, NONE, { text: 'Paid' }], (call) => calls.push(call)),
    ),
    run: async ({ operationId }) => ({ output: runs.push(operationId) }),
  });
  const { id: sessionId } = await failedSession();
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
  const events = await listEvents(world.ctx, { sessionId, order: 'asc' });
  expect(events.data.map(({ type, changes }) => [type, changes?.error])).toEqual([
    ['session.created', undefined],
    ['turn.failed', [null, 'model_rejected']],
    ['session.idle', undefined],
    ['session.retried', ['model_rejected', null]],
    ['session.idle', undefined],
  ]);
});

test('a turn can fail and be retried any number of times, and its failed calls use up no steps', async () => {
  await world.work({ ask: failingAt([0, 1, 3], answering([NONE, NONE, PAYS, NONE, { text: 'Paid' }])) });
  const { id: sessionId } = await failedSession({ agent: { limits: { maxStepsPerTurn: 2 } } });
  for (const times of [2, 3, 4]) {
    await retrySession(world.ctx, { sessionId });
    await world.until(sessionId, is('idle', times));
  }
  const ends = (await world.chunks(sessionId)).flatMap((chunk) => (chunk.type === 'turn.completed' ? [chunk] : []));
  expect(ends.map(({ stopReason }) => stopReason)).toEqual(['error', 'error', 'error', 'endTurn']);
  expect(ends.at(-1)).toMatchObject({ usage: { steps: 2, toolCalls: 1 } });
});

test('a call whose outcome is unknown stays unknown, and does not run again', async () => {
  const runs: string[] = [];
  const calls: ModelCall[] = [];
  const ask = failingAt(
    [1],
    answering([PAYS, NONE, { text: 'Who knows' }], (call) => calls.push(call)),
  );
  const begun = Promise.withResolvers<void>();
  const dying = await world.work({
    platform: await world.anotherNode(),
    ask,
    run: async ({ operationId }, signal) => {
      runs.push(operationId);
      begun.resolve();
      return never(signal);
    },
  });
  const sessionId = await world.open(await world.agent([pay]));
  await begun.promise;
  await world.expireLease(dying.nodeId);
  await world.work({ ask, run: async ({ operationId }) => ({ output: runs.push(operationId) }) });
  await world.until(sessionId, is('idle'));
  await retrySession(world.ctx, { sessionId });
  const chunks = await world.until(sessionId, is('idle', 2));
  expect(outline(chunks).filter((word) => word.startsWith('tool.'))).toEqual(['tool.call', 'tool.result unknown']);
  expect(runs).toHaveLength(1);
  expect(calls.at(-1)!.transcript.at(-1)!.content).toMatchObject([{ type: 'tool_result', outcomeUnknown: true }]);
});

test('only the last turn of an open session can be retried, and only if it failed', async () => {
  const hold = Promise.withResolvers<void>();
  const ask = failingAt([0, 2, 3, 4], answering([{ text: 'ok' }]));
  await world.work({
    ask: async function* (call, signal) {
      if (call.callsBefore === 1) await hold.promise;
      yield* ask(call, signal);
    },
  });
  const refused = (code: string) => ({ code, status: 409 });
  const { agentId, id: sessionId } = await failedSession();
  await sendMessage(world.ctx, { sessionId, content: 'again' });
  await expect(retrySession(world.ctx, { sessionId })).rejects.toMatchObject(refused('turn_not_failed'));
  hold.resolve();
  await world.until(sessionId, is('idle', 2));
  await expect(retrySession(world.ctx, { sessionId })).rejects.toMatchObject(refused('turn_not_failed'));

  const empty = await world.open(agentId, { input: undefined });
  await expect(retrySession(world.ctx, { sessionId: empty })).rejects.toMatchObject(refused('turn_not_failed'));

  const alone = await world.open(agentId, { closeOnIdle: true });
  await world.until(alone, is('failed'));
  const closed = (await failedSession()).id;
  await closeSession(world.ctx, { sessionId: closed });
  const cancelled = (await failedSession()).id;
  await cancelSession(world.ctx, { sessionId: cancelled });
  for (const id of [alone, closed, cancelled]) {
    await expect(retrySession(world.ctx, { sessionId: id })).rejects.toMatchObject(refused('session_ended'));
  }
});

test('of many retries at once on two nodes, one is accepted, and the turn runs once', async () => {
  const asked: number[] = [];
  const nodes = [world.platform, await world.anotherNode(), await world.anotherNode()];
  const ask = failingAt(
    [0],
    answering([NONE, { text: 'ok' }], (call) => asked.push(call.callsBefore)),
  );
  for (const platform of nodes) await world.work({ platform, ask });
  const { id: sessionId } = await failedSession();
  const outcomes = await Promise.allSettled(
    Array.from({ length: 20 }, (_, index) => retrySession({ ...world.ctx, ...nodes[index % 3]! }, { sessionId })),
  );
  const accepted = outcomes.filter(({ status }) => status === 'fulfilled');
  expect(accepted).toHaveLength(1);
  for (const outcome of outcomes) {
    if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ code: 'turn_not_failed' });
  }
  const chunks = await world.until(sessionId, is('idle', 2));
  expect(outline(chunks).slice(2)).toEqual(['idle', 'running', '"ok"', 'turn.completed endTurn', 'idle']);
  expect(asked).toEqual([1]);
});

test('of a retry and a message at once, the first one wins, and the message has its turn either way', async () => {
  const nodes = [world.platform, await world.anotherNode()];
  const ask = failingAt([0], answering([NONE, { text: 'ok' }]));
  for (const platform of nodes) await world.work({ platform, ask });
  const seen = new Set<string>();
  for (let times = 0; times < 10; times += 1) {
    const { id: sessionId } = await failedSession();
    const contexts = nodes.map((platform) => ({ ...world.ctx, ...platform }));
    if (times % 2 === 0) contexts.reverse();
    const retried = retrySession(contexts[0]!, { sessionId }).then(
      () => true,
      (error) => {
        expect(error).toMatchObject({ code: 'turn_not_failed' });
        return false;
      },
    );
    const [isRetried] = await Promise.all([retried, sendMessage(contexts[1]!, { sessionId, content: 'and?' })]);
    seen.add(String(isRetried));
    const ended = (chunk: Chunk) => chunk.turn === 2 && chunk.type === 'session.status' && chunk.status === 'idle';
    const chunks = await world.until(sessionId, ended);
    const ends = chunks.flatMap((chunk) => (chunk.type === 'turn.completed' ? [[chunk.turn, chunk.stopReason]] : []));
    const own = isRetried ? [[1, 'endTurn']] : [];
    expect(ends).toEqual([[1, 'error'], ...own, [2, 'endTurn']]);
  }
});

test('the time limit of a turn starts anew when it is retried', async () => {
  const clock = createManualClock();
  await world.close();
  world = await createWorld({ clock });
  const begun = Promise.withResolvers<void>();
  await world.work({
    ask: async function* (call, signal) {
      await clock.sleep(call.callsBefore === 0 ? 50_000 : 0, signal);
      if (call.callsBefore === 0) throw rejected();
      yield { type: 'text', delta: 'Hm' };
      begun.resolve();
      await never(signal);
    },
  });
  const agentId = await world.agent([], { limits: { turnTimeoutSeconds: 60 } });
  const sessionId = await world.open(agentId);
  await clock.passWhile(world.until(sessionId, is('idle')));
  await clock.advance(3_600_000);
  await retrySession(world.ctx, { sessionId });
  await world.until(sessionId, ({ type }) => type === 'message.chunk');
  await begun.promise;
  await clock.advance(59_000);
  await world.platform.db.query(sql`select 1`);
  expect((await sessionOf(sessionId)).status).toBe('running');
  await clock.advance(1_000);
  const chunks = await world.until(sessionId, is('idle', 2));
  expect(outline(chunks).slice(-2)).toEqual(['turn.completed timedOut', 'idle']);
});

test('a turn whose step crashed its nodes runs again when it is retried', async () => {
  const sessionId = await world.open(await world.agent());
  await world.platform.db.execute(sql`update sessions set crashes = 3`);
  await world.work({ ask: answering([{ text: 'ok' }]) });
  await world.until(sessionId, is('idle'));
  expect(await sessionOf(sessionId)).toMatchObject({ error: { code: 'step_crashed' } });
  await retrySession(world.ctx, { sessionId });
  const chunks = await world.until(sessionId, is('idle', 2));
  expect(outline(chunks).slice(-3)).toEqual(['"ok"', 'turn.completed endTurn', 'idle']);
});

test('a node that dies during a retried turn is replaced, and the turn is not retried twice', async () => {
  const runs: string[] = [];
  const begun = Promise.withResolvers<void>();
  const ask = failingAt([0], answering([NONE, PAYS, { text: 'Paid' }]));
  const dying = await world.work({
    platform: await world.anotherNode(),
    ask: async function* (call, signal) {
      if (call.callsBefore < 2) return yield* ask(call, signal);
      begun.resolve();
      await never(signal);
    },
    run: async ({ operationId }) => ({ output: runs.push(operationId) }),
  });
  const { id: sessionId } = await failedSession();
  await retrySession(world.ctx, { sessionId });
  await begun.promise;
  await world.expireLease(dying.nodeId);
  await world.work({ ask, run: async ({ operationId }) => ({ output: runs.push(operationId) }) });
  const chunks = await world.until(sessionId, is('idle', 2));
  expect(outline(chunks).slice(3)).toEqual([
    'running',
    '"Paying"',
    'tool.call',
    'tool.result',
    '"Paid"',
    'turn.completed endTurn',
    'idle',
  ]);
  expect(runs).toHaveLength(1);
});

test('a retried turn runs the corrected agent, and the list of turns says which model each call used', async () => {
  const models: string[] = [];
  await world.work({
    ask: failingAt(
      [0],
      answering([NONE, { text: 'ok' }], ({ config }) => models.push(config.model!)),
    ),
  });
  const { agentId, id: sessionId } = await failedSession({ agent: { model: 'scripted/wrong' } });
  await updateAgent(world.ctx, { agentId, model: 'scripted/right' });
  expect((await retrySession(world.ctx, { sessionId })).session.agentVersion).toBe(2);
  await world.until(sessionId, is('idle', 2));
  expect(models).toEqual(['right']);
  const { data } = await listTurns(world.ctx, { sessionId });
  expect(data).toMatchObject([{ turn: 1, agentVersion: 2 }]);
  expect(data[0]!.operations.map(({ name }) => name)).toEqual(['scripted/wrong', 'scripted/right']);
});

test('a session with a version of its own keeps it when it is retried', async () => {
  const models: string[] = [];
  await world.work({
    ask: failingAt(
      [0],
      answering([NONE, { text: 'ok' }], ({ config }) => models.push(config.model!)),
    ),
  });
  const agentId = await world.agent([], { model: 'scripted/first' });
  const sessionId = await world.open(agentId, { agentVersion: 1 });
  await world.until(sessionId, is('idle'));
  await updateAgent(world.ctx, { agentId, model: 'scripted/second' });
  await retrySession(world.ctx, { sessionId });
  await world.until(sessionId, is('idle', 2));
  expect(models).toEqual(['first']);
});

test('a turn of an archived agent is not retried, and stays as it is', async () => {
  await world.work({ ask: failingAt([0], answering([{ text: 'ok' }])) });
  const { agentId, id: sessionId } = await failedSession();
  await archiveAgent(world.ctx, { agentId });
  await expect(retrySession(world.ctx, { sessionId })).rejects.toMatchObject({ code: 'agent_archived' });
  expect(await sessionOf(sessionId)).toMatchObject({ status: 'idle', stopReason: 'error' });
});

test('a retry after a rejected response gives the model the reason', async () => {
  const outputSchema = { type: 'object', required: ['total'], properties: { total: { type: 'number' } } };
  const calls: ModelCall[] = [];
  const responses = [{ text: 'no' }, { text: 'still no' }, { text: '{"total":3}' }];
  await world.work({ ask: answering(responses, (call) => calls.push(call)) });
  const { id: sessionId } = await failedSession({ agent: { outputSchema } });
  await retrySession(world.ctx, { sessionId });
  const chunks = await world.until(sessionId, is('idle', 2));
  expect(chunks.at(-2)).toMatchObject({ type: 'turn.completed', stopReason: 'endTurn', output: { total: 3 } });
  expect(calls[2]!.transcript.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant', 'user']);
  expect(calls[2]!.transcript.at(-1)!.content).toEqual([
    { type: 'text', text: expect.stringMatching(/^The turn failed with this response: .*it is not JSON/) },
  ]);
  const { data } = await listMessages(world.ctx, { sessionId });
  expect(data.map(({ turn }) => turn)).toEqual([1, 1, 1, 1, 1, 1]);
});

test('a response that its token limit has cut is continued when its turn is retried', async () => {
  const calls: ModelCall[] = [];
  await world.work({
    ask: async function* (call) {
      calls.push(structuredClone(call));
      if (call.callsBefore === 1) throw rejected();
      yield { type: 'text', delta: call.callsBefore === 0 ? 'Once ' : 'upon a time' };
      yield { type: 'finish', reason: call.callsBefore === 0 ? 'maxOutputTokens' : 'endTurn', usage };
    },
  });
  const { id: sessionId } = await failedSession({ agent: { limits: { continueWhenCut: 2 } } });
  await retrySession(world.ctx, { sessionId });
  const chunks = await world.until(sessionId, is('idle', 2));
  const text = chunks.flatMap((chunk) => (chunk.type === 'message.chunk' ? [chunk.delta] : []));
  expect(text).toEqual(['Once ', 'upon a time']);
  // Messages are the same as in the call that failed.
  const [, failed, retried] = calls.map(({ transcript }) => transcript.map(({ role, content }) => [role, content]));
  expect(retried).toEqual(failed);
});

test('a retry does not raise the budget', async () => {
  const asked: number[] = [];
  await world.work({
    ask: failingAt(
      [1],
      answering([PAYS, NONE, PAYS], (call) => asked.push(call.callsBefore)),
    ),
  });
  const { id: sessionId } = await failedSession({ open: { budget: { maxSteps: 1 } } });
  expect(await sessionOf(sessionId)).toMatchObject({ stopReason: 'budgetReached' });
  await expect(retrySession(world.ctx, { sessionId })).rejects.toMatchObject({ code: 'turn_not_failed' });

  const other = (await failedSession({ open: { budget: { maxSteps: 2 } } })).id;
  expect(await sessionOf(other)).toMatchObject({ error: { code: 'model_rejected' } });
  await retrySession(world.ctx, { sessionId: other });
  const chunks = await world.until(other, is('idle', 2));
  expect(chunks.at(-2)).toMatchObject({ stopReason: 'budgetReached', usage: { steps: 2 } });
  expect(asked).toEqual([0, 0, 2]);
});

test('500 failed sessions retried at once on two nodes all end, and no effect happens twice', {
  timeout: 120_000,
}, async () => {
  const MANY = 500;
  const runs: string[] = [];
  const nodes = [world.platform, await world.anotherNode()];
  const ask = failingAt([1], answering([PAYS, NONE, PAYS, { text: 'Paid' }]));
  for (const platform of nodes) {
    await world.work({ platform, ask, run: async ({ operationId }) => ({ output: runs.push(operationId) }) });
  }
  const agentId = await world.agent([pay]);
  const opened = Array.from({ length: MANY }, () => world.open(agentId));
  const ids = await Promise.all(opened);
  const contexts = nodes.map((platform) => ({ ...world.ctx, ...platform }));
  const count = async (stopReason: string) => {
    const [row] = await world.platform.db.query<{ n: number }>(sql`
      select count(*)::int as n from sessions where status = 'idle' and stop_reason = ${stopReason}`);
    return row!.n;
  };
  await expect.poll(() => count('error'), { timeout: 60_000 }).toBe(MANY);
  // Each on both nodes.
  const outcomes = await Promise.all(
    ids.flatMap((sessionId) =>
      contexts.map((ctx) =>
        retrySession(ctx, { sessionId }).then(
          () => 1,
          () => 0,
        ),
      ),
    ),
  );
  expect(outcomes.reduce<number>((sum, one) => sum + one, 0)).toBe(MANY);
  await expect.poll(() => count('endTurn'), { timeout: 60_000 }).toBe(MANY);
  expect(runs).toHaveLength(2 * MANY);
  expect(new Set(runs).size).toBe(2 * MANY);
  const gaps = await world.platform.db.query(sql`
    select s.session_id from segments s
    left join segments b on b.organization_id = s.organization_id and b.session_id = s.session_id and b.turn = s.turn
      and b.seq_to = s.seq_from - 1
    where s.seq_from > 1 and b.session_id is null`);
  expect(gaps).toEqual([]);
});
