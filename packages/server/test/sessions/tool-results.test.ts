// Results of client tools: which are accepted, which are refused, and what the model gets.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { listApprovals } from '../../src/approvals/list.ts';
import { cancelSession, closeSession, interruptSession } from '../../src/sessions/end-session.ts';
import { listMessages } from '../../src/sessions/messages.ts';
import { getSession } from '../../src/sessions/sessions.ts';
import { sendToolResult } from '../../src/sessions/tool-results.ts';
import { childOf } from '../support/family.ts';
import {
  agentTool,
  answering,
  byModel,
  clientTool,
  createWorld,
  httpTool,
  is,
  never,
  outline,
  type World,
} from '../support/session-world.ts';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(() => world.close());

const send = (sessionId: string, toolCallId: string, result: object) =>
  sendToolResult(world.ctx, { sessionId, toolCallId, ...result });

/** Opens a session that waits for the result of one call; returns the session and the call. */
async function openWaiting(): Promise<[sessionId: string, toolCallId: string]> {
  await world.work({ ask: answering([{ calls: [['where', {}]] }, { text: 'ok' }]) });
  const sessionId = await world.open(await world.agent([clientTool('where')]));
  await world.until(sessionId, is('waiting'));
  const { session } = await getSession(world.ctx, { sessionId });
  return [sessionId, session.waitingFor!.toolCallIds[0]!];
}

test.each([
  ['an output', { output: 0 }, { output: 0 }],
  ['null', { output: null }, { output: null }],
  ['an error', { error: 'No one is there.' }, { error: 'No one is there.' }],
])('the model gets a result with %s', async (_title, result, told) => {
  const [sessionId, toolCallId] = await openWaiting();
  await send(sessionId, toolCallId, result);
  await world.until(sessionId, is('idle'));
  const { data } = await listMessages(world.ctx, { sessionId });
  const type = 'tool_result';
  expect(data.find(({ role }) => role === 'tool')?.content).toEqual([{ type, toolCallId, ...told }]);
});

test('a result is an output or an error: neither and both are refused, and the call still waits', async () => {
  const [sessionId, toolCallId] = await openWaiting();
  for (const [result, path] of [
    [{}, 'output'],
    [{ output: null, error: 'x' }, 'error'],
  ] as const) {
    await expect(send(sessionId, toolCallId, result)).rejects.toMatchObject({
      code: 'invalid_request',
      errors: [{ path }],
    });
  }
  expect((await send(sessionId, toolCallId, { output: 1 })).session.status).toBe('running');
});

test('only a shown call of a client tool accepts a result, and only in its own session', async () => {
  const begun = Promise.withResolvers<void>();
  await world.work({
    ask: byModel({
      test: answering([
        {
          calls: [
            ['run', {}],
            ['sign', {}],
            ['helper', { input: 'help' }],
          ],
        },
      ]),
      child: answering([{ calls: [['where', {}]] }]),
    }),
    run: (_, signal) => {
      begun.resolve();
      return never(signal);
    },
  });
  const child = await world.agent([clientTool('where')], { model: 'scripted/child' });
  const tools = [httpTool('run'), clientTool('sign', { approval: 'always' }), agentTool('helper', child)];
  const sessionId = await world.open(await world.agent(tools));
  await begun.promise;
  const { sessionId: childId } = await childOf(world, sessionId);
  await world.until(childId, is('waiting'));

  const { data } = await listMessages(world.ctx, { sessionId });
  const calls = data.flatMap(({ content }) => content).flatMap((part) => (part.type === 'tool_call' ? [part] : []));
  expect(calls.map(({ tool }) => tool)).toEqual(['run', 'sign', 'helper']);
  for (const { toolCallId } of calls) {
    await expect(send(sessionId, toolCallId, { output: 'forged' })).rejects.toMatchObject({ code: 'conflict' });
  }
  expect((await listApprovals(world.ctx, { sessionId, status: 'pending' })).data).toHaveLength(1);
  const { waitingFor } = (await getSession(world.ctx, { sessionId: childId })).session;
  await expect(send(sessionId, waitingFor!.toolCallIds[0]!, { output: 1 })).rejects.toMatchObject({
    code: 'not_found',
  });
  expect(outline(await world.chunks(sessionId))).not.toContain('tool.result');
});

test('a call of an interrupted turn accepts no result, and the error states the reason', async () => {
  const [sessionId, toolCallId] = await openWaiting();
  await interruptSession(world.ctx, { sessionId });
  await world.until(sessionId, is('idle'));
  await expect(send(sessionId, toolCallId, { output: 1 })).rejects.toMatchObject({
    code: 'conflict',
    message: 'The call was cancelled together with its turn.',
  });
});

test('after the session has ended, a repeated result is accepted and a different one is refused', async () => {
  const [sessionId, toolCallId] = await openWaiting();
  await send(sessionId, toolCallId, { output: 1 });
  await world.until(sessionId, is('idle'));
  await closeSession(world.ctx, { sessionId });
  expect((await send(sessionId, toolCallId, { output: 1 })).session.status).toBe('completed');
  for (const other of [{ output: 2 }, { error: '1' }])
    await expect(send(sessionId, toolCallId, other)).rejects.toMatchObject({ code: 'session_ended' });
});

test('a cancelled session accepts no result', async () => {
  const [sessionId, toolCallId] = await openWaiting();
  await cancelSession(world.ctx, { sessionId });
  await expect(send(sessionId, toolCallId, { output: 1 })).rejects.toMatchObject({ code: 'session_ended' });
  expect(outline(await world.chunks(sessionId)).at(-1)).toBe('cancelled');
});
