// Turns that are interrupted, steered, timed out, or cancelled with their session: what the session shows and what the model gets.
//
// Only the tests move the clock, so no poll or timeout occurs that a test does not cause.
import type { Chunk } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { listApprovals } from '../../src/approvals/list.ts';
import { resolveApproval } from '../../src/approvals/resolve.ts';
import { listEvents } from '../../src/events/events.ts';
import type { PoolContext } from '../../src/lib/context.ts';
import { uuidOf } from '../../src/lib/ids.ts';
import { type AskModel, type ModelCall, ModelFailure } from '../../src/models/model/model.ts';
import { cancelSession, closeSession, interruptSession } from '../../src/sessions/end-session.ts';
import { listMessages, sendMessage } from '../../src/sessions/messages.ts';
import { getSession } from '../../src/sessions/sessions.ts';
import { sendToolResult } from '../../src/sessions/tool-results.ts';
import type { RunTool } from '../../src/tools/tool/tool.ts';
import { createManualClock, type ManualClock } from '../support/manual-clock.ts';
import {
  answering,
  clientTool,
  createWorld,
  hanging,
  httpTool,
  is,
  never,
  outline,
  queryingBy,
  usage,
  type World,
} from '../support/session-world.ts';

let clock: ManualClock;
let world: World;
beforeEach(async () => {
  clock = createManualClock();
  world = await createWorld({ clock });
});
afterEach(() => clock.passWhile(world.close()));

const tick = () => new Promise<void>((resolve) => setImmediate(resolve));

const begins = (turn: number) => (chunk: Chunk) => chunk.turn === turn && is('running')(chunk);
const calls = (...names: string[]) => ({ calls: names.map((name): [string, unknown] => [name, {}]) });
const payTool = httpTool('pay', { approval: 'always' });
const INTERRUPTED = 'The turn was interrupted before this call finished.';

/** A model that says something and then hangs until it is aborted; from the next turn on it responds. */
function stuckAfter(text: string, seen: (call: ModelCall) => void = () => {}): AskModel {
  let asked = 0;
  return async function* (call, signal) {
    seen(structuredClone(call));
    asked += 1;
    yield { type: 'text', delta: asked === 1 ? text : 'Hello again' };
    if (asked === 1) await never(signal);
    yield { type: 'finish', reason: 'endTurn', usage };
  };
}

/** A tool that runs until it is aborted, with a promise of its start. */
function stuckTool(): { run: RunTool; began: Promise<void> } {
  const began = Promise.withResolvers<void>();
  return {
    began: began.promise,
    run: (_, signal) => {
      began.resolve();
      return never(signal);
    },
  };
}

/** Checks what every provider requires: the results of a step's calls follow it directly, each once and in order. */
function expectWhole(transcript: ModelCall['transcript']): void {
  for (const [index, { role, content }] of transcript.entries()) {
    const called = content.flatMap((part) => (part.type === 'tool_call' ? [part.toolCallId] : []));
    const results = content.flatMap((part) => (part.type === 'tool_result' ? [part.toolCallId] : []));
    if (role === 'tool') expect(results).not.toEqual([]);
    const before = transcript[index - 1]?.content ?? [];
    expect(results).toEqual(before.flatMap((part) => (part.type === 'tool_call' ? [part.toolCallId] : [])));
    if (called.length > 0) expect(transcript[index + 1]?.role).toBe('tool');
  }
  expect(transcript.at(-1)?.role).not.toBe('assistant');
}

/** Each entry of the transcript as one short text. */
async function transcriptOf(sessionId: string): Promise<string[]> {
  const { data } = await listMessages(world.ctx, { sessionId });
  return data.map(({ role, content }) => {
    const parts = content.map((part) => {
      if (part.type === 'text') return JSON.stringify(part.text);
      if (part.type === 'tool_call') return part.tool;
      if (part.type === 'file') return part.fileId;
      return part.error === undefined ? JSON.stringify(part.output) : part.outcomeUnknown ? 'unknown' : 'error';
    });
    return `${role} ${parts.join(' ')}`;
  });
}

async function statusOf(sessionId: string): Promise<string> {
  return (await getSession(world.ctx, { sessionId })).session.status;
}

async function pendingIn(sessionId: string): Promise<string[]> {
  const { data } = await listApprovals(world.ctx, { sessionId, status: 'pending' });
  return data.map(({ operationId }) => operationId);
}

async function eventTypesOf(sessionId: string): Promise<string[]> {
  return (await listEvents(world.ctx, { sessionId, order: 'asc' })).data.map(({ type }) => type);
}

/** The context for API calls on another node, which the node that runs the session notices only by its poll. */
async function otherNode(): Promise<PoolContext> {
  return { ...world.ctx, ...(await world.anotherNode()) };
}

describe('interrupts', () => {
  test('an interrupt during a model’s stream keeps the shown text, and the model gets it in the next turn', async () => {
    const asked: ModelCall[] = [];
    await world.work({ ask: stuckAfter('Once upon', (call) => asked.push(call)) });
    const sessionId = await world.open(await world.agent());
    await world.until(sessionId, (chunk) => chunk.type === 'message.chunk');
    await interruptSession(world.ctx, { sessionId });
    const chunks = await world.until(sessionId, is('idle'));
    expect(outline(chunks)).toEqual(['running', '"Once upon"', 'turn.completed interrupted', 'idle']);
    expect(chunks.at(-1)).toMatchObject({ stopReason: 'interrupted' });
    const { session } = await getSession(world.ctx, { sessionId });
    expect(session).toMatchObject({ status: 'idle', stopReason: 'interrupted', waitingFor: null });

    await sendMessage(world.ctx, { sessionId, content: 'and then?' });
    await world.until(sessionId, (chunk) => chunk.turn === 2 && is('idle')(chunk));
    expect(await transcriptOf(sessionId)).toEqual([
      'user "go"',
      'assistant "Once upon"',
      'user "and then?"',
      'assistant "Hello again"',
    ]);
    expectWhole(asked[1]!.transcript);
    // A scripted model continues with its next step, even after another node claimed the session.
    expect(asked[1]!.callsBefore).toBe(1);
  });

  test('the usage of an interrupted turn includes its completed model calls, and no others', async () => {
    const tool = stuckTool();
    await world.work({
      ask: answering([calls('a', 'b'), calls('slow')]),
      run: (call, signal) => {
        return call.tool.name === 'slow' ? tool.run(call, signal) : Promise.resolve({ output: 1 });
      },
    });
    const sessionId = await world.open(await world.agent([httpTool('a'), httpTool('b'), httpTool('slow')]));
    await tool.began;
    await interruptSession(world.ctx, { sessionId });
    const chunks = await world.until(sessionId, is('idle'));
    const used = { inputTokens: 6, outputTokens: 4, cachedTokens: 2, steps: 2, toolCalls: 3, costUsd: null };
    expect(chunks.find(({ type }) => type === 'turn.completed')).toMatchObject({ usage: used });
    expect((await getSession(world.ctx, { sessionId })).session.usage).toEqual(used);
  });

  test('an interrupted effectful call has an unknown outcome, which the stream, the event log and the model get', async () => {
    const asked: ModelCall[] = [];
    const tool = stuckTool();
    await world.work({ ask: answering([calls('effect'), { text: 'ok' }], (call) => asked.push(call)), run: tool.run });
    const sessionId = await world.open(await world.agent([httpTool('effect')]));
    await tool.began;
    await interruptSession(world.ctx, { sessionId });
    const chunks = await world.until(sessionId, is('idle'));
    expect(outline(chunks)).toEqual([
      'running',
      'tool.call',
      'tool.result unknown',
      'turn.completed interrupted',
      'idle',
    ]);
    const told = `${INTERRUPTED} It may or may not have taken effect.`;
    expect(chunks.find(({ type }) => type === 'tool.result')).toMatchObject({ error: told, outcomeUnknown: true });
    expect(await eventTypesOf(sessionId)).toEqual([
      'session.created',
      'session.interrupted',
      'tool_call.outcome_unknown',
      'session.idle',
    ]);

    await sendMessage(world.ctx, { sessionId, content: 'again' });
    await world.until(sessionId, (chunk) => chunk.turn === 2 && is('idle')(chunk));
    expect(asked[1]!.transcript[2]!.content).toMatchObject([
      { type: 'tool_result', error: told, outcomeUnknown: true },
    ]);
    expectWhole(asked[1]!.transcript);
  });

  test('an interrupted repeatable call has no unknown outcome', async () => {
    const tool = stuckTool();
    await world.work({ ask: answering([calls('look')]), run: tool.run });
    const sessionId = await world.open(await world.agent([httpTool('look', { effectful: false })]));
    await tool.began;
    await interruptSession(world.ctx, { sessionId });
    const chunks = await world.until(sessionId, is('idle'));
    expect(outline(chunks)).toContain('tool.result error');
    expect(chunks.find(({ type }) => type === 'tool.result')).toMatchObject({ error: INTERRUPTED });
    expect(await eventTypesOf(sessionId)).not.toContain('tool_call.outcome_unknown');
  });

  test('the result of a call that ends when an interrupt aborts it is kept', async () => {
    const began = Promise.withResolvers<void>();
    await world.work({
      ask: answering([calls('effect')]),
      run: async (_, signal) => {
        began.resolve();
        await never(signal).catch(() => {});
        return { output: 'half done' };
      },
    });
    const sessionId = await world.open(await world.agent([httpTool('effect')]));
    await began.promise;
    await interruptSession(world.ctx, { sessionId });
    const chunks = await world.until(sessionId, is('idle'));
    expect(chunks.find(({ type }) => type === 'tool.result')).toMatchObject({ output: 'half done' });
  });

  test('an interrupt does not wait for a tool that ignores its signal', async () => {
    const began = Promise.withResolvers<void>();
    await world.work({
      ask: answering([calls('deaf')]),
      run: () => {
        began.resolve();
        return new Promise(() => {});
      },
    });
    const sessionId = await world.open(await world.agent([httpTool('deaf')]));
    await began.promise;
    await interruptSession(world.ctx, { sessionId });
    // The grace period of tools.
    await clock.advance(500);
    expect(outline(await world.until(sessionId, is('idle')))).toContain('tool.result unknown');
  });

  test('an interrupt gives each call of a step a result in the model’s order, whatever the state of the call', async () => {
    const asked: ModelCall[] = [];
    const began = Promise.withResolvers<void>();
    await world.work({
      ask: answering([calls('effect', 'pay', 'quick', 'where', 'missing'), { text: 'ok' }], (call) => asked.push(call)),
      run: async ({ tool }, signal) => {
        if (tool.name === 'quick') return { output: 'done' };
        began.resolve();
        return never(signal);
      },
    });
    const tools = [httpTool('effect'), payTool, httpTool('quick'), clientTool('where')];
    const sessionId = await world.open(await world.agent(tools));
    await began.promise;
    await world.until(sessionId, (chunk) => chunk.type === 'tool.result' && !chunk.notRun);
    await interruptSession(world.ctx, { sessionId });
    const chunks = await world.until(sessionId, is('idle'));
    expect(outline(chunks).slice(-7)).toEqual([
      'approval.resolved cancelled',
      'tool.result unknown',
      'tool.call not run',
      'tool.result not run',
      'tool.result error',
      'turn.completed interrupted',
      'idle',
    ]);
    const shown = (type: string) =>
      chunks.flatMap((chunk) => (chunk.type === type ? [(chunk as { toolCallId: string }).toolCallId] : []));
    expect(shown('tool.result').toSorted()).toEqual(shown('tool.call').toSorted());

    await sendMessage(world.ctx, { sessionId, content: 'again' });
    await world.until(sessionId, (chunk) => chunk.turn === 2 && is('idle')(chunk));
    expect(asked[1]!.transcript[2]!.content).toMatchObject([
      { outcomeUnknown: true },
      { error: INTERRUPTED },
      { output: 'done' },
      { error: INTERRUPTED },
      { error: 'There is no tool named "missing".' },
    ]);
    expectWhole(asked[1]!.transcript);
  });

  test('an interrupt cancels a pending approval, which can no longer be granted', async () => {
    const asked: ModelCall[] = [];
    await world.work({ ask: answering([calls('pay'), { text: 'ok' }], (call) => asked.push(call)) });
    const sessionId = await world.open(await world.agent([payTool]));
    await world.until(sessionId, is('waiting'));
    const [operationId = ''] = await pendingIn(sessionId);
    await interruptSession(world.ctx, { sessionId });
    const chunks = await world.until(sessionId, is('idle'));
    expect(outline(chunks)).toEqual([
      'running',
      'approval.requested',
      'waiting',
      'approval.resolved cancelled',
      'tool.call not run',
      'tool.result not run',
      'turn.completed interrupted',
      'idle',
    ]);
    expect(await pendingIn(sessionId)).toEqual([]);
    await expect(resolveApproval(world.ctx, { operationId, decision: 'approved' })).rejects.toMatchObject({
      code: 'approval_already_resolved',
      message: 'The approval is already cancelled.',
    });
    expect(await eventTypesOf(sessionId)).toEqual([
      'session.created',
      'approval.requested',
      'session.waiting',
      'session.interrupted',
      'approval.resolved',
      'session.idle',
    ]);

    await sendMessage(world.ctx, { sessionId, content: 'again' });
    await world.until(sessionId, (chunk) => chunk.turn === 2 && is('idle')(chunk));
    expect(asked[1]!.transcript[2]!.content).toMatchObject([{ type: 'tool_result', error: INTERRUPTED }]);
    expectWhole(asked[1]!.transcript);
  });

  test('a client tool’s result is refused after an interrupt', async () => {
    await world.work({ ask: answering([calls('where')]) });
    const sessionId = await world.open(await world.agent([clientTool('where')]));
    await world.until(sessionId, is('waiting'));
    const { session } = await getSession(world.ctx, { sessionId });
    const toolCallId = session.waitingFor!.toolCallIds[0]!;
    await interruptSession(world.ctx, { sessionId });
    // Before the turn has ended, the first of the two wins.
    const racing = await sendToolResult(world.ctx, { sessionId, toolCallId, output: 'here' }).catch((error) => error);
    const chunks = await clock.passWhile(world.until(sessionId, is('idle')));
    const result = chunks.find(({ type }) => type === 'tool.result');
    if (racing instanceof Error) expect(result).toMatchObject({ error: INTERRUPTED });
    else expect(result).toMatchObject({ output: 'here' });
    await expect(sendToolResult(world.ctx, { sessionId, toolCallId, output: 'too late' })).rejects.toMatchObject({
      code: 'conflict',
      message:
        racing instanceof Error
          ? 'The call was cancelled together with its turn.'
          : expect.stringContaining('another result'),
    });
  });

  test('an interrupt at the moment when the session starts to wait is not lost, even without wake-ups', async () => {
    const ctx = await otherNode();
    let sessionId = '';
    await world.work({
      ask: answering([calls('effect', 'pay')]),
      run: async () => {
        await interruptSession(ctx, { sessionId });
        return { output: 1 };
      },
    });
    const agentId = await world.agent([httpTool('effect'), payTool]);
    sessionId = await world.open(agentId, { input: undefined });
    await sendMessage(world.ctx, { sessionId, content: 'go' });
    const words = outline(await world.until(sessionId, is('idle')));
    expect(words).toContain('turn.completed interrupted');
    expect(words).not.toContain('waiting');
  });

  test('an interrupt during the pause before a model’s retry ends the turn at once', async () => {
    const failed = Promise.withResolvers<void>();
    await world.work({
      // biome-ignore lint/correctness/useYield: a model that fails before it says anything
      ask: async function* () {
        failed.resolve();
        throw new ModelFailure('model_rate_limited', 'Slow down', { retryable: true, retryAfterMs: 50_000 });
      },
    });
    const sessionId = await world.open(await world.agent([], { limits: { modelOutageSeconds: 0 } }));
    await failed.promise;
    await interruptSession(world.ctx, { sessionId });
    expect(outline(await world.until(sessionId, is('idle')))).toEqual([
      'running',
      'turn.completed interrupted',
      'idle',
    ]);
  });

  test('an interrupt does not wait for a server that lists its tools', async () => {
    const listing = Promise.withResolvers<void>();
    let asked = 0;
    await world.work({
      ask: answering([{ text: 'never' }], () => {
        asked += 1;
      }),
      list: async (_owner, _tools, signal) => {
        listing.resolve();
        return never(signal);
      },
    });
    const sessionId = await world.open(await world.agent());
    await listing.promise;
    await interruptSession(world.ctx, { sessionId });
    expect(outline(await world.until(sessionId, is('idle')))).toEqual([
      'running',
      'turn.completed interrupted',
      'idle',
    ]);
    expect(asked).toBe(0);
  });

  test('an interrupt of a parked session requests no tool list', async () => {
    let lists = 0;
    const parking = await world.work({ ask: answering([calls('pay')]) });
    const sessionId = await world.open(await world.agent([payTool]));
    await world.until(sessionId, is('waiting'));
    await parking.stop();
    await world.work({
      list: async (_owner, _tools, signal) => {
        lists += 1;
        return never(signal);
      },
    });
    await interruptSession(world.ctx, { sessionId });
    await world.until(sessionId, is('idle'));
    expect(lists).toBe(0);
  });

  test('an interrupt at the moment when a node claims the session takes effect at once', async () => {
    const sessionId = await world.open(await world.agent());
    let isClaimed = false;
    const platform = queryingBy(world.platform, async ({ text }, rows) => {
      if (isClaimed || rows.length === 0 || !text.includes('update sessions s set epoch = s.epoch + 1')) return;
      isClaimed = true;
      await interruptSession(world.ctx, { sessionId });
    });
    await world.work({ platform, ask: stuckAfter('Once') });
    expect(outline(await world.until(sessionId, is('idle')))).toContain('turn.completed interrupted');
  });

  test('an interrupt before any node has claimed the session ends the turn without a model call', async () => {
    let asked = 0;
    const sessionId = await world.open(await world.agent());
    await interruptSession(world.ctx, { sessionId });
    await world.work({
      ask: answering([{ text: 'never' }], () => {
        asked += 1;
      }),
    });
    expect(outline(await world.until(sessionId, is('idle')))).toEqual([
      'running',
      'turn.completed interrupted',
      'idle',
    ]);
    expect(asked).toBe(0);
    expect(await transcriptOf(sessionId)).toEqual(['user "go"']);
  });

  test.each([
    ['running', stuckAfter('Once')],
    ['waiting', answering([calls('pay')])],
  ])('one poll finds the interrupt of a %s session that another node accepted, without wake-ups', async (at, ask) => {
    const ctx = await otherNode();
    await world.work({ ask });
    const sessionId = await world.open(await world.agent([payTool]));
    await world.until(sessionId, at === 'waiting' ? is('waiting') : (chunk) => chunk.type === 'message.chunk');
    await interruptSession(ctx, { sessionId });
    await clock.advance(1_000);
    expect(outline(await world.until(sessionId, is('idle')))).toContain('turn.completed interrupted');
  });

  test('an interrupt takes effect even if the node that runs the session dies first', async () => {
    const began = Promise.withResolvers<void>();
    const dying = await world.work({
      ask: answering([calls('effect')]),
      run: () => {
        began.resolve();
        return new Promise(() => {});
      },
    });
    const sessionId = await world.open(await world.agent([httpTool('effect')]));
    await began.promise;
    await interruptSession(await otherNode(), { sessionId });
    await world.expireLease(dying.nodeId);
    let asked = 0;
    await world.work({
      platform: await world.anotherNode(),
      ask: answering([{ text: 'never' }], () => {
        asked += 1;
      }),
    });
    const words = outline(await world.until(sessionId, is('idle')));
    expect(words.slice(-3)).toEqual(['tool.result unknown', 'turn.completed interrupted', 'idle']);
    expect(asked).toBe(0);
  });

  test.each(['approved', 'denied'] as const)(
    'an interrupt takes effect even if one of two calls is %s before a node claims the session',
    async (decision) => {
      const parking = await world.work({ ask: answering([calls('pay', 'pay')]) });
      const sessionId = await world.open(await world.agent([payTool]));
      await world.until(sessionId, is('waiting'));
      await parking.stop();
      const [operationId = ''] = await pendingIn(sessionId);
      await interruptSession(world.ctx, { sessionId });
      await resolveApproval(world.ctx, { operationId, decision });
      await world.work({});
      const words = outline(await world.until(sessionId, is('idle')));
      const notRun = ['tool.call not run', 'tool.result not run'];
      expect(words.filter((word) => /^(approval\.resolved|tool|turn)/.test(word))).toEqual([
        `approval.resolved ${decision}`,
        ...(decision === 'denied' ? notRun : []),
        'approval.resolved cancelled',
        ...(decision === 'approved' ? notRun : []),
        ...notRun,
        'turn.completed interrupted',
      ]);
    },
  );

  test('a second interrupt has no effect, nor has one of an idle session; one of an ended session is refused', async () => {
    await world.work({ ask: stuckAfter('Once') });
    const sessionId = await world.open(await world.agent());
    await world.until(sessionId, (chunk) => chunk.type === 'message.chunk');
    await Promise.all([interruptSession(world.ctx, { sessionId }), interruptSession(await otherNode(), { sessionId })]);
    // If the interrupt of the other node came first, this node finds it by polling: these nodes get no hints from each other.
    await clock.passWhile(world.until(sessionId, is('idle')));
    const { session } = await interruptSession(world.ctx, { sessionId });
    expect(session.status).toBe('idle');
    expect((await eventTypesOf(sessionId)).filter((type) => type === 'session.interrupted')).toHaveLength(1);
    await sendMessage(world.ctx, { sessionId, content: 'go on' });
    const chunks = await world.until(sessionId, (chunk) => chunk.turn === 2 && is('idle')(chunk));
    expect(outline(chunks)).toEqual([
      'running',
      '"Once"',
      'turn.completed interrupted',
      'idle',
      'running',
      '"Hello again"',
      'turn.completed endTurn',
      'idle',
    ]);
    await closeSession(world.ctx, { sessionId });
    await expect(interruptSession(world.ctx, { sessionId })).rejects.toMatchObject({ code: 'session_ended' });
  });

  test('an interrupt at the moment when a turn ends stops that turn or none, never the next', async () => {
    await world.work({});
    const agentId = await world.agent();
    const sessions = await Promise.all(Array.from({ length: 30 }, () => world.open(agentId)));
    await Promise.all(
      sessions.map(async (sessionId, index) => {
        for (let n = 0; n < index % 10; n += 1) await tick();
        await interruptSession(world.ctx, { sessionId });
      }),
    );
    for (const sessionId of sessions) {
      await sendMessage(world.ctx, { sessionId, content: 'next' });
      const chunks = await world.until(sessionId, (chunk) => chunk.turn === 2 && is('idle')(chunk));
      expect(outline(chunks.filter(({ turn }) => turn === 2))).toContain('turn.completed endTurn');
    }
  });

  test('an interrupt that a node notices only after the turn has ended does not stop the next turn', async () => {
    const late = Promise.withResolvers<void>();
    const proceed = Promise.withResolvers<void>();
    const [begun, heard] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const platform = queryingBy(world.platform, async (statement, rows) => {
      const [row] = rows as { stop?: string | null }[];
      // The query of this session that a wake-up causes.
      if (!/inbox, stop from sessions\s+where .* session_id =/.test(statement.text) || !row?.stop) return;
      heard.resolve();
      await late.promise;
    });
    await world.work({
      platform,
      ask: async function* (call, signal) {
        begun.resolve();
        if (call.transcript.length === 1) await never(signal);
        await Promise.race([proceed.promise, never(signal)]);
        yield { type: 'finish', reason: 'endTurn', usage };
      },
    });
    const sessionId = await world.open(await world.agent());
    await begun.promise;
    await sendMessage(world.ctx, { sessionId, content: 'rather this', onBusy: 'steer' });
    await heard.promise;
    // In the meantime the poll finds the same interrupt.
    await clock.advance(1_000);
    await world.until(sessionId, begins(2));
    late.resolve();
    for (let n = 0; n < 5; n += 1) await tick();
    proceed.resolve();
    const chunks = await world.until(sessionId, (chunk) => chunk.turn === 2 && is('idle')(chunk));
    expect(outline(chunks).at(-2)).toBe('turn.completed endTurn');
  });

  test.each([
    ['closing session', false],
    ['session with closeOnIdle', true],
  ])('an interrupt completes a %s', async (_, closeOnIdle) => {
    await world.work({ ask: stuckAfter('Once') });
    const sessionId = await world.open(await world.agent(), { closeOnIdle });
    await world.until(sessionId, (chunk) => chunk.type === 'message.chunk');
    if (!closeOnIdle) await closeSession(world.ctx, { sessionId });
    await interruptSession(world.ctx, { sessionId });
    const chunks = await world.until(sessionId, is('completed'));
    expect(chunks.at(-1)).toMatchObject({ status: 'completed', stopReason: 'interrupted' });
  });

  test('the next queued message has its turn after an interrupt', async () => {
    await world.work({ ask: stuckAfter('Once') });
    const sessionId = await world.open(await world.agent());
    await world.until(sessionId, (chunk) => chunk.type === 'message.chunk');
    await sendMessage(world.ctx, { sessionId, content: 'queued' });
    await interruptSession(world.ctx, { sessionId });
    const chunks = await world.until(sessionId, is('idle'));
    expect(outline(chunks)).toEqual([
      'running',
      '"Once"',
      'turn.completed interrupted',
      'running',
      '"Hello again"',
      'turn.completed endTurn',
      'idle',
    ]);
  });

  test('an interrupt keeps the text that a dead node has shown', async () => {
    const dying = await world.work({ ask: stuckAfter('half a') });
    const sessionId = await world.open(await world.agent());
    await world.until(sessionId, (chunk) => chunk.type === 'message.chunk');
    await world.expireLease(dying.nodeId);
    await interruptSession(await otherNode(), { sessionId });
    await world.work({ platform: await world.anotherNode() });
    expect(outline(await world.until(sessionId, is('idle')))).toEqual([
      'running',
      '"half a"',
      'turn.completed interrupted',
      'idle',
    ]);
    expect(await transcriptOf(sessionId)).toEqual(['user "go"', 'assistant "half a"']);
  });
});

describe('steering', () => {
  test('a steering message ends the current turn and is next, before the queue, which keeps its order', async () => {
    const asked: ModelCall[] = [];
    await world.work({ ask: stuckAfter('Once', (call) => asked.push(call)) });
    const sessionId = await world.open(await world.agent());
    await world.until(sessionId, (chunk) => chunk.type === 'message.chunk');
    await sendMessage(world.ctx, { sessionId, content: 'first' });
    await sendMessage(world.ctx, { sessionId, content: 'second' });
    const { session } = await sendMessage(world.ctx, { sessionId, content: 'rather this', onBusy: 'steer' });
    expect(session.status).toBe('running');
    await world.until(sessionId, (chunk) => chunk.turn === 4 && is('idle')(chunk));
    expect(await transcriptOf(sessionId)).toEqual([
      'user "go"',
      'assistant "Once"',
      'user "rather this"',
      'assistant "Hello again"',
      'user "first"',
      'assistant "Hello again"',
      'user "second"',
      'assistant "Hello again"',
    ]);
    for (const { transcript } of asked) expectWhole(transcript);
  });

  test('steering stops only the current turn: the next one can wait for an approval', async () => {
    const ask: AskModel = async function* (call, signal) {
      if (call.callsBefore === 0) await never(signal);
      yield* answering([{}, calls('pay')])(call, signal);
    };
    await world.work({ ask });
    const sessionId = await world.open(await world.agent([payTool]));
    await sendMessage(world.ctx, { sessionId, content: 'rather this', onBusy: 'steer' });
    const chunks = await world.until(
      sessionId,
      (chunk) => chunk.turn === 2 && (is('waiting')(chunk) || is('idle')(chunk)),
    );
    expect(outline(chunks).slice(-3)).toEqual(['running', 'approval.requested', 'waiting']);
  });

  test('two steering messages before the turn has ended both have their turn, in order', async () => {
    const sessionId = await world.open(await world.agent());
    await sendMessage(world.ctx, { sessionId, content: 'queued' });
    await sendMessage(world.ctx, { sessionId, content: 'one', onBusy: 'steer' });
    await sendMessage(world.ctx, { sessionId, content: 'two', onBusy: 'steer' });
    const waiting = (await listMessages(world.ctx, { sessionId })).data.filter(({ turn }) => turn === null);
    expect(waiting.map(({ content }) => content)).toMatchObject([
      [{ text: 'one' }],
      [{ text: 'two' }],
      [{ text: 'queued' }],
    ]);
    await world.work({ ask: answering([{ text: 'ok' }]) });
    await world.until(sessionId, (chunk) => chunk.turn === 4 && is('idle')(chunk));
    expect((await transcriptOf(sessionId)).filter((entry) => entry.startsWith('user'))).toEqual([
      'user "go"',
      'user "one"',
      'user "two"',
      'user "queued"',
    ]);
  });

  test('steering cancels a pending approval, and the model gets this together with the new message', async () => {
    const asked: ModelCall[] = [];
    await world.work({ ask: answering([calls('pay'), { text: 'ok' }], (call) => asked.push(call)) });
    const sessionId = await world.open(await world.agent([payTool]));
    await world.until(sessionId, is('waiting'));
    await sendMessage(world.ctx, { sessionId, content: 'never mind', onBusy: 'steer' });
    const chunks = await world.until(sessionId, (chunk) => chunk.turn === 2 && is('idle')(chunk));
    expect(outline(chunks)).toEqual([
      'running',
      'approval.requested',
      'waiting',
      'approval.resolved cancelled',
      'tool.call not run',
      'tool.result not run',
      'turn.completed interrupted',
      'running',
      '"ok"',
      'turn.completed endTurn',
      'idle',
    ]);
    expect(await pendingIn(sessionId)).toEqual([]);
    expect(asked[1]!.transcript.slice(2)).toMatchObject([
      { role: 'tool', content: [{ error: INTERRUPTED }] },
      { role: 'user', content: [{ text: 'never mind' }] },
    ]);
    expectWhole(asked[1]!.transcript);
  });

  test('a call that is approved and steered simultaneously is decided once, and the message has its turn', async () => {
    await world.work({ ask: answering([calls('pay'), { text: 'ok' }]) });
    const agentId = await world.agent([payTool]);
    const ctx = await otherNode();
    for (let round = 0; round < 10; round += 1) {
      const sessionId = await world.open(agentId);
      await world.until(sessionId, is('waiting'));
      const [operationId = ''] = await pendingIn(sessionId);
      const [decided] = await Promise.allSettled([
        resolveApproval(round % 2 === 0 ? ctx : world.ctx, { operationId, decision: 'approved' }),
        sendMessage(world.ctx, { sessionId, content: 'rather this', onBusy: 'steer' }),
      ]);
      const chunks = await clock.passWhile(world.until(sessionId, (chunk) => chunk.turn === 2 && is('idle')(chunk)));
      const resolved = outline(chunks).filter((word) => word.startsWith('approval.resolved'));
      expect(resolved).toEqual([
        decided.status === 'fulfilled' ? 'approval.resolved approved' : 'approval.resolved cancelled',
      ]);
    }
  });

  test('a steering message to an idle session is an ordinary message', async () => {
    await world.work({ ask: answering([{ text: 'ok' }]) });
    const sessionId = await world.open(await world.agent());
    await world.until(sessionId, is('idle'));
    await sendMessage(world.ctx, { sessionId, content: 'more', onBusy: 'steer' });
    const chunks = await world.until(sessionId, (chunk) => chunk.turn === 2 && is('idle')(chunk));
    expect(outline(chunks).filter((word) => word.startsWith('turn.completed'))).toEqual([
      'turn.completed endTurn',
      'turn.completed endTurn',
    ]);
  });
});

describe('cancellation', () => {
  test('text of the model after a cancellation is refused, even before its node has noticed', async () => {
    const proceed = Promise.withResolvers<void>();
    const stopped = Promise.withResolvers<void>();
    await world.work({
      ask: async function* (_call, signal) {
        signal.addEventListener('abort', () => stopped.resolve());
        yield { type: 'text', delta: 'begun' };
        await proceed.promise;
        for (const delta of [' and', ' on', ' and on']) yield { type: 'text', delta };
        await never(signal);
      },
    });
    const sessionId = await world.open(await world.agent());
    await world.until(sessionId, (chunk) => chunk.type === 'message.chunk');
    await cancelSession(await otherNode(), { sessionId });
    proceed.resolve();
    await stopped.promise;
    expect(outline(await world.chunks(sessionId))).toEqual(['running', '"begun"', 'cancelled']);
  });
});

describe('cancellation of a step whose calls are in different states', () => {
  const tools = [httpTool('effect'), httpTool('look', { effectful: false }), payTool, clientTool('where')];
  const CANCELLED = 'The session was cancelled before this call finished.';
  const told = { error: `${CANCELLED} It may or may not have taken effect.`, outcomeUnknown: true };

  async function busy(limits = {}): Promise<string> {
    const began = Promise.withResolvers<void>();
    let running = 0;
    await world.work({
      ask: answering([{ text: 'Now', ...calls('effect', 'look', 'pay', 'where') }]),
      run: (_, signal) => {
        running += 1;
        if (running === 2) began.resolve();
        return never(signal);
      },
    });
    const sessionId = await world.open(await world.agent(tools, { limits }));
    await began.promise;
    await world.until(sessionId, (_, all) => all.filter(({ type }) => type === 'tool.call').length === 3);
    return sessionId;
  }

  async function operationsOf(sessionId: string): Promise<Record<string, string>> {
    const rows = await world.platform.db.query<{ tool: string; status: string }>(sql`
      select tool, status from operations
      where organization_id = ${world.organizationId} and session_id = ${uuidOf('ses', sessionId)} and kind = 'tool'`);
    return Object.fromEntries(rows.map(({ tool, status }) => [tool, status]));
  }

  test('a started effect has an unknown outcome and the other calls are cancelled, in every place that shows them', async () => {
    const sessionId = await busy();
    await cancelSession(await otherNode(), { sessionId });
    const chunks = await world.chunks(sessionId);
    expect(outline(chunks).slice(-7)).toEqual([
      'approval.resolved cancelled',
      'tool.result unknown',
      'tool.result error',
      'tool.call not run',
      'tool.result not run',
      'tool.result error',
      'cancelled',
    ]);
    expect(chunks.filter(({ type }) => type === 'tool.result')).toMatchObject([
      told,
      { error: CANCELLED },
      { error: CANCELLED, notRun: true },
      { error: CANCELLED },
    ]);
    expect(await operationsOf(sessionId)).toEqual({
      effect: 'unknown',
      look: 'cancelled',
      pay: 'cancelled',
      where: 'cancelled',
    });
    expect(await transcriptOf(sessionId)).toEqual([
      'user "go"',
      'assistant "Now" effect look pay where',
      'tool unknown error error error',
    ]);
    const events = await eventTypesOf(sessionId);
    expect(events.filter((type) => type === 'tool_call.outcome_unknown')).toHaveLength(1);
    expect(events.at(-1)).toBe('session.cancelled');
  });

  test('cancellation by an expired approval has the same results, and the call is denied', async () => {
    const sessionId = await busy({ approvalTimeoutSeconds: 60, onApprovalTimeout: 'cancel' });
    await clock.advance(60_000);
    const chunks = await clock.passWhile(world.until(sessionId, is('cancelled')));
    expect(outline(chunks).slice(-7)).toEqual([
      'approval.resolved expired',
      'tool.call not run',
      'tool.result not run',
      'tool.result unknown',
      'tool.result error',
      'tool.result error',
      'cancelled',
    ]);
    expect(await operationsOf(sessionId)).toMatchObject({ effect: 'unknown', pay: 'denied', where: 'cancelled' });
    expect(await eventTypesOf(sessionId)).toContain('tool_call.outcome_unknown');
  });
});

test('text that the model has shown stays in the transcript of a cancelled session', async () => {
  await world.work({ ask: stuckAfter('Once upon') });
  const sessionId = await world.open(await world.agent());
  await world.until(sessionId, (chunk) => chunk.type === 'message.chunk');
  await cancelSession(await otherNode(), { sessionId });
  expect(outline(await world.chunks(sessionId))).toEqual(['running', '"Once upon"', 'cancelled']);
  expect(await transcriptOf(sessionId)).toEqual(['user "go"', 'assistant "Once upon"']);
});

describe('turn timeout', () => {
  const limits = { turnTimeoutSeconds: 100 };

  test('a turn ends as timedOut during a model’s stream and keeps the shown text', async () => {
    await world.work({ ask: stuckAfter('Once') });
    const sessionId = await world.open(await world.agent([], { limits }));
    await world.until(sessionId, (chunk) => chunk.type === 'message.chunk');
    await clock.advance(100_000);
    expect(outline(await world.until(sessionId, is('idle')))).toEqual([
      'running',
      '"Once"',
      'turn.completed timedOut',
      'idle',
    ]);
    expect(await transcriptOf(sessionId)).toEqual(['user "go"', 'assistant "Once"']);
    expect((await getSession(world.ctx, { sessionId })).session.stopReason).toBe('timedOut');
  });

  test('a turn ends as timedOut while a tool runs that ignores its signal', async () => {
    const began = Promise.withResolvers<void>();
    await world.work({
      ask: answering([calls('deaf')]),
      run: () => {
        began.resolve();
        return new Promise(() => {});
      },
    });
    const sessionId = await world.open(await world.agent([httpTool('deaf')], { limits }));
    await began.promise;
    await clock.advance(100_000);
    const chunks = await clock.passWhile(world.until(sessionId, is('idle')));
    expect(outline(chunks).slice(-3)).toEqual(['tool.result unknown', 'turn.completed timedOut', 'idle']);
    expect(chunks.find(({ type }) => type === 'tool.result')).toMatchObject({
      error: 'The turn timed out before this call finished. It may or may not have taken effect.',
    });
  });

  test.each([
    [
      'the model’s retry waits',
      {
        // First for almost the whole time of the turn, then for the shortest pause, a second.
        // biome-ignore lint/correctness/useYield: a model that fails before it says anything
        ask: async function* ({ callsBefore }) {
          const retryAfterMs = callsBefore === 0 ? 9_500 : 0;
          throw new ModelFailure('model_rate_limited', 'Slow down', { retryable: true, retryAfterMs });
        } as AskModel,
      },
    ],
    ['a server lists its tools', { list: async (_o: unknown, _t: unknown, signal: AbortSignal) => never(signal) }],
  ])('a turn ends as timedOut while %s', async (_, options) => {
    await world.work(options);
    const agentId = await world.agent([], { limits: { turnTimeoutSeconds: 10 } });
    const sessionId = await world.open(agentId);
    for (const ms of [9_500, 500]) await clock.advance(ms);
    expect(outline(await world.until(sessionId, is('idle')))).toEqual(['running', 'turn.completed timedOut', 'idle']);
  });

  test('the time in which a turn waits for an approval does not count, but the time before and after does', async () => {
    const [before, after] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    await world.work({
      ask: async function* (call, signal) {
        if (call.transcript.length === 1) {
          await before.promise;
          return yield* answering([calls('pay')])(call, signal);
        }
        yield* hanging('', after.resolve)(call, signal);
      },
    });
    const agentId = await world.agent([payTool], { limits });
    const sessionId = await world.open(agentId);
    await clock.advance(60_000);
    before.resolve();
    await world.until(sessionId, is('waiting'));
    await clock.advance(24 * 3600 * 1000);
    const [operationId = ''] = await pendingIn(sessionId);
    await resolveApproval(world.ctx, { operationId, decision: 'approved' });
    await after.promise;
    await clock.advance(39_999);
    expect(await statusOf(sessionId)).toBe('running');
    await clock.advance(1);
    expect(outline(await world.until(sessionId, is('idle')))).toContain('turn.completed timedOut');
  });

  test('the remaining time of a turn survives the death of its node', async () => {
    const second = Promise.withResolvers<void>();
    const dying = await world.work({
      ask: async function* (call, signal) {
        if (call.transcript.length === 1) {
          await clock.advance(60_000);
          return yield* answering([calls('quick')])(call, signal);
        }
        yield* hanging('', second.resolve)(call, signal);
      },
    });
    const sessionId = await world.open(await world.agent([httpTool('quick')], { limits }));
    await second.promise;
    await world.expireLease(dying.nodeId);
    const again = Promise.withResolvers<void>();
    await world.work({ platform: await world.anotherNode(), ask: hanging('', again.resolve) });
    await again.promise;
    await clock.advance(40_000);
    expect(outline(await world.until(sessionId, is('idle')))).toContain('turn.completed timedOut');
  });

  test('the remaining time of a turn survives the death of several nodes, even if none of them wrote anything', async () => {
    const sessionId = await world.open(await world.agent([], { limits }));
    for (const passesMs of [50_000, 60_000, 40_000]) {
      const begun = Promise.withResolvers<void>();
      // The clocks of the first two never move, so they do not renew their leases. A third death would count as the step's fault
      // (node/claims/crashes.ts).
      const isLast = passesMs === 40_000;
      const platform = await world.anotherNode(isLast ? {} : { clock: createManualClock(clock.now()) });
      const { nodeId } = await world.work({ platform, ask: hanging('', begun.resolve) });
      await begun.promise;
      if (!isLast) await world.expireLease(nodeId);
      await clock.advance(passesMs);
    }
    // How far the first node got is unknown.
    expect(outline(await world.until(sessionId, is('idle')))).toEqual(['running', 'turn.completed timedOut', 'idle']);
  });

  test.each([
    [
      'continued after a decision',
      async (sessionId: string) => {
        const [operationId = ''] = await pendingIn(sessionId);
        await resolveApproval(world.ctx, { operationId, decision: 'approved' });
      },
    ],
    ['continued after an expired approval', () => clock.advance(50_000)],
  ])('the remaining time of a turn that waited and %s survives the death of its node', async (_, proceed) => {
    const after = Promise.withResolvers<void>();
    const dying = await world.work({
      ask: async function* (call, signal) {
        if (call.transcript.length === 1) {
          await clock.advance(60_000);
          return yield* answering([calls('pay')])(call, signal);
        }
        yield* hanging('', after.resolve)(call, signal);
      },
    });
    const timeouts = { ...limits, approvalTimeoutSeconds: 50 };
    const sessionId = await world.open(await world.agent([payTool], { limits: timeouts }));
    await world.until(sessionId, is('waiting'));
    await proceed(sessionId);
    await after.promise;
    await world.expireLease(dying.nodeId);
    const again = Promise.withResolvers<void>();
    await world.work({ platform: await world.anotherNode(), ask: hanging('', again.resolve) });
    await again.promise;
    await clock.advance(40_000);
    expect(outline(await world.until(sessionId, is('idle')))).toContain('turn.completed timedOut');
  });

  test('the next message’s turn after a timeout has its own time', async () => {
    await world.work({ ask: stuckAfter('Once') });
    const sessionId = await world.open(await world.agent([], { limits }));
    await world.until(sessionId, (chunk) => chunk.type === 'message.chunk');
    await sendMessage(world.ctx, { sessionId, content: 'next' });
    await clock.advance(100_000);
    const chunks = await world.until(sessionId, is('idle'));
    expect(outline(chunks).filter((word) => word.startsWith('turn.completed'))).toEqual([
      'turn.completed timedOut',
      'turn.completed endTurn',
    ]);
  });
});
