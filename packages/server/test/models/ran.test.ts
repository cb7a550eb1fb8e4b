// What a provider runs itself, in the exact form of each: nothing of it is dropped, and it is in the next request as that provider
// requires it.
import type { Model } from '@signalbox/contract';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { ModelCall, ModelEntry, ModelEvent } from '../../src/models/model/model.ts';
import { createModels } from '../../src/models/models.ts';
import { createTestPlatform, type TestPlatform } from '../support/platform.ts';
import { type ProviderServer, type Reply, startProviderServer } from '../support/provider-server.ts';
import { frames, type Searching, searching, searchRefusal } from '../support/searches.ts';

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
    transcript: [user('Who won?')],
    callsBefore: 0,
    ...more,
  };
}

async function ask(reply: Reply, call: ModelCall) {
  server.next(reply);
  const events: ModelEvent[] = [];
  for await (const event of createModels(base.platform)(call, new AbortController().signal)) events.push(event);
  const ran = events.find((event) => event.type === 'ran');
  const finish = events.find((event) => event.type === 'finish');
  const text = events.map((event) => (event.type === 'text' ? event.delta : '')).join('');
  return { text, ran, finish, calls: events.filter(({ type }) => type === 'toolCall') };
}

const block = (index: number, content_block: object, ...deltas: object[]) => [
  { type: 'content_block_start', index, content_block },
  ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
  { type: 'content_block_stop', index },
];
const start = { type: 'message_start', message: { id: 'm', usage: { input_tokens: 1, output_tokens: 1 } } };
const anthropicEnd = (stop_reason: string, web_search_requests = 1) => [
  {
    type: 'message_delta',
    delta: { stop_reason, stop_sequence: null },
    usage: { output_tokens: 9, server_tool_use: { web_search_requests } },
  },
  { type: 'message_stop' },
];
const found = (url: string, title: string | null) => ({
  type: 'web_search_result',
  url,
  title,
  encrypted_content: `sealed ${url}`,
  page_age: 'April 30, 2026',
});
const citation = {
  type: 'web_search_result_location',
  url: 'https://example.com/a',
  title: 'A',
  encrypted_index: 'sealed index',
  cited_text: 'Ada won.',
};
const searched = [
  ...block(0, { type: 'text', text: '' }, { type: 'text_delta', text: 'I will search. ' }),
  ...block(
    1,
    { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} },
    { type: 'input_json_delta', partial_json: '' },
    { type: 'input_json_delta', partial_json: '{"query": "who' },
    { type: 'input_json_delta', partial_json: ' won"}' },
  ),
  ...block(2, {
    type: 'web_search_tool_result',
    tool_use_id: 'srvtoolu_1',
    content: [found('https://example.com/a', 'A'), found('https://example.com/b', null)],
  }),
  ...block(
    3,
    { type: 'text', text: '', citations: [] },
    { type: 'citations_delta', citation },
    { type: 'text_delta', text: 'Ada won.' },
  ),
];
const page = (url: string, title: string | null) => ({
  type: 'web_search_result',
  url,
  title,
  page_age: 'April 30, 2026',
});

const item = (output_index: number, item: object) => [
  { type: 'response.output_item.added', output_index, item: { ...item, status: 'in_progress', content: [] } },
  { type: 'response.output_item.done', output_index, item },
];
const message = { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed' };
const action = {
  type: 'search',
  query: 'who won',
  queries: ['who won'],
  sources: [
    { type: 'url', url: 'https://example.com/a' },
    { type: 'url', url: 'https://example.com/b' },
  ],
};
const search = { type: 'web_search_call', id: 'ws_1', status: 'completed', action };
const openaiEvents = (...items: object[]) => [
  { type: 'response.created', response: { id: 'resp_1', created_at: 1, model: 'gpt-6.1-terra' } },
  ...items,
  {
    type: 'response.completed',
    response: { usage: { input_tokens: 1, output_tokens: 1 }, incomplete_details: null },
  },
];
const saysWithCitation = (text: string, annotation: object) => [
  { type: 'response.output_item.added', output_index: 2, item: { ...message, content: [] } },
  { type: 'response.output_text.delta', item_id: 'msg_1', output_index: 2, content_index: 0, delta: text },
  {
    type: 'response.output_text.annotation.added',
    item_id: 'msg_1',
    output_index: 2,
    content_index: 0,
    annotation_index: 0,
    annotation,
  },
  { type: 'response.output_item.done', output_index: 2, item: { ...message, content: [] } },
];
const urlCitation = { type: 'url_citation', url: 'https://example.com/a', title: 'A', start_index: 0, end_index: 8 };

const grounding = {
  webSearchQueries: ['who won', 'winner'],
  searchEntryPoint: { renderedContent: '<div>who won</div>' },
  groundingChunks: [
    { web: { uri: 'https://vertexaisearch.cloud.google.com/grounding-api-redirect/1', title: 'example.com' } },
    { web: { uri: 'https://vertexaisearch.cloud.google.com/grounding-api-redirect/2', title: 'example.org' } },
  ],
  groundingSupports: [{ segment: { startIndex: 0, endIndex: 8, text: 'Ada won.' }, groundingChunkIndices: [0] }],
};
const gemini = (parts: object[], more: object = {}) => ({
  candidates: [{ content: { role: 'model', parts }, ...more }],
  usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1 },
});
const grounded = [
  gemini([{ text: 'Ada ' }]),
  gemini([{ text: 'won.' }], { finishReason: 'STOP', groundingMetadata: grounding }),
];
const chunk = (delta: object, more: object = {}) => ({ id: 'c', choices: [{ index: 0, delta }], ...more });
const stop = { id: 'c', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] };

interface Case {
  provider: Model['provider'];
  model?: string;
  events: object[];
  calls: object[];
  sources: object[];
  /** How many searches it costs; undefined: none. */
  searches?: number;
}

const cases: Record<string, Case> = {
  'Anthropic’s search': {
    provider: 'anthropic',
    events: [start, ...searched, ...anthropicEnd('end_turn')],
    calls: [
      {
        tool: 'web_search',
        input: { query: 'who won' },
        output: [page('https://example.com/a', 'A'), page('https://example.com/b', null)],
      },
    ],
    sources: [{ url: 'https://example.com/a', title: 'A', citedText: 'Ada won.' }],
    searches: 1,
  },
  'Anthropic’s search that failed': {
    provider: 'anthropic',
    events: [
      start,
      ...block(0, { type: 'server_tool_use', id: 's', name: 'web_search', input: {} }),
      ...block(1, {
        type: 'web_search_tool_result',
        tool_use_id: 's',
        content: { type: 'web_search_tool_result_error', error_code: 'max_uses_exceeded' },
      }),
      ...block(2, { type: 'text', text: '' }, { type: 'text_delta', text: 'No.' }),
      ...anthropicEnd('end_turn', 0),
    ],
    calls: [{ tool: 'web_search', input: {}, error: 'max_uses_exceeded' }],
    sources: [],
  },
  'a tool of Anthropic’s that its package does not know': {
    provider: 'anthropic',
    events: [
      start,
      ...block(0, { type: 'server_tool_use', id: 's', name: 'time_travel', input: { to: 1999 } }),
      ...block(1, { type: 'time_travel_tool_result', tool_use_id: 's', content: { encrypted_x: 'y', year: 1999 } }),
      ...block(2, { type: 'mcp_tool_use', id: 'm', name: 'crm', server_name: 'crm', input: {} }),
      ...block(3, {
        type: 'mcp_tool_result',
        tool_use_id: 'm',
        is_error: true,
        content: [{ type: 'text', text: 'no' }],
      }),
      ...block(4, { type: 'text', text: '' }, { type: 'text_delta', text: 'Done.' }),
      ...anthropicEnd('end_turn', 0),
    ],
    calls: [
      { tool: 'time_travel', input: { to: 1999 }, output: { year: 1999 } },
      { tool: 'crm', input: {}, error: '[{"type":"text","text":"no"}]' },
    ],
    sources: [],
  },
  'OpenAI’s search': {
    provider: 'openai',
    events: openaiEvents(...item(1, search), ...saysWithCitation('Ada won.', urlCitation)),
    calls: [
      {
        tool: 'web_search',
        input: { type: 'search', query: 'who won', queries: ['who won'] },
        output: { sources: action.sources },
      },
    ],
    sources: [{ url: 'https://example.com/a', title: 'A' }],
    searches: 1,
  },
  'OpenAI’s page, its search that failed, and an answer that cites nothing': {
    provider: 'openai',
    events: openaiEvents(
      ...item(0, search),
      ...item(1, { ...search, id: 'ws_2', action: { type: 'open_page', url: 'https://example.com/a' } }),
      ...item(2, { ...search, id: 'ws_3', status: 'failed', action: { type: 'search', query: 'b' } }),
      { type: 'response.output_item.added', output_index: 3, item: { ...message, content: [] } },
      { type: 'response.output_text.delta', item_id: 'msg_1', output_index: 3, delta: 'Hm.' },
      { type: 'response.output_item.done', output_index: 3, item: { ...message, content: [] } },
    ),
    calls: [
      { tool: 'web_search', output: { sources: action.sources } },
      { tool: 'web_search', input: { type: 'open_page', url: 'https://example.com/a' }, output: {} },
      { tool: 'web_search', input: { type: 'search', query: 'b' }, error: 'The provider’s call is failed.' },
    ],
    sources: [{ url: 'https://example.com/a' }, { url: 'https://example.com/b' }],
    searches: 1,
  },
  'other tools of OpenAI’s': {
    provider: 'openai',
    events: openaiEvents(
      ...item(0, {
        type: 'file_search_call',
        id: 'fs_1',
        status: 'completed',
        queries: ['a'],
        results: [{ score: 1 }],
      }),
      ...item(1, { type: 'mcp_call', id: 'mcp_1', name: 'crm', server_label: 'x', arguments: '{"a":1}', output: 'ok' }),
      ...saysWithCitation('Done.', { type: 'file_citation', file_id: 'file_1', filename: 'a.pdf', index: 1 }),
    ),
    calls: [
      { tool: 'file_search', input: { queries: ['a'] }, output: { results: [{ score: 1 }] } },
      { tool: 'crm', input: { a: 1 }, output: { server_label: 'x', output: 'ok' } },
    ],
    sources: [{ title: 'a.pdf' }],
  },
  'Google’s grounding': {
    provider: 'google',
    events: grounded,
    calls: [
      {
        tool: 'web_search',
        input: { queries: ['who won', 'winner'] },
        output: {
          sources: grounding.groundingChunks.map(({ web }) => ({ url: web.uri, title: web.title })),
          searchEntryPoint: grounding.searchEntryPoint,
        },
      },
    ],
    sources: grounding.groundingChunks.map(({ web }) => ({ url: web.uri, title: web.title })),
    searches: 2,
  },
  'Google’s calls of its own tools': {
    provider: 'google',
    events: [
      gemini([
        {
          toolCall: { toolType: 'GOOGLE_SEARCH_WEB', id: 't1', args: { queries: ['who won'] } },
          thoughtSignature: 's1',
        },
        { toolResponse: { toolType: 'GOOGLE_SEARCH_WEB', id: 't1', response: { search_suggestions: '<div/>' } } },
      ]),
      gemini([{ text: 'Ada won.' }], { finishReason: 'STOP', groundingMetadata: grounding }),
    ],
    calls: [{ tool: 'web_search', input: { queries: ['who won'] }, output: { search_suggestions: '<div/>' } }],
    sources: grounding.groundingChunks.map(({ web }) => ({ url: web.uri, title: web.title })),
    searches: 2,
  },
  'Azure’s search': {
    provider: 'azure',
    model: 'prod-chat',
    events: openaiEvents(...item(1, search), ...saysWithCitation('Ada won.', urlCitation)),
    calls: [
      {
        tool: 'web_search',
        input: { type: 'search', query: 'who won', queries: ['who won'] },
        output: { sources: action.sources },
      },
    ],
    sources: [{ url: 'https://example.com/a', title: 'A' }],
    searches: 1,
  },
  'Azure’s search that names no source, with an answer that cites some': {
    provider: 'azure',
    model: 'prod-chat',
    events: openaiEvents(
      ...item(1, { ...search, action: { type: 'search', query: 'who won' } }),
      ...saysWithCitation('Ada won.', urlCitation),
    ),
    calls: [{ tool: 'web_search', input: { type: 'search', query: 'who won' }, output: {} }],
    sources: [{ url: 'https://example.com/a', title: 'A' }],
    searches: 1,
  },
  'Vertex’s grounding': {
    provider: 'vertex',
    events: grounded,
    calls: [
      {
        tool: 'web_search',
        input: { queries: ['who won', 'winner'] },
        output: {
          sources: grounding.groundingChunks.map(({ web }) => ({ url: web.uri, title: web.title })),
          searchEntryPoint: grounding.searchEntryPoint,
        },
      },
    ],
    sources: grounding.groundingChunks.map(({ web }) => ({ url: web.uri, title: web.title })),
    searches: 2,
  },
  'Vertex’s answer that needed no search': {
    provider: 'vertex',
    events: [gemini([{ text: 'Hm.' }], { finishReason: 'STOP', groundingMetadata: {} })],
    calls: [],
    sources: [],
  },
  'a chat server with annotations': {
    provider: 'openai-compatible',
    events: [
      chunk({ content: 'Ada won.' }),
      chunk({ annotations: [{ type: 'url_citation', url_citation: { ...urlCitation, content: 'Ada!' } }] }),
      chunk({ annotations: [{ type: 'url_citation', url_citation: { url: 'javascript:alert(1)', title: '' } }] }),
      stop,
    ],
    calls: [],
    sources: [{ url: 'https://example.com/a', title: 'A', citedText: 'Ada!' }, { title: 'javascript:alert(1)' }],
  },
  'a chat server that repeats its sources with each piece': {
    provider: 'openai-compatible',
    events: ['Ada ', 'won.']
      .map((content) =>
        chunk(
          { content },
          {
            citations: ['https://example.com/a', 'https://example.com/b'],
            search_results: [{ title: 'A', url: 'https://example.com/a', date: null }],
          },
        ),
      )
      .concat(stop as never),
    calls: [],
    sources: [{ url: 'https://example.com/a', title: 'A' }, { url: 'https://example.com/b' }],
  },
  'a gateway that counts its searches, with each piece': {
    provider: 'openai-compatible',
    events: [
      chunk({ content: 'Ada ' }, { usage: { prompt_tokens: 1, num_search_queries: 2 } }),
      chunk({ content: 'won.' }, { usage: { prompt_tokens: 1, num_search_queries: 3 } }),
      stop,
    ],
    calls: [],
    sources: [],
    searches: 3,
  },
  'Gemini’s calls of its search without grounding': {
    provider: 'google',
    events: [
      gemini([
        { toolCall: { toolType: 'GOOGLE_SEARCH_WEB', id: 't1', args: { queries: ['a', 'b', ' '] } } },
        { toolResponse: { toolType: 'GOOGLE_SEARCH_WEB', id: 't1', response: {} } },
        { toolCall: { toolType: 'GOOGLE_SEARCH_WEB', id: 't2', args: {} } },
        { toolResponse: { toolType: 'GOOGLE_SEARCH_WEB', id: 't2', response: {} } },
      ]),
      gemini([{ text: 'Hm.' }], { finishReason: 'STOP' }),
    ],
    calls: [{ tool: 'web_search' }, { tool: 'web_search' }],
    sources: [],
    searches: 3,
  },
  'a chat server that runs tools': {
    provider: 'openai-compatible',
    events: [
      chunk({ executed_tools: [{ index: 0, type: 'search', arguments: '{"query":"who won"}' }] }),
      chunk({ executed_tools: [{ index: 0, type: 'search', arguments: '{"query":"who won"}', output: 'Ada' }] }),
      chunk({ content: 'Ada won.' }),
      stop,
    ],
    calls: [{ tool: 'search', input: { query: 'who won' }, output: 'Ada' }],
    sources: [],
  },
};

test.each(Object.entries(cases))('%s is all there, and no call for anyone to run', async (_, given) => {
  const { provider, model = 'gemini-3.5-flash', events } = given;
  const { ran, calls, finish } = await ask(frames(...events), callOf(provider, model));
  expect(calls).toEqual([]);
  expect(finish?.usage.webSearches).toBe(given.searches);
  expect(ran?.calls ?? []).toMatchObject(given.calls);
  expect(ran?.calls ?? []).toHaveLength(given.calls.length);
  expect(ran?.sources ?? []).toEqual(given.sources);
  expect(JSON.stringify(ran ?? null)).not.toContain('sealed');
});

test('a call without a result says so, and a result of an earlier call is there too', async () => {
  const pending = block(0, { type: 'server_tool_use', id: 's1', name: 'web_search', input: { query: 'a' } });
  const { ran } = await ask(
    frames(
      start,
      ...block(1, { type: 'web_search_tool_result', tool_use_id: 's0', content: [] }),
      ...pending,
      ...anthropicEnd('end_turn'),
    ),
    callOf('anthropic', 'claude-sonnet-5-5'),
  );
  expect(ran?.calls).toEqual([
    { tool: 'web_search', input: {}, output: [] },
    { tool: 'web_search', input: { query: 'a' }, error: 'The provider’s response has no result of this call.' },
  ]);
});

// ── The next request ─────────────────────────────────────────────────────────────────────────────────────────────────

type Fields = Record<string, unknown>;
const listOf = (value: unknown) => (Array.isArray(value) ? (value as Fields[]) : []);

/** Answers if the real server would accept the request. */
const strict =
  (name: Searching, reply: Reply): Reply =>
  (response, request) => {
    const why = searchRefusal(name, request.body, request.path);
    if (why === undefined) return reply(response, request);
    response.writeHead(400, { 'content-type': 'application/json' });
    const error = { type: 'error', error: { type: 'invalid_request_error', code: 400, message: why } };
    response.end(JSON.stringify(error));
  };

const reasoned = (index: number) =>
  item(index, { type: 'reasoning', id: `rs_${index}`, encrypted_content: `sealed ${index}`, summary: [] });
const said = {
  anthropic: [
    start,
    ...block(0, { type: 'text', text: '' }, { type: 'text_delta', text: 'Bea.' }),
    ...anthropicEnd('end_turn'),
  ],
  openai: openaiEvents(...saysWithCitation('Bea.', urlCitation)),
  google: [gemini([{ text: 'Bea.' }], { finishReason: 'STOP' })],
};
const plain: Record<Searching, object[]> = { ...said, azure: said.openai, vertex: said.google };
const models: Record<Searching, string> = {
  anthropic: 'claude-sonnet-5-5',
  openai: 'gpt-6.1-terra',
  azure: 'prod-chat',
  google: 'gemini-3.8-flash',
  vertex: 'gemini-3.8-flash',
};
const first: Record<Searching, object[]> = {
  anthropic: [start, ...searched, ...anthropicEnd('end_turn')],
  openai: openaiEvents(...reasoned(0), ...item(1, search), ...saysWithCitation('Ada won.', urlCitation)),
  // A model without reasoning, as far as its package knows.
  azure: openaiEvents(...item(1, search), ...saysWithCitation('Ada won.', urlCitation)),
  google: cases['Google’s calls of its own tools']!.events,
  vertex: grounded,
};
const called = {
  type: 'function_call',
  id: 'fc_1',
  call_id: 'call_1',
  name: 'look',
  arguments: '{}',
  status: 'completed',
};
const look = { name: 'look', description: '', inputSchema: { type: 'object' } };

async function conversation(provider: Searching, more: Partial<ModelCall> = {}) {
  const call = callOf(provider, models[provider], { webSearch: {}, ...more });
  const { text, finish } = await ask(strict(provider, frames(...first[provider])), call);
  const content: ModelEntry['content'] = [
    { type: 'text', text, sources: [{ url: 'https://example.com/a' }] },
    { type: 'tool_call', toolCallId: 'call_1', tool: 'web_search', input: {}, by: 'provider' },
    { type: 'tool_result', toolCallId: 'call_1', output: [], by: 'provider' },
  ];
  const response: ModelEntry = { role: 'assistant', content, providerData: finish?.providerData };
  return { call, response, transcript: [...call.transcript, response] };
}

test.each(searching)('%s gets back what it ran as it requires it, within a turn and in the next', async (provider) => {
  const { call, transcript } = await conversation(provider);
  const next = { ...call, transcript: [...transcript, user('And before?')] };
  expect((await ask(strict(provider, frames(...plain[provider])), next)).text).toBe('Bea.');
  const body = JSON.stringify(server.requests.at(-1)!.body);
  expect(body.includes('sealed https://example.com/a')).toBe(provider === 'anthropic');
  expect(body.includes('sealed index')).toBe(provider === 'anthropic');
  expect(body.includes('"toolResponse"')).toBe(provider === 'google');
  // OpenAI wants it with its reasoning, which is sent only within a turn.
  expect(body.includes('"web_search_call"')).toBe(false);
  expect(server.requests).toHaveLength(2);

  // A turn that was interrupted after the search, and continues.
  const tools = [look];
  const called: ModelEntry['content'] = [
    ...transcript[1]!.content,
    { type: 'tool_call', toolCallId: 'call_00000000000000000000000001', tool: 'look', input: {} },
  ];
  // Vertex needs nothing of it back.
  const data = transcript[1]!.providerData as { ranParts: unknown[] } | undefined;
  const response = {
    role: 'assistant' as const,
    content: called,
    ...(data && { providerData: { ...data, ranParts: [...data.ranParts, { type: 'toolCall' }] } }),
  };
  const results: ModelEntry = {
    role: 'tool',
    content: [{ type: 'tool_result', toolCallId: 'call_00000000000000000000000001', output: 1 }],
  };
  const step = { ...call, tools, transcript: [user('Who won?'), response, results] };
  expect((await ask(strict(provider, frames(...plain[provider])), step)).text).toBe('Bea.');
  const isOpenai = provider === 'openai' || provider === 'azure';
  expect(JSON.stringify(server.requests.at(-1)!.body).includes('"web_search_call"')).toBe(isOpenai);
  expect(server.requests).toHaveLength(3);
});

test('a search is not returned without its reasoning, which a deployment of an unknown name does not seal', async () => {
  const thought = item(0, { type: 'reasoning', id: 'rs_0', encrypted_content: null, summary: [] });
  const events = openaiEvents(...thought, ...item(1, search), ...item(2, called));
  const call = callOf('azure', 'prod-thinks', { webSearch: {}, tools: [look] });
  const { finish } = await ask(strict('azure', frames(...events)), call);
  const toolCallId = 'call_00000000000000000000000001';
  const content: ModelEntry['content'] = [{ type: 'tool_call', toolCallId, tool: 'look', input: {} }];
  const transcript: ModelEntry[] = [
    ...call.transcript,
    { role: 'assistant', content, providerData: finish?.providerData },
    { role: 'tool', content: [{ type: 'tool_result', toolCallId, output: 1 }] },
  ];
  expect((await ask(strict('azure', frames(...plain.azure)), { ...call, transcript })).text).toBe('Bea.');
  // Nothing was refused on the way.
  expect(server.requests).toHaveLength(2);
});

test.each(searching)(
  'a conversation with searches of %s continues without them: with another model, another provider, and without the tool',
  async (provider) => {
    const { call, transcript } = await conversation(provider);
    const next = [...transcript, user('And before?')];
    const continuing: [Searching, Partial<ModelCall>][] = [
      [provider, { webSearch: undefined }],
      [provider, { config: { ...call.config, model: `${call.config.model}-other` } }],
      ...searching
        .filter((other) => other !== provider)
        .map((other): [Searching, Partial<ModelCall>] => [
          other,
          { config: { provider: other, model: models[other], baseUrl: server.url } },
        ]),
    ];
    for (const [to, more] of continuing) {
      const { text } = await ask(strict(to, frames(...plain[to])), { ...call, ...more, transcript: next });
      expect(text).toBe('Bea.');
      const body = JSON.stringify(server.requests.at(-1)!.body);
      expect(body).toContain('Ada won.');
      expect(body).not.toMatch(/sealed|server_tool_use|web_search_call"|toolResponse|call_1/);
    }
    expect(server.requests).toHaveLength(1 + continuing.length);
  },
);

test('each provider gets its own search, with what it is limited to', async () => {
  const webSearch = { allowedDomains: ['example.com'], maxUses: 3 };
  const more = { tools: [look], webSearch };
  await ask(frames(...plain.anthropic), callOf('anthropic', models.anthropic, more));
  expect(server.requests.at(-1)!.body.tools).toMatchObject([
    { name: 'look' },
    { type: 'web_search_20250305', name: 'web_search', max_uses: 3, allowed_domains: ['example.com'] },
  ]);
  await ask(frames(...plain.openai), callOf('openai', models.openai, more));
  expect(server.requests.at(-1)!.body).toMatchObject({
    tools: [{ name: 'look' }, { type: 'web_search', filters: { allowed_domains: ['example.com'] } }],
    max_tool_calls: 3,
  });
  await ask(strict('azure', frames(...plain.azure)), callOf('azure', models.azure, more));
  expect(server.requests.at(-1)!.body).toMatchObject({
    tools: [{ name: 'look' }, { type: 'web_search', filters: { allowed_domains: ['example.com'] } }],
    max_tool_calls: 3,
  });
  for (const provider of ['google', 'vertex'] as const) {
    const call = callOf(provider, models[provider], { ...more, webSearch: {} });
    await ask(strict(provider, frames(...plain[provider])), call);
    expect(server.requests.at(-1)!.body.tools).toMatchObject([
      { googleSearch: {} },
      { functionDeclarations: [{ name: 'look' }] },
    ]);
  }
  // A summary, and an agent without the tool.
  await ask(frames(...plain.openai), callOf('openai', models.openai, { tools: [look] }));
  expect(server.requests.at(-1)!.body.tools).toMatchObject([{ name: 'look' }]);
});

test.each(searching)('%s gets a response schema in a form that it takes beside its search', async (provider) => {
  const outputSchema = { type: 'object', properties: { winner: { type: 'string' } }, additionalProperties: false };
  await ask(frames(...plain[provider]), callOf(provider, models[provider], { webSearch: {}, outputSchema }));
  const { body } = server.requests.at(-1)!;
  const formats = JSON.stringify([body.text, body.output_format, body.output_config, body.generationConfig]);
  expect(formats.includes('winner')).toBe(provider === 'openai' || provider === 'azure');
  expect(JSON.stringify(body)).toContain('winner');
});

test('a response that Anthropic pauses is continued, and is one response', async () => {
  const paused = [start, ...searched.slice(0, -4), ...anthropicEnd('pause_turn')];
  const more = (id: string) => [
    ...block(0, { type: 'server_tool_use', id, name: 'web_search', input: { query: id } }),
    ...block(1, { type: 'web_search_tool_result', tool_use_id: id, content: [found(`https://example.com/${id}`, id)] }),
  ];
  const last = block(2, { type: 'text', text: '' }, { type: 'text_delta', text: 'Ada won.' });
  const events = [paused, [start, ...more('s2'), ...anthropicEnd('pause_turn')]];
  server.next(...events.map((some) => strict('anthropic', frames(...some))));
  const call = callOf('anthropic', models.anthropic, { webSearch: { maxUses: 5 } });
  const { text, ran, finish } = await ask(
    strict('anthropic', frames(start, ...more('s3'), ...last, ...anthropicEnd('end_turn'))),
    call,
  );
  expect(text).toBe('I will search. Ada won.');
  expect(ran?.calls.map(({ input }) => input)).toEqual([{ query: 'who won' }, { query: 's2' }, { query: 's3' }]);
  expect(finish).toMatchObject({ reason: 'endTurn', usage: { inputTokens: 3, outputTokens: 27, webSearches: 3 } });
  expect(finish).not.toHaveProperty('isPaused');
  const [, second, third] = server.requests.map(({ body }) => body as Fields);
  expect(listOf(second!.messages).map(({ role }) => role)).toEqual(['user', 'assistant']);
  expect(listOf(second!.tools)).toMatchObject([{ max_uses: 4 }]);
  expect(listOf(third!.tools)).toMatchObject([{ max_uses: 3 }]);

  const content: ModelEntry['content'] = [{ type: 'text', text }];
  const response: ModelEntry = { role: 'assistant', content, providerData: finish?.providerData };
  const next = { ...call, transcript: [...call.transcript, response, user('And before?')] };
  expect((await ask(strict('anthropic', frames(...plain.anthropic)), next)).text).toBe('Bea.');
  expect(JSON.stringify(server.requests.at(-1)!.body)).toContain('"id":"s3"');
});

test('a response that is paused when it may not search more often ends there', async () => {
  const paused = [start, ...searched, ...anthropicEnd('pause_turn')];
  const call = callOf('anthropic', models.anthropic, { webSearch: { maxUses: 1 } });
  const { finish } = await ask(strict('anthropic', frames(...paused)), call);
  expect(finish).toMatchObject({ reason: 'endTurn' });
  expect(server.requests).toHaveLength(1);
});
