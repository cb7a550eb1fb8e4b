// Prompt caches of providers: a session's requests begin with the same bytes from step to step and from turn to turn, on every node,
// and a provider that caches only on request is asked to.
import type { Model } from '@signalbox/contract';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Egress } from '../../src/egress/egress.ts';
import { setSecret } from '../../src/environments/secrets.ts';
import type { ModelCall, ModelEntry } from '../../src/models/model/model.ts';
import { createModels } from '../../src/models/models.ts';
import { sendMessage } from '../../src/sessions/messages.ts';
import { listTurns } from '../../src/sessions/reading/timeline.ts';
import { getSession } from '../../src/sessions/sessions.ts';
import { createTools, type Tools } from '../../src/tools/tools.ts';
import { anthropicMessages } from '../support/anthropic-wire.ts';
import { generateContent } from '../support/google-wire.ts';
import { type HaltingNode, haltingAt } from '../support/halting.ts';
import { type McpTestServer, startMcpServer } from '../support/mcp-server.ts';
import { chatCompletions } from '../support/openai-server.ts';
import { type ProviderServer, startProviderServer, type Wire } from '../support/provider-server.ts';
import { responses } from '../support/responses-wire.ts';
import { createWorld, type World } from '../support/session-world.ts';

const providers: { provider: Model['provider']; model: string; wire: Wire; messages: string; rest: string[] }[] = [
  {
    provider: 'openai-compatible',
    model: 'small',
    wire: chatCompletions,
    messages: 'messages',
    rest: ['model', 'tools'],
  },
  { provider: 'openai', model: 'gpt-5', wire: responses, messages: 'input', rest: ['model', 'tools'] },
  {
    provider: 'anthropic',
    model: 'claude-sonnet-4-5',
    wire: anthropicMessages,
    messages: 'messages',
    rest: ['model', 'tools', 'system'],
  },
  {
    provider: 'google',
    model: 'gemini-2.5-flash',
    wire: generateContent,
    messages: 'contents',
    rest: ['tools', 'systemInstruction'],
  },
];

let world: World;
let server: ProviderServer;
let mcp: McpTestServer;
let node: HaltingNode | undefined;
const opened: Tools[] = [];

beforeEach(async () => {
  world = await createWorld();
  // Keys in an order that no sort would give.
  const inputSchema = { properties: { z: { type: 'string' }, a: { type: 'object' } }, type: 'object', required: ['z'] };
  mcp = await startMcpServer({
    tools: ['write', 'look', 'add'].map((name) => ({ name, description: `Tool ${name}`, inputSchema })),
  });
  mcp.on('tools/call', (exchange) => {
    exchange.result({ content: [{ type: 'text', text: 'ok' }], structuredContent: { z: 1, a: { y: 2, b: [] } } });
  });
});
afterEach(async () => {
  node?.release();
  node = undefined;
  await world.close();
  await Promise.all(opened.splice(0).map((tools) => tools.close()));
  await Promise.all([server.close(), mcp.close()]);
});

describe.each(providers)('$provider', ({ provider, model, wire, messages, rest }) => {
  test('gets the same prefix with each step and turn, also after a crash and from a server that lists its tools in another order', async () => {
    server = await startProviderServer(wire.basePath);
    const begin = async (platform: World['platform']) => {
      const tools = createTools(platform);
      opened.push(tools);
      return world.work({ platform, ask: createModels(platform), list: tools.list, run: tools.run });
    };
    const input = { z: 'ü"😀', a: { y: 1.5, b: [true, null] } };
    server.next(
      wire.respond({ parts: [{ text: ['One moment'] }, { call: 'shop__look', input }, { call: 'shop__add', input }] }),
      wire.respond({ parts: [{ text: ['Here it ', 'is'] }] }),
      wire.respond({ parts: [{ text: ['A cut '] }], stop: 'maxOutputTokens' }),
      wire.respond({ parts: [{ text: ['response'] }, { call: 'shop__write', input }] }),
      wire.respond({ parts: [{ text: ['Done'] }] }),
    );

    // The first node dies after it has stored the first response.
    node = haltingAt(await world.anotherNode(), /insert into model_usage/, 'after');
    const dying = await begin(node.platform);
    const agentId = await world.agent([{ type: 'mcp', name: 'shop', url: mcp.url, approval: 'never' }], {
      model: { provider, model, baseUrl: server.url },
      instructions: 'Be brief.',
      limits: { continueWhenCut: 1 },
    });
    const sessionId = await world.open(agentId);
    await node.halted;
    await world.expireLease(dying.nodeId);
    mcp.tools = [...mcp.tools].reverse();
    await begin(await world.anotherNode());
    await world.until(sessionId, (chunk) => chunk.type === 'turn.completed');
    await sendMessage(world.ctx, { sessionId, content: 'And again' });
    await world.until(sessionId, (chunk) => chunk.type === 'turn.completed' && chunk.turn === 2);

    expect(server.requests).toHaveLength(5);
    for (const [index, request] of server.requests.entries()) {
      const before = server.requests[index - 1];
      if (!before) continue;
      for (const field of rest) {
        expect(before.body).toHaveProperty(field);
        expect(JSON.stringify(request.body[field])).toBe(JSON.stringify(before.body[field]));
      }
      // The fields before the messages, and all messages of the previous request, in the same bytes.
      const shared = before.text.indexOf(JSON.stringify(before.body[messages]).slice(0, -1));
      const prefix = before.text.slice(0, shared + JSON.stringify(before.body[messages]).length - 1);
      expect(request.text.startsWith(prefix)).toBe(true);
      expect(request.text.length).toBeGreaterThan(before.text.length);
    }
  });
});

test('tokens that are read from a cache and written to it are in the usage of call, turn and session', async () => {
  server = await startProviderServer('/v1');
  await world.work({ ask: createModels(world.platform) });
  const model: Model = { provider: 'anthropic', model: 'claude-sonnet-4-5', baseUrl: server.url };
  const usage = { input: 100, cached: 60, written: 30, output: 5 };
  server.next(anthropicMessages.respond({ parts: [{ text: ['ok'] }], usage }));
  const sessionId = await world.open(await world.agent([], { model }));
  await world.until(sessionId, (chunk) => chunk.type === 'turn.completed');
  const counted = { inputTokens: 100, cachedTokens: 60, cacheWriteTokens: 30, outputTokens: 5 };
  await expect
    .poll(async () => (await getSession(world.ctx, { sessionId })).session)
    .toMatchObject({ status: 'idle', usage: counted });
  const { data } = await listTurns(world.ctx, { sessionId });
  expect(data).toMatchObject([{ usage: counted, operations: [{ usage: counted }] }]);
});

describe('at its own server', () => {
  const user = (text: string): ModelEntry => ({ role: 'user', content: [{ type: 'text', text }] });
  const said = (text: string): ModelEntry => ({ role: 'assistant', content: [{ type: 'text', text }] });

  /** The bodies of requests that are not sent. */
  async function bodiesOf(config: Model, more: Partial<ModelCall> = {}) {
    const bodies: Record<string, unknown>[] = [];
    const egress: Egress = {
      ...world.platform.egress,
      of: (organizationId) => ({
        ...world.platform.egress.of(organizationId),
        fetch: async (_, init) => {
          bodies.push(JSON.parse(String(init?.body)));
          return new Response('{}', { status: 500 });
        },
      }),
    };
    const call: ModelCall = {
      organizationId: world.organizationId,
      sessionId: 'ses_1',
      environment: 'production',
      config,
      instructions: 'Be brief.',
      tools: [
        { name: 'look', description: 'Looks', inputSchema: {} },
        { name: 'add', description: 'Adds', inputSchema: {} },
      ],
      limits: { maxOutputTokens: null },
      outputSchema: null,
      transcript: [user('one'), said('two'), user('three'), said('four'), user('five')],
      callsBefore: 0,
      ...more,
    };
    const { host } = new URL(config.baseUrl ?? 'https://api.anthropic.com');
    for (const name of ['ANTHROPIC_API_KEY', 'OPENAI_API_KEY'])
      await setSecret(world.ctx, { env: 'production', name, value: 'k', allowedHosts: [host, 'api.openai.com'] });
    const ask = createModels({ ...world.platform, egress });
    await expect(ask(call, new AbortController().signal).next()).rejects.toMatchObject({ httpStatus: 500 });
    return bodies[0]!;
  }

  beforeEach(async () => {
    server = await startProviderServer('/v1');
  });

  /** Where a request has a cache point: the path of the block. */
  function pointsOf(value: unknown, path = ''): string[] {
    if (typeof value !== 'object' || value === null) return [];
    if ('cache_control' in value) {
      expect(value.cache_control).toEqual({ type: 'ephemeral' });
      return [path];
    }
    return Object.entries(value).flatMap(([name, item]) => pointsOf(item, `${path}/${name}`));
  }

  const sorted = (body: unknown) => pointsOf(body).toSorted();

  const anthropic: Model = { provider: 'anthropic', model: 'claude-sonnet-4-5' };

  test('Anthropic is asked to cache what sessions share, the previous request, and this one', async () => {
    expect(sorted(await bodiesOf(anthropic))).toEqual(['/messages/2/content/0', '/messages/4/content/0', '/system/0']);
    expect(sorted(await bodiesOf(anthropic, { instructions: '', transcript: [user('one')] }))).toEqual([
      '/messages/0/content/0',
      '/tools/1',
    ]);
    const results: ModelEntry[] = [
      {
        role: 'assistant',
        content: ['a', 'b'].map((id) => ({ type: 'tool_call', toolCallId: id, tool: 'look', input: {} })),
      },
      { role: 'tool', content: ['a', 'b'].map((id) => ({ type: 'tool_result', toolCallId: id, output: 1 })) },
    ];
    expect(sorted(await bodiesOf(anthropic, { transcript: [user('one'), ...results] }))).toEqual([
      '/messages/0/content/0',
      '/messages/2/content/1',
      '/system/0',
    ]);
  });

  test('OpenAI gets the session as the key of its cache', async () => {
    expect(await bodiesOf({ provider: 'openai', model: 'gpt-5' })).toHaveProperty('prompt_cache_key', 'ses_1');
  });

  test('another server that uses their formats is not asked', async () => {
    const baseUrl = 'https://gateway.example.com/v1';
    expect(sorted(await bodiesOf({ ...anthropic, baseUrl }))).toEqual([]);
    expect(await bodiesOf({ provider: 'openai', model: 'gpt-5', baseUrl })).not.toHaveProperty('prompt_cache_key');
  });
});
