// The turn machine with a transcript that is too long for its model: what it yields, and what it sends.

import { expect, test } from 'vitest';
import type { Definition } from '../agents/agents.ts';
import { type AskModel, type ModelCall, ModelFailure } from '../models/model/model.ts';
import { newCompaction, newModelCall } from '../session-rows/operations.ts';
import { tokensOfAll, tokensOfText } from './context-size.ts';
import { runTurn, type TurnEvent, type TurnPorts, type TurnState } from './turn.ts';

const usage = { inputTokens: 0, outputTokens: 0, cachedTokens: 0 };
const model = { provider: 'openai-compatible' as const, model: 'small', baseUrl: 'http://localhost/v1' };

/** A session with so many earlier turns of 100 tokens each, whose next turn begins. */
function stateWith(
  turns: number,
  limits: Partial<Definition['limits']> = {},
  more: Partial<Definition> = {},
): TurnState {
  const text = (length: number) => [{ type: 'text' as const, text: 'a'.repeat(length) }];
  const earlier = Array.from({ length: turns }, (_, index) => [
    { turn: index + 1, position: 0, role: 'user' as const, content: text(102) },
    { turn: index + 1, position: 1, role: 'assistant' as const, content: text(102) },
  ]).flat();
  const turn = turns + 1;
  return {
    organizationId: 'o',
    sessionId: 's',
    environment: 'production',
    endUser: null,
    turn,
    definition: {
      model,
      instructions: '',
      tools: [],
      outputSchema: null,
      limits: { maxStepsPerTurn: 20, maxOutputTokens: null, compactAtTokens: null, ...limits },
      ...more,
    } as unknown as Definition,
    models: [more.model ?? model],
    tools: [],
    unavailable: [],
    grantedTools: [],
    leftOut: null,
    transcript: [...earlier, { turn, position: 0, role: 'user', content: text(9) }],
    compaction: null,
    reportedTokens: null,
    operations: [newModelCall(turn, 1, 1)],
    modelCalls: 0,
    shownText: '',
    underWay: new Map(),
  };
}

/** A model that reads so many tokens, as this code counts them, and refuses more. */
function modelOf(windowTokens: number, more: { summary?: string; isRefusing?: boolean } = {}) {
  const calls: ModelCall[] = [];
  const refusedCalls: ModelCall[] = [];
  const ask: AskModel = async function* (call) {
    const tokens = tokensOfText(call.instructions) + tokensOfAll(call.transcript);
    if (tokens > windowTokens) {
      refusedCalls.push(call);
      throw new ModelFailure('model_context_too_long', 'Too long', { retryable: false, httpStatus: 400 });
    }
    calls.push(call);
    const { summary = 'They talked.' } = more;
    yield { type: 'text', delta: call.purpose ? summary : 'ok' };
    yield { type: 'finish', reason: call.purpose && more.isRefusing ? 'refusal' : 'endTurn', usage };
  };
  return { ask, calls, refusedCalls };
}

function portsOf({ ask }: { ask: AskModel }, more: Partial<TurnPorts> = {}): TurnPorts {
  return {
    ask,
    askModel: ask,
    run: async () => ({ output: 'done' }),
    refusal: async () => undefined,
    clock: { now: () => new Date(0), sleep: async () => {} },
    deadline: new Date(600_000),
    random: () => 0,
    inboxCame: () => new Promise(() => {}),
    hasQueued: () => false,
    ...more,
  };
}

async function run(state: TurnState, ports: TurnPorts): Promise<TurnEvent[]> {
  const events: TurnEvent[] = [];
  for await (const event of runTurn(state, ports, new AbortController().signal)) {
    events.push(event);
    if (events.length > 1_000) throw new Error('It does not end');
  }
  return events;
}

const typesOf = (events: readonly TurnEvent[]) => events.map(({ type }) => type);

test('a call that would be longer than the limit follows a summary of the oldest messages', async () => {
  const state = stateWith(20, { compactAtTokens: 2_000 });
  const { ask, calls, refusedCalls } = modelOf(2_000);
  const events = await run(state, portsOf({ ask }));
  expect(typesOf(events)).toEqual(['compactionStarted', 'compacted', 'responding', 'text', 'responded']);
  expect(refusedCalls).toEqual([]);
  expect(calls.map(({ purpose }) => purpose)).toEqual(['summary', undefined]);
  const compacted = events.find((event) => event.type === 'compacted')!;
  expect(compacted).toMatchObject({ compaction: { summary: 'They talked.', from: { position: 0 }, maxTokens: null } });
  expect(compacted.tokensAfter).toBeLessThan(1_000);
  expect(compacted.tokensBefore).toBeGreaterThanOrEqual(2_000);
  // The first message, the summary, and what follows it, as one message of the user.
  const [head] = calls[1]!.transcript;
  expect(head).toMatchObject({ role: 'user' });
  expect(JSON.stringify(head)).toContain('They talked.');
});

test('a call that is not longer than the limit is not compacted', async () => {
  const { ask } = modelOf(1_000_000);
  expect(typesOf(await run(stateWith(19, { compactAtTokens: 2_000 }), portsOf({ ask })))).toEqual([
    'responding',
    'text',
    'responded',
  ]);
});

test.each([
  [19, 'succeeded'],
  [2, 'cancelled'],
])(
  'one that a crash interrupted is over before the model is called, also if the call is short enough: %s messages',
  async (count, status) => {
    const state = stateWith(count, { compactAtTokens: 2_000 });
    const operation = newCompaction(state.turn, 1, []);
    state.operations.push(operation);
    const { ask } = modelOf(1_000_000);
    const events = await run(state, portsOf({ ask }));
    expect(typesOf(events).slice(-2)).toEqual(['text', 'responded']);
    expect(state.operations.filter(({ kind }) => kind === 'compaction')).toMatchObject([
      { operationId: operation.operationId, status },
    ]);
  },
);

test('what the provider reported counts more than the estimate', async () => {
  const { ask } = modelOf(1_000_000);
  const state = stateWith(10, { compactAtTokens: 2_000 });
  state.reportedTokens = 1_999;
  expect(typesOf(await run(state, portsOf({ ask })))).toContain('compacted');
  const other = stateWith(30, { compactAtTokens: 2_000 });
  other.reportedTokens = 1_500;
  expect(typesOf(await run(other, portsOf({ ask })))).not.toContain('compacted');
});

test('a refused call is compacted and repeated until the model takes it, and what it takes is remembered', async () => {
  const state = stateWith(200);
  const { ask, calls, refusedCalls } = modelOf(3_000);
  const events = await run(state, portsOf({ ask }));
  expect(typesOf(events).at(-1)).toBe('responded');
  expect(refusedCalls.length).toBeGreaterThan(0);
  expect(calls.at(-1)!.purpose).toBeUndefined();
  expect(state.compaction).toMatchObject({ maxTokensOf: 'openai-compatible/small' });
  expect(state.compaction!.maxTokens).toBeLessThanOrEqual(11_000);

  // The next turn, with a result that would be too long again.
  const refused = refusedCalls.length;
  state.operations.splice(0, Number.POSITIVE_INFINITY, newModelCall(state.turn, 2, 1));
  state.transcript.push({
    turn: state.turn,
    position: 9,
    role: 'user',
    content: [{ type: 'text', text: 'b'.repeat(1024 * 1024) }],
  });
  expect(typesOf(await run(state, portsOf({ ask }))).at(-1)).toBe('responded');
  expect(refusedCalls.length - refused).toBeLessThanOrEqual(2);
});

test('a model that refuses everything fails the turn, after few calls', async () => {
  const { ask, refusedCalls } = modelOf(0);
  const events = await run(stateWith(20), portsOf({ ask }));
  expect(events.at(-1)).toMatchObject({ type: 'fail', error: { code: 'model_context_too_long' } });
  expect(refusedCalls.length).toBeLessThan(10);
});

test('a model that reads less writes its summary in several calls, each stored before the next', async () => {
  const compaction = { ...model, model: 'tiny', contextTokens: 2_000 };
  const state = stateWith(100, { compactAtTokens: 8_000 }, { model: { ...model, compaction } });
  const tiny = modelOf(2_000);
  const big = modelOf(1_000_000);
  const askModel: AskModel = (call, signal) => (call.config.model === 'tiny' ? tiny : big).ask(call, signal);
  const events = await run(state, portsOf(big, { askModel }));
  expect(tiny.refusedCalls).toEqual([]);
  expect(tiny.calls.length).toBeGreaterThan(2);
  const { length } = tiny.calls;
  expect(typesOf(events).slice(0, 2 * length)).toEqual(Array(length).fill(['compactionStarted', 'compacted']).flat());
  const places = events.flatMap((event) => (event.type === 'compacted' ? [event.compaction.from.turn] : []));
  expect(places).toEqual([...new Set(places)].toSorted((a, b) => a - b));
  expect(tiny.calls.slice(1).every(({ transcript }) => JSON.stringify(transcript).includes('They talked.'))).toBe(true);
});

test('a model that writes no summary leaves the messages out, and says so', async () => {
  for (const more of [{ summary: '' }, { isRefusing: true }]) {
    const state = stateWith(20, { compactAtTokens: 2_000 });
    const { ask, calls } = modelOf(2_000, more);
    await run(state, portsOf({ ask }));
    expect(state.compaction).toMatchObject({ summary: '' });
    expect(JSON.stringify(calls.at(-1)!.transcript[0])).toContain('left out');
  }
});

test('a summary that is longer than it was asked to be is cut', async () => {
  const state = stateWith(20, { compactAtTokens: 2_000 });
  const { ask, refusedCalls } = modelOf(2_000, { summary: 'word '.repeat(100_000) });
  expect(typesOf(await run(state, portsOf({ ask }))).at(-1)).toBe('responded');
  expect(refusedCalls).toEqual([]);
});

test('a budget that is used up ends the turn before the summary is written', async () => {
  const { ask, calls } = modelOf(2_000);
  const refusal: TurnPorts['refusal'] = async ({ kind }) => (kind === 'compaction' ? 'budgetReached' : undefined);
  const events = await run(stateWith(20, { compactAtTokens: 2_000 }), portsOf({ ask }, { refusal }));
  expect(events.at(-1)).toMatchObject({ type: 'end', end: { stopReason: 'budgetReached' } });
  expect(calls).toEqual([]);
});

test('after a crash, the compaction that was stored is the one that continues', async () => {
  const state = stateWith(20, { compactAtTokens: 2_000 });
  const stored = newCompaction(state.turn, 1, []);
  state.operations.push(stored);
  const events = await run(state, portsOf(modelOf(2_000)));
  expect(typesOf(events)).toEqual(['compacted', 'responding', 'text', 'responded']);
  expect(stored.status).toBe('succeeded');
});

test('a requested compaction is a turn of its own, and replaces everything but the first message', async () => {
  const state = stateWith(20);
  Object.assign(state, { turn: 21, transcript: state.transcript.slice(0, -1), operations: [newCompaction(21, 1, [])] });
  const { ask, calls } = modelOf(1_000_000);
  const events = await run(state, portsOf({ ask }));
  expect(typesOf(events)).toEqual(['compacted', 'end']);
  expect(calls).toHaveLength(1);
  expect(state.compaction).toMatchObject({ from: { turn: 21, position: 0 } });
  expect(state.transcript).toHaveLength(1);
});

test('an agent of workers leaves out its oldest messages without a summary, from 4 MiB on', async () => {
  const worker = { provider: 'worker' as const, queue: 'q' };
  const state = stateWith(5, {}, { model: worker });
  for (const entry of state.transcript.slice(2, -1)) entry.content = [{ type: 'text', text: 'a'.repeat(600_000) }];
  const types: string[] = [];
  for await (const { type } of runTurn(state, portsOf(modelOf(0)), new AbortController().signal)) {
    types.push(type);
    if (type === 'offer') break;
  }
  expect(types).toEqual(['compactionStarted', 'compacted', 'offer']);
  expect(state.compaction).toMatchObject({ summary: '' });
  expect(tokensOfAll(state.transcript)).toBeLessThan(1_000_000);
});
