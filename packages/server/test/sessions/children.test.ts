// Child sessions: an agent that calls another agent. What the child gets, what it returns, and what stops it.
import type { Session } from '@signalbox/contract';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { archiveAgent, updateAgent } from '../../src/agents/agents.ts';
import { listApprovals } from '../../src/approvals/list.ts';
import { checkDecision, resolveApproval } from '../../src/approvals/resolve.ts';
import { listEvents } from '../../src/events/events.ts';
import type { AskModel, ModelCall } from '../../src/models/model/model.ts';
import { cancelSession, closeSession, interruptSession } from '../../src/sessions/end-session.ts';
import { listMessages, sendMessage } from '../../src/sessions/messages.ts';
import { listSessions } from '../../src/sessions/reading/list.ts';
import { deleteSession, getSession, updateSession } from '../../src/sessions/sessions.ts';
import { sendToolResult } from '../../src/sessions/tool-results.ts';
import { childOf, childrenOf, openFamily } from '../support/family.ts';
import { createManualClock } from '../support/manual-clock.ts';
import {
  agentTool,
  answering,
  byModel,
  clientTool,
  createWorld,
  hanging,
  httpTool,
  is,
  never,
  outline,
  usage,
  type World,
} from '../support/session-world.ts';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(() => world.close());

/** Runs `act` in a world with other options, such as another clock. */
async function inWorld(options: Parameters<typeof createWorld>[0], act: () => Promise<void>): Promise<void> {
  await world.close();
  world = await createWorld(options);
  await act();
}

const callsHelper = { calls: [['helper', { input: 'help' }]] as [string, unknown][] };
const parent = answering([callsHelper, { text: 'Done' }]);
const stuck = hanging('Hm');

/** The results of calls that the parent's model gets, once its turn is over. */
async function resultsOf(sessionId: string): Promise<object[]> {
  await world.until(sessionId, is('idle'));
  const { data } = await listMessages(world.ctx, { sessionId });
  return data.filter(({ role }) => role === 'tool').flatMap(({ content }) => content);
}

async function statusOf(sessionId: string): Promise<Session['status']> {
  return (await getSession(world.ctx, { sessionId })).session.status;
}

test('a call of an agent tool opens a child session, waits for it, and gets its response as result', async () => {
  const seen: ModelCall[] = [];
  await world.work({ ask: byModel({ parent, child: answering([{ text: 'Helped' }], (call) => seen.push(call)) }) });
  const sessionId = await openFamily(world, { open: { environment: 'staging', metadata: { of: 'the parent' } } });

  const chunks = await world.until(sessionId, is('idle'));
  expect(outline(chunks)).toEqual([
    'running',
    'tool.call',
    'waiting',
    'tool.result',
    'running',
    '"Done"',
    'turn.completed endTurn',
    'idle',
  ]);
  const child = await childOf(world, sessionId);
  expect(chunks.find(is('waiting'))).toMatchObject({
    waitingFor: { type: 'session', sessionIds: [child.sessionId], operationIds: [], toolCallIds: [], expiresAt: null },
  });
  expect(child).toMatchObject({
    status: 'completed',
    stopReason: 'endTurn',
    environment: 'staging',
    parentSessionId: sessionId,
    metadata: {},
  });
  expect(outline(await world.chunks(child.sessionId))).toEqual([
    'running',
    '"Helped"',
    'turn.completed endTurn',
    'completed',
  ]);
  const { data: events } = await listEvents(world.ctx, { sessionId: child.sessionId, order: 'asc' });
  expect(events.map(({ type, actor }) => [type, actor.type])).toEqual([
    ['session.created', 'agent'],
    ['session.completed', 'agent'],
  ]);
  expect(events[0]!.changes).toEqual({ parentSessionId: [null, sessionId] });
  expect(seen[0]).toMatchObject({
    environment: 'staging',
    transcript: [{ role: 'user', content: [{ type: 'text', text: 'help' }] }],
  });
  expect(await resultsOf(sessionId)).toMatchObject([{ output: 'Helped' }]);
  // The usage of the child is not the parent's.
  expect((await getSession(world.ctx, { sessionId })).session.usage).toMatchObject({ steps: 2, toolCalls: 1 });
  expect(child.usage).toMatchObject({ steps: 1, toolCalls: 0 });

  await updateSession(world.ctx, { sessionId: child.sessionId, metadata: { of: 'the child' } });
  expect((await getSession(world.ctx, { sessionId })).session.metadata).toEqual({ of: 'the parent' });
});

test('a child requests its own approvals, which are listed under its own session', async () => {
  const environments: string[] = [];
  await world.work({
    ask: byModel({ parent, child: answering([{ calls: [['pay', { amount: 3 }]] }, { text: 'Paid' }]) }),
    run: async ({ environment }) => {
      environments.push(environment);
      return { output: 'ok' };
    },
  });
  const childTools = [httpTool('pay', { approval: 'always' })];
  const sessionId = await openFamily(world, { childTools, open: { environment: 'staging' } });
  const child = await childOf(world, sessionId);
  await world.until(child.sessionId, is('waiting'));

  const { data } = await listApprovals(world.ctx, { status: 'pending' });
  expect(data).toMatchObject([{ sessionId: child.sessionId, agentId: child.agentId, environment: 'staging' }]);
  expect((await getSession(world.ctx, { sessionId })).session).toMatchObject({
    status: 'waiting',
    waitingFor: { type: 'session', sessionIds: [child.sessionId], operationIds: [] },
  });
  await resolveApproval(world.ctx, { operationId: data[0]!.operationId, decision: 'approved' });
  expect(await resultsOf(sessionId)).toMatchObject([{ output: 'Paid' }]);
  expect(environments).toEqual(['staging']);
});

test('a call of an agent tool can itself need approval, and the approver can edit its input', async () => {
  const seen: ModelCall[] = [];
  await world.work({ ask: byModel({ parent, child: answering([{ text: 'ok' }], (call) => seen.push(call)) }) });
  const sessionId = await openFamily(world, { helper: { approval: 'always' } });
  await world.until(sessionId, is('waiting'));
  expect((await listSessions(world.ctx, { parentSessionId: sessionId })).data).toEqual([]);

  const [asked] = (await listApprovals(world.ctx, { sessionId })).data;
  const { operationId } = asked!;
  const approve = (input: object) => resolveApproval(world.ctx, { operationId, decision: 'approved', input });
  const judged = checkDecision(world.ctx, { operationId, decision: 'approved', input: { input: '' } });
  await expect(judged).rejects.toMatchObject({ code: 'invalid_request' });
  await approve({ input: 'help kindly' });
  expect(await resultsOf(sessionId)).toMatchObject([{ output: 'ok' }]);
  expect(seen[0]!.transcript[0]!.content).toEqual([{ type: 'text', text: 'help kindly' }]);
});

test('the response of a child with an outputSchema is returned as JSON', async () => {
  await world.work({ ask: byModel({ parent, child: answering([{ text: '```json\n{"n": 3}\n```' }]) }) });
  const outputSchema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
  const sessionId = await openFamily(world, { child: { outputSchema } });
  expect(await resultsOf(sessionId)).toMatchObject([{ output: { n: 3 } }]);
});

test('however a child ends, its parent continues and gets the reason as text', async () => {
  const ends: { child: AskModel; more?: object; act?: (sessionId: string) => Promise<unknown>; says: RegExp }[] = [
    {
      child: answering([{ text: 'Not JSON' }]),
      more: { outputSchema: { type: 'object' } },
      says: /^The agent failed: .*outputSchema/,
    },
    {
      child: stuck,
      act: (sessionId) => cancelSession(world.ctx, { sessionId }),
      says: /^The agent's session was cancelled/,
    },
    {
      child: stuck,
      act: (sessionId) => interruptSession(world.ctx, { sessionId }),
      says: /^The agent stopped before it finished: .*interrupted.* Its last text: Hm$/,
    },
    {
      child: answering([{ text: 'Looking', calls: [['look', {}]] }]),
      more: { limits: { maxStepsPerTurn: 1 } },
      says: /^The agent stopped before it finished: .*steps.* Its last text: Looking$/,
    },
    {
      child: async function* () {
        yield { type: 'finish', reason: 'refusal', usage };
      },
      says: /^The agent stopped before it finished: .*refuse[sd]/,
    },
  ];
  for (const [index, { child, more = {}, act, says }] of ends.entries()) {
    const node = await world.work({ ask: byModel({ parent, child }) });
    const sessionId = await openFamily(world, { child: more, childTools: [httpTool('look')] });
    if (act) {
      const { sessionId: childId } = await childOf(world, sessionId);
      await world.until(childId, (chunk) => chunk.type === 'message.chunk');
      await act(childId);
    }
    expect(await resultsOf(sessionId), `end ${index}`).toMatchObject([{ error: expect.stringMatching(says) }]);
    expect(outline(await world.chunks(sessionId))).toContain('"Done"');
    await node.stop();
  }
});

test('a closed child finishes its turn; a message to a child has its turn, whose response the parent gets', async () => {
  const hold = Promise.withResolvers<void>();
  await world.work({
    ask: byModel({
      parent,
      child: async function* (call) {
        await hold.promise;
        yield { type: 'text', delta: `answer ${call.callsBefore}` };
        yield { type: 'finish', reason: 'endTurn', usage };
      },
    }),
  });
  const sessionId = await openFamily(world);
  const { sessionId: childId } = await childOf(world, sessionId);
  await sendMessage(world.ctx, { sessionId: childId, content: 'and this' });
  await closeSession(world.ctx, { sessionId: childId });
  hold.resolve();
  expect(await resultsOf(sessionId)).toMatchObject([{ output: 'answer 1' }]);
});

test('several children run at once, and their results reach the model in its own order', async () => {
  const hold = Promise.withResolvers<void>();
  const seen: ModelCall[] = [];
  await world.work({
    ask: byModel({
      parent: answering(
        [
          {
            calls: [
              ['helper', { input: 'first' }],
              ['helper', { input: 'second' }],
              ['helper', { input: 'third' }],
            ],
          },
          { text: 'Done' },
        ],
        (call) => seen.push(call),
      ),
      child: async function* ({ transcript }) {
        const [part] = transcript[0]!.content;
        const text = part?.type === 'text' ? part.text : '';
        if (text === 'first') await hold.promise;
        yield { type: 'text', delta: `${text} done` };
        yield { type: 'finish', reason: 'endTurn', usage };
      },
    }),
  });
  const sessionId = await openFamily(world);
  await world.until(sessionId, (_, all) => all.filter(({ type }) => type === 'tool.result').length === 2);
  const [first] = await childrenOf(world, sessionId, 3);
  // The last status has what is still awaited.
  const { session } = await getSession(world.ctx, { sessionId });
  expect(session).toMatchObject({ status: 'waiting', waitingFor: { type: 'session', sessionIds: [first!.sessionId] } });
  hold.resolve();
  await world.until(sessionId, is('idle'));
  expect(seen[1]!.transcript.at(-1)!.content).toMatchObject([
    { output: 'first done' },
    { output: 'second done' },
    { output: 'third done' },
  ]);
});

test('a child, a client tool and an approval are awaited together, and each status has what is still awaited', async () => {
  const hold = Promise.withResolvers<void>();
  await world.work({
    ask: byModel({
      parent: answering([
        {
          calls: [
            ['helper', { input: 'help' }],
            ['where', {}],
            ['pay', {}],
          ],
        },
        { text: 'Done' },
      ]),
      child: async function* () {
        await hold.promise;
        yield { type: 'text', delta: 'Helped' };
        yield { type: 'finish', reason: 'endTurn', usage };
      },
    }),
    run: async () => ({ output: 'paid' }),
  });
  const sessionId = await openFamily(world, { tools: [clientTool('where'), httpTool('pay', { approval: 'always' })] });
  await world.until(sessionId, is('waiting'));
  const waiting = async () => (await getSession(world.ctx, { sessionId })).session.waitingFor!;
  const { type, operationIds, toolCallIds, sessionIds } = await waiting();
  expect([type, operationIds.length, toolCallIds.length, sessionIds.length]).toEqual(['several', 1, 1, 1]);

  hold.resolve();
  await world.until(sessionId, (chunk) => chunk.type === 'tool.result');
  expect(await waiting()).toMatchObject({ type: 'several', operationIds, toolCallIds, sessionIds: [] });
  await sendToolResult(world.ctx, { sessionId, toolCallId: toolCallIds[0]!, output: 'here' });
  expect(await waiting()).toMatchObject({ type: 'approval', operationIds, toolCallIds: [], sessionIds: [] });
  await resolveApproval(world.ctx, { operationId: operationIds[0]!, decision: 'approved' });
  expect(await resultsOf(sessionId)).toMatchObject([{ output: 'Helped' }, { output: 'here' }, { output: 'paid' }]);
});

// ── Cancellation of children ─────────────────────────────────────────────────────────────────────────────────────────

/** A parent, its child and its grandchild, which is in the middle of its model's response. */
async function openThree(): Promise<[parent: string, child: string, grandchild: string]> {
  const grandchildAgent = await world.agent([], { model: 'scripted/grandchild' });
  const sessionId = await openFamily(world, { childTools: [agentTool('deeper', grandchildAgent)] });
  const { sessionId: childId } = await childOf(world, sessionId);
  const { sessionId: grandchildId } = await childOf(world, childId);
  await world.until(grandchildId, (chunk) => chunk.type === 'message.chunk');
  await Promise.all([world.until(sessionId, is('waiting')), world.until(childId, is('waiting'))]);
  return [sessionId, childId, grandchildId];
}
const three = byModel({
  parent,
  child: answering([{ calls: [['deeper', { input: 'help' }]] }, { text: 'ok' }]),
  grandchild: stuck,
});

test('cancelling a parent cancels all its descendants', async () => {
  await world.work({ ask: three });
  const [sessionId, childId, grandchildId] = await openThree();
  await cancelSession(world.ctx, { sessionId });
  for (const id of [childId, grandchildId]) await world.until(id, is('cancelled'));
  expect(outline(await world.chunks(sessionId)).at(-1)).toBe('cancelled');
});

test('an interrupted or steered parent cancels its children, and its model gets this as their result', async () => {
  const seen: ModelCall[] = [];
  await world.work({
    ask: byModel({
      parent: answering([callsHelper, callsHelper, { text: 'Steered' }], (call) => seen.push(call)),
      child: answering([{ calls: [['deeper', { input: 'help' }]] }, { text: 'ok' }]),
      grandchild: stuck,
    }),
  });
  const [sessionId, childId, grandchildId] = await openThree();
  await interruptSession(world.ctx, { sessionId });
  for (const id of [childId, grandchildId]) await world.until(id, is('cancelled'));
  expect(outline(await world.until(sessionId, is('idle'))).slice(-3)).toEqual([
    'tool.result error',
    'turn.completed interrupted',
    'idle',
  ]);

  await sendMessage(world.ctx, { sessionId, content: 'again' });
  const [, again] = await childrenOf(world, sessionId, 2);
  await world.until(again!.sessionId, is('waiting'));
  expect(seen[1]!.transcript.at(-2)!.content).toMatchObject([{ error: expect.stringContaining('interrupted') }]);
  await sendMessage(world.ctx, { sessionId, content: 'something else', onBusy: 'steer' });
  await world.until(again!.sessionId, is('cancelled'));
  const { sessionId: lastId } = await childOf(world, again!.sessionId);
  await world.until(lastId, is('cancelled'));
  await world.until(sessionId, (chunk) => chunk.turn === 3 && is('idle')(chunk));
});

test('a turn that times out cancels its children; the time in which it only waits for them does not count', async () => {
  const clock = createManualClock();
  await inWorld({ clock }, async () => {
    const [begun, aborted] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    await world.work({
      ask: byModel({
        parent: answering([callsHelper, { calls: [...callsHelper.calls, ['slow', {}]] }]),
        child: stuck,
      }),
      run: (_, signal) => {
        begun.resolve();
        signal.addEventListener('abort', () => aborted.resolve());
        return never(signal);
      },
    });
    const tools = [httpTool('slow')];
    const sessionId = await openFamily(world, { parent: { limits: { turnTimeoutSeconds: 60 } }, tools });
    const { sessionId: childId } = await childOf(world, sessionId);
    await world.until(childId, (chunk) => chunk.type === 'message.chunk');
    await world.until(sessionId, is('waiting'));
    // The timeout of the child's own turn is 600 s.
    await clock.advance(600_000);
    await world.until(childId, is('completed'));
    await begun.promise;
    expect((await world.chunks(sessionId)).find(({ type }) => type === 'tool.result')).toMatchObject({
      error: 'The agent stopped before it finished: it took too long. Its last text: Hm',
    });

    const [, again] = await childrenOf(world, sessionId, 2);
    await world.until(again!.sessionId, (chunk) => chunk.type === 'message.chunk');
    await clock.advance(60_000);
    await aborted.promise;
    await world.until(again!.sessionId, is('cancelled'));
    expect(outline(await world.until(sessionId, is('idle')))).toContain('turn.completed timedOut');
  });
});

test('a child on another node is cancelled without any wake-up', async () => {
  const first = await world.work({ platform: await world.anotherNode(), ask: three });
  const [sessionId, childId, grandchildId] = await openThree();
  // A node that receives no wake-ups claims the grandchild.
  const taken = Promise.withResolvers<void>();
  await world.work({
    platform: await world.anotherNode(),
    ask: (call, signal) => {
      taken.resolve();
      return stuck(call, signal);
    },
  });
  await world.expireLease(first.nodeId);
  await taken.promise;
  await cancelSession(world.ctx, { sessionId });
  for (const id of [childId, grandchildId]) await world.until(id, is('cancelled'));
});

test('an interrupt of a parent that is about to wait for its child is never lost, and the call ends once', async () => {
  await world.work({ ask: byModel({ parent, child: stuck }) });
  const sessions = await Promise.all(Array.from({ length: 20 }, () => openFamily(world)));
  await Promise.all(
    sessions.map(async (sessionId, index) => {
      const { sessionId: childId } = await childOf(world, sessionId);
      for (let n = 0; n < index % 7; n += 1) await new Promise<void>((resolve) => setImmediate(resolve));
      await Promise.all([
        interruptSession(world.ctx, { sessionId }),
        ...(index % 2 === 0 ? [cancelSession(world.ctx, { sessionId: childId })] : []),
      ]);
      await world.until(childId, is('cancelled'));
      const words = outline(await world.until(sessionId, is('idle')));
      expect(words.filter((word) => word.startsWith('tool.result'))).toEqual(['tool.result error']);
    }),
  );
});

// ── Limits ───────────────────────────────────────────────────────────────────────────────────────────────────────────

test('agents call each other up to five levels deep, and the sixth call is refused with a reason', async () => {
  // An agent that calls itself, which is possible only in a later version.
  const agentId = await world.agent([], { model: 'scripted/deep' });
  await updateAgent(world.ctx, { agentId, tools: [agentTool('helper', agentId)] });
  const results: unknown[] = [];
  await world.work({
    ask: byModel({
      deep: answering([callsHelper, { text: 'ok' }], ({ transcript }) => {
        const [part] = transcript.at(-1)!.content;
        if (part?.type === 'tool_result') results.push(part.error ?? part.output);
      }),
    }),
  });
  const root = await world.open(agentId);
  await world.until(root, is('idle'));
  let depth = 0;
  for (let at = root; ; depth += 1) {
    const { data } = await listSessions(world.ctx, { parentSessionId: at });
    if (data.length === 0) break;
    at = data[0]!.sessionId;
  }
  expect(depth).toBe(5);
  expect(results).toEqual([expect.stringMatching(/5 deep/), 'ok', 'ok', 'ok', 'ok', 'ok']);
});

test('an archived agent starts no child sessions, and a running one ends as usual', async () => {
  await world.work({ ask: byModel({ parent: answering([callsHelper, callsHelper, { text: 'Done' }]), child: slow }) });
  const begun = Promise.withResolvers<void>();
  const hold = Promise.withResolvers<void>();
  async function* slow(): ReturnType<AskModel> {
    begun.resolve();
    await hold.promise;
    yield { type: 'text', delta: 'Helped' };
    yield { type: 'finish', reason: 'endTurn', usage };
  }
  const sessionId = await openFamily(world);
  await begun.promise;
  await archiveAgent(world.ctx, { agentId: (await childOf(world, sessionId)).agentId });
  hold.resolve();
  expect(await resultsOf(sessionId)).toMatchObject([
    { output: 'Helped' },
    { error: 'This agent is archived and takes no new work.' },
  ]);
  expect(await childrenOf(world, sessionId)).toHaveLength(1);
});

test('an ended child stays as long as its parent and its root are open, because of its share of the budget', async () => {
  await world.work({ ask: byModel({ ...threeEnding }) });
  const grandchildAgent = await world.agent([], { model: 'scripted/grandchild' });
  const sessionId = await openFamily(world, { childTools: [agentTool('deeper', grandchildAgent)] });
  await world.until(sessionId, is('idle'));
  const child = await childOf(world, sessionId);
  const grandchild = await childOf(world, child.sessionId);
  for (const { sessionId: id } of [child, grandchild]) {
    await expect(deleteSession(world.ctx, { sessionId: id })).rejects.toMatchObject({ code: 'conflict' });
  }
  await closeSession(world.ctx, { sessionId });
  await deleteSession(world.ctx, { sessionId: grandchild.sessionId });
  await deleteSession(world.ctx, { sessionId: child.sessionId });
  expect(await statusOf(sessionId)).toBe('completed');
});
const threeEnding = {
  parent,
  child: answering([{ calls: [['deeper', { input: 'help' }]] }, { text: 'ok' }]),
  grandchild: answering([{ text: 'ok' }]),
};

test('deleting a session deletes its children, including those whose cancellation has not taken effect', async () => {
  const first = await world.work({ ask: three });
  const [sessionId, childId, grandchildId] = await openThree();
  await first.stop();
  await cancelSession(world.ctx, { sessionId });
  await deleteSession(world.ctx, { sessionId });
  for (const id of [sessionId, childId, grandchildId]) {
    await expect(getSession(world.ctx, { sessionId: id })).rejects.toMatchObject({ code: 'not_found' });
  }
});

test('a node whose active session is deleted stops working on it', async () => {
  const stopped = Promise.withResolvers<void>();
  await world.work({
    ask: byModel({
      parent,
      child: async function* (_, signal) {
        yield { type: 'text', delta: 'Hm' };
        await never(signal).finally(stopped.resolve);
      },
    }),
  });
  const sessionId = await openFamily(world);
  const { sessionId: childId } = await childOf(world, sessionId);
  await world.until(childId, (chunk) => chunk.type === 'message.chunk');
  await cancelSession(world.ctx, { sessionId });
  await deleteSession(world.ctx, { sessionId });
  await stopped.promise;
});

test('the sessions of a parent can be listed', async () => {
  await world.work({ ask: byModel({ parent, child: answering([{ text: 'ok' }]) }) });
  const [one, other] = await Promise.all([openFamily(world), openFamily(world)]);
  await Promise.all([one, other].map((sessionId) => world.until(sessionId, is('idle'))));
  const { data } = await listSessions(world.ctx, { parentSessionId: one });
  expect(data.map(({ parentSessionId, status }) => [parentSessionId, status])).toEqual([[one, 'completed']]);
  expect((await listSessions(world.ctx, {})).data).toHaveLength(4);
});
