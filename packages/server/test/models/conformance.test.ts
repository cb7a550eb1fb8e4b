// What the turn machine relies on, for every provider, over the wire: each is called at a local server with its real format. A
// provider is one row of `adapters`; expectations that are the same for all of them are written once. The documentation
// suggests these models.
import { type Model, providerFacts } from '@signalbox/contract';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { setSecret } from '../../src/environments/secrets.ts';
import { type ModelCall, type ModelEntry, type ModelEvent, ModelFailure } from '../../src/models/model/model.ts';
import { createModels } from '../../src/models/models.ts';
import { anthropicMessages } from '../support/anthropic-wire.ts';
import { converse } from '../support/converse-wire.ts';
import { generateContent } from '../support/google-wire.ts';
import { createManualClock, type ManualClock } from '../support/manual-clock.ts';
import { chatCompletions } from '../support/openai-server.ts';
import { createTestPlatform, type TestPlatform } from '../support/platform.ts';
import {
  byteByByte,
  type ModelResponse,
  type ProviderServer,
  type Reply,
  raw,
  refuse,
  startProviderServer,
  type Wire,
} from '../support/provider-server.ts';
import { responses } from '../support/responses-wire.ts';

const [gpt, claude, gemini] = [providerFacts.openai, providerFacts.anthropic, providerFacts.google].map(
  ({ own }) => own.exampleModel,
) as [string, string, string];

/** What providers say of a request that is too long for the model, and what servers and gateways repeat of it. */
const tooLong = [
  "This model's maximum context length is 8192 tokens. However, your messages resulted in 4711 tokens.",
  'Your input exceeds the context window of this model. Please adjust your input and try again.',
  'prompt is too long: 204711 tokens > 200000 maximum',
  'input length and `max_tokens` exceed context limit: 194711 + 8192 > 200000',
  'The input token count (1204711) exceeds the maximum number of tokens allowed (1048576).',
  'Input is too long for requested model.',
  "This model's maximum prompt length is 131072 but the request contains 534711 tokens.",
  'Please reduce the length of the messages or completion.',
  'Prompt contains 44711 tokens, too large for model with 32768 maximum context length',
  'the request exceeds the available context size. try increasing the context size or enable context shift',
  'Trying to keep the first 4711 tokens when context the overflows. However, the number is greater than the context length',
];

interface Adapter {
  provider: Model['provider'];
  model: string;
  wire: Wire;
  path: string;
  /** The header of a request that contains KEY, and its value. */
  key: [string, string];
  /** The fields of a request for a tool, settings and limits. */
  settings: object;
  /** The fields for low reasoning effort. */
  reasoning: object;
  /** The fields for a response schema. */
  schema: object;
  /** The fields of the transcript, and no others, in the second request of a turn with tools. */
  transcript: object;
  /** The transcript without the provider's own data. */
  plainTranscript: object;
  /** A whole response, as a server sends it that does not stream: the text "One moment" and a call of `look`. */
  whole: object;
}

const KEY = 'sk-test-4711';
const PROMPT = 'a prompt that nobody else may read';
const INSTRUCTIONS = 'Be brief.';

/** The response to the first step of a turn: reasoning, text, two parallel calls, with the provider's signatures. */
const FIRST_STEP: ModelResponse = {
  parts: [
    { reasoning: ['hm', 'm'], seal: 'seal-of-reasoning' },
    { text: ['One ', 'moment'], seal: 'seal-of-text' },
    { call: 'look', input: { order: 'A-1', note: 'ü"😀' }, seal: 'seal-of-call' },
    { call: 'notify', input: { who: ['a', 'b'] } },
  ],
};
const CALLS = [
  ['look', { order: 'A-1', note: 'ü"😀' }],
  ['notify', { who: ['a', 'b'] }],
];
const LOOK_ID = 'call_00000000000000000000000001';
const NOTIFY_ID = 'call_00000000000000000000000002';
/** As a server of chat completions that is not known gets them. */
const LOOK_NINE = 'qRQZwRRKg';
const NOTIFY_NINE = 'XaXtBrZba';
const SCHEMA = { type: 'object', properties: { total: { type: 'number' } }, required: ['total'] };
const TOOL = { name: 'look', description: 'Looks', inputSchema: { properties: { q: { type: 'string' } } } };
const TOOL_SCHEMA = { type: 'object', properties: { q: { type: 'string' } } };

const chatCall = (id: string, name: string, input: unknown) => ({
  id,
  type: 'function',
  function: { name, arguments: JSON.stringify(input) },
});
const responsesCall = (call_id: string, name: string, input: unknown) => ({
  type: 'function_call',
  call_id,
  name,
  arguments: JSON.stringify(input),
});
const responsesRest = [
  responsesCall(LOOK_ID, 'look', CALLS[0]![1]),
  responsesCall(NOTIFY_ID, 'notify', CALLS[1]![1]),
  { type: 'function_call_output', call_id: LOOK_ID, output: '{"found":true}' },
  { type: 'function_call_output', call_id: NOTIFY_ID, output: '{"error":"Error: Denied: too loud"}' },
];
const responsesBegin = [
  { role: 'developer', content: INSTRUCTIONS },
  { role: 'user', content: [{ type: 'input_text', text: PROMPT }] },
];
const anthropicUse = (id: string, name: string, input: unknown) => ({ type: 'tool_use', id, name, input });
const anthropicTranscript = (thinking: object[]) => ({
  system: [{ type: 'text', text: INSTRUCTIONS }],
  messages: [
    { role: 'user', content: [{ type: 'text', text: PROMPT }] },
    {
      role: 'assistant',
      content: [
        ...thinking,
        { type: 'text', text: 'One moment' },
        anthropicUse(LOOK_ID, 'look', CALLS[0]![1]),
        anthropicUse(NOTIFY_ID, 'notify', CALLS[1]![1]),
      ],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: LOOK_ID, content: '{"found":true}' },
        { type: 'tool_result', tool_use_id: NOTIFY_ID, content: 'Error: Denied: too loud', is_error: true },
      ],
    },
  ],
});
const chatTranscript = (reasoning: object) => ({
  messages: [
    { role: 'system', content: INSTRUCTIONS },
    { role: 'user', content: PROMPT },
    {
      role: 'assistant',
      content: 'One moment',
      ...reasoning,
      tool_calls: [chatCall(LOOK_NINE, 'look', CALLS[0]![1]), chatCall(NOTIFY_NINE, 'notify', CALLS[1]![1])],
    },
    { role: 'tool', tool_call_id: LOOK_NINE, content: '{"found":true}' },
    { role: 'tool', tool_call_id: NOTIFY_NINE, content: 'Error: Denied: too loud' },
  ],
});
/** `id`: what a call has as its id; Vertex refuses one. */
const googleTranscript = (parts: object[], callSeal: string, id = (given: string): object => ({ id: given })) => ({
  systemInstruction: { parts: [{ text: INSTRUCTIONS }] },
  contents: [
    { role: 'user', parts: [{ text: PROMPT }] },
    {
      role: 'model',
      parts: [
        ...parts,
        { functionCall: { ...id(LOOK_ID), name: 'look', args: CALLS[0]![1] }, thoughtSignature: callSeal },
        // Google signs only the first of several calls; if that has no signature, the SDK adds a dummy.
        {
          functionCall: { ...id(NOTIFY_ID), name: 'notify', args: CALLS[1]![1] },
          ...(callSeal !== 'seal-of-call' && { thoughtSignature: callSeal }),
        },
      ],
    },
    {
      role: 'user',
      parts: [
        { functionResponse: { ...id(LOOK_ID), name: 'look', response: { name: 'look', content: { found: true } } } },
        {
          functionResponse: {
            ...id(NOTIFY_ID),
            name: 'notify',
            response: { name: 'notify', error: 'Error: Denied: too loud' },
          },
        },
      ],
    },
  ],
});

const openaiAdapter: Adapter = {
  provider: 'openai',
  model: gpt,
  wire: responses,
  path: '/v1/responses',
  key: ['authorization', `Bearer ${KEY}`],
  settings: {
    model: gpt,
    store: false,
    include: ['reasoning.encrypted_content'],
    tools: [{ type: 'function', name: 'look', description: 'Looks', parameters: TOOL_SCHEMA, strict: false }],
    max_output_tokens: 99,
  },
  reasoning: { reasoning: { effort: 'low' } },
  schema: { text: { format: { type: 'json_schema', strict: false, name: 'response', schema: SCHEMA } } },
  transcript: {
    input: [
      ...responsesBegin,
      {
        type: 'reasoning',
        id: 'rs_0',
        encrypted_content: 'seal-of-reasoning',
        summary: [{ type: 'summary_text', text: 'hmm' }],
      },
      { role: 'assistant', content: 'One moment', phase: 'commentary' },
      ...responsesRest,
    ],
  },
  plainTranscript: { input: [...responsesBegin, { role: 'assistant', content: 'One moment' }, ...responsesRest] },
  whole: {
    object: 'response',
    status: 'completed',
    output: [
      { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'hm' }], encrypted_content: 'x' },
      { type: 'message', id: 'msg_1', content: [{ type: 'output_text', text: 'One moment' }] },
      { type: 'function_call', call_id: 'a', name: 'look', arguments: '{"q":"x"}' },
      { type: 'brand_new_item' },
    ],
    usage: { input_tokens: 10, output_tokens: 5 },
  },
};

const googleParts = [
  { text: 'hmm', thought: true, thoughtSignature: 'seal-of-reasoning' },
  { text: 'One moment', thoughtSignature: 'seal-of-text' },
];
const DUMMY_SEAL = 'skip_thought_signature_validator';

const googleAdapter: Adapter = {
  provider: 'google',
  model: gemini,
  wire: generateContent,
  path: `/v1beta/models/${gemini}:streamGenerateContent?alt=sse`,
  key: ['x-goog-api-key', KEY],
  settings: {
    generationConfig: { temperature: 0.5, topP: 0.9, seed: 7, stopSequences: ['END'], maxOutputTokens: 99 },
    tools: [{ functionDeclarations: [expect.objectContaining({ name: 'look', description: 'Looks' })] }],
  },
  reasoning: { generationConfig: { thinkingConfig: { thinkingLevel: 'low' } } },
  schema: {
    generationConfig: {
      responseMimeType: 'application/json',
      responseJsonSchema: expect.objectContaining({ required: ['total'] }),
    },
  },
  transcript: googleTranscript(googleParts, 'seal-of-call'),
  plainTranscript: googleTranscript([{ text: 'One moment' }], DUMMY_SEAL),
  // In a list, as without `alt=sse`.
  whole: [
    { candidates: [{ content: { parts: [{ text: 'One ' }] } }] },
    {
      candidates: [
        {
          content: {
            parts: [{ text: 'moment' }, { brandNew: 1 }, { functionCall: { name: 'look', args: { q: 'x' } } }],
          },
          finishReason: 'STOP',
        },
      ],
      usageMetadata: { promptTokenCount: '10', candidatesTokenCount: 5, promptTokensDetails: 'many' },
    },
  ],
};

const bedrockModel = `us.anthropic.${claude}-v1:0`;
const bedrockUse = (toolUseId: string, name: string, input: unknown) => ({ toolUse: { toolUseId, name, input } });
const converseTranscript = (reasoning: object[]) => ({
  system: [{ text: INSTRUCTIONS }],
  messages: [
    { role: 'user', content: [{ text: PROMPT }] },
    {
      role: 'assistant',
      content: [
        ...reasoning,
        { text: 'One moment' },
        bedrockUse(LOOK_ID, 'look', CALLS[0]![1]),
        bedrockUse(NOTIFY_ID, 'notify', CALLS[1]![1]),
      ],
    },
    {
      role: 'user',
      content: [
        { toolResult: { toolUseId: LOOK_ID, content: [{ text: '{"found":true}' }] } },
        { toolResult: { toolUseId: NOTIFY_ID, content: [{ text: 'Error: Denied: too loud' }] } },
      ],
    },
  ],
});
const bedrockAdapter: Adapter = {
  provider: 'bedrock',
  model: bedrockModel,
  wire: converse,
  path: `/model/${encodeURIComponent(bedrockModel)}/converse-stream`,
  key: ['authorization', `Bearer ${KEY}`],
  settings: {
    inferenceConfig: { maxTokens: 99, stopSequences: ['END'] },
    toolConfig: { tools: [{ toolSpec: { name: 'look', description: 'Looks', inputSchema: { json: TOOL_SCHEMA } } }] },
  },
  reasoning: { additionalModelRequestFields: { thinking: { type: 'adaptive' }, output_config: { effort: 'low' } } },
  schema: { system: [{ text: expect.stringContaining(JSON.stringify(SCHEMA)) }] },
  transcript: converseTranscript([
    { reasoningContent: { reasoningText: { text: 'hmm', signature: 'seal-of-reasoning' } } },
  ]),
  plainTranscript: converseTranscript([]),
  whole: {
    metrics: { latencyMs: 1 },
    output: {
      message: {
        role: 'assistant',
        content: [
          { reasoningContent: { reasoningText: { text: 'hm', signature: 'x' } } },
          { brandNew: 1 },
          { text: 'One moment' },
          { toolUse: { toolUseId: 'a', name: 'look', input: { q: 'x' } } },
        ],
      },
    },
    stopReason: 'tool_use',
    usage: { inputTokens: 10, outputTokens: 5 },
  },
};

const adapters: Adapter[] = [
  {
    provider: 'openai-compatible',
    model: 'small',
    wire: chatCompletions,
    path: '/v1/chat/completions',
    key: ['authorization', `Bearer ${KEY}`],
    settings: {
      model: 'small',
      tools: [{ type: 'function', function: { name: 'look', description: 'Looks', parameters: TOOL_SCHEMA } }],
      temperature: 0.5,
      top_p: 0.9,
      seed: 7,
      stop: ['END'],
      max_tokens: 99,
    },
    reasoning: { reasoning_effort: 'low' },
    schema: { messages: [{ role: 'system', content: expect.stringContaining(JSON.stringify(SCHEMA)) }, {}] },
    transcript: chatTranscript({ reasoning_content: 'hmm' }),
    plainTranscript: chatTranscript({}),
    whole: {
      object: 'chat.completion',
      choices: [
        {
          message: {
            content: 'One moment',
            tool_calls: [{ id: 'a', function: { name: 'look', arguments: '{"q":"x"}' } }],
          },
          finish_reason: 'tool_calls',
        },
      ],
      usage: { prompt_tokens: 10, completion_tokens: 5 },
    },
  },
  openaiAdapter,
  { ...openaiAdapter, provider: 'azure', key: ['api-key', KEY] },
  {
    provider: 'anthropic',
    model: claude,
    wire: anthropicMessages,
    path: '/v1/messages',
    key: ['x-api-key', KEY],
    settings: {
      model: claude,
      tools: [{ name: 'look', description: 'Looks', input_schema: TOOL_SCHEMA }],
      stop_sequences: ['END'],
      max_tokens: 99,
    },
    reasoning: { thinking: { type: 'adaptive', display: 'summarized' }, output_config: { effort: 'low' } },
    schema: {
      output_config: { format: { type: 'json_schema', schema: expect.objectContaining({ required: ['total'] }) } },
    },
    transcript: anthropicTranscript([{ type: 'thinking', thinking: 'hmm', signature: 'seal-of-reasoning' }]),
    plainTranscript: anthropicTranscript([]),
    whole: {
      type: 'message',
      content: [
        { type: 'thinking', thinking: 'hm', signature: 'x' },
        { type: 'brand_new_block' },
        { type: 'text', text: 'One moment' },
        { type: 'tool_use', id: 'a', name: 'look', input: { q: 'x' } },
      ],
      stop_reason: 'tool_use',
      usage: { input_tokens: 10, output_tokens: 5 },
    },
  },
  bedrockAdapter,
  googleAdapter,
  {
    ...googleAdapter,
    provider: 'vertex',
    transcript: googleTranscript(googleParts, 'seal-of-call', () => ({})),
    plainTranscript: googleTranscript([{ text: 'One moment' }], DUMMY_SEAL, () => ({})),
  },
];

let base: TestPlatform;
let server: ProviderServer;
let clock: ManualClock;

beforeAll(async () => {
  base = await createTestPlatform();
});
afterAll(() => base.close());

describe.each(adapters)('$provider', ({ provider, model, wire, path, key, ...expected }) => {
  beforeEach(async () => {
    clock = createManualClock();
    server = await startProviderServer(wire.basePath);
  });
  afterEach(() => server.close());

  const ask = (call: ModelCall, signal: AbortSignal = new AbortController().signal) =>
    createModels({ ...base.platform, clock })(call, signal);

  function callOf(more: Partial<ModelCall> = {}, config: Partial<Model> = {}): ModelCall {
    return {
      organizationId: base.organizationId,
      sessionId: 'ses_1',
      environment: 'production',
      config: { provider, model, baseUrl: server.url, ...config },
      instructions: INSTRUCTIONS,
      tools: [],
      limits: { maxOutputTokens: null },
      outputSchema: null,
      transcript: [user(PROMPT)],
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
    const finish = events.find((event) => event.type === 'finish');
    return {
      deltas: events.flatMap((event) => (event.type === 'text' ? [event.delta] : [])),
      calls: events.flatMap((event) => (event.type === 'toolCall' ? [[event.name, event.input]] : [])),
      reason: finish?.reason,
      usage: finish?.usage,
      providerData: finish?.providerData,
      failure,
    };
  }

  async function outcomeAfter(reply: Reply, call = callOf()) {
    server.next(reply);
    return await outcomeOf(call);
  }

  const setKey = (value = KEY) =>
    setSecret(base.ctx, { env: 'production', name: 'MODEL_KEY', value, allowedHosts: [server.host] });

  describe('a response', () => {
    test('is streamed in deltas, with its usage; cached tokens are part of the input and also counted separately', async () => {
      const outcome = await outcomeAfter(
        wire.respond({ parts: [{ text: ['Hel', 'lo ', '😀'] }], usage: { input: 12, cached: 8, output: 3 } }),
      );
      expect(outcome).toMatchObject({
        deltas: ['Hel', 'lo ', '😀'],
        calls: [],
        reason: 'endTurn',
        usage: { inputTokens: 12, outputTokens: 3, cachedTokens: 8 },
      });
    });

    test('is streamed before the server has finished', async () => {
      server.next(wire.respond({ parts: [{ text: ['first'] }], end: 'hang' }));
      const events = ask(callOf());
      expect((await events.next()).value).toEqual({ type: 'text', delta: 'first' });
      await events.return(undefined);
      expect(await server.requests[0]!.closed).toBe(false);
    });

    test('shows reasoning and the input of calls while they are written, if they are to be shown', async () => {
      const shows = { reasoning: true, toolInput: true };
      server.next(wire.respond(FIRST_STEP));
      const events: ModelEvent[] = [];
      for await (const event of ask(callOf({ shows }))) events.push(event);
      const thoughts = events.flatMap((event) => (event.type === 'reasoning' ? [event.delta] : []));
      expect(thoughts.join('')).toBe('hmm');
      const calls = events.filter((event) => event.type === 'toolCall');
      expect(calls.map(({ name, input }) => [name, input])).toEqual(CALLS);
      for (const { operationId, name, input } of calls) {
        const own = events.filter((event) => event.type === 'toolInput' && event.operationId === operationId);
        expect(own.every((event) => event.type === 'toolInput' && event.name === name)).toBe(true);
        expect(JSON.parse(own.map((event) => (event.type === 'toolInput' ? event.delta : '')).join(''))).toEqual(input);
      }
      expect(events.findIndex(({ type }) => type === 'toolInput')).toBeLessThan(
        events.findIndex(({ type }) => type === 'toolCall'),
      );
    });

    test('never shows the key in reasoning or in the input of a call, also if it is split', async () => {
      await setKey();
      const halves = [KEY.slice(0, 5), KEY.slice(5)];
      const parts = [{ reasoning: ['It is ', ...halves] }, { call: 'look', input: { note: `"${KEY}"`, [KEY]: [KEY] } }];
      server.next(wire.respond({ parts }));
      const events: ModelEvent[] = [];
      const call = callOf({ shows: { reasoning: true, toolInput: true } }, { apiKeySecret: 'MODEL_KEY' });
      for await (const event of ask(call)) events.push(event);
      const shown = (type: 'reasoning' | 'toolInput') =>
        events.map((event) => (event.type === type ? event.delta : '')).join('');
      expect(shown('reasoning')).toBe('It is [secret MODEL_KEY]');
      expect(shown('toolInput')).toContain('[secret MODEL_KEY]');
      expect(shown('toolInput')).not.toContain(KEY);
    });

    test('whose reasoning the server refuses to show is requested once more without it', async () => {
      const isAsked = wire === responses || wire === generateContent;
      server.next(refuse(400, { body: wire.error(400, 'Not here') }), wire.respond({ parts: [{ text: ['ok'] }] }));
      const outcome = await outcomeOf(callOf({ shows: { reasoning: true } }));
      expect(server.requests).toHaveLength(isAsked ? 2 : 1);
      expect(outcome.failure?.code).toBe(isAsked ? undefined : 'model_rejected');
      const asks = server.requests.map(({ body }) =>
        /"summary":"auto"|"includeThoughts":true/.test(JSON.stringify(body)),
      );
      expect(asks).toEqual(isAsked ? [true, false] : [false]);
    });

    test('does not contain the model’s reasoning', async () => {
      const parts = [{ reasoning: ['hm', 'm'] }, { text: ['Yes'] }];
      expect((await outcomeAfter(wire.respond({ parts }))).deltas).toEqual(['Yes']);
    });

    test('may consist only of reasoning', async () => {
      expect(await outcomeAfter(wire.respond({ parts: [{ reasoning: ['hm'] }] }))).toMatchObject({
        deltas: [],
        reason: 'endTurn',
      });
    });

    test('is the same if its bytes arrive one by one', async () => {
      const { deltas, calls } = await outcomeAfter(byteByByte(wire.respond(FIRST_STEP)));
      expect([deltas.join(''), calls]).toEqual(['One moment', CALLS]);
      const parts = [{ text: ['ü', '😀', '漢'] }];
      expect((await outcomeAfter(byteByByte(wire.respond({ parts })))).deltas.join('')).toBe('ü😀漢');
    });

    test('that is cut off by its token limit says so, also with calls, whose input may be incomplete', async () => {
      const reply = wire.respond({ parts: [{ text: ['Half a'] }], stop: 'maxOutputTokens' });
      expect(await outcomeAfter(reply)).toMatchObject({ deltas: ['Half a'], reason: 'maxOutputTokens' });
      // Google sends a call in one piece.
      const input = wire === generateContent ? {} : '{"order": "A-';
      const cut = wire.respond({ parts: [{ call: 'look', input }], stop: 'maxOutputTokens' });
      expect(await outcomeAfter(cut)).toMatchObject({ calls: [['look', input]], reason: 'maxOutputTokens' });
    });

    test('that repeats the key is redacted, also if the key is split, in a call or in reasoning', async () => {
      await setKey();
      const outcome = await outcomeAfter(
        wire.respond({
          parts: [
            { reasoning: ['the key is ', KEY] },
            { text: [`Bearer ${KEY.slice(0, 4)}`, KEY.slice(4, 6), `${KEY.slice(6)} and ${KEY}, `, KEY.slice(0, 5)] },
            { call: 'look', input: { note: `"${KEY}"`, [KEY]: [KEY] } },
          ],
        }),
        callOf({}, { apiKeySecret: 'MODEL_KEY' }),
      );
      const mark = '[secret MODEL_KEY]';
      expect(outcome.failure).toBeUndefined();
      expect(outcome.deltas.join('')).toBe(`Bearer ${mark} and ${mark}, ${KEY.slice(0, 5)}`);
      expect(outcome.calls).toEqual([['look', { note: `"${mark}"`, [mark]: [mark] }]]);
      expect(JSON.stringify(outcome)).not.toContain(KEY);
    });

    test('that only repeats the key fails before redaction makes it much longer', async () => {
      await setKey('k');
      const reply = wire.respond({ parts: [{ text: ['k'.repeat(100_000)] }] });
      const { failure, deltas } = await outcomeAfter(reply, callOf({}, { apiKeySecret: 'MODEL_KEY' }));
      expect(failure).toMatchObject({ code: 'model_protocol', retryable: false });
      expect(deltas).toEqual([]);
    });

    test('that is a refusal has the reason refusal, and no calls', async () => {
      const refusal = await outcomeAfter(wire.respond({ parts: [{ text: ['No.'] }], stop: 'refusal' }));
      expect(refusal).toMatchObject({ calls: [], reason: 'refusal', failure: undefined });
    });
  });

  describe('tool calls', () => {
    test('that arrive in interleaved pieces are complete, in order, after the text', async () => {
      const outcome = await outcomeAfter(wire.respond(FIRST_STEP));
      expect(outcome).toMatchObject({ deltas: ['One ', 'moment'], reason: 'toolCalls' });
      expect(outcome.calls).toEqual(CALLS);
    });

    test('without arguments have an empty object as input', async () => {
      expect((await outcomeAfter(wire.respond({ parts: [{ call: 'look', input: {} }] }))).calls).toEqual([
        ['look', {}],
      ]);
    });

    test.each(['cut', 'reset', 'overloaded'] as const)('are dropped if the stream ends %s', async (end) => {
      expect(await outcomeAfter(wire.respond({ ...FIRST_STEP, end }))).toMatchObject({
        calls: [],
        failure: { code: 'model_unavailable', retryable: true },
      });
    });

    test('are dropped with a refusal', async () => {
      expect((await outcomeAfter(wire.respond({ ...FIRST_STEP, stop: 'refusal' }))).calls).toHaveLength(
        // OpenAI ends such a response like any other, so both its calls and its text count.
        wire === responses ? 2 : 0,
      );
    });
  });

  describe('the next step', () => {
    const results: ModelEntry = {
      role: 'tool',
      content: [
        { type: 'tool_result', toolCallId: LOOK_ID, output: { found: true } },
        { type: 'tool_result', toolCallId: NOTIFY_ID, error: 'Denied: too loud' },
      ],
    };

    function responseEntry(providerData: unknown): ModelEntry {
      return {
        role: 'assistant',
        content: [
          { type: 'text', text: 'One moment' },
          { type: 'tool_call', toolCallId: LOOK_ID, tool: 'look', input: CALLS[0]![1] },
          { type: 'tool_call', toolCallId: NOTIFY_ID, tool: 'notify', input: CALLS[1]![1] },
        ],
        // As after storing and reading it.
        ...(providerData !== undefined && { providerData: JSON.parse(JSON.stringify(providerData)) }),
      };
    }

    async function firstStep() {
      const { providerData } = await outcomeAfter(wire.respond(FIRST_STEP));
      server.requests.length = 0;
      return responseEntry(providerData);
    }

    /** Only the fields of the transcript. */
    const transcriptOf = (body: object) => pick(body, Object.keys(expected.transcript));
    const done = wire.respond({ parts: [{ text: ['done'] }] });

    test('sends calls, results and the provider’s own data, each at its place', async () => {
      const entry = await firstStep();
      expect(await outcomeAfter(done, callOf({ transcript: [user(PROMPT), entry, results] }))).toMatchObject({
        deltas: ['done'],
      });
      expect(transcriptOf(server.requests[0]!.body)).toEqual(expected.transcript);
    });

    test('works without the provider’s own data', async () => {
      await outcomeAfter(done, callOf({ transcript: [user(PROMPT), responseEntry(undefined), results] }));
      expect(transcriptOf(server.requests[0]!.body)).toEqual(expected.plainTranscript);
    });

    test('of another model does not send the provider’s own data', async () => {
      const entry = await firstStep();
      const other = callOf({ transcript: [user(PROMPT), entry, results] }, { model: `${model}-2` });
      await outcomeAfter(done, other);
      expect(JSON.stringify(server.requests[0]!.body)).not.toMatch(/seal-of-|hmm/);
    });

    test.each([400, 422])(
      'that the provider refuses with %i is retried once without the provider’s own data',
      async (status) => {
        const entry = await firstStep();
        server.next(refuse(status, { body: wire.error(status, 'This block is bound to another conversation') }), done);
        expect(await outcomeOf(callOf({ transcript: [user(PROMPT), entry, results] }))).toMatchObject({
          deltas: ['done'],
          failure: undefined,
        });
        expect(transcriptOf(server.requests[1]!.body)).toEqual(expected.plainTranscript);
        expect(server.requests).toHaveLength(2);
      },
    );

    test('that the provider refuses twice fails', async () => {
      const entry = await firstStep();
      server.next(refuse(400), refuse(400));
      const { failure } = await outcomeOf(callOf({ transcript: [user(PROMPT), entry, results] }));
      expect(failure).toMatchObject({ code: 'model_rejected', retryable: false, httpStatus: 400 });
      expect(server.requests).toHaveLength(2);
    });

    test('in a turn after a complete response sends the reasoning only to a server that may require it of every call', async () => {
      const entry = await firstStep();
      const complete: ModelEntry = { role: 'assistant', content: [{ type: 'text', text: 'Done.' }] };
      const transcript = [user(PROMPT), entry, results, complete, user('And now?')];
      await outcomeAfter(done, callOf({ transcript }));
      const text = JSON.stringify(server.requests[0]!.body);
      if (provider === 'openai-compatible') expect(text).toContain('"reasoning_content":"hmm"');
      else expect(text).not.toMatch(/seal-of-reasoning|hmm/);
    });

    test('in a turn after an interrupted one sends its reasoning, which the provider expects before its calls', async () => {
      const entry = await firstStep();
      await outcomeAfter(done, callOf({ transcript: [user(PROMPT), entry, results, user('And now?')] }));
      expect(JSON.stringify(server.requests[0]!.body)).toMatch(/seal-of-reasoning|"reasoning_content":"hmm"/);
    });
  });

  describe('a request', () => {
    test('goes to the base URL with its query, and has the key that is allowed there', async () => {
      await setKey();
      const query = path.includes('?') ? '&tenant=7' : '?tenant=7';
      const call = callOf({}, { apiKeySecret: 'MODEL_KEY', baseUrl: `${server.url}/?tenant=7` });
      await outcomeAfter(wire.respond({ parts: [{ text: ['ok'] }] }), call);
      expect(server.requests[0]!.path).toBe(path + query);
      expect(server.requests[0]!.headers[key[0]]).toBe(key[1]);
    });

    test('contains tools, settings and limits', async () => {
      const settings = { temperature: 0.5, topP: 0.9, seed: 7, stopSequences: ['END'] };
      const call = callOf({ tools: [TOOL], limits: { maxOutputTokens: 99 } }, { settings });
      await outcomeAfter(wire.respond({ parts: [{ text: ['ok'] }] }), call);
      expect(server.requests[0]!.body).toMatchObject(expected.settings);
    });

    test('contains the reasoning effort', async () => {
      const call = callOf({}, { settings: { reasoning: 'low' } });
      await outcomeAfter(wire.respond({ parts: [{ text: ['ok'] }] }), call);
      expect(server.requests[0]!.body).toMatchObject(expected.reasoning);
      expect(server.requests[0]!.body).not.toHaveProperty('reasoning.summary');
    });

    test('asks for a response that matches a schema', async () => {
      await outcomeAfter(wire.respond({ parts: [{ text: ['{"total":1}'] }] }), callOf({ outputSchema: SCHEMA }));
      expect(server.requests[0]!.body).toMatchObject(expected.schema);
    });

    test('asks in the instructions for a response that is not an object', async () => {
      const outputSchema = { type: 'array', items: { type: 'string' } };
      await outcomeAfter(wire.respond({ parts: [{ text: ['[]'] }] }), callOf({ outputSchema }));
      const schemaText = JSON.stringify(JSON.stringify(outputSchema)).slice(1, -1);
      expect(JSON.stringify(server.requests[0]!.body)).toContain(schemaText);
      expect(server.requests[0]!.body).not.toMatchObject(expected.settings);
    });
  });

  test('a response that was cut is continued after a request of the user’s role, which models accept as the last message', async () => {
    const said = (text: string): ModelEntry => ({ role: 'assistant', content: [{ type: 'text', text }] });
    const continued = callOf({
      transcript: [user(PROMPT), said('Once upon '), said('a'), user('And then?'), said('He')],
    });
    await outcomeAfter(wire.respond({ parts: [{ text: ['ok'] }] }), continued);
    const { body } = server.requests[0]!;
    const messages = (body.messages ?? body.input ?? body.contents) as { role: string }[];
    const texts = messages
      .filter(({ role }) => !['system', 'developer'].includes(role))
      .map((message) => JSON.stringify(message));
    expect(texts).toEqual([
      expect.stringContaining(PROMPT),
      expect.stringContaining('"Once upon '),
      expect.stringMatching(/"role":"user".*Continue exactly where it ended/),
      expect.stringContaining('"a"'),
      expect.stringContaining('And then?'),
      expect.stringContaining('"He"'),
      expect.stringMatching(/"role":"user".*Continue exactly where it ended/),
    ]);
  });

  describe('a refusal', () => {
    test.each([
      [400, 'model_rejected', false],
      [401, 'model_key_missing', false],
      [404, 'model_rejected', false],
      [429, 'model_rate_limited', true],
      [500, 'model_unavailable', true],
      [503, 'model_unavailable', true],
      [529, 'model_unavailable', true],
    ])('with %i is %s', async (status, code, retryable) => {
      const reply = refuse(status, { body: wire.error(status, 'What you said') });
      const { failure } = await outcomeAfter(reply);
      expect(failure).toMatchObject({ code, retryable, httpStatus: status, retryAfterMs: undefined });
      expect(failure?.message).toContain(`HTTP ${status}`);
      expect(server.requests).toHaveLength(1);
    });

    test('because the request is too long for the model has a code of its own, and is not repeated', async () => {
      for (const sentence of tooLong) {
        const { failure } = await outcomeAfter(refuse(400, { body: wire.error(400, sentence) }));
        expect(failure, sentence).toMatchObject({ code: 'model_context_too_long', retryable: false });
        expect(failure?.message).not.toContain('4711');
      }
      expect(server.requests).toHaveLength(tooLong.length);
    });

    test('with 429 gives the time to wait', async () => {
      const reply = refuse(429, { headers: { 'retry-after': '2' }, body: wire.error(429, 'Slow down') });
      expect((await outcomeAfter(reply)).failure).toMatchObject({
        code: 'model_rate_limited',
        retryable: true,
        retryAfterMs: 2000,
      });
    });
  });

  describe('a stream', () => {
    test.each(['cut', 'reset'] as const)('that is %s is model_unavailable, after its text', async (end) => {
      const outcome = await outcomeAfter(wire.respond({ parts: [{ text: ['one', ' two'] }], end }));
      expect(outcome).toMatchObject({ failure: { code: 'model_unavailable', retryable: true } });
      expect(outcome.reason).toBeUndefined();
    });

    test.each([
      ['overloaded', 'model_unavailable'],
      ['rateLimited', 'model_rate_limited'],
    ] as const)('with an event for %s is %s', async (end, code) => {
      const first = await outcomeAfter(wire.respond({ end }));
      expect(first).toMatchObject({ deltas: [], failure: { code, retryable: true } });
      const later = await outcomeAfter(wire.respond({ parts: [{ text: ['one'] }], end }));
      expect(later).toMatchObject({ deltas: ['one'], failure: { code, retryable: true } });
    });

    test.each([
      ['is empty', raw([]), 'model_unavailable'],
      ['is garbage', raw(['data: {nope\n\n']), 'model_protocol'],
      ['has another format', raw(['data: {"type":17,"choices":"many","candidates":3}\n\n']), 'model_protocol'],
      [
        'is an HTML page',
        refuse(200, { headers: { 'content-type': 'text/html' }, body: '<p>Log in</p>' }),
        'model_protocol',
      ],
    ])('that %s is a failure', async (_title, reply, code) => {
      expect((await outcomeAfter(reply)).failure).toMatchObject({ code });
    });

    test('that is missing, because the server sends the whole response as JSON, is read from that', async () => {
      const { deltas, calls, reason, usage, failure } = await outcomeAfter(refuse(200, { body: expected.whole }));
      expect(failure).toBeUndefined();
      expect([deltas.join(''), calls, reason]).toEqual(['One moment', [['look', { q: 'x' }]], 'toolCalls']);
      expect(usage).toMatchObject({ inputTokens: 10, outputTokens: 5 });
    });

    test('that is silent for 300 seconds is model_timeout', async () => {
      server.next(wire.respond({ parts: [{ text: ['one'] }], end: 'hang' }));
      const events = ask(callOf());
      await events.next();
      const next = expect(events.next()).rejects.toMatchObject({ code: 'model_timeout', retryable: true });
      await clock.advance(300_000);
      await next;
      expect(await server.requests[0]!.closed).toBe(false);
    });

    test('that never begins is model_timeout', async () => {
      const arrived = Promise.withResolvers<void>();
      server.next(() => arrived.resolve());
      const outcome = outcomeOf(callOf());
      await arrived.promise;
      await clock.advance(300_000);
      expect((await outcome).failure).toMatchObject({ code: 'model_timeout', retryable: true });
      expect(await server.requests[0]!.closed).toBe(false);
    });
  });

  describe('an abort', () => {
    const reason = new Error('interrupted');

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
      server.next(wire.respond({ parts: [{ text: ['one'] }], end: 'hang' }));
      const events = ask(callOf(), abort.signal);
      await events.next();
      const next = events.next();
      abort.abort(reason);
      await expect(next).rejects.toBe(reason);
      expect(await server.requests[0]!.closed).toBe(false);
      expect(clock.sleepers).toBe(0);
    });
  });

  describe('no failure contains the prompt or the key', () => {
    const secret = 'sk-4711.secret_key';
    const quote =
      (reply: (sent: string) => Reply): Reply =>
      (response, request) =>
        reply(`${request.headers[key[0]]} ${JSON.stringify(request.body)}`)(response, request);

    test.each<[string, Reply]>([
      ['a refusal that quotes both', quote((sent) => refuse(400, { body: wire.error(400, sent) }))],
      ['a refusal with the key as its code', refuse(401, { body: { error: { code: secret, type: secret } } })],
      ['garbage that quotes both', quote((sent) => raw([`data: {${sent}\n\n`]))],
      [
        'an event that quotes both',
        quote((sent) => raw([`data: ${JSON.stringify({ type: 'error', error: { message: sent, type: sent } })}\n\n`])),
      ],
      ['a stream that is cut', wire.respond({ parts: [{ text: [PROMPT] }], end: 'cut' })],
    ])('of %s', async (_title, reply) => {
      await setKey(secret);
      const { failure } = await outcomeAfter(reply, callOf({}, { apiKeySecret: 'MODEL_KEY' }));
      expect(failure).toBeDefined();
      expect(failure?.cause).toBeUndefined();
      const everything = `${failure?.message} ${failure?.stack} ${JSON.stringify(failure)}`;
      for (const word of [secret, secret.slice(3), PROMPT]) expect(everything).not.toContain(word);
    });
  });
});

function user(text: string): ModelEntry {
  return { role: 'user', content: [{ type: 'text', text }] };
}

function pick(object: object, keys: readonly string[]): object {
  return Object.fromEntries(Object.entries(object).filter(([name]) => keys.includes(name)));
}
