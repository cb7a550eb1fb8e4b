import { isToolUIPart, readUIMessageStream, type UIMessage, type UIMessageChunk, uiMessageChunkSchema } from 'ai';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Chunk, Envelope } from '../types.generated.ts';
import type { SignalboxMetadata } from './turn-message.ts';
import { type TurnStreamOptions, toUIMessageChunks } from './turn-stream.ts';

// biome-ignore lint/suspicious/noExplicitAny: parts of chunks, which the tests complete.
type Some = { type: Chunk['type'] } & Record<string, any>;

const usage = { inputTokens: 1, outputTokens: 1, cachedTokens: 0, steps: 1, toolCalls: 0, costUsd: null };
const nothing = { operationIds: [], toolCallIds: [], sessionIds: [], expiresAt: null };
const running: Some = { type: 'session.status', status: 'running', waitingFor: null };
const completed: Some = { type: 'turn.completed', stopReason: 'endTurn', usage };
const idle: Some = { type: 'session.status', status: 'idle', waitingFor: null, stopReason: 'endTurn' };
const text = (delta: string): Some => ({ type: 'message.chunk', delta });
const step = (number: number): Some => ({ type: 'step.started', step: number, model: 'test/model' });
const call = (id: string, input: unknown = {}): Some => ({ type: 'tool.call', tool: 'refund', toolCallId: id, input });
const result = (id: string, output: unknown): Some => ({ type: 'tool.result', toolCallId: id, output });
const asked = (id: string, input: unknown = {}): Some => ({
  type: 'approval.requested',
  operationId: `op_${id}`,
  name: 'refund',
  input,
  toolCallId: id,
  expiresAt: null,
});
const resolved = (id: string, decision = 'approved', reason?: string): Some => ({
  type: 'approval.resolved',
  operationId: `op_${id}`,
  toolCallId: id,
  decision,
  ...(reason && { reason }),
});
const waiting = (waitingFor: { operationIds?: string[]; toolCallIds?: string[] }): Some => ({
  type: 'session.status',
  status: 'waiting',
  waitingFor: { ...nothing, type: 'several', ...waitingFor },
});

async function* envelopesOf(chunks: Some[], turn = 1): AsyncGenerator<Envelope> {
  for (const [index, chunk] of chunks.entries()) {
    const placed = { turn, seq: index + 1, ...chunk } as Chunk;
    yield {
      event: 'session.chunks',
      environment: 'production',
      sessionId: 'ses_1',
      agentId: 'agt_1',
      cursor: `turn_${placed.turn}:seq_${placed.seq}`,
      timestamp: '2026-01-01T00:00:00.000Z',
      chunks: [placed],
    };
  }
}

const schema = uiMessageChunkSchema();

/** The stream of the chunks, each validated by the schema of the AI SDK. */
async function streamOf(chunks: Some[], options?: TurnStreamOptions): Promise<UIMessageChunk[]> {
  const all: UIMessageChunk[] = [];
  for await (const chunk of toUIMessageChunks(envelopesOf(chunks), options)) {
    const validated = await schema.validate!(chunk);
    if (!validated.success) throw validated.error;
    all.push(structuredClone(chunk));
  }
  return all;
}

/** The message that the AI SDK reads from the stream. */
async function read(stream: UIMessageChunk[], message?: UIMessage): Promise<UIMessage> {
  let latest = message ?? ({ id: '', role: 'assistant', parts: [] } satisfies UIMessage);
  const source = new ReadableStream<UIMessageChunk>({
    start(controller) {
      for (const chunk of stream) if (chunk.type !== 'error') controller.enqueue(chunk);
      controller.close();
    },
  });
  const messages = readUIMessageStream({ stream: source, terminateOnError: true, ...(message && { message }) });
  for await (const next of messages) latest = next;
  return latest;
}

async function messageOf(chunks: Some[], options?: TurnStreamOptions): Promise<UIMessage<SignalboxMetadata>> {
  return (await read(await streamOf(chunks, options))) as UIMessage<SignalboxMetadata>;
}

const shown = ({ parts }: UIMessage) =>
  parts.map((part) => {
    if (part.type === 'text' || part.type === 'reasoning') return `${part.type}: ${part.text}`;
    if (part.type === 'source-url') return `${part.type} ${part.url}`;
    if (part.type === 'source-document') return `${part.type} ${part.title}`;
    return isToolUIPart(part) ? `${part.type} ${part.state}` : part.type;
  });

test('a turn with text, a tool and more text is one message with two steps', async () => {
  const message = await messageOf([
    running,
    step(1),
    text('Let me '),
    text('look.'),
    call('call_1', { order: '1042' }),
    result('call_1', { cents: 4900 }),
    step(2),
    text('Refunded.'),
    completed,
    idle,
  ]);
  expect(message.id).toBe('turn_1');
  expect(shown(message)).toEqual([
    'step-start',
    'text: Let me look.',
    'tool-refund output-available',
    'step-start',
    'text: Refunded.',
  ]);
  expect(message.parts.every((part) => part.type !== 'text' || part.state === 'done')).toBe(true);
  expect(message.parts[2]).toMatchObject({ toolCallId: 'call_1', input: { order: '1042' }, output: { cents: 4900 } });
  expect(message.metadata).toEqual({
    sessionId: 'ses_1',
    turn: 1,
    cursor: 'turn_1:seq_9',
    stopReason: 'endTurn',
    usage,
  });
});

test('reasoning and the input of a call are shown while the model writes them', async () => {
  const stream = await streamOf([
    step(1),
    { type: 'reasoning.chunk', delta: 'They want ' },
    { type: 'reasoning.chunk', delta: 'a refund.' },
    { type: 'tool.input.chunk', toolCallId: 'call_1', toolName: 'refund', delta: '{"order":' },
    { type: 'tool.input.chunk', toolCallId: 'call_1', toolName: 'refund', delta: '"1042"}' },
    call('call_1', { order: '1042' }),
    waiting({ toolCallIds: ['call_1'] }),
  ]);
  expect(stream.map(({ type }) => type)).toEqual([
    'start',
    'start-step',
    'reasoning-start',
    'reasoning-delta',
    'reasoning-delta',
    'reasoning-end',
    'tool-input-start',
    'tool-input-delta',
    'tool-input-delta',
    'tool-input-available',
    'tool-input-available',
    'finish-step',
    'finish',
  ]);
  expect(shown(await read(stream))).toEqual([
    'step-start',
    'reasoning: They want a refund.',
    'tool-refund input-available',
  ]);
});

test('only a call that the page has to run now is not executed by the provider', async () => {
  const stream = await streamOf([call('call_1'), call('call_2'), waiting({ toolCallIds: ['call_2'] })]);
  const inputs = stream.filter((chunk) => chunk.type === 'tool-input-available');
  expect(inputs.map(({ toolCallId, providerExecuted }) => [toolCallId, providerExecuted])).toEqual([
    ['call_1', true],
    ['call_2', true],
    ['call_2', false],
  ]);
});

test('what a provider ran is not for the page, and sources are source parts, also after a reset of what follows', async () => {
  const sources = [
    { url: 'https://example.com/', title: 'A' },
    { title: 'a.pdf', citedText: 'words' },
  ];
  const search = { type: 'tool.call', toolCallId: 'call_1', tool: 'web_search', input: {}, by: 'provider' } as const;
  const found = { type: 'tool.result', toolCallId: 'call_1', output: [], by: 'provider' } as const;
  const chunks = [step(1), text('Ada.'), { type: 'message.chunk', delta: '', sources } as const, search, found];
  const stream = await streamOf(chunks);
  expect(stream.filter((chunk) => 'providerExecuted' in chunk && !chunk.providerExecuted)).toEqual([]);
  expect(shown(await read(stream))).toEqual([
    'step-start',
    'text: Ada.',
    'source-url https://example.com/',
    'source-document a.pdf',
    'tool-web_search output-available',
  ]);
  const again = [
    step(1),
    text('Ada.'),
    chunks[2]!,
    step(2),
    text('Void'),
    { type: 'message.reset', fromSeq: 5 } as const,
  ];
  expect(shown(await read(await streamOf(again)))).toEqual([
    'step-start',
    'text: Ada.',
    'source-url https://example.com/',
    'source-document a.pdf',
  ]);
});

test('text that is void disappears, and what came before it in the step stays', async () => {
  const chunks = [
    step(1),
    text('Kept. '),
    step(2),
    text('Vo'),
    text('id.'),
    { type: 'message.reset', fromSeq: 3 } as const,
  ];
  expect(shown(await messageOf([...chunks, step(2), text('New.'), completed]))).toEqual([
    'step-start',
    'text: Kept. ',
    'text: New.',
  ]);
});

test('a reset voids reasoning and unfinished input, and keeps calls and their results', async () => {
  const message = await messageOf([
    call('call_1'),
    result('call_1', 1),
    step(2),
    { type: 'reasoning.chunk', delta: 'Hm.' },
    { type: 'tool.input.chunk', toolCallId: 'call_2', toolName: 'refund', delta: '{' },
    { type: 'message.reset', fromSeq: 1 },
    step(2),
    text('Done.'),
    completed,
  ]);
  expect(shown(message)).toEqual(['step-start', 'tool-refund output-available', 'step-start', 'text: Done.']);
});

test('an approval ends the stream, and the decision continues the same message', async () => {
  const before = [text('One moment.'), asked('call_1', { cents: 9900 }), waiting({ operationIds: ['op_call_1'] })];
  const paused = await messageOf(before);
  expect(shown(paused)).toEqual(['step-start', 'text: One moment.', 'tool-refund approval-requested']);
  expect(paused.parts[2]).toMatchObject({ approval: { id: 'op_call_1' }, input: { cents: 9900 } });

  const after = [
    resolved('call_1'),
    running,
    call('call_1', { cents: 4900 }),
    result('call_1', 'ok'),
    text('Done.'),
    completed,
  ];
  const options = {
    turn: 1,
    after: paused.metadata!.cursor,
    until: paused.metadata!.cursor,
    answered: new Set(['op_call_1']),
  };
  const message = await read(await streamOf([...before, ...after], options), paused);
  expect(message.id).toBe('turn_1');
  expect(shown(message)).toEqual([
    'step-start',
    'text: One moment.',
    'tool-refund output-available',
    'step-start',
    'text: Done.',
  ]);
  expect(message.parts[2]).toMatchObject({ input: { cents: 4900 }, output: 'ok', approval: { approved: true } });
});

test('a denied, an expired and a cancelled approval are denied outputs with the reason', async () => {
  const message = await messageOf([
    asked('call_1'),
    asked('call_2'),
    asked('call_3'),
    resolved('call_1', 'denied', 'Not after 30 days.'),
    { ...call('call_1'), notRun: true },
    { type: 'tool.result', toolCallId: 'call_1', notRun: true, error: 'The approver denied this call' },
    resolved('call_2', 'expired'),
    { type: 'tool.result', toolCallId: 'call_2', notRun: true, error: 'Nobody approved this call in time' },
    resolved('call_3', 'cancelled'),
    { type: 'tool.result', toolCallId: 'call_3', notRun: true, error: 'Cancelled' },
    { ...completed, stopReason: 'interrupted' },
  ]);
  expect(message.parts.slice(1)).toMatchObject([
    { state: 'output-denied', approval: { approved: false, reason: 'Not after 30 days.' } },
    { state: 'output-denied', approval: { approved: false, reason: 'expired' } },
    { state: 'output-denied', approval: { approved: false, reason: 'cancelled' } },
  ]);
});

test('a stream continues through what was awaited in the past and through answers that were given', async () => {
  const chunks = [
    call('call_1'),
    waiting({ toolCallIds: ['call_1'] }),
    result('call_1', 1),
    asked('call_2'),
    waiting({ operationIds: ['op_call_2'] }),
  ];
  expect((await messageOf(chunks)).metadata!.cursor).toBe('turn_1:seq_2');
  expect((await messageOf(chunks, { until: 'turn_1:seq_4' })).metadata!.cursor).toBe('turn_1:seq_5');
  const over = [...chunks, resolved('call_2'), completed];
  const options = { until: 'turn_1:seq_4', answered: new Set(['op_call_2']) };
  expect((await messageOf(over, options)).metadata!.cursor).toBe('turn_1:seq_7');
  expect((await messageOf(over, { until: 'turn_1:seq_4', decides: async () => false })).metadata!.cursor).toBe(
    'turn_1:seq_7',
  );
});

test('a turn that failed ends with an error, unless it was retried', async () => {
  const failed = { ...completed, stopReason: 'error', error: { code: 'model_error', message: 'The model failed.' } };
  const stream = await streamOf([text('Hm'), failed]);
  expect(stream.at(-1)).toEqual({ type: 'error', errorText: 'The model failed.' });
  const retried = [text('Hm'), failed, { ...idle, stopReason: 'error' }, running, text(' yes.'), completed];
  const message = await messageOf(retried, { until: 'turn_1:seq_4' });
  expect(message.metadata!.stopReason).toBe('endTurn');
});

test('only a turn that ended by itself may be continued without the user', async () => {
  for (const stopReason of ['maxSteps', 'budgetReached', 'interrupted', 'timedOut']) {
    const stream = await streamOf([text('a'), { ...completed, stopReason }]);
    expect(stream.at(-1)).toMatchObject({ type: 'finish', finishReason: 'interrupted' });
  }
  const cancelled = await streamOf([text('a'), { ...idle, status: 'cancelled' }]);
  expect(cancelled.at(-1)).toMatchObject({ type: 'finish', finishReason: 'interrupted' });
});

test('a stream has the chunks of one turn', async () => {
  const chunks = [{ ...text('old'), turn: 1, seq: 1 }, text('mine'), { ...text('next'), turn: 3, seq: 1 }].map(
    (chunk) => ({
      turn: 2,
      ...chunk,
    }),
  );
  expect(shown(await messageOf(chunks, { turn: 2 }))).toEqual(['step-start', 'text: mine']);
});

test('any sequence of chunks becomes a valid stream that the AI SDK reads without an error', async () => {
  const id = fc.constantFrom('call_1', 'call_2', 'call_3');
  const input = fc.constantFrom<unknown>({ a: 1 }, { a: 2 }, null, 'x');
  const operationIds = fc.subarray(['op_call_1', 'op_call_2', 'op_call_3']);
  const toolCallIds = fc.subarray(['call_1', 'call_2', 'call_3']);
  const chunk: fc.Arbitrary<Some> = fc.oneof(
    fc.constantFrom(text('a'), text(''), step(1), running, completed, idle),
    fc.constantFrom<Some>(
      { type: 'reasoning.chunk', delta: 'r' },
      { type: 'message.started', messageId: 'msg_1', step: 1 },
    ),
    fc.record({ type: fc.constant('message.reset' as const), fromSeq: fc.integer({ min: 1, max: 30 }) }),
    id.map((toolCallId): Some => ({ type: 'tool.input.chunk', toolCallId, toolName: 'refund', delta: '{' })),
    fc.tuple(id, input).map(([toolCallId, value]) => call(toolCallId, value)),
    fc.tuple(id, input).map(([toolCallId, value]) => asked(toolCallId, value)),
    fc
      .tuple(id, fc.constantFrom('approved', 'denied', 'expired', 'cancelled'))
      .map(([toolCallId, d]) => resolved(toolCallId, d)),
    fc.tuple(id, input).map(([toolCallId, output]) => result(toolCallId, output)),
    id.map(
      (toolCallId): Some => ({ type: 'tool.result', toolCallId, error: 'No.', tool: 'refund', input: 1, notRun: true }),
    ),
    id.map(
      (toolCallId): Some => ({
        type: 'file.created',
        toolCallId,
        file: { type: 'file', fileId: 'file_1', mediaType: 'image/png', bytes: 1 },
      }),
    ),
    fc.tuple(operationIds, toolCallIds).map(([ops, calls]) => waiting({ operationIds: ops, toolCallIds: calls })),
    fc.constant<Some>({ ...completed, stopReason: 'error', error: { code: 'x', message: 'y' } }),
    fc.constant({ type: 'something.new' } as unknown as Some),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(chunk, { maxLength: 30 }), fc.integer({ min: 0, max: 30 }), async (chunks, until) => {
      const message = await messageOf(chunks, { until: `turn_1:seq_${until}` });
      expect(new Set(message.parts.filter(isToolUIPart).map(({ toolCallId }) => toolCallId)).size).toBeLessThanOrEqual(
        3,
      );
    }),
    { numRuns: 1_000 },
  );
});
