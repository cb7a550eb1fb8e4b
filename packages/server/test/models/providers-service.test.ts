// Sessions with the providers' own formats, end to end: data that a provider must receive again is kept while an approval is pending,
// and is never shown.
import type { Chunk, Model } from '@signalbox/client';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Target } from '../../src/models/model/targets.ts';
import { anthropicMessages } from '../support/anthropic-wire.ts';
import { generateContent } from '../support/google-wire.ts';
import { chatCompletions } from '../support/openai-server.ts';
import {
  type ProviderServer,
  type Reply,
  raw,
  refuse,
  startProviderServer,
  type Wire,
} from '../support/provider-server.ts';
import { responses } from '../support/responses-wire.ts';
import { toolsRefusal } from '../support/server-rules/tools.ts';
import { startTestService, type TestService, watchSecret } from '../support/service.ts';

const KEY = 'provider-key-5d41402abc4b';
const THOUGHT = 'the customer seems nervous';
const SEAL = 'c2VhbC1vZi1yZWFzb25pbmc=';

let service: TestService;
let provider: ProviderServer;

beforeAll(async () => {
  for (const secret of [KEY, THOUGHT, SEAL]) watchSecret(secret);
  service = await startTestService();
});
afterAll(() => service.stop());
beforeEach(async () => {
  provider = await startProviderServer('/v1');
});
afterEach(() => provider.close());

const compatible: [Model['provider'], string, string, Wire] = [
  'openai-compatible',
  'any',
  'MODEL_KEY',
  chatCompletions,
];
const providers: [Model['provider'], string, string, Wire][] = [
  ['openai', 'gpt-5', 'OPENAI_API_KEY', responses],
  ['anthropic', 'claude-sonnet-4-5', 'ANTHROPIC_API_KEY', anthropicMessages],
  ['google', 'gemini-3-pro-preview', 'GOOGLE_GENERATIVE_AI_API_KEY', generateContent],
];

test.each(providers)(
  '%s: after an approval, the provider gets back the reasoning that came before the call',
  async (...row) => {
    const [name, model, keyName, wire] = row;
    const { client } = service;
    await client.environments.secrets.set('production', keyName, { value: KEY, allowedHosts: [provider.host] });
    provider.next(
      refuse(429, { headers: { 'retry-after': '0' }, body: wire.error(429, 'Slow down') }),
      wire.respond({
        parts: [
          { reasoning: [THOUGHT], seal: SEAL },
          { text: ['One moment'] },
          { call: 'refund', input: { cents: 1250 } },
        ],
        usage: { input: 100, cached: 80, output: 20 },
      }),
      wire.respond({ parts: [{ text: ['Done'] }], usage: { input: 150, cached: 100, output: 5 } }),
    );
    const { agentId } = await client.agents.create({
      name: 'Clerk',
      model: { provider: name as 'openai', model, baseUrl: provider.url },
      tools: [{ type: 'client', name: 'refund', description: 'Gives money back', inputSchema: {}, approval: 'always' }],
    });
    const { sessionId } = await client.sessions.open({
      agentId,
      environment: 'production',
      input: 'I want my money back',
      closeOnIdle: true,
    });

    const chunks: Chunk[] = [];
    for await (const envelope of client.sessions.stream(sessionId)) {
      chunks.push(...envelope.chunks);
      for (const chunk of envelope.chunks) {
        const { operationIds = [], toolCallIds = [] } = (chunk.type === 'session.status' && chunk.waitingFor) || {};
        for (const operationId of operationIds) await client.approvals.approve(operationId);
        for (const toolCallId of toolCallIds)
          await client.sessions.sendToolResult(sessionId, { toolCallId, output: 'ok' });
      }
    }

    expect(chunks.flatMap((chunk) => (chunk.type === 'message.chunk' ? [chunk.delta] : [])).join('|')).toMatch(
      /^One moment\|Done$/,
    );
    const session = await client.sessions.get(sessionId);
    expect(session).toMatchObject({
      status: 'completed',
      usage: { inputTokens: 250, cachedTokens: 180, outputTokens: 25, steps: 2, toolCalls: 1 },
    });
    expect(JSON.stringify(provider.requests.at(-1)!.body)).toContain(SEAL);

    const shown = JSON.stringify([chunks, session, (await client.sessions.messages(sessionId)).data]);
    for (const secret of [THOUGHT, SEAL, KEY]) expect(shown).not.toContain(secret);
  },
);

test.each([...providers, compatible])(
  '%s: a response that is cut off by its token limit ends the turn with that reason',
  async (...row) => {
    const [name, model, keyName, wire] = row;
    const { client } = service;
    await client.environments.secrets.set('production', keyName, { value: KEY, allowedHosts: [provider.host] });
    provider.next(
      wire.respond({ parts: [{ text: ['Half an '] }, { call: 'refund', input: {} }], stop: 'maxOutputTokens' }),
    );
    const { agentId } = await client.agents.create({
      name: 'Clerk',
      model: { provider: name as 'openai', model, baseUrl: provider.url, apiKeySecret: keyName },
      tools: [{ type: 'client', name: 'refund', description: 'Gives money back', inputSchema: {}, approval: 'never' }],
    });
    const opened = { agentId, environment: 'production', input: 'I want my money back', closeOnIdle: true };
    const { sessionId } = await client.sessions.open(opened);
    const chunks: Chunk[] = [];
    for await (const envelope of client.sessions.stream(sessionId)) chunks.push(...envelope.chunks);

    const stopReason = 'maxOutputTokens';
    expect(chunks.find(({ type }) => type === 'message.chunk')).toMatchObject({ delta: 'Half an ' });
    expect(chunks.slice(-2)).toMatchObject([
      { type: 'turn.completed', stopReason },
      { type: 'session.status', status: 'completed', stopReason },
    ]);
    expect(await client.sessions.get(sessionId)).toMatchObject({ status: 'completed', stopReason, error: null });
    expect((await client.sessions.turns(sessionId)).data).toMatchObject([{ status: 'completed', stopReason }]);
    expect(provider.requests).toHaveLength(1);
  },
);

test.each([...providers, compatible])(
  '%s: tools that its server would refuse are written for it or left out, and the turn names those',
  async (...row) => {
    const [name, model, keyName, wire] = row;
    const { client } = service;
    await client.environments.secrets.set('production', keyName, { value: KEY, allowedHosts: [provider.host] });
    const target = name === 'openai-compatible' ? 'chat' : (name as Target);
    let sent = '';
    /** Calls the tool by the names that it was sent with. */
    const calling: Reply = (response, request) => {
      const refused = toolsRefusal(target, request.body);
      if (refused) return refuse(refused.status, { body: refused.body })(response, request);
      [sent = ''] = /"\w*top\w*"|"\$top"/.exec(request.text) ?? [];
      return wire.respond({ parts: [{ call: 'json_find', input: { [JSON.parse(sent)]: 5 } }] })(response, request);
    };
    provider.next(calling, wire.respond({ parts: [{ text: ['Done'] }] }));
    const properties = { $top: { type: 'integer' }, page: {} };
    const inputSchema = { type: 'object', properties, oneOf: [{ required: ['$top'] }, { required: ['page'] }] };
    const odd = Object.fromEntries(['a', 'b'].map((one) => [one, { type: 'array', items: [{ $ref: '#/$defs/x' }] }]));
    const { agentId } = await client.agents.create({
      name: 'Clerk',
      model: { provider: name as 'openai', model, baseUrl: provider.url, apiKeySecret: keyName },
      tools: [
        { type: 'client', name: 'json_find', description: 'x'.repeat(3000), inputSchema },
        { type: 'client', name: 'none', description: '', inputSchema: { type: 'object', anyOf: [{ type: 'string' }] } },
        { type: 'client', name: 'odd', description: '', inputSchema: { properties: odd, $defs: { x: {} } } },
      ],
    });
    const { sessionId } = await client.sessions.open({
      agentId,
      environment: 'production',
      input: 'Find',
      closeOnIdle: true,
    });
    for await (const { chunks } of client.sessions.stream(sessionId)) {
      for (const chunk of chunks) {
        const { toolCallIds = [] } = (chunk.type === 'session.status' && chunk.waitingFor) || {};
        for (const toolCallId of toolCallIds)
          await client.sessions.sendToolResult(sessionId, { toolCallId, output: 1 });
      }
    }

    const parts = (await client.sessions.messages(sessionId)).data.flatMap(({ content }) => content);
    expect(parts.find(({ type }) => type === 'tool_call')).toMatchObject({ tool: 'json_find', input: { $top: 5 } });
    // The model gets its call back as it wrote it.
    expect(provider.requests).toHaveLength(2);
    expect(provider.requests[1]!.text.replaceAll('\\"', '"')).toContain(`${sent}:5`);
    const [turn] = (await client.sessions.turns(sessionId)).data;
    expect(turn).toMatchObject({
      status: 'completed',
      toolsLeftOut: [{ name: 'none', reason: 'its schema allows no object' }],
    });
    const last = turn!.operations.at(-1)!;
    const { request, prompt } = await client.sessions.operation(sessionId, last.operationId);
    expect(JSON.parse(request!.body!).tools).toEqual(provider.requests[1]!.body.tools);
    expect(prompt!.tools.map((tool) => tool.name)).toEqual(['json_find', 'odd']);
  },
);

test('a session with a search of Anthropic’s continues: in its next turn, a fork, and with OpenAI', async () => {
  const { client } = service;
  for (const keyName of ['ANTHROPIC_API_KEY', 'OPENAI_API_KEY'])
    await client.environments.secrets.set('production', keyName, { value: KEY, allowedHosts: [provider.host] });
  const result = { type: 'web_search_result', url: 'https://example.com/a', title: 'A', encrypted_content: SEAL };
  const blocks: object[][] = [
    [{ type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'who won' } }],
    [{ type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [result] }],
    [
      { type: 'text', text: '' },
      { type: 'text_delta', text: 'Ada won.' },
      {
        type: 'citations_delta',
        citation: {
          type: 'web_search_result_location',
          url: result.url,
          title: 'A',
          cited_text: 'Ada',
          encrypted_index: SEAL,
        },
      },
    ],
  ];
  const events = [
    { type: 'message_start', message: { id: 'm', usage: { input_tokens: 1, output_tokens: 1 } } },
    ...blocks.flatMap(([content_block, ...deltas], index) => [
      { type: 'content_block_start', index, content_block },
      ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
      { type: 'content_block_stop', index },
    ]),
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 9 } },
    { type: 'message_stop' },
  ];
  provider.next(raw(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)));
  const model = { provider: 'anthropic', model: 'claude-sonnet-5-5', baseUrl: provider.url } as const;
  const { agentId } = await client.agents.create({ name: 'Research', model, tools: [{ type: 'web_search' }] });
  const { sessionId } = await client.sessions.open({ agentId, environment: 'production', input: 'Who won?' });
  const settled = async (id: string) => {
    for await (const { chunks } of client.sessions.stream(id, {
      types: ['session.status', 'message.chunk', 'tool.call'],
    }))
      if (chunks.some((chunk) => chunk.type === 'session.status' && chunk.status === 'idle')) return;
  };
  const continued = async (id: string, wire: Wire, text: string) => {
    provider.next(wire.respond({ parts: [{ text: [text] }] }));
    const { session } = await client.sessions.sendMessage(id, { content: 'And then?' });
    const stream = client.sessions.stream(id, { cursor: session.cursor });
    for await (const { chunks } of stream) if (chunks.some(({ type }) => type === 'turn.completed')) break;
    const { data } = await client.sessions.messages(id);
    expect(data.at(-1)?.content).toEqual([{ type: 'text', text }]);
    return JSON.stringify(provider.requests.at(-1)!.body);
  };
  await settled(sessionId);
  const { data } = await client.sessions.messages(sessionId);
  expect(data.at(-1)?.content).toMatchObject([
    { type: 'text', text: 'Ada won.', sources: [{ url: result.url, title: 'A', citedText: 'Ada' }] },
    { type: 'tool_call', tool: 'web_search', input: { query: 'who won' }, by: 'provider' },
    { type: 'tool_result', output: [{ url: result.url, title: 'A' }], by: 'provider' },
  ]);
  expect(await continued(sessionId, anthropicMessages, 'Bea.')).toContain(`"encrypted_content":"${SEAL}"`);
  const fork = await client.sessions.fork(sessionId);
  expect(await continued(fork.sessionId, anthropicMessages, 'Cy.')).toContain(`"encrypted_content":"${SEAL}"`);

  await client.agents.update(agentId, {
    model: { provider: 'openai', model: 'gpt-6.1-terra', baseUrl: provider.url },
  });
  const other = await continued(fork.sessionId, responses, 'Di.');
  expect(other).toContain('Ada won.');
  expect(other).not.toMatch(new RegExp(`${SEAL}|"type":"web_search_call"|server_tool_use`));
});

const cited = { url: 'https://example.com/a', title: 'A' };
const searches: Record<
  'azure' | 'vertex',
  { keyName: string; model: string; events: object[]; input: object; output: object }
> = {
  azure: {
    keyName: 'AZURE_OPENAI_API_KEY',
    model: 'prod-chat',
    events: [
      { type: 'response.created', response: { id: 'r', created_at: 1, model: 'gpt' } },
      {
        type: 'response.output_item.done',
        output_index: 0,
        item: {
          type: 'web_search_call',
          id: 'ws_1',
          status: 'completed',
          action: { type: 'search', query: 'who won' },
        },
      },
      { type: 'response.output_item.added', output_index: 1, item: { type: 'message', id: 'm', content: [] } },
      { type: 'response.output_text.delta', item_id: 'm', output_index: 1, delta: 'Ada won.' },
      {
        type: 'response.output_text.annotation.added',
        item_id: 'm',
        output_index: 1,
        annotation: { type: 'url_citation', ...cited, start_index: 0, end_index: 8 },
      },
      { type: 'response.output_item.done', output_index: 1, item: { type: 'message', id: 'm', content: [] } },
      { type: 'response.completed', response: { usage: { input_tokens: 1, output_tokens: 1 } } },
    ],
    input: { type: 'search', query: 'who won' },
    output: {},
  },
  vertex: {
    keyName: 'GOOGLE_VERTEX_API_KEY',
    model: 'gemini-3.8-flash',
    events: [
      {
        candidates: [
          {
            content: { role: 'model', parts: [{ text: 'Ada won.' }] },
            finishReason: 'STOP',
            groundingMetadata: {
              webSearchQueries: ['who won'],
              groundingChunks: [{ web: { uri: cited.url, title: cited.title } }],
              searchEntryPoint: { renderedContent: '<div/>' },
            },
          },
        ],
        usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1 },
      },
    ],
    input: { queries: ['who won'] },
    output: { sources: [cited], searchEntryPoint: { renderedContent: '<div/>' } },
  },
};

test.each(['azure', 'vertex'] as const)(
  'a search of %s, and what it found, is in the stream and in the transcript',
  async (name) => {
    const { client } = service;
    const { keyName, model, events, input, output } = searches[name];
    await client.environments.secrets.set('production', keyName, { value: KEY, allowedHosts: [provider.host] });
    provider.next(raw(events.map((event) => `data: ${JSON.stringify(event)}\n\n`)));
    const { agentId } = await client.agents.create({
      name: 'Research',
      model: { provider: name, model, baseUrl: provider.url },
      tools: [{ type: 'web_search' }],
    });
    const { sessionId } = await client.sessions.open({ agentId, environment: 'production', input: 'Who won?' });
    const seen: object[] = [];
    for await (const { chunks } of client.sessions.stream(sessionId)) {
      seen.push(...chunks);
      if (chunks.some(({ type }) => type === 'turn.completed')) break;
    }
    expect(seen).toContainEqual(
      expect.objectContaining({ type: 'tool.call', by: 'provider', tool: 'web_search', input }),
    );
    expect(seen).toContainEqual(expect.objectContaining({ type: 'tool.result', by: 'provider', output }));
    expect(seen).toContainEqual(expect.objectContaining({ type: 'message.chunk', sources: [cited] }));
    const { data } = await client.sessions.messages(sessionId);
    expect(data.at(-1)?.content).toMatchObject([
      { type: 'text', text: 'Ada won.', sources: [cited] },
      { type: 'tool_call', tool: 'web_search', input, by: 'provider' },
      { type: 'tool_result', output, by: 'provider' },
    ]);
    // Each costs, so calls, turns, sessions and the organization count them.
    const counted = { usage: { webSearches: 1 } };
    expect(await client.sessions.get(sessionId)).toMatchObject(counted);
    expect((await client.sessions.turns(sessionId)).data).toMatchObject([{ ...counted, operations: [counted] }]);
    const { data: models } = await client.usage.get({ groupBy: 'model' });
    expect(models.find(({ group }) => group === `${name}/${model}`)).toMatchObject({ webSearches: 1, steps: 1 });
  },
);
