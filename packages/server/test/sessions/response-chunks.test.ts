// The chunks of a response besides its text: where it begins, its reasoning, and the input of its calls while they are written.
import type { Chunk } from '@signalbox/contract';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { newUuid } from '../../src/lib/ids.ts';
import { type AskModel, type ModelCall, type ModelEvent, ModelFailure } from '../../src/models/model/model.ts';
import { interruptSession } from '../../src/sessions/end-session.ts';
import { listMessages } from '../../src/sessions/messages.ts';
import { listTurns } from '../../src/sessions/reading/timeline.ts';
import { retrySession } from '../../src/sessions/retry.ts';
import {
  answering,
  clientTool,
  createWorld,
  hanging,
  httpTool,
  is,
  never,
  usage,
  type World,
} from '../support/session-world.ts';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(() => world.close());

const SHOWN = { showReasoning: true, showToolInput: true };
type Of<T extends Chunk['type']> = Extract<Chunk, { type: T }>;

function of<T extends Chunk['type']>(chunks: readonly Chunk[], type: T): Of<T>[] {
  return chunks.filter((chunk): chunk is Of<T> => chunk.type === type);
}

const typesOf = (chunks: readonly Chunk[]) => chunks.map(({ type }) => type);
const joined = (chunks: readonly { delta: string }[]) => chunks.map(({ delta }) => delta).join('');

/** What a reader keeps who obeys every `message.reset`. */
function kept(chunks: readonly Chunk[]): Chunk[] {
  let all: Chunk[] = [];
  const voidable = ['step.started', 'message.started', 'message.chunk', 'reasoning.chunk', 'tool.input.chunk'];
  for (const chunk of chunks) {
    if (chunk.type === 'message.reset') {
      all = all.filter(({ type, turn, seq }) => turn !== chunk.turn || seq < chunk.fromSeq || !voidable.includes(type));
    } else all.push(chunk);
  }
  return all;
}

async function responses(sessionId: string) {
  const { data } = await listMessages(world.ctx, { sessionId });
  return data.filter(({ role }) => role === 'assistant');
}

const finish = (reason: 'endTurn' | 'toolCalls'): ModelEvent => ({ type: 'finish', reason, usage });

type Step = readonly ModelEvent[] | (() => readonly ModelEvent[]);

/** One response to each call: these events. */
function yielding(...steps: readonly Step[]): AskModel {
  return async function* (call) {
    const step = steps[Math.min(call.callsBefore, steps.length - 1)]!;
    yield* typeof step === 'function' ? step() : step;
  };
}

test('a response begins with its step, its model and the id that its message has in the transcript', async () => {
  await world.work({ ask: answering([{ calls: [['look', {}]] }, { text: 'Found' }]) });
  const sessionId = await world.open(await world.agent([httpTool('look')]));
  const chunks = await world.until(sessionId, is('idle'));
  expect(typesOf(chunks)).toEqual([
    'session.status',
    'step.started',
    'message.started',
    'tool.call',
    'tool.result',
    'step.started',
    'message.started',
    'message.chunk',
    'turn.completed',
    'session.status',
  ]);
  expect(of(chunks, 'step.started')).toMatchObject([
    { step: 1, model: 'scripted/test' },
    { step: 2, model: 'scripted/test' },
  ]);
  const ids = (await responses(sessionId)).map(({ messageId }) => messageId);
  expect(of(chunks, 'message.started')).toMatchObject([
    { step: 1, messageId: ids[0] },
    { step: 2, messageId: ids[1] },
  ]);
  expect(of(chunks, 'turn.completed')).toMatchObject([{ messageId: ids[1] }]);
});

test('nothing of reasoning and of input that is being written is in the journal, unless the agent shows it', async () => {
  const given = (operationId = newUuid()): ModelEvent[] => [
    { type: 'reasoning', delta: 'a secret thought' },
    { type: 'toolInput', operationId, name: 'look', delta: '{"q":1}' },
    { type: 'toolCall', operationId, name: 'look', input: { q: 1 } },
    finish('toolCalls'),
  ];
  await world.work({ ask: yielding(given, [{ type: 'text', delta: 'ok' }, finish('endTurn')]) });
  for (const settings of [{}, { showReasoning: true }, { showToolInput: true }, SHOWN]) {
    const sessionId = await world.open(await world.agent([httpTool('look')], settings));
    const chunks = await world.until(sessionId, is('idle'));
    expect(of(chunks, 'reasoning.chunk')).toHaveLength('showReasoning' in settings ? 1 : 0);
    expect(of(chunks, 'tool.input.chunk')).toHaveLength('showToolInput' in settings ? 1 : 0);
    expect(JSON.stringify(chunks).includes('a secret thought')).toBe('showReasoning' in settings);
    expect(JSON.stringify(await responses(sessionId))).not.toContain('a secret thought');
  }
});

test('the input of parallel calls is shown while it is written, under the ids of the calls that follow', async () => {
  const [one, two] = [newUuid(), newUuid()];
  const inputs = [{ text: 'a'.repeat(300) }, { text: 'b'.repeat(300), n: 7 }];
  const given: ModelEvent[] = [{ type: 'reasoning', delta: 'Both.' }];
  const pieces = inputs.map((input) => JSON.stringify(input).match(/.{1,3}/g)!);
  for (let at = 0; at < pieces[1]!.length; at += 1) {
    if (pieces[0]![at]) given.push({ type: 'toolInput', operationId: one, name: 'write', delta: pieces[0]![at]! });
    given.push({ type: 'toolInput', operationId: two, name: 'note', delta: pieces[1]![at]! });
  }
  given.push(
    { type: 'toolCall', operationId: one, name: 'write', input: inputs[0] },
    { type: 'toolCall', operationId: two, name: 'note', input: inputs[1] },
    finish('toolCalls'),
  );
  await world.work({ ask: yielding(given, [{ type: 'text', delta: 'ok' }, finish('endTurn')]) });
  const sessionId = await world.open(await world.agent([httpTool('write'), httpTool('note')], SHOWN));
  const chunks = await world.until(sessionId, is('idle'));
  const calls = of(chunks, 'tool.call');
  expect(calls.map(({ tool, input }) => [tool, input])).toEqual([
    ['write', inputs[0]],
    ['note', inputs[1]],
  ]);
  const written = of(chunks, 'tool.input.chunk');
  for (const [index, { toolCallId, tool }] of calls.entries()) {
    const own = written.filter((chunk) => chunk.toolCallId === toolCallId);
    expect(own.every(({ toolName }) => toolName === tool)).toBe(true);
    expect(JSON.parse(joined(own))).toEqual(inputs[index]);
    expect(own.every(({ seq }) => seq < calls[index]!.seq)).toBe(true);
  }
  // They alternate, and are gathered: some 200 deltas are a dozen chunks.
  expect(written[0]!.toolCallId).not.toBe(written[1]!.toolCallId);
  expect(written.length).toBeLessThanOrEqual(14);
  expect(typesOf(chunks).slice(1, 4)).toEqual(['step.started', 'message.started', 'reasoning.chunk']);
});

test('what a failed model showed is void, and the fallback is named by the step that follows', async () => {
  const operationId = newUuid();
  await world.work({
    ask: async function* (call) {
      yield { type: 'reasoning', delta: `${call.config.model} thinks` };
      if (call.config.model === 'test') {
        yield { type: 'toolInput', operationId, name: 'look', delta: '{"half' };
        await world.until(call.sessionId, ({ type }) => type === 'tool.input.chunk');
        throw new ModelFailure('model_unavailable', 'gone', { retryable: true });
      }
      yield { type: 'text', delta: 'Yes' };
      yield finish('endTurn');
    },
  });
  const fallbacks = [{ provider: 'scripted' as const, model: 'other' }];
  const model = { provider: 'scripted' as const, model: 'test', fallbacks };
  const sessionId = await world.open(await world.agent([], { ...SHOWN, model }));
  const all = await world.until(sessionId, is('idle'));
  const chunks = kept(all);
  expect(typesOf(chunks)).toEqual([
    'session.status',
    'step.started',
    'message.started',
    'reasoning.chunk',
    'message.chunk',
    'turn.completed',
    'session.status',
  ]);
  expect(of(chunks, 'step.started')).toMatchObject([{ step: 1, model: 'scripted/other' }]);
  expect(joined(of(chunks, 'reasoning.chunk'))).toBe('other thinks');
  const [{ messageId } = { messageId: '' }] = await responses(sessionId);
  expect(of(all, 'message.started').map((chunk) => chunk.messageId)).toEqual([messageId, messageId]);
});

test('a node that dies while the model reasons voids what it showed, and its message keeps its id', async () => {
  const agentId = await world.agent([], SHOWN);
  const dead = await world.work({
    platform: await world.anotherNode(),
    ask: async function* (_call, signal) {
      yield { type: 'reasoning', delta: 'Half a thought' };
      await never(signal);
    },
  });
  const sessionId = await world.open(agentId);
  await world.until(sessionId, ({ type }) => type === 'reasoning.chunk');
  await world.work({
    ask: yielding([{ type: 'reasoning', delta: 'Whole' }, { type: 'text', delta: 'Yes' }, finish('endTurn')]),
  });
  await world.expireLease(dead.nodeId);
  const all = await world.until(sessionId, is('idle'));
  expect(of(all, 'message.reset')).toMatchObject([{ fromSeq: 2 }]);
  const chunks = kept(all);
  expect(joined(of(chunks, 'reasoning.chunk'))).toBe('Whole');
  expect(of(chunks, 'message.started')).toHaveLength(1);
  const [{ messageId } = { messageId: '' }] = await responses(sessionId);
  expect(of(all, 'message.started').map((chunk) => chunk.messageId)).toEqual([messageId, messageId]);
});

test('the text of an interrupted response is a message with the id with which it began', async () => {
  await world.work({ ask: hanging('Once upon') });
  const sessionId = await world.open(await world.agent());
  await world.until(sessionId, ({ type }) => type === 'message.chunk');
  await interruptSession(world.ctx, { sessionId });
  const chunks = await world.until(sessionId, is('idle'));
  const [{ messageId } = { messageId: '' }] = await responses(sessionId);
  expect(of(chunks, 'message.started')).toMatchObject([{ messageId }]);
  expect(of(chunks, 'turn.completed')).toMatchObject([{ stopReason: 'interrupted', messageId }]);
});

test('a turn without a response has no message', async () => {
  await world.work({
    ask: async function* () {
      yield* [];
      throw new ModelFailure('model_rejected', 'no', { retryable: false });
    },
  });
  const sessionId = await world.open(await world.agent([], SHOWN));
  const chunks = await world.until(sessionId, is('idle'));
  expect(typesOf(chunks)).toEqual(['session.status', 'turn.completed', 'session.status']);
  expect(chunks[1]).not.toHaveProperty('messageId');
});

test('a step adds less than 250 bytes to the journal, and input that is written early twice its length at most', async () => {
  const text = 'x'.repeat(8_000);
  const given = (operationId = newUuid()): ModelEvent[] => [
    ...JSON.stringify({ text })
      .match(/.{1,4}/g)!
      .map((delta): ModelEvent => ({ type: 'toolInput', operationId, name: 'look', delta })),
    { type: 'toolCall', operationId, name: 'look', input: { text } },
    finish('toolCalls'),
  ];
  await world.work({ ask: yielding(given, [{ type: 'text', delta: 'ok' }, finish('endTurn')]) });
  const bytes = async (settings: object) => {
    const sessionId = await world.open(await world.agent([httpTool('look')], settings));
    const chunks = (await world.until(sessionId, is('idle'))).map(({ turn: _, seq: __, ...chunk }) => chunk);
    const sizeOf = (types: string[]) => JSON.stringify(chunks.filter(({ type }) => types.includes(type))).length;
    return { start: sizeOf(['step.started', 'message.started']) / 2, input: sizeOf(['tool.input.chunk']) };
  };
  const [off, on] = [await bytes({}), await bytes(SHOWN)];
  expect(off.start).toBeLessThan(250);
  expect(off.input).toBe(2);
  expect(on.input).toBeLessThan(3 * text.length);
});

const searched: ModelEvent = {
  type: 'ran',
  calls: [
    { tool: 'web_search', input: { query: 'who won' }, output: [{ url: 'https://example.com/a' }] },
    { tool: 'web_search', input: {}, error: 'max_uses_exceeded' },
  ],
  sources: [{ url: 'https://example.com/a', title: 'A' }, { title: 'a.pdf' }],
};

test('what a provider ran itself is in journal and transcript, after the text; it is no operation and nothing runs it', async () => {
  const ran: string[] = [];
  const seen: ModelCall[] = [];
  await world.work({
    ask: async function* (call) {
      seen.push(structuredClone(call));
      yield { type: 'text', delta: 'Ada won.' };
      yield searched;
      if (call.callsBefore === 0) yield { type: 'toolCall', name: 'look', input: {} };
      yield finish(call.callsBefore === 0 ? 'toolCalls' : 'endTurn');
    },
    run: async ({ tool }) => {
      ran.push(tool.name);
      return { output: 1 };
    },
  });
  const sessionId = await world.open(await world.agent([httpTool('look')]));
  const chunks = await world.until(sessionId, is('idle'));
  const response = [
    'step.started',
    'message.started',
    'message.chunk',
    'message.chunk',
    'tool.call',
    'tool.result',
    'tool.call',
    'tool.result',
  ];
  expect(typesOf(chunks)).toEqual([
    'session.status',
    ...response,
    'tool.call',
    'tool.result',
    ...response,
    'turn.completed',
    'session.status',
  ]);
  expect(of(chunks, 'message.chunk').slice(0, 2)).toMatchObject([
    { delta: 'Ada won.' },
    { delta: '', sources: searched.sources },
  ]);
  const [first, second] = of(chunks, 'tool.call').filter(({ by }) => by === 'provider');
  expect(of(chunks, 'tool.result').slice(0, 2)).toMatchObject([
    { toolCallId: first!.toolCallId, by: 'provider', output: [{ url: 'https://example.com/a' }] },
    { toolCallId: second!.toolCallId, by: 'provider', error: 'max_uses_exceeded' },
  ]);
  expect(ran).toEqual(['look']);
  expect(of(chunks, 'turn.completed')[0]!.usage).toMatchObject({ toolCalls: 1, steps: 2 });
  const [message] = await responses(sessionId);
  expect(message!.content).toMatchObject([
    { type: 'text', text: 'Ada won.', sources: searched.sources },
    { type: 'tool_call', tool: 'web_search', by: 'provider', toolCallId: first!.toolCallId },
    { type: 'tool_result', by: 'provider', toolCallId: first!.toolCallId },
    { type: 'tool_call', tool: 'web_search', by: 'provider', toolCallId: second!.toolCallId },
    { type: 'tool_result', by: 'provider', toolCallId: second!.toolCallId },
    { type: 'tool_call', tool: 'look' },
  ]);
  const { data } = await listTurns(world.ctx, { sessionId });
  expect(data[0]!.operations.map(({ kind }) => kind)).toEqual(['model', 'tool', 'model']);
  expect(seen).toHaveLength(2);
});

test('a call of the name of a client tool that a provider ran has no `tool.call`, which programs would run', async () => {
  await world.work({ ask: yielding([{ type: 'text', delta: 'ok' }, searched, finish('endTurn')]) });
  const sessionId = await world.open(await world.agent([clientTool('web_search')]));
  const chunks = await world.until(sessionId, is('idle'));
  expect(of(chunks, 'tool.call')).toEqual([]);
  expect(of(chunks, 'tool.result')).toMatchObject([
    { tool: 'web_search', input: { query: 'who won' }, by: 'provider' },
    { tool: 'web_search', input: {}, by: 'provider', error: 'max_uses_exceeded' },
  ]);
});

test('nothing that a provider ran is written before its response is complete', async () => {
  await world.work({
    ask: async function* (call) {
      yield { type: 'text', delta: 'Half' };
      if (call.callsBefore === 0) {
        yield searched;
        throw new ModelFailure('model_unavailable', 'Cut', { retryable: true });
      }
      yield searched;
      yield finish('endTurn');
    },
  });
  const sessionId = await world.open(await world.agent());
  const chunks = await world.until(sessionId, is('idle'));
  expect(of(chunks, 'tool.call')).toHaveLength(2);
  expect(of(kept(chunks), 'message.chunk').map(({ sources }) => sources?.length)).toEqual([undefined, 2]);
});

test('the search of an agent is in its model calls, not a tool of its own, and a retry can leave it out', async () => {
  const seen: ModelCall[] = [];
  await world.work({
    ask: async function* (call) {
      seen.push(structuredClone(call));
      if (seen.length === 1) throw new ModelFailure('model_rejected', 'No search here', { retryable: false });
      yield { type: 'text', delta: 'ok' };
      yield finish('endTurn');
    },
  });
  const tools = [{ type: 'web_search' as const, maxUses: 2 }, httpTool('look')];
  const sessionId = await world.open(await world.agent(tools, { model: 'openai/x' }));
  await world.until(sessionId, is('idle'));
  await retrySession(world.ctx, { sessionId, without: { tools: ['web_search'] } });
  await world.until(sessionId, (chunk) => chunk.type === 'turn.completed' && chunk.stopReason === 'endTurn');
  expect(seen.map(({ webSearch }) => webSearch)).toEqual([{ maxUses: 2 }, undefined]);
  expect(seen[0]!.tools.map(({ name }) => name)).toEqual(['look']);
});
