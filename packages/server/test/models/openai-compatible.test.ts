// Edge cases of what all providers share, with the simplest format. What each provider must do is in conformance.test.ts.
import { once } from 'node:events';
import { inspect } from 'node:util';
import type { Model, Tool } from '@signalbox/contract';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { setSecret } from '../../src/environments/secrets.ts';
import {
  type ModelCall,
  type ModelEvent,
  ModelFailure,
  PROVIDER_DATA_MAX_CHARACTERS,
} from '../../src/models/model/model.ts';
import { createModels } from '../../src/models/models.ts';
import { createManualClock, type ManualClock } from '../support/manual-clock.ts';
import { type OpenAiServer, type Reply, raw, refuse, respond, startOpenAiServer } from '../support/openai-server.ts';
import { createTestPlatform, type TestPlatform } from '../support/platform.ts';

const KEY = 'sk-test-4711';
const PROMPT = 'a prompt that nobody else may read';

let base: TestPlatform;
let server: OpenAiServer;
let clock: ManualClock;

beforeAll(async () => {
  base = await createTestPlatform();
});
afterAll(() => base.close());

beforeEach(async () => {
  clock = createManualClock();
  server = await startOpenAiServer();
});
afterEach(() => server.close());

const ask = (call: ModelCall, signal: AbortSignal = new AbortController().signal) =>
  createModels({ ...base.platform, clock })(call, signal);

function callOf(more: Partial<ModelCall> = {}, config: Partial<Model> = {}): ModelCall {
  return {
    organizationId: base.organizationId,
    sessionId: 'ses_1',
    environment: 'production',
    config: { provider: 'openai-compatible', model: 'small', baseUrl: server.url, ...config },
    instructions: 'Be brief.',
    tools: [],
    limits: { maxOutputTokens: null },
    outputSchema: null,
    transcript: [{ role: 'user', content: [{ type: 'text', text: PROMPT }] }],
    callsBefore: 0,
    ...more,
  };
}

/** All events of a call, and how it ended. */
async function outcomeOf(call: ModelCall) {
  const events: ModelEvent[] = [];
  let failure: ModelFailure | undefined;
  try {
    for await (const event of ask(call)) events.push(event);
  } catch (error) {
    expect(error).toBeInstanceOf(ModelFailure);
    failure = error as ModelFailure;
  }
  return {
    text: events.map((event) => (event.type === 'text' ? event.delta : '')).join(''),
    calls: events.flatMap((event) => (event.type === 'toolCall' ? [[event.name, event.input]] : [])),
    finish: events.find((event) => event.type === 'finish'),
    failure,
  };
}

async function outcomeAfter(reply: Reply, call = callOf()) {
  server.next(reply);
  return await outcomeOf(call);
}

const setKey = (allowedHosts: string[], name = 'MODEL_KEY', value = KEY) =>
  setSecret(base.ctx, { env: 'production', name, value, allowedHosts });

describe('a response', () => {
  test('is streamed, with its usage', async () => {
    const reply = respond({ text: ['Hel', 'lo ', '😀'], usage: { prompt: 12, completion: 3, cached: 8 } });
    expect(await outcomeAfter(reply)).toEqual({
      text: 'Hello 😀',
      calls: [],
      finish: { type: 'finish', reason: 'endTurn', usage: { inputTokens: 12, outputTokens: 3, cachedTokens: 8 } },
      failure: undefined,
    });
  });

  test('is streamed in deltas before the server has finished', async () => {
    server.next(respond({ text: 'first', end: 'hang' }));
    const events = ask(callOf());
    expect((await events.next()).value).toEqual({ type: 'text', delta: 'first' });
    await events.return(undefined);
  });

  test('counts no tokens if the server reports none, or impossible numbers', async () => {
    const none = { inputTokens: 0, outputTokens: 0, cachedTokens: 0 };
    expect((await outcomeAfter(respond({ text: 'x', usage: null }))).finish).toMatchObject({ usage: none });
    const nonsense = respond({ text: 'x', usage: { prompt: -1, completion: 1e300, cached: 0.5 } });
    expect((await outcomeAfter(nonsense)).finish).toMatchObject({ usage: none });
  });

  test('with more reasoning than is kept has none of it', async () => {
    const thought = 'x'.repeat(PROVIDER_DATA_MAX_CHARACTERS / 2);
    const dataAfter = async (reasoning: string[]) => {
      const { finish } = await outcomeAfter(respond({ reasoning, text: 'Yes' }));
      return finish?.type === 'finish' && finish.providerData;
    };
    expect(await dataAfter([thought])).toBeDefined();
    expect(await dataAfter([thought, thought])).toBeUndefined();
  });

  test('does not contain the model’s reasoning', async () => {
    expect((await outcomeAfter(respond({ reasoning: ['hm', 'm'], text: 'Yes' }))).text).toBe('Yes');
  });

  test.each([
    ['stop', 'endTurn'],
    ['length', 'maxOutputTokens'],
    ['content_filter', 'refusal'],
    ['SAFETY', 'refusal'],
    ['model_length', 'maxOutputTokens'],
    ['eos', 'endTurn'],
  ])('that ends with %s ends with %s', async (finishReason, reason) => {
    expect((await outcomeAfter(respond({ text: 'x', finishReason }))).finish).toMatchObject({ reason });
  });

  test('with a refusal has the reason refusal, whatever its finish reason', async () => {
    expect(await outcomeAfter(respond({ refusal: ['I can', 'not.'], finishReason: 'stop' }))).toMatchObject({
      text: 'I cannot.',
      finish: { reason: 'refusal' },
    });
  });

  test('is correct if its characters are split on the wire', async () => {
    const event = (content: string) => ({ choices: [{ delta: { content }, finish_reason: null }] });
    const bytes = Buffer.from(
      `data: ${JSON.stringify(event('😀'))}\n\ndata: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n`,
    );
    const at = bytes.indexOf(Buffer.from('😀')) + 2;
    expect((await outcomeAfter(raw([bytes.subarray(0, at), bytes.subarray(at)]))).text).toBe('😀');
  });
});

describe('what another server sends', () => {
  const data = (event: unknown) => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`;
  const choice = (delta: unknown, more: object = {}) => ({ choices: [{ delta, finish_reason: null, ...more }] });
  const hello = choice({ content: 'Hello' });
  const end = choice({}, { finish_reason: 'stop' });
  const counts = { prompt_tokens: 10, completion_tokens: 3 };
  const call = (more: object) =>
    choice({ tool_calls: [{ index: 0, id: 'a', function: { name: 'look', arguments: '{"q":1}' }, ...more }] });

  test.each<[title: string, events: unknown[]]>([
    ['an id that is a number', [{ ...hello, id: 5 }, end]],
    ['an error that is null', [{ ...hello, error: null }, end]],
    ['a time that is a date', [{ ...hello, created: '2026-01-01' }, end]],
    ['a model that is an object', [{ ...hello, model: { id: 'm' } }, end]],
    ['another role', [choice({ role: 'model', content: 'Hello' }), end]],
    ['counts that are strings', [hello, end, { choices: [], usage: { prompt_tokens: '10', completion_tokens: '3' } }]],
    ['counts without choices', [hello, end, { usage: counts }]],
    ['counts with choices that are null', [hello, end, { choices: null, usage: counts }]],
    ['counts in the choice', [hello, choice({}, { finish_reason: 'stop', usage: counts })]],
    ['counts that are words', [hello, end, { choices: [], usage: 'many' }]],
    ['details of counts that are a number', [hello, end, { usage: { ...counts, prompt_tokens_details: 0 } }]],
    ['reasoning that is an object', [choice({ reasoning: { content: 'hm' } }), hello, end]],
    ['reasoning in a list', [choice({ reasoning_content: [{ type: 'text', text: 'hm' }] }), hello, end]],
    ['a finish reason that is a number', [hello, choice({}, { finish_reason: 1 })]],
    ['an empty finish reason before the last', [choice({ content: 'Hello' }, { finish_reason: '' }), end]],
    ['a text in parts', [choice({ content: [{ type: 'text', text: 'Hel' }, 'lo'] }), end]],
    ['a text that is an object', [choice({ content: { text: 'Hello' } }), end]],
    [
      'calls that are null, and a call without a function',
      [choice({ content: 'Hello', tool_calls: null }), choice({ tool_calls: [{ index: 0, function: null }] }), end],
    ],
    ['words between the events', ['ping', hello, 'keep-alive', end]],
    ['a last event without an empty line', [hello, end, '[DONE]']],
    ['no finish reason before [DONE]', [hello, '[DONE]']],
    ['events in a list', [[hello, end]]],
    [
      'a whole response as its only event',
      [{ choices: [{ message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }] }],
    ],
  ])('is read with %s', async (_title, events) => {
    const { text, failure, finish } = await outcomeAfter(raw([events.map(data).join('').trimEnd()]));
    expect({ text, failure, finish }).toMatchObject({
      text: 'Hello',
      failure: undefined,
      finish: { reason: 'endTurn' },
    });
  });

  test('has its counts, wherever they are', async () => {
    const last = choice({}, { finish_reason: 'stop', usage: { ...counts, prompt_tokens: '10', cached_tokens: 4 } });
    const { finish } = await outcomeAfter(raw([hello, last].map(data)));
    expect(finish).toMatchObject({ usage: { inputTokens: 10, outputTokens: 3, cachedTokens: 4 } });
  });

  test.each<[title: string, event: unknown]>([
    ['an id that is a number', call({ id: 123 })],
    ['an id of 450 characters', call({ id: `x|${'y:'.repeat(224)}` })],
    ['no id', call({ id: null })],
    ['arguments that are an object', call({ function: { name: 'look', arguments: { q: 1 } } })],
    ['a position that is a string', call({ index: '0' })],
    ['no position', call({ index: undefined })],
    ['an extra that is a word', call({ extra_content: 'x' })],
    ['its parts outside of the function', choice({ tool_calls: [{ name: 'look', arguments: '{"q":1}' }] })],
    ['the form of one call', choice({ function_call: { name: 'look', arguments: '{"q":1}' } })],
    [
      'the call alone instead of a list',
      choice({ tool_calls: { id: 'a', function: { name: 'look', arguments: '{"q":1}' } } }),
    ],
  ])('is a call with %s', async (_title, event) => {
    const { calls, failure } = await outcomeAfter(raw([event, '[DONE]'].map(data)));
    expect({ calls, failure }).toEqual({ calls: [['look', { q: 1 }]], failure: undefined });
  });

  test('has the thoughts in its text as reasoning', async () => {
    const pieces = ['<th', 'ink>hm', '</thi', 'nk>\n', 'Hel', 'lo <think>'].map((content) => choice({ content }));
    server.next(raw([...pieces, end].map(data)));
    const events: ModelEvent[] = [];
    for await (const event of ask(callOf({ shows: { reasoning: true } }))) events.push(event);
    const shown = (type: 'text' | 'reasoning') =>
      events.map((event) => (event.type === type ? event.delta : '')).join('');
    expect([shown('text'), shown('reasoning')]).toEqual(['Hello <think>', 'hm']);
  });

  test.each(['functions.look', 'look<|channel|>commentary'])('is a call of a tool named %s', async (name) => {
    const tool: Tool = { type: 'client', name: 'look', description: 'Looks', inputSchema: {} };
    const reply = raw([call({ function: { name, arguments: '{}' } }), end].map(data));
    expect((await outcomeAfter(reply, callOf({ tools: [tool] }))).calls).toEqual([['look', {}]]);
  });

  test('is several calls without positions, or all with the first one', async () => {
    for (const index of [undefined, 0]) {
      const calls = [1, 2].map((q) => ({ index, id: `id${q}`, function: { name: 'look', arguments: `{"q":${q}}` } }));
      const { calls: read } = await outcomeAfter(raw([choice({ tool_calls: calls }), end].map(data)));
      expect(read).toEqual([
        ['look', { q: 1 }],
        ['look', { q: 2 }],
      ]);
    }
  });
});

describe('tool calls', () => {
  test('that arrive in interleaved pieces are complete and in order', async () => {
    const toolCalls = [
      { name: 'refund', arguments: { order: 'A-1', cents: 1250, note: 'ü"' } },
      { name: 'notify', arguments: { who: ['a', 'b'] } },
    ];
    const outcome = await outcomeAfter(respond({ text: 'One moment', toolCalls }));
    expect(outcome).toMatchObject({ text: 'One moment', finish: { reason: 'toolCalls' } });
    expect(outcome.calls).toEqual(toolCalls.map((call) => [call.name, call.arguments]));
  });

  test('count if the server reports "stop" after them', async () => {
    const reply = respond({ toolCalls: [{ name: 'a', arguments: {} }], finishReason: 'stop' });
    expect((await outcomeAfter(reply)).finish).toMatchObject({ reason: 'toolCalls' });
  });

  test.each([
    ['without arguments have an empty object as input', '', {}],
    ['whose arguments are null have an empty object as input', 'null', {}],
    ['whose arguments are an empty list have an empty object as input', '[]', {}],
    ['whose arguments are the JSON of JSON have that', '"{\\"a\\":1}"', { a: 1 }],
    ['whose arguments are not JSON keep their text', '{"a": tru', '{"a": tru'],
    ['whose arguments are nested too deeply keep their text', '['.repeat(5000) + ']'.repeat(5000), expect.any(String)],
  ])('%s', async (_title, text, input) => {
    const reply = respond({ toolCalls: [{ name: 'a', arguments: text }], finishReason: 'tool_calls' });
    expect((await outcomeAfter(reply)).calls).toEqual([['a', input]]);
  });

  test('are dropped if the stream breaks off after them', async () => {
    const reply = respond({ toolCalls: [{ name: 'a', arguments: { n: 1 } }], end: 'cut' });
    expect(await outcomeAfter(reply)).toMatchObject({ calls: [], failure: { code: 'model_unavailable' } });
  });

  test('are limited to 100', async () => {
    const callsOf = (count: number) =>
      respond({ toolCalls: Array.from({ length: count }, () => ({ name: 'look', arguments: {} })) });
    expect((await outcomeAfter(callsOf(100))).calls).toHaveLength(100);
    expect(await outcomeAfter(callsOf(101))).toMatchObject({ calls: [], failure: { code: 'model_protocol' } });
  });

  test('that never end are aborted', async () => {
    const piece = JSON.stringify({
      choices: [{ delta: { tool_calls: [{ index: 0, function: { arguments: 'x'.repeat(300_000) } }] } }],
    });
    const first =
      '{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"a","arguments":""}}]}}]}';
    const reply = raw(
      [first, piece, piece, piece, piece].map((event) => `data: ${event}\n\n`),
      { hang: true },
    );
    expect(await outcomeAfter(reply)).toMatchObject({ calls: [], failure: { code: 'model_protocol' } });
    expect(await server.requests[0]!.closed).toBe(false);
  });
});

describe('the request', () => {
  test('contains the whole transcript', async () => {
    const id = (n: number) => `call_0000000000000000000000000${n}`;
    await outcomeAfter(
      respond({ text: 'ok' }),
      callOf({
        transcript: [
          { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
          {
            role: 'assistant',
            content: [
              { type: 'text', text: 'Looking' },
              { type: 'tool_call', toolCallId: id(1), tool: 'look', input: { q: 1 } },
              { type: 'tool_call', toolCallId: id(2), tool: 'refund', input: 'not JSON' },
              { type: 'tool_call', toolCallId: id(3), tool: 'refund', input: {} },
            ],
          },
          {
            role: 'tool',
            content: [
              { type: 'tool_result', toolCallId: id(1), output: { found: true } },
              { type: 'tool_result', toolCallId: id(2), error: 'Denied: too much' },
              { type: 'tool_result', toolCallId: id(3), output: 'done' },
            ],
          },
          { role: 'assistant', content: [] },
          {
            role: 'user',
            content: [
              { type: 'text', text: 'And' },
              { type: 'text', text: 'now?' },
            ],
          },
        ],
      }),
    );
    const { messages } = server.requests[0]!.body as { messages: { tool_call_id?: string }[] };
    const ids = messages.flatMap(({ tool_call_id }) => (tool_call_id === undefined ? [] : [tool_call_id]));
    expect(ids).toEqual(Array(3).fill(expect.stringMatching(/^[A-Za-z0-9]{9}$/)));
    expect(new Set(ids).size).toBe(3);
    const call = (n: number, name: string, text: string) => ({
      id: ids[n - 1],
      type: 'function',
      function: { name, arguments: text },
    });
    expect(messages).toEqual([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hi' },
      {
        role: 'assistant',
        content: 'Looking',
        tool_calls: [call(1, 'look', '{"q":1}'), call(2, 'refund', '{"invalid":"not JSON"}'), call(3, 'refund', '{}')],
      },
      { role: 'tool', tool_call_id: ids[0], content: '{"found":true}' },
      { role: 'tool', tool_call_id: ids[1], content: 'Error: Denied: too much' },
      { role: 'tool', tool_call_id: ids[2], content: 'done' },
      { role: 'assistant', content: 'I have the results.' },
      { role: 'user', content: 'And\n\nnow?' },
    ]);
  });

  test('contains tools and settings, and asks for usage', async () => {
    const tool: Tool = {
      type: 'client',
      name: 'look',
      description: 'Looks',
      inputSchema: { properties: { q: { type: 'string' } } },
    };
    const settings = { temperature: 0.5, topP: 0.9, seed: 7, stopSequences: ['END'] };
    const limits = { maxOutputTokens: 99 };
    await outcomeAfter(respond({ text: 'ok' }), callOf({ tools: [tool], limits, instructions: '' }, { settings }));
    const [request] = server.requests;
    expect(request?.path).toBe('/v1/chat/completions');
    expect(request?.body).toEqual({
      model: 'small',
      messages: [{ role: 'user', content: PROMPT }],
      tools: [
        {
          type: 'function',
          function: {
            name: 'look',
            description: 'Looks',
            parameters: { type: 'object', properties: { q: { type: 'string' } } },
          },
        },
      ],
      temperature: 0.5,
      top_p: 0.9,
      seed: 7,
      stop: ['END'],
      max_tokens: 99,
      stream: true,
      stream_options: { include_usage: true },
    });
  });

  test('omits settings that are not set', async () => {
    await outcomeAfter(respond({ text: 'ok' }));
    expect(Object.keys(server.requests[0]!.body).sort()).toEqual(['messages', 'model', 'stream', 'stream_options']);
  });

  test('keeps the base URL’s path and query', async () => {
    await outcomeAfter(respond({ text: 'ok' }), callOf({}, { baseUrl: `${server.url}/deep/?api-version=2` }));
    expect(server.requests[0]?.path).toBe('/v1/deep/chat/completions?api-version=2');
  });
});

test('a definition that the server refuses all the same is named by its tool, not by its position', async () => {
  const param = 'tools[1].function.parameters';
  const error = { message: 'x', type: 'invalid_request_error', param, code: 'invalid_function_parameters' };
  const tool = (name: string) => ({ name, description: 'Looks', inputSchema: {} });
  const call = callOf({ tools: [tool('look'), tool('find')] });
  const { failure } = await outcomeAfter(refuse(400, { body: { error } }), call);
  expect(failure).toMatchObject({ code: 'model_rejected', param });
  expect(failure?.message).toMatch(
    /HTTP 400 \(invalid_function_parameters, .*\): it is about the tool "find"; the turn can be retried without it$/,
  );
});

describe('a parameter that the server does not know', () => {
  const unknown = (param: string) =>
    refuse(400, {
      body: { error: { message: 'x', type: 'invalid_request_error', param, code: 'unsupported_parameter' } },
    });
  const limited = (model: string) => callOf({ limits: { maxOutputTokens: 99 } }, { model });

  test('is left out or has its other name, from then on, and the response says so', async () => {
    const models = createModels({ ...base.platform, clock });
    const next = async () => {
      const events: ModelEvent[] = [];
      for await (const event of models(limited('new'), new AbortController().signal)) events.push(event);
      return events.at(-1);
    };
    server.next(unknown('max_tokens'), unknown('stream_options'), respond({ text: 'ok' }), respond({ text: 'ok' }));
    const sentWithout = ['max_tokens', 'stream_options'];
    expect(await next()).toMatchObject({ type: 'finish', sentWithout });
    expect(await next()).toMatchObject({ type: 'finish', sentWithout });
    expect(
      server.requests.map(({ body }) => [body.max_tokens, body.max_completion_tokens, 'stream_options' in body]),
    ).toEqual([
      [99, undefined, true],
      [undefined, 99, true],
      [undefined, 99, false],
      [undefined, 99, false],
    ]);
  });

  test('is not left out if it is a setting of the agent, and then names it', async () => {
    const { failure } = await outcomeAfter(unknown('temperature'), callOf({}, { settings: { temperature: 1 } }));
    expect(failure?.message).toBe('The model’s provider responded with HTTP 400 (unsupported_parameter, temperature)');
    expect(server.requests).toHaveLength(1);
  });

  test('that is not in the request does not repeat it unchanged', async () => {
    server.next(unknown('max_completion_tokens'), respond({ text: 'ok' }));
    expect((await outcomeOf(limited('other'))).failure).toMatchObject({ code: 'model_rejected' });
    expect(server.requests).toHaveLength(1);
  });
});

describe('the key', () => {
  test('is sent to a host that its secret allows', async () => {
    await setKey([server.host]);
    expect((await outcomeAfter(respond({ text: 'ok' }), callOf({}, { apiKeySecret: 'MODEL_KEY' }))).text).toBe('ok');
    expect(server.requests[0]?.headers.authorization).toBe(`Bearer ${KEY}`);
  });

  test.each([
    ['another host', ['api.example.com']],
    ['another port', ['127.0.0.1:1']],
  ])('that is for %s is not sent, and the failure contains only the name of the secret', async (_title, hosts) => {
    await setKey(hosts);
    const { failure } = await outcomeOf(callOf({}, { apiKeySecret: 'MODEL_KEY' }));
    expect(failure).toMatchObject({ code: 'model_not_allowed', retryable: false });
    expect(failure?.message).toContain('MODEL_KEY');
    expect(failure?.message).not.toContain(KEY);
    expect(server.requests).toEqual([]);
  });

  test('that does not exist means no request', async () => {
    const { failure } = await outcomeOf(callOf({}, { apiKeySecret: 'NO_SUCH_KEY' }));
    expect(failure).toMatchObject({ code: 'model_key_missing', retryable: false });
    expect(failure?.message).toContain('environment production has no secret NO_SUCH_KEY');
    expect(server.requests).toEqual([]);
  });

  test('of another environment is not used', async () => {
    await setKey([server.host]);
    const { failure } = await outcomeOf(callOf({ environment: 'staging' }, { apiKeySecret: 'MODEL_KEY' }));
    expect(failure).toMatchObject({ code: 'model_key_missing' });
    expect(failure?.message).toContain('environment staging');
  });

  test('is never read from the service’s environment variables: without a secret, none is sent', async () => {
    vi.stubEnv('OPENAI_API_KEY', 'sk-of-the-operator');
    vi.stubEnv('OPENAI_COMPATIBLE_API_KEY', 'sk-of-the-operator');
    vi.stubEnv('PROVIDER_API_KEY', 'sk-of-the-operator');
    await outcomeAfter(respond({ text: 'ok' }));
    vi.unstubAllEnvs();
    expect(server.requests[0]?.headers.authorization).toBeUndefined();
    expect(JSON.stringify(server.requests)).not.toContain('sk-of-the-operator');
  });

  test('that is not allowed in a header means no request', async () => {
    await setKey([server.host], 'MODEL_KEY', `${KEY}\r\nx: y`);
    const { failure } = await outcomeOf(callOf({}, { apiKeySecret: 'MODEL_KEY' }));
    expect(failure).toMatchObject({ code: 'model_not_allowed' });
    expect(server.requests).toEqual([]);
  });

  test('that cannot be read because the database is unavailable is retryable', async () => {
    const db = { ...base.platform.db, query: () => Promise.reject(new Error(`select ${KEY}`)) };
    const call = callOf({}, { apiKeySecret: 'MODEL_KEY' });
    const events = createModels({ ...base.platform, clock, db })(call, new AbortController().signal);
    const failure = await events.next().catch((error) => error);
    expect(failure).toMatchObject({ name: 'ModelFailure', code: 'model_unavailable', retryable: true });
    expect(inspect(failure)).not.toContain(KEY);
  });
});

describe('a refusal', () => {
  test.each([
    [400, 'model_rejected', false],
    [401, 'model_key_missing', false],
    [403, 'model_rejected', false],
    [404, 'model_rejected', false],
    [422, 'model_rejected', false],
    [307, 'model_rejected', false],
    [408, 'model_timeout', true],
    [429, 'model_rate_limited', true],
    [500, 'model_unavailable', true],
    [503, 'model_unavailable', true],
  ])('with %i is %s', async (status, code, retryable) => {
    const headers = { location: `${server.url}/elsewhere` };
    const { failure } = await outcomeAfter(refuse(status, status === 307 ? { headers } : {}));
    expect(failure).toMatchObject({ code, retryable, retryAfterMs: undefined });
    expect(failure?.message).toContain(`HTTP ${status}`);
    expect(server.requests).toHaveLength(1);
  });

  test.each([
    [{ 'retry-after': '2' }, 2000],
    [{ 'retry-after': '0.5' }, 500],
    [{ 'retry-after': 'Fri, 02 Jan 2026 03:04:35 GMT' }, 30_000],
    [{ 'retry-after': 'Thu, 01 Jan 2026 00:00:00 GMT' }, 0],
    [{ 'retry-after-ms': '150', 'retry-after': '9' }, 150],
    [{ 'retry-after': 'soon' }, undefined],
    [{ 'retry-after': '-1' }, expect.toSatisfy((ms) => ms === undefined || ms === 0)],
  ])('with %o gives the time to wait', async (headers, retryAfterMs) => {
    for (const status of [429, 503]) {
      const { failure } = await outcomeAfter(refuse(status, { headers: headers as Record<string, string> }));
      expect(failure).toMatchObject({ retryable: true, retryAfterMs });
    }
  });

  test.each([
    [400, { message: 'x', type: 'invalid_request_error', code: 'context_length_exceeded' }],
    [400, { code: 400, message: 'x', type: 'exceed_context_size_error', n_prompt_tokens: 9000, n_ctx: 8192 }],
    [413, { message: 'x', type: 'invalid_request_error', code: 'request_too_large' }],
    [413, undefined],
  ])('with %i and %o is of a request that is too long', async (status, error) => {
    const { failure } = await outcomeAfter(refuse(status, { body: { error } }));
    expect(failure).toMatchObject({ code: 'model_context_too_long', retryable: false });
  });

  test('of a rate, in the words of a request that is too long, is of a rate', async () => {
    const error = { message: 'Too many tokens: reduce the length of the messages', code: 'rate_limit_exceeded' };
    const { failure } = await outcomeAfter(refuse(429, { body: { error } }));
    expect(failure).toMatchObject({ code: 'model_rate_limited', retryable: true });
  });

  test('contains the provider’s code', async () => {
    const error = { message: 'x', type: 'invalid_request_error', code: 'context_length_exceeded' };
    const { failure } = await outcomeAfter(refuse(400, { body: { error } }));
    expect(failure?.message).toBe('The model’s provider responded with HTTP 400 (context_length_exceeded)');
  });

  test.each(['insufficient_quota', 'billing_not_active', 'exceeded_current_quota_error'])(
    'because of an exhausted balance (%s) is not retryable',
    async (word) => {
      const body = { error: { message: 'x', type: word, code: word } };
      const { failure } = await outcomeAfter(refuse(429, { body, headers: { 'retry-after': '1' } }));
      expect(failure).toMatchObject({ code: 'model_rate_limited', retryable: false, retryAfterMs: undefined });
    },
  );

  test.each([
    ['not JSON'],
    [''],
    ['null'],
    ['[1]'],
    ['{"error":"text"}'],
    [`{"error":{"code":"${'x'.repeat(100_000)}"}}`],
  ])('has a message, whatever its body is', async (body) => {
    const { failure } = await outcomeAfter(refuse(400, { body }));
    expect(failure?.message).toBe('The model’s provider responded with HTTP 400');
  });
});

describe('a stream', () => {
  test.each([
    ['is reset', respond({ text: ['one', ' two'], end: 'reset' })],
    ['is cut cleanly', respond({ text: ['one', ' two'], end: 'cut' })],
    ['ends without a finish and without [DONE]', raw(['data: {"choices":[{"delta":{"content":"one"}}]}\n\n'])],
    ['says nothing before [DONE]', raw(['data: {"choices":[{"delta":{"role":"assistant"}}]}\n\n', 'data: [DONE]\n\n'])],
    ['ends in the middle of an event', raw(['data: {"choices":[{"delta":{"con'])],
    ['is empty', raw([])],
    ['ends with an error', raw(['data: {"error":{"message":"overloaded","code":503}}\n\n'])],
    ['ends with an error in another form', raw(['data: {"error":"overloaded"}\n\n'])],
    ['ends with an error as its reason', respond({ text: 'x', finishReason: 'error' })],
    ['ends with a lost connection as its reason', respond({ text: 'x', finishReason: 'network_error' })],
  ])('that %s is model_unavailable, and retryable', async (_title, reply) => {
    const { failure, finish } = await outcomeAfter(reply);
    expect(failure).toMatchObject({ code: 'model_unavailable', retryable: true });
    expect(finish).toBeUndefined();
  });

  test('that is reset after [DONE] was whole', async () => {
    const events = ['data: {"choices":[{"delta":{"content":"one"},"finish_reason":"stop"}]}\n\n', 'data: [DONE]\n\n'];
    const { text, failure } = await outcomeAfter(async (response, request) => {
      await raw(events, { hang: true })(response, request);
      response.socket?.resetAndDestroy();
    });
    expect([text, failure]).toEqual(['one', undefined]);
  });

  test('that stays open after [DONE] is over a second later', async () => {
    const sleeps: number[] = [];
    const sleep: ManualClock['sleep'] = (ms, signal) => {
      sleeps.push(ms);
      return ms === 1000 ? Promise.resolve() : clock.sleep(ms, signal);
    };
    const events = ['data: {"choices":[{"delta":{"content":"one"},"finish_reason":"stop"}]}\n\n', 'data: [DONE]\n\n'];
    server.next(raw(events, { hang: true }));
    const models = createModels({ ...base.platform, clock: { ...clock, sleep } });
    const read: ModelEvent[] = [];
    for await (const event of models(callOf(), new AbortController().signal)) read.push(event);
    expect(read.map(({ type }) => type)).toEqual(['text', 'finish']);
    expect(sleeps).toEqual([300_000, 1000]);
  });

  test('that ends with a rate limit error is model_rate_limited', async () => {
    const reply = raw(['data: {"error":{"message":"slow down","code":"rate_limit_exceeded"}}\n\n']);
    expect((await outcomeAfter(reply)).failure).toMatchObject({ code: 'model_rate_limited', retryable: true });
  });

  test.each([
    ['is garbage', raw(['data: {nope\n\n'])],
    ['has events of another form', raw(['data: {"choices":"many"}\n\n'])],
    ['has tool calls without a name', raw(['data: {"choices":[{"delta":{"tool_calls":[{"function":{}}]}}]}\n\n'])],
    ['is an HTML page', refuse(200, { headers: { 'content-type': 'text/html' }, body: '<p>Log in</p>' })],
    ['is a page that claims to be a stream', raw(['\n<!DOCTYPE html>'])],
    ['is JSON', refuse(200, { body: { choices: [] } })],
    ['is JSON of another kind', refuse(200, { body: { models: [] } })],
    ['is JSON that is cut', refuse(200, { body: '{"choices":[{"message":{"content":"Hel' })],
    ['is an empty list', refuse(200, { body: [] })],
  ])('that %s is model_protocol, and retryable', async (_title, reply) => {
    expect((await outcomeAfter(reply)).failure).toMatchObject({ code: 'model_protocol', retryable: true });
  });

  test.each(['application/json', 'text/event-stream', 'text/plain'])(
    'that is an error as JSON (%s) is that error, with the time to wait',
    async (type) => {
      const headers = { 'content-type': type, 'retry-after': '3' };
      const { failure } = await outcomeAfter(
        refuse(200, { headers, body: { error: { message: 'Rate limit exceeded', code: 429 } } }),
      );
      expect(failure).toMatchObject({
        code: 'model_rate_limited',
        retryable: true,
        retryAfterMs: 3000,
        httpStatus: 429,
      });
    },
  );

  test('that a content filter ends is a refusal, after its text', async () => {
    const error = { code: 'content_filter', message: 'x' };
    const events = [{ choices: [{ delta: { content: 'Well' } }] }, { error }].map(
      (one) => `data: ${JSON.stringify(one)}\n\n`,
    );
    expect(await outcomeAfter(raw(events))).toMatchObject({
      text: 'Well',
      failure: undefined,
      finish: { reason: 'refusal' },
    });
  });
});

describe('an endless response', () => {
  const endless =
    (status: number, contentType: string, piece: string): Reply =>
    async (response, { closed }) => {
      response.writeHead(status, { 'content-type': contentType });
      const over = closed.then(() => true);
      while (!response.destroyed) {
        if (!response.write(piece)) await Promise.race([over, once(response, 'drain').catch(() => {})]);
      }
    };

  test('is aborted when it is longer than any real one', async () => {
    const { failure } = await outcomeAfter(endless(200, 'text/event-stream', `: ${'x'.repeat(1024 * 1024)}\n`));
    expect(failure).toMatchObject({ code: 'model_protocol', retryable: false });
    expect(await server.requests[0]!.closed).toBe(false);
  });

  test('with an error status is not read to its end', async () => {
    const { failure } = await outcomeAfter(endless(500, 'text/plain', 'x'.repeat(65_536)));
    expect(failure).toMatchObject({ code: 'model_unavailable', retryable: true });
    expect(await server.requests[0]!.closed).toBe(false);
  });
});

describe('a server that cannot be reached', () => {
  test('is model_unavailable', async () => {
    await server.close();
    const { failure } = await outcomeOf(callOf());
    expect(failure).toMatchObject({ code: 'model_unavailable', retryable: true });
    server = await startOpenAiServer();
  });

  test('because its address is not allowed is model_not_allowed', async () => {
    const { failure } = await outcomeOf(callOf({}, { baseUrl: 'http://169.254.169.254/v1' }));
    expect(failure).toMatchObject({ code: 'model_not_allowed', retryable: false });
    expect(failure?.message).not.toContain('169.254');
  });
});

describe('silence', () => {
  test('for 300 seconds before the response is model_timeout', async () => {
    const arrived = Promise.withResolvers<void>();
    server.next(() => arrived.resolve());
    const outcome = outcomeOf(callOf());
    await arrived.promise;
    await clock.advance(299_999);
    await clock.advance(1);
    expect((await outcome).failure).toMatchObject({ code: 'model_timeout', retryable: true });
    expect(await server.requests[0]!.closed).toBe(false);
  });

  test('for 300 seconds during the response is model_timeout', async () => {
    server.next(respond({ text: 'one', end: 'hang' }));
    const events = ask(callOf());
    await events.next();
    const next = expect(events.next()).rejects.toMatchObject({ code: 'model_timeout', retryable: true });
    await clock.advance(300_000);
    await next;
    expect(await server.requests[0]!.closed).toBe(false);
  });

  test('ends with anything that the server sends', async () => {
    const comment = Promise.withResolvers<void>();
    const rest = Promise.withResolvers<void>();
    server.next(async (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: {"choices":[{"delta":{"content":"one"}}]}\n\n');
      await comment.promise;
      response.write(': still there\n\n');
      await rest.promise;
      response.end('data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n');
    });
    const events = ask(callOf());
    await events.next();
    const next = events.next();
    await clock.advance(299_000);
    comment.resolve();
    await clock.advance(299_000);
    rest.resolve();
    expect((await next).value).toMatchObject({ type: 'finish' });
  });

  test('is not counted while the reader is busy', async () => {
    server.next(respond({ text: ['one', 'two'] }));
    const events = ask(callOf());
    await events.next();
    await clock.advance(600_000);
    expect((await events.next()).value).toEqual({ type: 'text', delta: 'two' });
    await events.return(undefined);
  });
});

describe('an abort', () => {
  const reason = new Error('interrupted');

  test('before the request: nothing is sent', async () => {
    await expect(ask(callOf(), AbortSignal.abort(reason)).next()).rejects.toBe(reason);
    expect(server.requests).toEqual([]);
  });

  test('before the response throws its reason and closes the connection', async () => {
    const arrived = Promise.withResolvers<void>();
    const abort = new AbortController();
    server.next(() => arrived.resolve());
    const next = ask(callOf(), abort.signal).next();
    await arrived.promise;
    abort.abort(reason);
    await expect(next).rejects.toBe(reason);
    expect(await server.requests[0]!.closed).toBe(false);
  });

  test('during the response throws its reason and closes the connection', async () => {
    const abort = new AbortController();
    server.next(respond({ text: 'one', end: 'hang' }));
    const events = ask(callOf(), abort.signal);
    await events.next();
    const next = events.next();
    abort.abort(reason);
    await expect(next).rejects.toBe(reason);
    expect(await server.requests[0]!.closed).toBe(false);
    expect(clock.sleepers).toBe(0);
  });

  test('drops events that have arrived but were not read', async () => {
    const abort = new AbortController();
    server.next(respond({ text: ['one', 'two', 'three'], end: 'hang' }));
    const events = ask(callOf(), abort.signal);
    await events.next();
    abort.abort(reason);
    await expect(events.next()).rejects.toBe(reason);
  });
});

test('a reader that stops early closes the connection', async () => {
  server.next(respond({ text: 'one', end: 'hang' }));
  for await (const event of ask(callOf())) {
    expect(event.type).toBe('text');
    break;
  }
  expect(await server.requests[0]!.closed).toBe(false);
  expect(clock.sleepers).toBe(0);
});

test('a finished response leaves no timer behind', async () => {
  await outcomeAfter(respond({ text: 'one' }));
  expect(clock.sleepers).toBe(0);
});

describe('no failure contains the prompt or the key', () => {
  const key = 'sk-4711.secret_key';
  const word = 'prompt-word';
  const echo =
    (where: (sent: string) => Reply): Reply =>
    (response, request) =>
      where(`${request.headers.authorization} ${JSON.stringify(request.body)}`)(response, request);
  const errorOf = (error: object) => refuse(400, { body: { error: { message: 'x', ...error } } });

  test.each<[string, Reply]>([
    [
      'an error that quotes both',
      echo((sent) => refuse(400, { body: { error: { message: sent, type: sent, code: sent } } })),
    ],
    ['a page that quotes both', echo((sent) => refuse(500, { headers: { 'content-type': 'text/html' }, body: sent }))],
    ['the key as code', errorOf({ code: key })],
    ['a part of the key as code', errorOf({ code: key.slice(3), type: key.slice(0, 9) })],
    ['the key in a longer code', errorOf({ code: `wrong_${key}` })],
    ['the prompt as code', errorOf({ code: word, type: word })],
    ['headers that quote both', refuse(429, { headers: { 'retry-after': key, 'x-prompt': word } })],
    ['garbage that quotes both', echo((sent) => raw([`data: {${sent}\n\n`]))],
    ['an event that quotes both', echo((sent) => raw([`data: ${JSON.stringify({ choices: sent })}\n\n`]))],
    [
      'a streamed error that quotes both',
      echo((sent) => raw([`data: ${JSON.stringify({ error: { message: sent, code: sent } })}\n\n`])),
    ],
    ['a stream that is cut', respond({ text: word, end: 'cut' })],
    ['a stream that is reset', respond({ text: word, end: 'reset' })],
  ])('%s', async (_title, reply) => {
    await setKey([server.host], 'MODEL_KEY', key);
    const transcript = [{ role: 'user' as const, content: [{ type: 'text' as const, text: word }] }];
    const { failure } = await outcomeAfter(reply, callOf({ transcript }, { apiKeySecret: 'MODEL_KEY' }));
    const everything = inspect(
      { failure, own: failure && Object.getOwnPropertyDescriptors(failure) },
      { depth: 20, showHidden: true },
    );
    expect(failure).toBeDefined();
    expect(failure?.cause).toBeUndefined();
    for (const secret of [key, key.slice(3), key.slice(0, 9), word]) expect(everything).not.toContain(secret);
  });
});
