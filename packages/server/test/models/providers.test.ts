// Behavior and error formats that are specific to one provider.
import type { Model } from '@signalbox/contract';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { ModelCall, ModelEntry, ModelEvent, ModelFailure } from '../../src/models/model/model.ts';
import { createModels } from '../../src/models/models.ts';
import { anthropicMessages } from '../support/anthropic-wire.ts';
import { createTestPlatform, type TestPlatform } from '../support/platform.ts';
import { type ProviderServer, type Reply, raw, refuse, startProviderServer } from '../support/provider-server.ts';

let base: TestPlatform;
let server: ProviderServer;

beforeAll(async () => {
  base = await createTestPlatform();
});
afterAll(() => base.close());
beforeEach(async () => {
  server = await startProviderServer('/v1');
});
afterEach(() => server.close());

const user = (text: string): ModelEntry => ({ role: 'user', content: [{ type: 'text', text }] });
const frames = (...events: object[]) =>
  raw(events.map((event) => `event: ${'type' in event ? event.type : 'message'}\ndata: ${JSON.stringify(event)}\n\n`));

function callOf(provider: Model['provider'], model: string, more: Partial<ModelCall> = {}): ModelCall {
  return {
    organizationId: base.organizationId,
    sessionId: 'ses_1',
    environment: 'production',
    config: { provider, model, baseUrl: server.url },
    instructions: '',
    tools: [],
    limits: { maxOutputTokens: null },
    outputSchema: null,
    transcript: [user('Hi')],
    callsBefore: 0,
    ...more,
  };
}

async function outcomeAfter(reply: Reply, call: ModelCall) {
  server.next(reply);
  const events: ModelEvent[] = [];
  let failure: ModelFailure | undefined;
  try {
    for await (const event of createModels(base.platform)(call, new AbortController().signal)) events.push(event);
  } catch (error) {
    failure = error as ModelFailure;
  }
  const finish = events.find((event) => event.type === 'finish');
  const text = events.map((event) => (event.type === 'text' ? event.delta : '')).join('');
  return { text, calls: events.filter((event) => event.type === 'toolCall'), finish, failure };
}

/** The body of the next request, after a response with this content and data. */
async function nextRequestOf(call: ModelCall, content: ModelEntry['content'], providerData: unknown) {
  const results = content.flatMap((part) =>
    part.type === 'tool_call' ? [{ type: 'tool_result' as const, toolCallId: part.toolCallId, output: 1 }] : [],
  );
  const transcript: ModelEntry[] = [
    ...call.transcript,
    { role: 'assistant', content, providerData },
    { role: 'tool', content: results },
  ];
  await outcomeAfter(refuse(500), { ...call, transcript });
  return server.requests.at(-1)!.body;
}

describe('anthropic', () => {
  const call = () => callOf('anthropic', 'claude-sonnet-4-5');
  const start = { type: 'message_start', message: { id: 'm', usage: { input_tokens: 1, output_tokens: 1 } } };
  const block = (index: number, content_block: object, ...deltas: object[]) => [
    { type: 'content_block_start', index, content_block },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ];
  const end = (stop_reason: string) => [
    { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 9 } },
    { type: 'message_stop' },
  ];

  test('gets its thinking blocks back in their original order, including redacted ones', async () => {
    const { finish } = await outcomeAfter(
      frames(
        start,
        ...block(0, { type: 'thinking', thinking: '', signature: '' }, { type: 'signature_delta', signature: 'a' }),
        ...block(1, { type: 'text', text: '' }, { type: 'text_delta', text: 'First.' }),
        ...block(2, { type: 'redacted_thinking', data: 'sealed' }),
        ...block(3, { type: 'text', text: '' }, { type: 'text_delta', text: ' Then.' }),
        ...block(4, { type: 'tool_use', id: 't', name: 'look', input: {} }),
        ...end('tool_use'),
      ),
      call(),
    );
    const content: ModelEntry['content'] = [
      { type: 'text', text: 'First. Then.' },
      { type: 'tool_call', toolCallId: 'call_1', tool: 'look', input: {} },
    ];
    const { messages } = (await nextRequestOf(call(), content, finish?.providerData)) as {
      messages: { content: unknown }[];
    };
    expect(messages[1]?.content).toEqual([
      { type: 'thinking', thinking: '', signature: 'a' },
      { type: 'text', text: 'First.' },
      { type: 'redacted_thinking', data: 'sealed' },
      { type: 'text', text: ' Then.' },
      { type: 'tool_use', id: 'call_1', name: 'look', input: {} },
    ]);
  });

  const text = block(0, { type: 'text', text: '' }, { type: 'text_delta', text: 'Hi' });
  const news = { type: 'news_of_tomorrow', what: 1 };
  test.each<[title: string, events: object[]]>([
    ['an event that is not known', [start, news, ...text, news, ...end('end_turn')]],
    [
      'a delta that is not known',
      [start, ...block(0, { type: 'text', text: '' }, news, { type: 'text_delta', text: 'Hi' }), ...end('end_turn')],
    ],
    [
      'a block that is not known',
      [
        start,
        ...block(0, news, { type: 'text_delta', text: 'Not this' }),
        ...block(1, { type: 'text', text: '' }, { type: 'text_delta', text: 'Hi' }),
        ...end('end_turn'),
      ],
    ],
    [
      'a citation that is not known',
      [
        start,
        ...block(
          0,
          { type: 'text', text: '' },
          { type: 'citations_delta', citation: news },
          { type: 'text_delta', text: 'Hi' },
        ),
        ...end('end_turn'),
      ],
    ],
    [
      'no usage',
      [
        { type: 'message_start', message: { id: 'm' } },
        ...text,
        { type: 'message_delta', delta: { stop_reason: 'end_turn' } },
        { type: 'message_stop' },
      ],
    ],
    [
      'counts that are null or strings',
      [
        { type: 'message_start', message: { usage: { input_tokens: null, cache_read_input_tokens: '1' } } },
        ...text,
        ...end('end_turn'),
      ],
    ],
    ['a message without fields', [{ type: 'message_start' }, ...text, ...end('end_turn')]],
    ['its text at the beginning of its block', [start, ...block(0, { type: 'text', text: 'Hi' }), ...end('end_turn')]],
    [
      'no beginning of its block',
      [
        start,
        { type: 'content_block_delta', index: '0', delta: { type: 'text_delta', text: 'Hi' } },
        ...end('end_turn'),
      ],
    ],
    ['no last event, but the reason of its end', [start, ...text, ...end('end_turn').slice(0, 1)]],
    [
      'unknown details of its end',
      [
        start,
        ...text,
        {
          type: 'message_delta',
          delta: { stop_reason: 'end_turn', stop_details: 7, container: 'x' },
          usage: { output_tokens: '9', iterations: 'x' },
          context_management: 1,
        },
        { type: 'message_stop' },
      ],
    ],
  ])('may send %s', async (_title, events) => {
    const { text, finish, failure } = await outcomeAfter(frames(...events), call());
    expect({ text, finish, failure }).toMatchObject({ text: 'Hi', finish: { reason: 'endTurn' }, failure: undefined });
  });

  test.each<[title: string, block: object[]]>([
    ['at the beginning of its block', block(0, { type: 'tool_use', id: 7, name: 'look', input: { q: 1 } })],
    [
      'in both places',
      block(
        0,
        { type: 'tool_use', id: 't', name: 'look', input: { q: 1 } },
        { type: 'input_json_delta', partial_json: '{"q":1}' },
      ),
    ],
    [
      'as an object',
      block(0, { type: 'tool_use', id: 't', name: 'look' }, { type: 'input_json_delta', partial_json: { q: 1 } }),
    ],
    [
      'with a caller that is not known',
      block(
        0,
        { type: 'tool_use', id: 't', name: 'look', caller: news },
        { type: 'input_json_delta', partial_json: '{"q":1}' },
      ),
    ],
  ])('may send the input of a call %s', async (_title, events) => {
    const { calls } = await outcomeAfter(frames(start, ...events, ...end('tool_use')), call());
    expect(calls).toEqual([{ type: 'toolCall', name: 'look', input: { q: 1 } }]);
  });

  test('without structured output responds with a tool’s input, which becomes the text', async () => {
    const outputSchema = { type: 'object', properties: { total: { type: 'number' } } };
    const call = callOf('anthropic', 'claude-3-5-haiku-20241022', { outputSchema });
    const reply = anthropicMessages.respond({ parts: [{ text: ['Sure: '] }, { call: 'json', input: { total: 7 } }] });
    expect(await outcomeAfter(reply, call)).toMatchObject({
      text: '{"total":7}',
      calls: [],
      finish: { reason: 'endTurn' },
    });
  });

  test('gets tools with only the fields that every server of its format supports', async () => {
    const tools = [{ name: 'look', description: 'Looks', inputSchema: {} }];
    await outcomeAfter(refuse(500), { ...call(), tools });
    expect(server.requests[0]!.body.tools).toEqual([
      { name: 'look', description: 'Looks', input_schema: { type: 'object', properties: {} } },
    ]);
  });

  test.each([
    ['stop_sequence', 'endTurn'],
    ['max_tokens', 'maxOutputTokens'],
    ['model_context_window_exceeded', 'maxOutputTokens'],
    ['refusal', 'refusal'],
  ])('that stops with %s has the reason %s', async (reason, expected) => {
    const text = block(0, { type: 'text', text: '' }, { type: 'text_delta', text: 'Hi' });
    expect((await outcomeAfter(frames(start, ...text, ...end(reason)), call())).finish).toMatchObject({
      reason: expected,
    });
  });

  test('with an exhausted balance is rejected, and not retried', async () => {
    const error = { type: 'billing_error', message: 'x' };
    const { failure } = await outcomeAfter(frames(start, { type: 'error', error }), call());
    expect(failure).toMatchObject({ code: 'model_rejected', retryable: false });
  });
});

describe('openai', () => {
  const call = () => callOf('openai', 'gpt-5');
  const created = { type: 'response.created', response: { id: 'r', created_at: 1, model: 'gpt-5' } };

  test('with an exhausted balance says so in its stream, and is not retried', async () => {
    const error = { code: 'insufficient_quota', message: 'x' };
    const reply = frames(created, {
      type: 'response.failed',
      sequence_number: 1,
      response: { error, incomplete_details: null },
    });
    expect((await outcomeAfter(reply, call())).failure).toMatchObject({ code: 'model_rate_limited', retryable: false });
  });

  test.each([
    ['as documented', { code: 'rate_limit_exceeded', message: 'x', param: null }],
    ['as observed', { error: { type: 'tokens', code: 'rate_limit_exceeded', message: 'x', param: null } }],
  ])('reports a rate limit in its stream, %s', async (_title, more) => {
    const reply = frames(created, { type: 'error', sequence_number: 1, ...more });
    expect((await outcomeAfter(reply, call())).failure).toMatchObject({ code: 'model_rate_limited', retryable: true });
  });

  test('reports an error without a code in its stream', async () => {
    const error = { type: 'server_error', code: null, message: 'x', param: null };
    const { failure } = await outcomeAfter(frames(created, { type: 'error', error, sequence_number: 1 }), call());
    expect(failure).toMatchObject({ code: 'model_unavailable', retryable: true });
  });

  test('refuses if its filter stops the response', async () => {
    const response = { incomplete_details: { reason: 'content_filter' }, usage: { input_tokens: 4, output_tokens: 1 } };
    expect(await outcomeAfter(frames(created, { type: 'response.incomplete', response }), call())).toMatchObject({
      finish: { reason: 'refusal', usage: { inputTokens: 4, outputTokens: 1 } },
    });
  });

  test('fails if its server uses the chat completions format', async () => {
    const chunk = { id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content: 'Hi' } }] };
    expect((await outcomeAfter(frames(chunk), call())).failure).toMatchObject({ code: 'model_protocol' });
  });

  const said = [
    { type: 'response.output_item.added', output_index: 0, item: { type: 'message', id: 'm' } },
    { type: 'response.output_text.delta', output_index: 0, item_id: 'm', delta: 'Hi' },
    { type: 'response.output_item.done', output_index: 0, item: { type: 'message', id: 'm' } },
  ];
  const done = { type: 'response.completed', response: { usage: { input_tokens: 1, output_tokens: 1 } } };
  test.each<[title: string, events: object[]]>([
    ['an event that is not known', [created, { type: 'response.news_of_tomorrow', what: 1 }, ...said, done]],
    [
      'an item that is not known',
      [created, { type: 'response.output_item.added', output_index: 1, item: { type: 'news' } }, ...said, done],
    ],
    ['a beginning without fields', [{ type: 'response.created' }, { type: 'response.in_progress' }, ...said, done]],
    [
      'counts that are strings, and a tier that is an object',
      [
        created,
        ...said,
        {
          type: 'response.completed',
          response: { usage: { input_tokens: '1', output_tokens: null }, service_tier: {} },
        },
      ],
    ],
    ['probabilities in another form', [created, said[0]!, { ...said[1]!, logprobs: 'many' }, said[2]!, done]],
    [
      'an item without an id',
      [
        created,
        { type: 'response.output_item.added', output_index: '0', item: { type: 'message' } },
        { type: 'response.output_text.delta', delta: 'Hi' },
        done,
      ],
    ],
  ])('may send %s', async (_title, events) => {
    const { text, finish, failure } = await outcomeAfter(frames(...events), call());
    expect({ text, finish, failure }).toMatchObject({ text: 'Hi', finish: { reason: 'endTurn' }, failure: undefined });
  });

  test('without reasoning is not asked for encrypted reasoning', async () => {
    await outcomeAfter(refuse(500), callOf('openai', 'gpt-4o'));
    expect(server.requests[0]!.body).toMatchObject({ store: false });
    expect(server.requests[0]!.body).not.toHaveProperty('include');
  });
});

describe('google', () => {
  const call = () => callOf('google', 'gemini-3-pro-preview');
  const parts = (...given: object[]) => ({ candidates: [{ content: { role: 'model', parts: given }, index: 0 }] });
  const finished = (finishReason: string) => ({ candidates: [{ finishReason, index: 0 }] });

  test('reports in the body how long to wait', async () => {
    const details = [
      { '@type': 'type.googleapis.com/google.rpc.QuotaFailure' },
      { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '34.5s' },
    ];
    const body = { error: { code: 429, message: 'x', status: 'RESOURCE_EXHAUSTED', details } };
    const { failure } = await outcomeAfter(refuse(429, { body }), call());
    expect(failure).toMatchObject({ code: 'model_rate_limited', retryable: true, retryAfterMs: 34_500 });
    expect(failure?.message).toBe('The model’s provider responded with HTTP 429 (RESOURCE_EXHAUSTED)');
  });

  test.each<[title: string, events: object[]]>([
    ['a part that is not known', [parts({ brandNew: 1 }, { text: 'Hi' }), finished('STOP')]],
    ['a part alone instead of a list', [{ candidates: [{ content: { parts: { text: 'Hi' } } }] }, finished('STOP')]],
    [
      'counts that are strings, with details that are not known',
      [
        parts({ text: 'Hi' }),
        { ...finished('STOP'), usageMetadata: { promptTokenCount: '4', promptTokensDetails: [{ modality: 7 }] } },
      ],
    ],
    [
      'ratings and sources in another form',
      [
        {
          candidates: [
            { content: { parts: [{ text: 'Hi' }] }, safetyRatings: 'fine', groundingMetadata: { groundingChunks: 7 } },
          ],
        },
        finished('STOP'),
      ],
    ],
    [
      'an id that is a number, and candidates that are null',
      [{ responseId: 7, candidates: null }, parts({ text: 'Hi', thought: 'no' }), finished('STOP')],
    ],
  ])('may send %s', async (_title, events) => {
    const { text, finish, failure } = await outcomeAfter(frames(...events), call());
    expect({ text, finish, failure }).toMatchObject({ text: 'Hi', finish: { reason: 'endTurn' }, failure: undefined });
  });

  test('that ends normally with nothing is called once more, and both count', async () => {
    const usageMetadata = { promptTokenCount: 4, candidatesTokenCount: 0 };
    const nothing = frames({ ...finished('STOP'), usageMetadata });
    server.next(nothing);
    expect(
      await outcomeAfter(frames(parts({ text: 'Hi' }), { ...finished('STOP'), usageMetadata }), call()),
    ).toMatchObject({
      text: 'Hi',
      finish: { reason: 'endTurn', usage: { inputTokens: 8 } },
    });
    server.next(nothing);
    expect((await outcomeAfter(nothing, call())).failure).toMatchObject({
      code: 'model_protocol',
      message: 'The model responded with nothing, twice',
      retryable: false,
      usage: { inputTokens: 8 },
    });
    expect(server.requests).toHaveLength(4);
    // Nothing is a summary of nothing.
    expect(await outcomeAfter(nothing, { ...call(), purpose: 'summary' })).toMatchObject({
      finish: { reason: 'endTurn' },
    });
  });

  test('says so if it responds with an image, which is not kept', async () => {
    const image = { inlineData: { mimeType: 'image/png', data: 'AAAA' } };
    const { text } = await outcomeAfter(frames(parts({ text: 'Here:' }, image), finished('STOP')), call());
    expect(text).toBe('Here:\n[The model responded with a file (image/png), which is not kept.]\n');
  });

  test('keeps numbers of a call that are longer than a double', async () => {
    const call1 =
      '{"candidates":[{"content":{"parts":[{"functionCall":{"id":1,"name":"look","args":{"n":12345678901234567890}}}]},"finishReason":"STOP"}]}';
    const { calls } = await outcomeAfter(raw([`data: ${call1}\n\n`]), call());
    expect(calls).toEqual([{ type: 'toolCall', name: 'look', input: { n: '12345678901234567890' } }]);
  });

  test('refuses if it blocks the prompt', async () => {
    const blocked = { promptFeedback: { blockReason: 'PROHIBITED_CONTENT' }, usageMetadata: { promptTokenCount: 4 } };
    expect(await outcomeAfter(frames(blocked), call())).toMatchObject({
      text: '',
      finish: { reason: 'refusal', usage: { inputTokens: 4, outputTokens: 0, cachedTokens: 0 } },
    });
  });

  test.each(['SAFETY', 'RECITATION', 'LANGUAGE', 'BLOCKLIST', 'PROHIBITED_CONTENT', 'SPII'])(
    'refuses if it ends with %s',
    async (reason) => {
      const reply = frames(parts({ text: 'Let me' }), finished(reason));
      expect(await outcomeAfter(reply, call())).toMatchObject({ finish: { reason: 'refusal' }, failure: undefined });
    },
  );

  test.each([
    'MALFORMED_FUNCTION_CALL',
    'UNEXPECTED_TOOL_CALL',
    'TOO_MANY_TOOL_CALLS',
    'MALFORMED_RESPONSE',
    'MISSING_THOUGHT_SIGNATURE',
    'OTHER',
  ])('that ends with %s is retried', async (reason) => {
    const reply = frames(parts({ text: 'Let me' }), finished(reason));
    expect((await outcomeAfter(reply, call())).failure).toMatchObject({ code: 'model_unavailable', retryable: true });
  });

  test('gets back a signature that arrived without text', async () => {
    const reply = frames(parts({ text: 'Hi' }), parts({ text: '', thoughtSignature: 'late' }), finished('STOP'));
    const { finish } = await outcomeAfter(reply, call());
    const { contents } = (await nextRequestOf(call(), [{ type: 'text', text: 'Hi' }], finish?.providerData)) as {
      contents: object[];
    };
    expect(contents[1]).toEqual({ role: 'model', parts: [{ text: 'Hi', thoughtSignature: 'late' }] });
  });

  test.each(['../../v1/files?x=', 'a/b/c', 'gemini:batchGenerateContent#', '..', ''])(
    'has no model named %j: no request is sent',
    async (model) => {
      const { failure } = await outcomeAfter(refuse(500), callOf('google', model));
      expect(failure).toMatchObject({ code: 'model_rejected', retryable: false });
      expect(server.requests).toEqual([]);
    },
  );

  test('accepts models with a path', async () => {
    await outcomeAfter(refuse(500), callOf('google', 'tunedModels/mine-1'));
    expect(server.requests[0]!.path).toBe('/v1/tunedModels/mine-1:streamGenerateContent?alt=sse');
  });
});

test('a node does not call the model of a worker’s agent', () => {
  expect(() => createModels(base.platform)(callOf('worker', ''), new AbortController().signal)).toThrow(TypeError);
});
