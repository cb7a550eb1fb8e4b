// Turns, approvals and tools: what a Session shows, in which order, and what the model is told.
import type { Chunk } from '@signalbox/contract';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { archiveAgent } from '../src/agents/agents.ts';
import { listApprovals, resolveApproval } from '../src/approvals/approvals.ts';
import { type ModelCall, ModelFailure } from '../src/runtime/models/model.ts';
import { cancelSession, closeSession } from '../src/sessions/ending.ts';
import { listMessages, sendMessage } from '../src/sessions/messages.ts';
import { getSession } from '../src/sessions/sessions.ts';
import { sendToolResult } from '../src/sessions/tool-results.ts';
import {
  answering,
  clientTool,
  createWorld,
  httpTool,
  outline,
  queryingBy,
  usage,
  type World,
} from './support/session-world.ts';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(() => world.close());

const is = (status: string) => (chunk: Chunk) => chunk.type === 'session.status' && chunk.status === status;
const payTool = httpTool('pay', { approval: 'always' });

async function pending(sessionId: string): Promise<string[]> {
  const { data } = await listApprovals(world.ctx, { sessionId, status: 'pending' });
  return data.map(({ operationId }) => operationId);
}

test('a turn shows its text and its end, and leaves the session idle with nobody holding it', async () => {
  await world.work({ ask: answering([{ text: 'Hello' }]) });
  const sessionId = await world.open(await world.agent());
  const chunks = await world.until(sessionId, is('idle'));
  expect(outline(chunks)).toEqual(['running', '"Hello"', 'turn.completed endTurn', 'idle']);
  const { session } = await getSession(world.ctx, { sessionId });
  expect(session).toMatchObject({
    status: 'idle',
    turn: 1,
    cursor: 'turn_1:seq_4',
    stopReason: 'endTurn',
    usage: { ...usage, steps: 1, toolCalls: 0 },
  });
});

test('an effectful call waits for approval, in the order that integrators rely on', async () => {
  const inputs: unknown[] = [];
  await world.work({
    ask: answering([{ text: 'Paying', calls: [['pay', { amount: 3 }]] }, { text: 'Paid' }]),
    run: async ({ input, operationId }) => {
      inputs.push([input, operationId]);
      return { output: { ok: true } };
    },
  });
  const sessionId = await world.open(await world.agent([payTool]));
  await world.until(sessionId, is('waiting'));
  expect(inputs).toEqual([]);
  const [operationId] = await pending(sessionId);
  const { session } = await getSession(world.ctx, { sessionId });
  expect(session.waitingFor).toMatchObject({ type: 'approval', operationIds: [operationId], toolCallIds: [] });

  await resolveApproval(world.ctx, { operationId: operationId!, decision: 'approved' });
  const chunks = await world.until(sessionId, is('idle'));
  expect(outline(chunks)).toEqual([
    'running',
    '"Paying"',
    'approval.requested',
    'waiting',
    'approval.resolved approved',
    'running',
    'tool.call',
    'tool.result',
    '"Paid"',
    'turn.completed endTurn',
    'idle',
  ]);
  expect(inputs).toEqual([[{ amount: 3 }, operationId]]);
});

test('a denied call never starts, and the model is told why', async () => {
  const calls: ModelCall[] = [];
  let runs = 0;
  await world.work({
    ask: answering([{ calls: [['pay', {}]] }, { text: 'Understood' }], (call) => calls.push(call)),
    run: async () => {
      runs += 1;
      return { output: null };
    },
  });
  const sessionId = await world.open(await world.agent([payTool]));
  await world.until(sessionId, is('waiting'));
  const [operationId] = await pending(sessionId);
  await resolveApproval(world.ctx, { operationId: operationId!, decision: 'denied', reason: 'too much' });
  const chunks = await world.until(sessionId, is('idle'));
  expect(outline(chunks)).not.toContain('tool.call');
  expect(runs).toBe(0);
  expect(calls[1]!.transcript.at(-1)!.content).toEqual([
    expect.objectContaining({ type: 'tool_result', error: 'A person denied this call: too much' }),
  ]);
});

test('two decisions at the same moment: one wins, and the other caller is told', async () => {
  await world.work({ ask: answering([{ calls: [['pay', {}]] }, { text: 'ok' }]) });
  const sessionId = await world.open(await world.agent([payTool]));
  await world.until(sessionId, is('waiting'));
  const operationId = (await pending(sessionId))[0]!;
  const otherNode = { ...world.ctx, ...(await world.anotherNode()) };
  const outcomes = await Promise.allSettled([
    resolveApproval(world.ctx, { operationId, decision: 'approved' }),
    resolveApproval(otherNode, { operationId, decision: 'denied' }),
  ]);
  expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
  const lost = outcomes.find((outcome) => outcome.status === 'rejected');
  expect(lost?.reason).toMatchObject({ code: 'approval_already_resolved' });
  const chunks = await world.until(sessionId, is('idle'));
  expect(outline(chunks).filter((word) => word.startsWith('approval.resolved'))).toHaveLength(1);
});

test('the same decision again answers what was first recorded', async () => {
  await world.work({ ask: answering([{ calls: [['pay', {}]] }, { text: 'ok' }]) });
  const sessionId = await world.open(await world.agent([payTool]));
  await world.until(sessionId, is('waiting'));
  const operationId = (await pending(sessionId))[0]!;
  const first = await resolveApproval(world.ctx, {
    operationId,
    decision: 'approved',
    reason: 'first',
    onBehalfOf: 'ann',
  });
  const again = await resolveApproval(world.ctx, { operationId, decision: 'approved', reason: 'second' });
  expect(again).toEqual(first);
  expect(again.approval).toMatchObject({ reason: 'first', resolvedBy: { onBehalfOf: 'ann' } });
});

test('of two approvals one is resolved: the session says what it still waits for, and goes on when all has come', async () => {
  await world.work({
    ask: answering([
      {
        calls: [
          ['pay', { n: 1 }],
          ['pay', { n: 2 }],
        ],
      },
      { text: 'ok' },
    ]),
  });
  const sessionId = await world.open(await world.agent([payTool]));
  await world.until(sessionId, is('waiting'));
  const [first, second] = await pending(sessionId);
  await resolveApproval(world.ctx, { operationId: first!, decision: 'approved' });
  const { session } = await getSession(world.ctx, { sessionId });
  expect(session).toMatchObject({ status: 'waiting', waitingFor: { type: 'approval', operationIds: [second] } });
  await resolveApproval(world.ctx, { operationId: second!, decision: 'denied' });
  const chunks = await world.until(sessionId, is('idle'));
  expect(outline(chunks).filter((word) => word === 'tool.call')).toHaveLength(1);
});

test('a client tool waits for its result; the same again is fine, another is a conflict', async () => {
  const calls: ModelCall[] = [];
  await world.work({ ask: answering([{ calls: [['where', {}]] }, { text: 'ok' }], (call) => calls.push(call)) });
  const sessionId = await world.open(await world.agent([clientTool('where')]));
  await world.until(sessionId, is('waiting'));
  const { session } = await getSession(world.ctx, { sessionId });
  expect(session.waitingFor?.type).toBe('toolResult');
  const toolCallId = session.waitingFor!.toolCallIds[0]!;
  await sendToolResult(world.ctx, { sessionId, toolCallId, output: { b: 1, a: [2] } });
  await sendToolResult(world.ctx, { sessionId, toolCallId, output: { a: [2], b: 1 } });
  await expect(sendToolResult(world.ctx, { sessionId, toolCallId, output: 'other' })).rejects.toMatchObject({
    code: 'conflict',
  });
  const chunks = await world.until(sessionId, is('idle'));
  expect(outline(chunks)).toEqual([
    'running',
    'tool.call',
    'waiting',
    'tool.result',
    'running',
    '"ok"',
    'turn.completed endTurn',
    'idle',
  ]);
  expect(calls[1]!.transcript.at(-1)!.content).toEqual([{ type: 'tool_result', toolCallId, output: { b: 1, a: [2] } }]);
});

test('calls of one step run together, and their results reach the model in its own order', async () => {
  const slow = Promise.withResolvers<void>();
  const started: string[] = [];
  const calls: ModelCall[] = [];
  await world.work({
    ask: answering(
      [
        {
          calls: [
            ['a', {}],
            ['b', {}],
          ],
        },
        { text: 'ok' },
      ],
      (call) => calls.push(call),
    ),
    run: async ({ tool }) => {
      started.push(tool.name);
      if (tool.name === 'a') await slow.promise;
      return { output: tool.name };
    },
  });
  const sessionId = await world.open(await world.agent([httpTool('a'), httpTool('b')]));
  await world.until(sessionId, (chunk) => chunk.type === 'tool.result');
  expect(started).toEqual(['a', 'b']);
  slow.resolve();
  await world.until(sessionId, is('idle'));
  expect(calls[1]!.transcript.at(-1)!.content).toMatchObject([{ output: 'a' }, { output: 'b' }]);
});

test('an approval that is resolved while another call of the step runs is shown and acted on at once', async () => {
  const slow = Promise.withResolvers<void>();
  await world.work({
    ask: answering([
      {
        calls: [
          ['slow', {}],
          ['pay', {}],
        ],
      },
      { text: 'ok' },
    ]),
    run: async ({ tool }) => {
      if (tool.name === 'slow') await slow.promise;
      return { output: tool.name };
    },
  });
  const sessionId = await world.open(await world.agent([httpTool('slow'), payTool]));
  await world.until(sessionId, (chunk) => chunk.type === 'tool.call');
  const [operationId] = await pending(sessionId);
  await resolveApproval(world.ctx, { operationId: operationId!, decision: 'approved' });
  await world.until(sessionId, (_, all) => outline(all).filter((word) => word === 'tool.call').length === 2);
  slow.resolve();
  const chunks = await world.until(sessionId, is('idle'));
  expect(outline(chunks)).not.toContain('waiting');
});

test('a message while a turn is under way has a turn of its own after it; none is lost', async () => {
  const hold = Promise.withResolvers<void>();
  await world.work({
    ask: async function* (call) {
      if (call.callsBefore === 0) await hold.promise;
      yield { type: 'text', delta: `answer ${call.callsBefore}` };
      yield { type: 'finish', reason: 'endTurn', usage };
    },
  });
  const sessionId = await world.open(await world.agent());
  await sendMessage(world.ctx, { sessionId, content: 'second' });
  await sendMessage(world.ctx, { sessionId, content: 'third' });
  await expect(sendMessage(world.ctx, { sessionId, content: 'no', onBusy: 'reject' })).rejects.toMatchObject({
    code: 'session_busy',
  });
  const before = await listMessages(world.ctx, { sessionId });
  expect(before.data.map(({ turn }) => turn)).toEqual([1, null, null]);
  hold.resolve();
  const chunks = await world.until(sessionId, is('idle'));
  expect(chunks.filter(({ type }) => type === 'turn.completed').map(({ turn }) => turn)).toEqual([1, 2, 3]);
  const after = await listMessages(world.ctx, { sessionId });
  expect(after.data.map(({ role, turn }) => `${role} ${turn}`)).toEqual([
    'user 1',
    'assistant 1',
    'user 2',
    'assistant 2',
    'user 3',
    'assistant 3',
  ]);
});

test('messages that wait are many and long: each is read when its turn begins, and not before', async () => {
  const reads: number[] = [0, 0, 0];
  const platform = queryingBy(world.platform, async (_, rows) => {
    const text = JSON.stringify(rows);
    for (const index of reads.keys()) if (text.includes(`long ${index}`)) reads[index]! += 1;
  });
  const asked = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  await world.work({
    platform,
    ask: async function* (call, signal) {
      asked.resolve();
      await goOn.promise;
      yield* answering([{ text: 'ok' }])(call, signal);
    },
  });
  const sessionId = await world.open(await world.agent());
  await asked.promise;
  for (const index of reads.keys()) await sendMessage(world.ctx, { sessionId, content: `long ${index}` });
  goOn.resolve();
  await world.until(sessionId, (chunk) => is('idle')(chunk) && chunk.turn === 4);
  expect(reads).toEqual([1, 1, 1]);
});

test('a message that was accepted has its turn, also when its agent is archived before', async () => {
  const hold = Promise.withResolvers<void>();
  await world.work({
    ask: async function* () {
      await hold.promise;
      yield { type: 'finish', reason: 'endTurn', usage };
    },
  });
  const agentId = await world.agent();
  const sessionId = await world.open(agentId);
  await sendMessage(world.ctx, { sessionId, content: 'second' });
  await archiveAgent(world.ctx, { agentId });
  hold.resolve();
  await world.until(sessionId, (chunk) => chunk.turn === 2 && is('idle')(chunk));
});

test('a message that comes at the moment a turn ends is never lost', async () => {
  await world.work({});
  const agentId = await world.agent();
  const sessions = await Promise.all(Array.from({ length: 30 }, () => world.open(agentId)));
  await Promise.all(
    sessions.map(async (sessionId, index) => {
      for (let n = 0; n < index % 7; n += 1) await new Promise<void>((resolve) => setImmediate(resolve));
      await sendMessage(world.ctx, { sessionId, content: 'again' });
    }),
  );
  for (const sessionId of sessions) {
    await world.until(sessionId, (chunk) => chunk.turn === 2 && is('idle')(chunk));
  }
});

test('close completes the session when its turn and what was queued before are over', async () => {
  const hold = Promise.withResolvers<void>();
  await world.work({
    ask: async function* () {
      await hold.promise;
      yield { type: 'finish', reason: 'endTurn', usage };
    },
  });
  const sessionId = await world.open(await world.agent());
  await sendMessage(world.ctx, { sessionId, content: 'queued' });
  await closeSession(world.ctx, { sessionId });
  await expect(sendMessage(world.ctx, { sessionId, content: 'late' })).rejects.toMatchObject({ code: 'session_ended' });
  hold.resolve();
  const chunks = await world.until(sessionId, is('completed'));
  expect(chunks.at(-1)).toMatchObject({ type: 'session.status', status: 'completed', turn: 2 });
});

test('close that comes at the very moment a turn ends completes the session', async () => {
  const { platform } = world;
  let isClosed = false;
  const batch: typeof platform.db.batch = async (statements) => {
    if (!isClosed && statements.some(({ text }) => text.includes('stop_reason ='))) {
      isClosed = true;
      await closeSession(world.ctx, { sessionId });
    }
    return platform.db.batch(statements);
  };
  const sessionId = await world.open(await world.agent());
  await world.work({ platform: { ...platform, db: { ...platform.db, batch } } });
  const chunks = await world.until(sessionId, (chunk) => is('idle')(chunk) || is('completed')(chunk));
  expect(outline(chunks).slice(-2)).toEqual(['turn.completed endTurn', 'completed']);
});

test('cancel is at once: the model is stopped, what it still says is refused, and the terminal status is the last chunk', async () => {
  const aborted = Promise.withResolvers<void>();
  await world.work({
    ask: async function* (_, signal) {
      yield { type: 'text', delta: 'begun' };
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      aborted.resolve();
      yield { type: 'text', delta: 'too late' };
    },
  });
  const sessionId = await world.open(await world.agent());
  await world.until(sessionId, (chunk) => chunk.type === 'message.chunk');
  const { session } = await cancelSession(world.ctx, { sessionId });
  expect(session.status).toBe('cancelled');
  await aborted.promise;
  expect(outline(await world.chunks(sessionId))).toEqual(['running', '"begun"', 'cancelled']);
  expect((await cancelSession(world.ctx, { sessionId })).session).toEqual(session);
});

test('cancel resolves what is pending as cancelled', async () => {
  await world.work({ ask: answering([{ calls: [['pay', {}]] }]) });
  const sessionId = await world.open(await world.agent([payTool]));
  await world.until(sessionId, is('waiting'));
  const [operationId] = await pending(sessionId);
  await cancelSession(world.ctx, { sessionId });
  expect(outline(await world.chunks(sessionId)).slice(-2)).toEqual(['approval.resolved cancelled', 'cancelled']);
  await expect(resolveApproval(world.ctx, { operationId: operationId!, decision: 'approved' })).rejects.toMatchObject({
    code: 'approval_already_resolved',
  });
});

test('a model that fails is asked again, and text it has shown is taken back', async () => {
  await world.work({
    ask: async function* (call) {
      yield { type: 'text', delta: `try ${call.callsBefore}` };
      if (call.callsBefore === 0) {
        // The first text is on disk before the stream breaks, so that there is something to take back.
        await shown.promise;
        throw new ModelFailure('model_unavailable', 'The stream broke off.', { retryable: true });
      }
      yield { type: 'finish', reason: 'endTurn', usage };
    },
  });
  const shown = Promise.withResolvers<void>();
  const sessionId = await world.open(await world.agent());
  await world.until(sessionId, (chunk) => chunk.type === 'message.chunk');
  shown.resolve();
  const chunks = await world.until(sessionId, is('idle'));
  expect(outline(chunks)).toEqual([
    'running',
    '"try 0"',
    'message.reset 2',
    '"try 1"',
    'turn.completed endTurn',
    'idle',
  ]);
  expect((await listMessages(world.ctx, { sessionId })).data.at(-1)!.content).toEqual([
    { type: 'text', text: 'try 1' },
  ]);
});

test('a failure that asking again cannot mend fails the session with a clear error', async () => {
  await world.work({
    // biome-ignore lint/correctness/useYield: a model that fails before it says anything
    ask: async function* () {
      throw new ModelFailure('model_rejected', 'The provider refused the request (HTTP 401).', { retryable: false });
    },
  });
  const sessionId = await world.open(await world.agent());
  const chunks = await world.until(sessionId, is('failed'));
  expect(outline(chunks)).toEqual(['running', 'turn.completed error', 'failed']);
  const { session } = await getSession(world.ctx, { sessionId });
  expect(session).toMatchObject({ status: 'failed', stopReason: 'error', error: { code: 'model_rejected' } });
  await expect(sendMessage(world.ctx, { sessionId, content: 'x' })).rejects.toMatchObject({ code: 'session_ended' });
});

test('a call of a tool that is not there, or with an input that does not match, is answered to the model alone', async () => {
  const strict = httpTool('strict', {
    inputSchema: { type: 'object', required: ['to'], properties: { to: { type: 'string' } } },
  });
  const calls: ModelCall[] = [];
  await world.work({
    ask: answering(
      [
        {
          calls: [
            ['nothing', {}],
            ['strict', { to: 1 }],
            ['strict', 'text'],
          ],
        },
        { text: 'ok' },
      ],
      (call) => calls.push(call),
    ),
  });
  const sessionId = await world.open(await world.agent([strict]));
  const chunks = await world.until(sessionId, is('idle'));
  expect(outline(chunks)).not.toContain('tool.call');
  const errors = calls[1]!.transcript.at(-1)!.content.map((part) => (part as { error?: string }).error);
  expect(errors).toEqual([
    'There is no tool named "nothing".',
    expect.stringContaining('/to must be string'),
    expect.stringContaining('must be a JSON object'),
  ]);
});

test('limits end a turn before the call that would pass them', async () => {
  await world.work({ ask: answering([{ calls: [['a', {}]] }]) });
  const limits = { maxStepsPerTurn: 2, maxOutputTokens: null };
  const steps = await world.open(await world.agent([httpTool('a')], { limits }));
  expect(outline(await world.until(steps, is('idle')))).toContain('turn.completed maxSteps');
  const budget = await world.open(await world.agent([httpTool('a')]), { budget: { maxTokens: 6 } });
  expect(outline(await world.until(budget, is('idle')))).toContain('turn.completed budgetReached');
  expect((await getSession(world.ctx, { sessionId: budget })).session.usage.steps).toBe(2);
});

test('what a model or a tool says that no database can store does no harm', async () => {
  await world.work({
    ask: answering([{ text: 'a\0b\ud800', calls: [['a', { 'k\0': '\udc00' }]] }, { text: 'ok' }]),
    run: async () => ({ output: { text: '\0x\ud800' } }),
  });
  const sessionId = await world.open(await world.agent([httpTool('a')]));
  const chunks = await world.until(sessionId, is('idle'));
  expect(chunks.find(({ type }) => type === 'tool.result')).toMatchObject({ output: { text: 'x\ufffd' } });
});
