// Approvals: when one is requested, what a decision does, what happens without a decision.
//
// Only the tests move the clock, so no poll occurs that a test does not cause.
import type { Chunk } from '@signalbox/contract';
import type { Sql } from 'sql-template-tag';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { getApproval } from '../../src/approvals/approvals.ts';
import { listApprovals } from '../../src/approvals/list.ts';
import { resolveApproval } from '../../src/approvals/resolve.ts';
import { listEvents } from '../../src/events/events.ts';
import { checks } from '../../src/http/handlers.ts';
import type { PoolContext } from '../../src/lib/context.ts';
import type { ModelCall } from '../../src/models/model/model.ts';
import type { Platform } from '../../src/platform.ts';
import { cancelSession } from '../../src/sessions/end-session.ts';
import { listMessages, sendMessage } from '../../src/sessions/messages.ts';
import { getSession } from '../../src/sessions/sessions.ts';
import { sendToolResult } from '../../src/sessions/tool-results.ts';
import type { RunTool } from '../../src/tools/tool/tool.ts';
import { idle } from '../support/idle.ts';
import { createManualClock, type ManualClock } from '../support/manual-clock.ts';
import {
  answering,
  clientTool,
  createWorld,
  httpTool,
  is,
  never,
  outline,
  queryingBy,
  type World,
} from '../support/session-world.ts';

let clock: ManualClock;
let world: World;
beforeEach(async () => {
  clock = createManualClock();
  world = await createWorld({ clock });
});
afterEach(() => clock.passWhile(world.close()));

const isType = (type: Chunk['type']) => (chunk: Chunk) => chunk.type === type;
const tick = () => new Promise<void>((resolve) => setImmediate(resolve));
const payTool = httpTool('pay', { approval: 'always' });
/** One step with these calls, each with the input `{ n }`, n counting from 1. */
const calls = (...names: string[]) => ({
  calls: names.map((name, index): [string, unknown] => [name, { n: index + 1 }]),
});

async function pending(sessionId: string): Promise<string[]> {
  const { data } = await listApprovals(world.ctx, { sessionId, status: 'pending' });
  return data.map(({ operationId }) => operationId);
}

/** Its only pending approval. */
async function pendingOne(sessionId: string): Promise<string> {
  const ids = await pending(sessionId);
  expect(ids).toHaveLength(1);
  return ids[0]!;
}

/** The results of the last step's calls that the model gets. */
function resultsIn(call: ModelCall | undefined): unknown[] {
  return call!.transcript.findLast(({ role }) => role === 'tool')!.content as unknown[];
}

/** The context for API calls on another node, which the node that runs the session notices only by its poll. */
async function otherNode(clockThere?: ManualClock): Promise<PoolContext> {
  return { ...world.ctx, ...(await world.anotherNode(clockThere ? { clock: clockThere } : {})) };
}

/** Opens a session and waits until it waits for its approvals. */
async function waitingSession(agentId: string): Promise<string> {
  const sessionId = await world.open(agentId);
  await world.until(sessionId, is('waiting'));
  return sessionId;
}

describe('approval requests', () => {
  test('an effectful call runs only after its approval, and its chunks have the documented order', async () => {
    const inputs: unknown[] = [];
    await world.work({
      ask: answering([{ text: 'Paying', calls: [['pay', { amount: 3 }]] }, { text: 'Paid' }]),
      run: async ({ input, operationId }) => {
        inputs.push([input, operationId]);
        return { output: { ok: true } };
      },
    });
    const sessionId = await waitingSession(await world.agent([payTool]));
    expect(inputs).toEqual([]);
    const operationId = await pendingOne(sessionId);
    const { session } = await getSession(world.ctx, { sessionId });
    expect(session.waitingFor).toMatchObject({ type: 'approval', operationIds: [operationId], toolCallIds: [] });

    await resolveApproval(world.ctx, { operationId, decision: 'approved' });
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

  test('the tool.call of a client tool comes after its approval', async () => {
    await world.work({ ask: answering([calls('sign'), { text: 'ok' }]) });
    const sessionId = await waitingSession(await world.agent([clientTool('sign', { effectful: true })]));
    await resolveApproval(world.ctx, { operationId: await pendingOne(sessionId), decision: 'approved' });
    const chunks = await world.until(sessionId, isType('tool.call'));
    await world.until(sessionId, (_, all) => all.at(-1) !== undefined && is('waiting')(all.at(-1)!));
    const { toolCallId } = chunks.find(isType('tool.call')) as { toolCallId: string };
    await sendToolResult(world.ctx, { sessionId, toolCallId, output: 'signed' });
    expect(outline(await world.until(sessionId, is('idle')))).toEqual([
      'running',
      'approval.requested',
      'waiting',
      'approval.resolved approved',
      'running',
      'tool.call',
      'waiting',
      'tool.result',
      'running',
      '"ok"',
      'turn.completed endTurn',
      'idle',
    ]);
  });

  test('an approval is stored before any client can receive its id', async () => {
    await world.work({ ask: answering([calls('pay', 'pay')]) });
    const agentId = await world.agent([payTool]);
    const there = await otherNode();
    const sessions = await Promise.all(Array.from({ length: 20 }, () => world.open(agentId)));
    await Promise.all(
      sessions.map(async (sessionId) => {
        const chunks = await world.until(sessionId, isType('approval.requested'));
        const asked = chunks.filter((chunk) => chunk.type === 'approval.requested');
        expect(asked).toHaveLength(2);
        for (const { operationId } of asked) {
          const { approval } = await getApproval(there, { operationId });
          expect(approval).toMatchObject({ operationId, sessionId, status: 'pending' });
        }
      }),
    );
  });

  test.each([
    ['always', [{}, {}], ['asked', 'asked']],
    ['never', [{}, {}], ['ran', 'ran']],
    ['once', [{}, {}], ['asked', 'ran']],
    ['when', [{ amount: 99 }, { amount: 100 }, { amount: 'much' }], ['ran', 'asked', 'ran']],
  ])('the policy “%s” requests approval for exactly the calls that it names', async (name, inputs, expected) => {
    const when = { type: 'object', properties: { amount: { type: 'number', minimum: 100 } }, required: ['amount'] };
    await world.work({
      ask: answering([...inputs.map((input) => ({ calls: [['pay', input] as [string, unknown]] })), { text: 'ok' }]),
    });
    const sessionId = await world.open(
      await world.agent([httpTool('pay', { approval: name === 'when' ? { when } : name })]),
    );
    const happened: string[] = [];
    for (const [index] of inputs.entries()) {
      const chunks = await world.until(
        sessionId,
        (_, all) =>
          all.filter(isType('tool.call')).length > index ||
          all.filter(is('waiting')).length > happened.filter((word) => word === 'asked').length,
      );
      const isAsked = chunks.filter(isType('tool.call')).length <= index;
      happened.push(isAsked ? 'asked' : 'ran');
      if (!isAsked) continue;
      await resolveApproval(world.ctx, { operationId: await pendingOne(sessionId), decision: 'approved' });
    }
    await world.until(sessionId, is('idle'));
    expect(happened).toEqual(expected);
  });

  test('approval is requested if a condition on the input can’t be evaluated', async () => {
    // A pattern that backtracks endlessly on this input, but not on others.
    const when = { properties: { note: { pattern: '^(a+)+$' } } };
    const note = `${'a'.repeat(60)}!`;
    await world.work({ ask: answering([{ calls: [['pay', { note }]] }, { text: 'ok' }]) });
    const sessionId = await world.open(await world.agent([httpTool('pay', { approval: { when } })]));
    expect(outline(await world.until(sessionId, is('waiting')))).toContain('approval.requested');
  });

  test('without a policy, approval is requested for effectful tools only', async () => {
    await world.work({ ask: answering([calls('get', 'post', 'own', 'ownEffect'), { text: 'ok' }]) });
    const request = { method: 'GET' as const, url: 'https://example.com/' };
    const undefinedApproval = { approval: undefined };
    const tools = [
      httpTool('get', { ...undefinedApproval, request }),
      httpTool('post', undefinedApproval),
      clientTool('own'),
      clientTool('ownEffect', { effectful: true }),
    ];
    const sessionId = await waitingSession(await world.agent(tools));
    const { data } = await listApprovals(world.ctx, { sessionId });
    expect(data.map(({ name }) => name)).toEqual(['post', 'ownEffect']);
  });

  test('with the policy “once”, each call of the same step needs its own approval', async () => {
    await world.work({ ask: answering([calls('pay', 'pay'), calls('pay'), { text: 'ok' }]) });
    const sessionId = await waitingSession(await world.agent([httpTool('pay', { approval: 'once' })]));
    const [first = '', second = ''] = await pending(sessionId);
    await resolveApproval(world.ctx, { operationId: first, decision: 'approved' });
    expect(await pending(sessionId)).toEqual([second]);
    await resolveApproval(world.ctx, { operationId: second, decision: 'denied' });
    const words = outline(await world.until(sessionId, is('idle')));
    expect(words.filter((word) => word === 'approval.requested')).toHaveLength(2);
    expect(words.filter((word) => word === 'tool.call')).toHaveLength(2);
  });
});

describe('decisions', () => {
  test('a denied call does not start, and the model gets the reason', async () => {
    const asked: ModelCall[] = [];
    let runs = 0;
    await world.work({
      ask: answering([calls('pay', 'pay'), { text: 'Understood' }], (call) => asked.push(call)),
      run: async () => {
        runs += 1;
        return { output: null };
      },
    });
    const sessionId = await waitingSession(await world.agent([payTool]));
    const [first = '', second = ''] = await pending(sessionId);
    await resolveApproval(world.ctx, { operationId: first, decision: 'denied', reason: 'too much' });
    await resolveApproval(world.ctx, { operationId: second, decision: 'denied' });
    const chunks = await world.until(sessionId, is('idle'));
    expect(outline(chunks)).not.toContain('tool.call');
    expect(chunks.filter(isType('approval.resolved'))).toMatchObject([{ reason: 'too much' }, { decision: 'denied' }]);
    expect(runs).toBe(0);
    expect(resultsIn(asked[1])).toMatchObject([
      { type: 'tool_result', error: 'The approver denied this call: too much' },
      { type: 'tool_result', error: 'The approver denied this call.' },
    ]);
  });

  test('a denied call of a client tool has a tool.result but no tool.call, which a program would run', async () => {
    await world.work({ ask: answering([calls('wire', 'wire'), { text: 'Understood' }]) });
    const inputSchema = { type: 'object', properties: { amount: { type: 'number' } }, required: ['amount'] };
    const sessionId = await waitingSession(await world.agent([clientTool('wire', { approval: 'always' })]));
    const [first = '', second = ''] = await pending(sessionId);
    await resolveApproval(world.ctx, { operationId: first, decision: 'denied', reason: 'too much' });
    await resolveApproval(world.ctx, { operationId: second, decision: 'denied' });
    const chunks = await world.until(sessionId, is('idle'));
    expect(chunks.filter(isType('tool.call'))).toEqual([]);
    expect(chunks.filter(isType('tool.result'))).toMatchObject(
      [first, second].map((operationId) => ({
        toolCallId: operationId.replace(/^op_/, 'call_'),
        tool: 'wire',
        input: {},
        notRun: true,
        error: expect.stringContaining('The approver denied this call'),
      })),
    );

    const strict = await world.open(await world.agent([clientTool('wire', { inputSchema })]));
    const invalid = await world.until(strict, is('idle'));
    expect(outline(invalid)).not.toContain('tool.call');
    expect(invalid.filter(isType('tool.result'))).toMatchObject(Array(2).fill({ tool: 'wire', notRun: true }));
  });

  test('of two simultaneous decisions on two nodes one wins, and the other caller gets an error', async () => {
    await world.work({ ask: answering([calls('pay'), { text: 'ok' }]) });
    const agentId = await world.agent([payTool]);
    const there = await otherNode();
    for (let round = 0; round < 10; round += 1) {
      const sessionId = await waitingSession(agentId);
      const operationId = await pendingOne(sessionId);
      const outcomes = await Promise.allSettled([
        resolveApproval(round % 2 === 0 ? world.ctx : there, { operationId, decision: 'approved' }),
        resolveApproval(round % 2 === 0 ? there : world.ctx, { operationId, decision: 'denied' }),
      ]);
      const won = outcomes.flatMap((outcome) =>
        outcome.status === 'fulfilled' ? [outcome.value.approval.status] : [],
      );
      const lost = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []));
      expect(lost).toMatchObject([{ code: 'approval_already_resolved' }]);
      const words = outline(await clock.passWhile(world.until(sessionId, is('idle'))));
      expect(words.filter((word) => word.startsWith('approval.resolved'))).toEqual([`approval.resolved ${won[0]}`]);
      expect(words.includes('tool.call')).toBe(won[0] === 'approved');
      const { data } = await listEvents(world.ctx, { sessionId, type: 'approval.resolved' });
      expect(data).toHaveLength(1);
    }
  });

  test('a repeated decision returns the first one', async () => {
    await world.work({ ask: answering([calls('pay'), { text: 'ok' }]) });
    const sessionId = await waitingSession(await world.agent([payTool]));
    const operationId = await pendingOne(sessionId);
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

  test('the tool, the stream, the event log and the model get an edited input; the approval has both inputs', async () => {
    const asked: ModelCall[] = [];
    const inputs: unknown[] = [];
    await world.work({
      ask: answering([{ calls: [['pay', { amount: 300 }]] }, { text: 'Paid' }], (call) => asked.push(call)),
      run: async ({ input }) => {
        inputs.push(input);
        return { output: { ok: true } };
      },
    });
    const inputSchema = { type: 'object', properties: { amount: { type: 'number' } }, required: ['amount'] };
    const sessionId = await waitingSession(await world.agent([httpTool('pay', { approval: 'always', inputSchema })]));
    const operationId = await pendingOne(sessionId);
    const { approval } = await resolveApproval(world.ctx, {
      operationId,
      decision: 'approved',
      input: { amount: 30 },
      onBehalfOf: 'ann',
    });
    expect(approval).toMatchObject({ input: { amount: 300 }, editedInput: { amount: 30 }, status: 'approved' });
    const chunks = await world.until(sessionId, is('idle'));
    expect(inputs).toEqual([{ amount: 30 }]);
    expect(chunks.find(isType('approval.requested'))).toMatchObject({ input: { amount: 300 } });
    expect(chunks.find(isType('tool.call'))).toMatchObject({ input: { amount: 30 } });
    const { data } = await listEvents(world.ctx, { sessionId, type: 'approval.resolved' });
    expect(data[0]!.changes).toEqual({
      status: ['pending', 'approved'],
      input: [{ amount: 300 }, { amount: 30 }],
      onBehalfOf: [null, 'ann'],
    });
    // The model's call keeps its input; the result has the edited one.
    const [called] = asked[1]!.transcript.find(({ role }) => role === 'assistant')!.content;
    expect(called).toMatchObject({ type: 'tool_call', input: { amount: 300 } });
    expect(resultsIn(asked[1])).toEqual([
      { type: 'tool_result', toolCallId: expect.any(String), input: { amount: 30 }, output: { ok: true } },
    ]);
  });

  test('a decision with an input that the tool would refuse is refused, and the approval stays pending', async () => {
    await world.work({ ask: answering([{ calls: [['pay', { amount: 300 }]] }, { text: 'ok' }]) });
    const inputSchema = { type: 'object', properties: { amount: { type: 'number' } }, required: ['amount'] };
    const sessionId = await waitingSession(await world.agent([httpTool('pay', { approval: 'always', inputSchema })]));
    const operationId = await pendingOne(sessionId);
    for (const input of [{ amount: 'thirty' }, {}, 'thirty', [30], null]) {
      const edited = { operationId, decision: 'approved' as const, input };
      await expect(checks.resolveApproval!(world.ctx, edited)).rejects.toMatchObject({
        code: 'invalid_request',
        errors: [{ path: 'input' }],
      });
    }
    await expect(
      resolveApproval(world.ctx, { operationId, decision: 'denied', input: { amount: 1 } }),
    ).rejects.toMatchObject({ errors: [{ path: 'input' }] });
    await expect(
      resolveApproval(world.ctx, { operationId, decision: 'denied', scope: 'session' }),
    ).rejects.toMatchObject({ errors: [{ path: 'scope' }] });
    expect(await pending(sessionId)).toEqual([operationId]);
    expect(outline(await world.chunks(sessionId)).at(-1)).toBe('waiting');
  });

  test('a decision for the session lets later calls of the tool run without approval, in later turns and on other nodes', async () => {
    const ask = answering([
      calls('pay', 'refund'),
      calls('pay'),
      { text: 'ok' },
      calls('pay', 'refund'),
      { text: 'ok' },
    ]);
    const first = await world.work({ ask });
    const tools = [payTool, httpTool('refund', { approval: 'always' })];
    const agentId = await world.agent(tools);
    const sessionId = await waitingSession(agentId);
    const [pay = '', refund = ''] = await pending(sessionId);
    await resolveApproval(await otherNode(), { operationId: pay, decision: 'approved', scope: 'session' });
    await resolveApproval(world.ctx, { operationId: refund, decision: 'approved' });
    await clock.passWhile(world.until(sessionId, is('idle')));
    expect((await listApprovals(world.ctx, { sessionId })).data.map(({ name }) => name)).toEqual(['pay', 'refund']);

    await clock.passWhile(first.stop());
    await world.work({ platform: await world.anotherNode(), ask });
    await sendMessage(world.ctx, { sessionId, content: 'again' });
    await clock.passWhile(world.until(sessionId, (chunk) => chunk.turn === 2 && is('waiting')(chunk)));
    const { data } = await listApprovals(world.ctx, { sessionId, status: 'pending' });
    expect(data.map(({ name }) => name)).toEqual(['refund']);
    // The decision does not apply to another session.
    const other = await world.open(agentId);
    await clock.passWhile(world.until(other, is('waiting')));
    expect(await pending(other)).toHaveLength(2);
  });

  test.each(['once', 'always'])('a denial grants nothing with the policy %s', async (approval) => {
    await world.work({ ask: answering([calls('pay'), calls('pay'), { text: 'ok' }]) });
    const sessionId = await waitingSession(await world.agent([httpTool('pay', { approval })]));
    const first = await pendingOne(sessionId);
    await resolveApproval(world.ctx, { operationId: first, decision: 'denied' });
    await world.until(sessionId, (_, all) => all.filter(is('waiting')).length === 2);
    expect(await pendingOne(sessionId)).not.toBe(first);
  });

  test('a session shows the approvals that it still waits for, and continues after the last decision', async () => {
    await world.work({ ask: answering([calls('pay', 'pay', 'pay'), { text: 'ok' }]) });
    const sessionId = await waitingSession(await world.agent([payTool]));
    const [first = '', second = '', third = ''] = await pending(sessionId);
    await resolveApproval(world.ctx, { operationId: second, decision: 'approved' });
    const { session } = await getSession(world.ctx, { sessionId });
    expect(session).toMatchObject({
      status: 'waiting',
      waitingFor: { type: 'approval', operationIds: [first, third] },
    });
    await resolveApproval(world.ctx, { operationId: third, decision: 'denied' });
    await resolveApproval(world.ctx, { operationId: first, decision: 'approved' });
    const chunks = await world.until(sessionId, is('idle'));
    expect(outline(chunks)).toEqual([
      'running',
      'approval.requested',
      'approval.requested',
      'approval.requested',
      'waiting',
      'approval.resolved approved',
      'waiting',
      'approval.resolved denied',
      'tool.call not run',
      'tool.result not run',
      'waiting',
      'approval.resolved approved',
      'running',
      'tool.call',
      'tool.call',
      'tool.result',
      'tool.result',
      '"ok"',
      'turn.completed endTurn',
      'idle',
    ]);
    const waited = chunks.filter(is('waiting')).map((chunk) => (chunk as { waitingFor: object }).waitingFor);
    expect(waited).toMatchObject([
      { operationIds: [first, second, third] },
      { operationIds: [first, third] },
      { operationIds: [first] },
    ]);
  });

  /** Opens a session that runs another call of the step while `pay` waits for a decision. */
  async function busySession(): Promise<{ sessionId: string; operationId: string; end: () => void }> {
    const slow = Promise.withResolvers<void>();
    await world.work({
      ask: answering([calls('slow', 'pay'), { text: 'ok' }]),
      run: async ({ tool }) => {
        if (tool.name === 'slow') await slow.promise;
        return { output: tool.name };
      },
    });
    const sessionId = await world.open(await world.agent([httpTool('slow'), payTool]));
    await world.until(sessionId, isType('tool.call'));
    return { sessionId, operationId: await pendingOne(sessionId), end: slow.resolve };
  }

  test('a call approved while another call of the step runs starts at once', async () => {
    const { sessionId, operationId, end } = await busySession();
    await resolveApproval(world.ctx, { operationId, decision: 'approved' });
    await world.until(sessionId, (_, all) => all.filter(isType('tool.call')).length === 2);
    end();
    expect(outline(await world.until(sessionId, is('idle')))).not.toContain('waiting');
  });

  test('one poll finds a decision on another node without any wake-up', async () => {
    const { sessionId, operationId, end } = await busySession();
    await resolveApproval(await otherNode(), { operationId, decision: 'denied' });
    await clock.advance(1_000);
    await world.until(sessionId, isType('approval.resolved'));
    end();
    expect(outline(await world.until(sessionId, is('idle')))).not.toContain('waiting');
  });

  test('a decision at the moment when the session is parked is never lost, even without wake-ups', async () => {
    const there = await otherNode();
    let sessionId = '';
    await world.work({
      ask: answering([calls('slow', 'pay'), { text: 'ok' }]),
      run: async ({ tool }) => {
        if (tool.name === 'slow')
          await resolveApproval(there, { operationId: await pendingOne(sessionId), decision: 'approved' });
        return { output: tool.name };
      },
    });
    const agentId = await world.agent([httpTool('slow'), payTool]);
    sessionId = await world.open(agentId, { input: undefined });
    await sendMessage(world.ctx, { sessionId, content: 'go' });
    const words = outline(await world.until(sessionId, is('idle')));
    expect(words.filter((word) => word === 'tool.call')).toHaveLength(2);
    expect(words).not.toContain('waiting');
  });

  test('a message to a session that waits for approval is queued, and has its turn afterwards', async () => {
    await world.work({ ask: answering([calls('pay'), { text: 'ok' }]) });
    const sessionId = await waitingSession(await world.agent([payTool]));
    for (const content of ['second', 'third']) {
      const { session } = await sendMessage(world.ctx, { sessionId, content });
      expect(session.status).toBe('waiting');
    }
    await resolveApproval(world.ctx, { operationId: await pendingOne(sessionId), decision: 'approved' });
    await world.until(sessionId, (chunk) => chunk.turn === 3 && is('idle')(chunk));
    const { data } = await listMessages(world.ctx, { sessionId });
    expect(data.map(({ role, turn }) => `${role} ${turn}`)).toEqual([
      'user 1',
      'assistant 1',
      'tool 1',
      'assistant 1',
      'user 2',
      'assistant 2',
      'user 3',
      'assistant 3',
    ]);
  });

  test('an acknowledged decision is shown even if the session is cancelled before its node has noticed', async () => {
    const { sessionId, operationId, end } = await busySession();
    await resolveApproval(await otherNode(), { operationId, decision: 'approved' });
    await cancelSession(await otherNode(), { sessionId });
    end();
    expect(outline(await world.chunks(sessionId)).slice(-5)).toEqual([
      'approval.resolved approved',
      'tool.result unknown',
      'tool.call not run',
      'tool.result not run',
      'cancelled',
    ]);
  });

  test('cancelling a session resolves its pending approvals as cancelled', async () => {
    await world.work({ ask: answering([calls('pay')]) });
    const sessionId = await waitingSession(await world.agent([payTool]));
    const operationId = await pendingOne(sessionId);
    await cancelSession(world.ctx, { sessionId });
    expect(outline(await world.chunks(sessionId)).slice(-4)).toEqual([
      'approval.resolved cancelled',
      'tool.call not run',
      'tool.result not run',
      'cancelled',
    ]);
    await expect(resolveApproval(world.ctx, { operationId, decision: 'approved' })).rejects.toMatchObject({
      code: 'approval_already_resolved',
    });
  });
});

describe('expiry', () => {
  const limits = { approvalTimeoutSeconds: 60 };
  const cancelling = { limits: { ...limits, onApprovalTimeout: 'cancel' as const } };

  test('the call of an expired approval does not run, the model gets the reason, and the turn continues', async () => {
    const asked: ModelCall[] = [];
    await world.work({ ask: answering([calls('pay'), { text: 'ok' }], (call) => asked.push(call)) });
    const sessionId = await waitingSession(await world.agent([payTool], { limits }));
    const operationId = await pendingOne(sessionId);
    const expiresAt = new Date(clock.now().getTime() + 60_000).toISOString();
    expect((await world.chunks(sessionId)).slice(-2)).toMatchObject([
      { type: 'approval.requested', expiresAt },
      { type: 'session.status', waitingFor: { expiresAt } },
    ]);
    await clock.advance(59_999);
    for (let n = 0; n < 10; n += 1) await tick();
    expect(outline(await world.chunks(sessionId)).at(-1)).toBe('waiting');
    expect(outline(await clock.passWhile(world.until(sessionId, is('idle'))))).toEqual([
      'running',
      'approval.requested',
      'waiting',
      'approval.resolved expired',
      'tool.call not run',
      'tool.result not run',
      'running',
      '"ok"',
      'turn.completed endTurn',
      'idle',
    ]);
    expect(resultsIn(asked[1])).toMatchObject([{ error: 'This call was not approved in time, so it did not run.' }]);
    const { approval } = await getApproval(world.ctx, { operationId });
    expect(approval).toMatchObject({ status: 'expired', resolvedBy: null, resolvedAt: expect.any(String) });
    await expect(resolveApproval(world.ctx, { operationId, decision: 'approved' })).rejects.toMatchObject({
      code: 'approval_already_resolved',
      message: 'The approval is already expired.',
    });
    const { data } = await listEvents(world.ctx, { sessionId, type: 'approval.resolved' });
    expect(data).toMatchObject([{ actor: { type: 'system' }, changes: { status: ['pending', 'expired'] } }]);
  });

  test('an expired approval cancels the session if the agent is configured so', async () => {
    await world.work({ ask: answering([calls('pay', 'pay'), { text: 'ok' }]) });
    const sessionId = await waitingSession(await world.agent([payTool], cancelling));
    await clock.advance(60_000);
    expect(outline(await world.until(sessionId, is('cancelled')))).toEqual([
      'running',
      'approval.requested',
      'approval.requested',
      'waiting',
      'approval.resolved expired',
      'approval.resolved expired',
      'tool.call not run',
      'tool.result not run',
      'tool.call not run',
      'tool.result not run',
      'cancelled',
    ]);
    expect((await getSession(world.ctx, { sessionId })).session).toMatchObject({
      status: 'cancelled',
      waitingFor: null,
    });
    const { data } = await listEvents(world.ctx, { sessionId, order: 'asc' });
    expect(data.map(({ type }) => type).slice(-3)).toEqual([
      'approval.resolved',
      'approval.resolved',
      'session.cancelled',
    ]);
  });

  test('an approval has no time limit unless the agent has one', async () => {
    await world.work({ ask: answering([calls('pay'), { text: 'ok' }]) });
    const sessionId = await waitingSession(await world.agent([payTool]));
    expect((await world.chunks(sessionId)).at(-1)).toMatchObject({ waitingFor: { expiresAt: null } });
    await clock.advance(400 * 24 * 3600 * 1000);
    await resolveApproval(world.ctx, { operationId: await pendingOne(sessionId), decision: 'approved' });
    await world.until(sessionId, is('idle'));
  });

  test('without a live node an overdue approval can’t be granted, and expires as soon as a node starts', async () => {
    const parking = await world.work({ ask: answering([calls('pay')]) });
    const sessionId = await waitingSession(await world.agent([payTool], { limits }));
    const operationId = await pendingOne(sessionId);
    await parking.stop();
    await clock.advance(3600 * 1000);
    await expect(resolveApproval(world.ctx, { operationId, decision: 'approved' })).rejects.toMatchObject({
      code: 'approval_already_resolved',
      message: 'The approval is already expired.',
    });
    await world.work({ ask: answering([{}, { text: 'ok' }]) });
    expect(outline(await world.until(sessionId, is('idle')))).toContain('approval.resolved expired');
  });

  test('an expired approval does not affect another one of the step that was granted in time', async () => {
    const asked: ModelCall[] = [];
    await world.work({ ask: answering([calls('pay', 'pay'), { text: 'ok' }], (call) => asked.push(call)) });
    const sessionId = await waitingSession(await world.agent([payTool], { limits }));
    const [first = '', second = ''] = await pending(sessionId);
    await clock.advance(59_000);
    await resolveApproval(world.ctx, { operationId: second, decision: 'approved' });
    await world.until(sessionId, (_, all) => all.filter(is('waiting')).length === 2);
    expect(await pending(sessionId)).toEqual([first]);
    const words = outline(await clock.passWhile(world.until(sessionId, is('idle'))));
    expect(words.filter((word) => /^(approval\.resolved|tool)/.test(word))).toEqual([
      'approval.resolved approved',
      'approval.resolved expired',
      'tool.call not run',
      'tool.result not run',
      'tool.call',
      'tool.result',
    ]);
    expect(resultsIn(asked[1])).toMatchObject([
      { error: 'This call was not approved in time, so it did not run.' },
      { output: null },
    ]);
  });

  /** Opens a session that runs `slow` until the test ends it, while `pay` waits for a decision. */
  async function busySession(more: object, on: Platform = world.platform) {
    const slow = Promise.withResolvers<void>();
    const aborted = Promise.withResolvers<void>();
    const run: RunTool = async ({ tool }, signal) => {
      if (tool.name === 'slow') await Promise.race([slow.promise, never(signal).catch(() => aborted.resolve())]);
      return { output: tool.name };
    };
    await world.work({ platform: on, ask: answering([calls('slow', 'pay'), { text: 'ok' }]), run });
    const sessionId = await world.open(await world.agent([httpTool('slow'), payTool], more));
    await clock.passWhile(world.until(sessionId, isType('tool.call')));
    return { sessionId, end: slow.resolve, aborted: aborted.promise };
  }

  test('an approval expires on time even while another call of the step runs', async () => {
    const { sessionId, end } = await busySession({ limits });
    await clock.advance(60_000);
    await world.until(sessionId, isType('approval.resolved'));
    end();
    expect(outline(await world.until(sessionId, is('idle')))).toEqual([
      'running',
      'approval.requested',
      'tool.call',
      'approval.resolved expired',
      'tool.call not run',
      'tool.result not run',
      'tool.result',
      '"ok"',
      'turn.completed endTurn',
      'idle',
    ]);
  });

  test('an approval expires on time even if a timer fires slightly early', async () => {
    const early = { ...clock, sleep: (ms: number, signal?: AbortSignal) => clock.sleep(ms > 1 ? ms - 1 : ms, signal) };
    const node = await world.anotherNode({ clock: early });
    let looks = 0;
    const platform: Platform = {
      ...node,
      db: {
        ...node.db,
        query<Row>(statement: Sql) {
          if (statement.text.includes('from session_inbox')) looks += 1;
          return node.db.query<Row>(statement);
        },
      },
    };
    const { sessionId, end } = await busySession({ limits }, platform);
    const asked = (await world.chunks(sessionId)).find(isType('approval.requested')) as { expiresAt: string };
    const leftMs = Date.parse(asked.expiresAt) - clock.now().getTime();
    const before = looks;
    await clock.advance(leftMs - 1);
    for (let n = 0; n < 10; n += 1) await tick();
    // A check now would find nothing overdue, and no other wake-up would follow.
    expect(looks).toBe(before);
    await clock.advance(1);
    await world.until(sessionId, isType('approval.resolved'));
    end();
    await clock.passWhile(world.until(sessionId, is('idle')));
  });

  test('an expired approval cancels the session at once even while another call runs, which is aborted', async () => {
    const { sessionId, aborted } = await busySession(cancelling);
    await clock.advance(60_000);
    await aborted;
    expect(outline(await world.until(sessionId, is('cancelled')))).toEqual([
      'running',
      'approval.requested',
      'tool.call',
      'approval.resolved expired',
      'tool.call not run',
      'tool.result not run',
      'tool.result unknown',
      'cancelled',
    ]);
  });

  test.each([
    ['denies the call', { limits }],
    ['cancels the session', cancelling],
  ])(
    'of a decision on a node with a slow clock and an expiry that %s, exactly one applies everywhere',
    async (_, more) => {
      await world.work({ ask: answering([calls('pay'), { text: 'ok' }]) });
      const behind = createManualClock(new Date(clock.now().getTime() - 30_000));
      const there = await otherNode(behind);
      const agentId = await world.agent([payTool], more);
      for (let round = 0; round < 12; round += 1) {
        const sessionId = await waitingSession(agentId);
        const operationId = await pendingOne(sessionId);
        await idle();
        clock.leap(60_000);
        behind.leap(60_000);
        // The approval is overdue by the clock of the node that runs the session, but not by the slow one.
        for (let n = 0; n < round * 2; n += 1) await tick();
        const [decided] = await Promise.allSettled([resolveApproval(there, { operationId, decision: 'approved' })]);
        const words = outline(
          await clock.passWhile(world.until(sessionId, (chunk) => is('idle')(chunk) || is('cancelled')(chunk))),
        );
        const { approval } = await getApproval(world.ctx, { operationId });
        expect(approval.status).toBe(decided.status === 'fulfilled' ? 'approved' : 'expired');
        expect(words.filter((word) => word.startsWith('approval.resolved'))).toEqual([
          `approval.resolved ${approval.status}`,
        ]);
        expect(words.includes('tool.call')).toBe(approval.status === 'approved');
        const { data } = await listEvents(world.ctx, { sessionId, type: 'approval.resolved' });
        expect(data.map(({ changes }) => changes!.status)).toEqual([['pending', approval.status]]);
      }
    },
  );

  test('a decision that arrives just before the expiry denies the call applies', async () => {
    const behind = createManualClock(new Date(clock.now().getTime() - 30_000));
    const there = await otherNode(behind);
    let operationId: string | undefined;
    const platform = queryingBy(world.platform, async ({ text }) => {
      if (!text.includes('from session_inbox') || operationId === undefined) return;
      const late = operationId;
      operationId = undefined;
      await resolveApproval(there, { operationId: late, decision: 'approved' });
    });
    await world.work({ platform, ask: answering([calls('pay'), { text: 'ok' }]) });
    const sessionId = await waitingSession(await world.agent([payTool], { limits }));
    operationId = await pendingOne(sessionId);
    await clock.advance(60_000);
    const words = outline(await clock.passWhile(world.until(sessionId, is('idle'))));
    expect(words.filter((word) => /^(approval\.resolved|tool)/.test(word))).toEqual([
      'approval.resolved approved',
      'tool.call',
      'tool.result',
    ]);
  });

  test('a decision that arrives just before the expiry cancels the session applies', async () => {
    const [begun, proceed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const { db } = world.platform;
    const platform: Platform = {
      ...world.platform,
      db: {
        ...db,
        async transaction(fn) {
          begun.resolve();
          await proceed.promise;
          return db.transaction(fn);
        },
      },
    };
    await world.work({ platform, ask: answering([calls('pay'), { text: 'ok' }]) });
    const behind = createManualClock(new Date(clock.now().getTime() - 30_000));
    const there = await otherNode(behind);
    const sessionId = await waitingSession(await world.agent([payTool], cancelling));
    const operationId = await pendingOne(sessionId);
    await clock.advance(60_000);
    await begun.promise;
    await resolveApproval(there, { operationId, decision: 'approved' });
    proceed.resolve();
    expect(outline(await clock.passWhile(world.until(sessionId, is('idle'))))).toEqual([
      'running',
      'approval.requested',
      'waiting',
      'approval.resolved approved',
      'running',
      'tool.call',
      'tool.result',
      '"ok"',
      'turn.completed endTurn',
      'idle',
    ]);
  });

  test('an approval that was steered away in time does not cancel the session, however late a node claims it', async () => {
    const parking = await world.work({ ask: answering([calls('pay')]) });
    const sessionId = await waitingSession(await world.agent([payTool], cancelling));
    await parking.stop();
    await sendMessage(world.ctx, { sessionId, content: 'rather this', onBusy: 'steer' });
    await clock.advance(3600 * 1000);
    await world.work({ ask: answering([{ text: 'ok' }]) });
    const chunks = await world.until(sessionId, (chunk) => chunk.turn === 2 && is('idle')(chunk));
    expect(outline(chunks)).toContain('approval.resolved cancelled');
  });

  test('until its expiry is stored, a node with a fast clock refuses a decision and one with a correct clock accepts it', async () => {
    await world.work({ ask: answering([calls('pay'), { text: 'ok' }]) });
    const ahead = await otherNode(createManualClock(new Date(clock.now().getTime() + 60_000)));
    const sessionId = await waitingSession(await world.agent([payTool], { limits }));
    const operationId = await pendingOne(sessionId);
    await expect(resolveApproval(ahead, { operationId, decision: 'approved' })).rejects.toMatchObject({
      code: 'approval_already_resolved',
    });
    await resolveApproval(world.ctx, { operationId, decision: 'approved' });
    expect(outline(await world.until(sessionId, is('idle')))).toContain('tool.call');
  });
});

describe('the inbox', () => {
  test('the inbox lists the pending approvals of all sessions, oldest first, in pages', async () => {
    await world.work({ ask: answering([calls('pay', 'refund'), { text: 'ok' }]) });
    const agentId = await world.agent([payTool, httpTool('refund', { approval: 'always' })]);
    const sessions: string[] = [];
    for (let n = 0; n < 3; n += 1) {
      sessions.push(await world.open(agentId, n === 1 ? { environment: 'staging' } : {}));
      await world.until(sessions[n]!, is('waiting'));
    }
    const all: string[] = [];
    for (let cursor = '', hasMore = true; hasMore; ) {
      const { data, page } = await listApprovals(world.ctx, { status: 'pending', limit: 4, ...(cursor && { cursor }) });
      all.push(...data.map(({ sessionId, name }) => `${sessions.indexOf(sessionId)} ${name}`));
      ({ nextCursor: cursor, hasMore } = page);
    }
    expect(all).toEqual(['0 pay', '0 refund', '1 pay', '1 refund', '2 pay', '2 refund']);

    const staging = await listApprovals(world.ctx, { status: 'pending', environment: 'staging' });
    expect(staging.data.map(({ sessionId }) => sessionId)).toEqual([sessions[1], sessions[1]]);
    const [first] = await pending(sessions[0]!);
    await resolveApproval(world.ctx, { operationId: first!, decision: 'denied' });
    expect((await listApprovals(world.ctx, { status: 'pending' })).data).toHaveLength(5);
    expect((await listApprovals(world.ctx, { status: 'denied' })).data).toMatchObject([{ operationId: first }]);
  });

  test('an approval has what an approver needs to decide', async () => {
    await world.work({ ask: answering([{ calls: [['pay', { to: 'ann', amount: 3 }]] }]) });
    const agentId = await world.agent([payTool], { limits: { approvalTimeoutSeconds: 60 } });
    const sessionId = await waitingSession(agentId);
    const operationId = await pendingOne(sessionId);
    const { approval } = await getApproval(world.ctx, { operationId });
    expect(approval).toEqual({
      operationId,
      toolCallId: operationId.replace('op_', 'call_'),
      sessionId,
      agentId,
      environment: 'production',
      name: 'pay',
      input: { to: 'ann', amount: 3 },
      allowsSession: false,
      editedInput: null,
      status: 'pending',
      reason: null,
      by: null,
      decisions: [],
      progress: { approved: 0, required: 1 },
      refusal: null,
      resolvedBy: null,
      requestedAt: clock.now().toISOString(),
      resolvedAt: null,
      expiresAt: new Date(clock.now().getTime() + 60_000).toISOString(),
    });
  });
});
