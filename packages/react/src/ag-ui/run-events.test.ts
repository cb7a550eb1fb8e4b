import { AbstractAgent, type Event, EventType, type Message } from '@ag-ui/client';
import type { Chunk } from '@signalbox/client';
import * as fc from 'fast-check';
import { from } from 'rxjs';
import { expect, test } from 'vitest';
import { toMessages } from './messages.ts';
import { RunEvents } from './run-events.ts';

// biome-ignore lint/suspicious/noExplicitAny: parts of chunks, which the tests complete.
type Some = { type: Chunk['type'] } & Record<string, any>;

const usage = { inputTokens: 10, outputTokens: 5, cachedTokens: 2, steps: 1, toolCalls: 0, costUsd: null };
const completed: Some = { type: 'turn.completed', stopReason: 'endTurn', usage };
const running: Some = { type: 'session.status', status: 'running', waitingFor: null };
const text = (delta: string): Some => ({ type: 'message.chunk', delta });
const reasoning = (delta: string): Some => ({ type: 'reasoning.chunk', delta });
const step = (number: number): Some => ({ type: 'step.started', step: number, model: 'openai/gpt-5' });
const started = (messageId: string): Some => ({ type: 'message.started', messageId, step: 1 });
const call = (id: string, input: unknown = {}): Some => ({ type: 'tool.call', tool: 'refund', toolCallId: id, input });
const result = (id: string, output: unknown): Some => ({ type: 'tool.result', toolCallId: id, output });
const inputChunk = (id: string, delta: string): Some => ({
  type: 'tool.input.chunk',
  toolCallId: id,
  toolName: 'refund',
  delta,
});
const reset = (fromSeq: number): Some => ({ type: 'message.reset', fromSeq });
const asked = (id: string, input: unknown = {}): Some => ({
  type: 'approval.requested',
  operationId: `op_${id}`,
  name: 'refund',
  input,
  toolCallId: id,
  expiresAt: null,
});
const resolved = (id: string): Some => ({
  type: 'approval.resolved',
  operationId: `op_${id}`,
  toolCallId: id,
  decision: 'approved',
});
const waiting = (waitingFor: object): Some => ({
  type: 'session.status',
  status: 'waiting',
  waitingFor: { type: 'several', operationIds: [], toolCallIds: [], sessionIds: [], expiresAt: null, ...waitingFor },
});

const run = { threadId: 'ses_1', runId: 'run_1' };

/** The events of a run over the chunks; the client has those before `after`. */
function eventsOf(chunks: Some[], { messages = [], after = 0 }: { messages?: Message[]; after?: number } = {}) {
  const events = new RunEvents(messages);
  const all: Event[] = [{ type: EventType.RUN_STARTED, ...run }];
  for (const [index, chunk] of chunks.entries()) {
    all.push(...events.push({ turn: 1, seq: index + 1, ...chunk } as Chunk, { isReplay: index < after }));
  }
  all.push(...events.finish(run, { withUsage: after === 0 }));
  return { all, messages: events.messages };
}

/** Plays events to a client of AG-UI, which verifies them. */
class Player extends AbstractAgent {
  readonly #events: Event[];
  constructor(events: Event[], initialMessages: Message[]) {
    super({ initialMessages });
    this.#events = events;
  }
  override run() {
    return from(this.#events);
  }
}

async function play(events: Event[], messages: Message[] = []): Promise<AbstractAgent> {
  const player = new Player(events, messages);
  await player.runAgent();
  return player;
}

const types = (events: Event[]) => events.map(({ type }) => type);

test('a turn is a run with its steps, its text, its calls and their results', async () => {
  const chunks = [
    running,
    step(1),
    started('msg_1'),
    reasoning('Hm.'),
    text('Let me '),
    text('look.'),
    call('call_1', { order: '1042' }),
    result('call_1', { cents: 4900 }),
    step(2),
    started('msg_2'),
    text('Refunded.'),
    completed,
  ];
  const { all, messages } = eventsOf(chunks);
  expect(types(all)).toEqual([
    'RUN_STARTED',
    'STEP_STARTED',
    'REASONING_START',
    'REASONING_MESSAGE_START',
    'REASONING_MESSAGE_CONTENT',
    'REASONING_MESSAGE_END',
    'REASONING_END',
    'TEXT_MESSAGE_START',
    'TEXT_MESSAGE_CONTENT',
    'TEXT_MESSAGE_CONTENT',
    'TEXT_MESSAGE_END',
    'TOOL_CALL_START',
    'TOOL_CALL_ARGS',
    'TOOL_CALL_END',
    'TOOL_CALL_RESULT',
    'STEP_FINISHED',
    'STEP_STARTED',
    'TEXT_MESSAGE_START',
    'TEXT_MESSAGE_CONTENT',
    'TEXT_MESSAGE_END',
    'STEP_FINISHED',
    'RUN_FINISHED',
  ]);
  expect(all.at(-1)).toMatchObject({
    outcome: { type: 'success' },
    result: { stopReason: 'endTurn' },
    usage: [
      { provider: 'openai', model: 'gpt-5', inputTokens: 10, outputTokens: 5, totalTokens: 15, cachedInputTokens: 2 },
    ],
  });
  const player = await play(all);
  expect(player.messages).toEqual(messages);
  expect(player.messages.map(({ id, role }) => [role, id])).toEqual([
    ['reasoning', 'reasoning_1_4'],
    ['assistant', 'msg_1'],
    ['tool', 'result_call_1'],
    ['assistant', 'msg_2'],
  ]);
});

test('the input of a call is shown while the model writes it', async () => {
  const { all } = eventsOf([
    inputChunk('call_1', '{"a":'),
    inputChunk('call_1', '1}'),
    call('call_1', { a: 1 }),
    completed,
  ]);
  expect(types(all).slice(1, -1)).toEqual(['TOOL_CALL_START', 'TOOL_CALL_ARGS', 'TOOL_CALL_ARGS', 'TOOL_CALL_END']);
});

test('void text disappears from the messages of the client, and the rest stays', async () => {
  const chunks = [
    started('msg_1'),
    text('Kept.'),
    started('msg_2'),
    reasoning('No.'),
    text('Void'),
    inputChunk('call_1', '{}'),
    reset(3),
    started('msg_3'),
    text('New.'),
    completed,
  ];
  const player = await play(eventsOf(chunks).all);
  expect(player.messages).toEqual([
    { id: 'msg_1', role: 'assistant', content: 'Kept.' },
    { id: 'reasoning_1_4', role: 'reasoning', content: '' },
    { id: 'msg_3', role: 'assistant', content: 'New.' },
  ]);
});

test('text of an earlier run that is void disappears from the messages of the client', async () => {
  const before = [started('msg_1'), text('Kept. '), started('msg_2'), text('Void'), call('call_1')];
  const messages = (await play(eventsOf(before).all)).messages;
  const chunks = [...before, reset(3), started('msg_3'), text('New.'), completed];
  const player = await play(eventsOf(chunks, { messages, after: before.length }).all, messages);
  expect(player.messages.map(({ id, content }) => [id, content])).toEqual([
    ['msg_1', 'Kept. '],
    ['msg_2', ''],
    ['msg_3', 'New.'],
  ]);
});

test('an approval is an interrupt, and the next run continues with the input that the approver gave', async () => {
  const before = [started('msg_1'), asked('call_1', { cents: 9900 }), waiting({ operationIds: ['op_call_1'] })];
  const paused = await play(eventsOf(before).all);
  expect(paused.pendingInterrupts).toMatchObject([
    {
      id: 'op_call_1',
      reason: 'tool_call',
      toolCallId: 'call_1',
      metadata: { tool: 'refund', input: { cents: 9900 } },
    },
  ]);
  const chunks = [
    ...before,
    resolved('call_1'),
    running,
    call('call_1', { cents: 4900 }),
    result('call_1', 'ok'),
    completed,
  ];
  const { all, messages } = eventsOf(chunks, { messages: paused.messages, after: before.length });
  const player = await play(all, paused.messages);
  expect(player.pendingInterrupts).toEqual([]);
  expect(player.messages).toEqual(messages);
  expect(player.messages).toMatchObject([
    { id: 'msg_1', toolCalls: [{ id: 'call_1', function: { arguments: '{"cents":4900}' } }] },
    { role: 'tool', toolCallId: 'call_1', content: 'ok' },
  ]);
  expect(all.at(-1)).not.toHaveProperty('usage');
});

test('calls of client tools are left open, and their results are not repeated', async () => {
  const before = [call('call_1'), waiting({ toolCallIds: ['call_1'] })];
  const { all, messages } = eventsOf(before);
  expect(all.at(-1)).toMatchObject({ outcome: { type: 'success', pendingToolCallIds: ['call_1'] } });
  const answered: Message[] = [...messages, { id: 'own', role: 'tool', toolCallId: 'call_1', content: 'Dublin' }];
  const next = eventsOf([...before, result('call_1', 'Dublin'), completed], { messages: answered, after: 2 });
  expect(types(next.all)).toEqual(['RUN_STARTED', 'RUN_FINISHED']);
});

test.each([
  [{ stopReason: 'interrupted' }, { type: 'RUN_FINISHED', outcome: { type: 'cancelled' } }],
  [{ stopReason: 'maxSteps' }, { type: 'RUN_FINISHED', result: { stopReason: 'maxSteps' } }],
  [
    { stopReason: 'error', error: { code: 'model_error', message: 'No.' } },
    { type: 'RUN_ERROR', code: 'model_error', message: 'No.' },
  ],
])('the end %j of a turn is the end of the run', (end, event) => {
  expect(eventsOf([text('a'), { ...completed, ...end }]).all.at(-1)).toMatchObject(event);
});

test('any sequence of chunks becomes events that the client verifies, with the messages that the run keeps', async () => {
  const id = fc.constantFrom('call_1', 'call_2', 'call_3');
  const input = fc.constantFrom<unknown>({ a: 1 }, { a: 2 }, null, 'x');
  const chunk: fc.Arbitrary<Some> = fc.oneof(
    fc.constantFrom(text('ab'), text(''), reasoning('r'), step(1), step(2), running, completed),
    fc.constantFrom(started('msg_1'), started('msg_2'), { type: 'something.new' } as unknown as Some),
    fc.integer({ min: 1, max: 30 }).map(reset),
    fc.tuple(id, fc.constantFrom('{', '{}', '"a":1}')).map(([toolCallId, delta]) => inputChunk(toolCallId, delta)),
    fc.tuple(id, input).map(([toolCallId, value]) => call(toolCallId, value)),
    fc.tuple(id, input).map(([toolCallId, value]) => asked(toolCallId, value)),
    id.map(resolved),
    fc.tuple(id, input).map(([toolCallId, output]) => result(toolCallId, output)),
    id.map(
      (toolCallId): Some => ({ type: 'tool.result', toolCallId, error: 'No.', tool: 'refund', input: 1, notRun: true }),
    ),
    fc
      .tuple(fc.subarray(['op_call_1', 'op_call_2']), fc.subarray(['call_1', 'call_3']))
      .map(([operationIds, toolCallIds]) => waiting({ operationIds, toolCallIds })),
    fc.constant<Some>({ ...completed, stopReason: 'error', error: { code: 'x', message: 'y' } }),
    fc.constant<Some>({ ...text('next'), turn: 2 }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(chunk, { maxLength: 30 }), fc.integer({ min: 0, max: 20 }), async (chunks, after) => {
      const { all, messages } = eventsOf(chunks, { after });
      const player = new Player(all, []);
      await player.runAgent();
      if (after === 0) expect(player.messages).toEqual(messages);
    }),
    { numRuns: 1_000 },
  );
});

test('what a provider ran has its result at once, and what a text cites is an event of its own', () => {
  const sources = [{ url: 'https://example.com/', title: 'A' }];
  const chunks = [
    running,
    started('msg_1'),
    text('Ada won.'),
    { ...text(''), sources },
    { ...call('call_1', { query: 'who won' }), by: 'provider' },
    { ...result('call_1', ['found']), by: 'provider' },
    completed,
  ];
  const { all, messages } = eventsOf(chunks);
  const own = all.filter(({ type }) => type === EventType.CUSTOM);
  expect(own).toMatchObject([{ name: 'signalbox.message.sources', value: { messageId: 'msg_1', sources } }]);
  expect(messages).toMatchObject([
    { id: 'msg_1', role: 'assistant', content: 'Ada won.', toolCalls: [{ id: 'call_1' }] },
    { role: 'tool', toolCallId: 'call_1', content: '["found"]' },
  ]);
  const by = 'provider' as const;
  const createdAt = '2026-01-31T09:30:00.000Z';
  const stored = toMessages([
    {
      messageId: 'msg_1',
      role: 'assistant',
      turn: 1,
      createdAt,
      content: [
        { type: 'text', text: 'Ada won.', sources },
        { type: 'tool_call', toolCallId: 'call_1', tool: 'refund', input: { query: 'who won' }, by },
        { type: 'tool_result', toolCallId: 'call_1', output: ['found'], by },
      ],
    },
  ]);
  expect(stored).toEqual(messages);
});
