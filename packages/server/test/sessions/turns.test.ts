// Turns and tools: what a session shows, in which order, and what the model gets.
import sql from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { archiveAgent, updateAgent } from '../../src/agents/agents.ts';
import { uuidOf } from '../../src/lib/ids.ts';
import { type ModelCall, ModelFailure } from '../../src/models/model/model.ts';
import { cancelSession, closeSession, interruptSession } from '../../src/sessions/end-session.ts';
import { listMessages, sendMessage } from '../../src/sessions/messages.ts';
import { getSession } from '../../src/sessions/sessions.ts';
import { sendToolResult } from '../../src/sessions/tool-results.ts';
import {
  answering,
  clientTool,
  createWorld,
  hanging,
  httpTool,
  is,
  outline,
  queryingBy,
  usage,
  type World,
} from '../support/session-world.ts';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(() => world.close());

test('a turn shows its text and its end, and leaves the session idle and parked', async () => {
  await world.work({ ask: answering([{ text: 'Hello' }]) });
  const sessionId = await world.open(await world.agent());
  const chunks = await world.until(sessionId, is('idle'));
  expect(outline(chunks)).toEqual(['running', '"Hello"', 'turn.completed endTurn', 'idle']);
  const { session } = await getSession(world.ctx, { sessionId });
  expect(session).toMatchObject({
    status: 'idle',
    turn: 1,
    cursor: 'turn_1:seq_6',
    stopReason: 'endTurn',
    usage: { ...usage, steps: 1, toolCalls: 0 },
  });
});

test('a client tool waits for its result; the same result again is accepted, another is a conflict', async () => {
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

test('a message during a turn has its own turn afterwards; none is lost', async () => {
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

test('a queued message is read only when its turn begins', async () => {
  const reads: number[] = [0, 0, 0];
  const platform = queryingBy(world.platform, async (_, rows) => {
    const text = JSON.stringify(rows);
    for (const index of reads.keys()) if (text.includes(`long ${index}`)) reads[index]! += 1;
  });
  const asked = Promise.withResolvers<void>();
  const proceed = Promise.withResolvers<void>();
  await world.work({
    platform,
    ask: async function* (call, signal) {
      asked.resolve();
      await proceed.promise;
      yield* answering([{ text: 'ok' }])(call, signal);
    },
  });
  const sessionId = await world.open(await world.agent());
  await asked.promise;
  for (const index of reads.keys()) await sendMessage(world.ctx, { sessionId, content: `long ${index}` });
  proceed.resolve();
  await world.until(sessionId, (chunk) => is('idle')(chunk) && chunk.turn === 4);
  expect(reads).toEqual([1, 1, 1]);
});

test('a node reads each queued message once while a turn runs, not all of them with each one that arrives', async () => {
  const reads = new Map<string, number>();
  const platform = queryingBy(world.platform, async ({ text }, rows) => {
    if (!text.includes('from session_inbox')) return;
    for (const { inboxId } of rows as { inboxId?: string }[])
      if (inboxId) reads.set(inboxId, (reads.get(inboxId) ?? 0) + 1);
  });
  const [begun, hold] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  await world.work({
    platform,
    ask: answering([{ calls: [['slow', {}]] }, { text: 'ok' }]),
    run: async () => {
      begun.resolve();
      await hold.promise;
      return { output: null };
    },
  });
  const sessionId = await world.open(await world.agent([httpTool('slow', { approval: 'never' })]));
  await begun.promise;
  for (let n = 1; n <= 4; n += 1) {
    await sendMessage(world.ctx, { sessionId, content: `${n}` });
    await expect.poll(() => reads.size).toBe(n);
  }
  hold.resolve();
  await world.until(sessionId, (chunk) => is('idle')(chunk) && chunk.turn === 5);
  expect([...reads.values()]).toEqual([1, 1, 1, 1]);
});

test('a session with 1,000 queued messages refuses more, until one has begun', async () => {
  const sessionId = await world.open(await world.agent());
  const { organizationId, db } = world.ctx;
  const id = uuidOf('ses', sessionId);
  const send = () => sendMessage(world.ctx, { sessionId, content: 'one more' });
  await send();
  await db.execute(sql`
    insert into session_inbox (organization_id, session_id, inbox_id, position, kind, body, created_at)
    select organization_id, session_id, gen_random_uuid(), n, kind, body, created_at from session_inbox, generate_series(2, 1000) n
    where organization_id = ${organizationId} and session_id = ${id}`);
  await db.execute(sql`
    update sessions set inbox = 1000 where organization_id = ${organizationId} and session_id = ${id}`);
  await expect(send()).rejects.toMatchObject({ code: 'queue_full', status: 429, retryAfterSeconds: 5 });
  await expect(sendMessage(world.ctx, { sessionId, content: 'x', onBusy: 'steer' })).rejects.toMatchObject({
    code: 'queue_full',
  });
  const begun = Promise.withResolvers<void>();
  await world.work({ ask: hanging('', begun.resolve) });
  await begun.promise;
  await interruptSession(world.ctx, { sessionId });
  await expect
    .poll(() =>
      send().then(
        () => true,
        ({ code }) => code,
      ),
    )
    .toBe(true);
});

test.each([
  ['the newest version of the agent', {}, [1, 2]],
  ['the version that the session was opened with', { agentVersion: 1 }, [1, 1]],
])('each turn runs %s', async (_, more, versions) => {
  const [begun, hold] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const received: string[] = [];
  await world.work({
    ask: async function* ({ instructions }) {
      received.push(instructions);
      begun.resolve();
      await hold.promise;
      yield { type: 'finish', reason: 'endTurn', usage };
    },
  });
  const agentId = await world.agent([], { instructions: 'version 1' });
  const sessionId = await world.open(agentId, more);
  await begun.promise;
  await updateAgent(world.ctx, { agentId, instructions: 'version 2' });
  await sendMessage(world.ctx, { sessionId, content: 'queued' });
  hold.resolve();
  await world.until(sessionId, is('idle'));
  expect(received).toEqual(versions.map((version) => `version ${version}`));
  expect((await getSession(world.ctx, { sessionId })).session.agentVersion).toBe(versions[1]);
});

test('an accepted message has its turn even if the agent is archived before', async () => {
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

test('a message that arrives when a turn ends is never lost', async () => {
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

test('close completes the session after the current turn and the messages queued before the close', async () => {
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

test('a close that arrives when a turn ends completes the session', async () => {
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

test('cancel is immediate: the model is aborted, its later text is refused, and the terminal status is the last chunk', async () => {
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

test('a failed model call is retried, and its shown text is reset', async () => {
  await world.work({
    ask: async function* (call) {
      yield { type: 'text', delta: `try ${call.callsBefore}` };
      if (call.callsBefore === 0) {
        // The first text is on disk before the stream breaks, so that there is something to reset.
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

test('a call of a missing tool, or with an invalid input, is shown as not run, and the model gets the reason', async () => {
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
  const refused = ['tool.call not run', 'tool.result not run'];
  expect(outline(chunks)).toEqual([
    'running',
    ...[...refused, ...refused, ...refused],
    '"ok"',
    'turn.completed endTurn',
    'idle',
  ]);
  expect(chunks.filter(({ type }) => type === 'tool.call')).toMatchObject([
    { tool: 'nothing', input: {}, notRun: true },
    { tool: 'strict', input: { to: 1 }, notRun: true },
    { tool: 'strict', input: 'text', notRun: true },
  ]);
  const shown = chunks.flatMap((chunk) => (chunk.type === 'tool.result' ? [chunk.error] : []));
  const errors = calls[1]!.transcript.at(-1)!.content.map((part) => (part as { error?: string }).error);
  expect(errors).toEqual([
    'There is no tool named "nothing".',
    expect.stringContaining('/to must be string'),
    expect.stringContaining('must be a JSON object'),
  ]);
  expect(shown).toEqual(errors);
});

test('a turn ends before its next call once a limit is reached', async () => {
  await world.work({ ask: answering([{ calls: [['a', {}]] }]) });
  const limits = { maxStepsPerTurn: 2, maxOutputTokens: null };
  const steps = await world.open(await world.agent([httpTool('a')], { limits }));
  expect(outline(await world.until(steps, is('idle')))).toContain('turn.completed maxSteps');
  const budget = await world.open(await world.agent([httpTool('a')]), { budget: { maxTokens: 6 } });
  expect(outline(await world.until(budget, is('idle')))).toContain('turn.completed budgetReached');
  expect((await getSession(world.ctx, { sessionId: budget })).session.usage.steps).toBe(2);
});

test('text of a model or a tool that PostgreSQL can’t store does no harm', async () => {
  await world.work({
    ask: answering([{ text: 'a\0b\ud800', calls: [['a', { 'k\0': '\udc00' }]] }, { text: 'ok' }]),
    run: async () => ({ output: { text: '\0x\ud800' } }),
  });
  const sessionId = await world.open(await world.agent([httpTool('a')]));
  const chunks = await world.until(sessionId, is('idle'));
  expect(chunks.find(({ type }) => type === 'tool.result')).toMatchObject({ output: { text: 'x\ufffd' } });
});
