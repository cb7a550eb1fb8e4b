// What authors of agents ask for: models of providers, tests of http tools, tools of MCP servers. Over HTTP, against servers of the test.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { HttpTool, Signalbox } from '@signalbox/client';
import type { ProviderName } from '@signalbox/contract';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { knownModels } from '../../src/usage/known-models.ts';
import { type McpTestServer, startMcpServer } from '../support/mcp-server.ts';
import { startTestService, type TestService } from '../support/service.ts';

const SECRET = 'sk/4711 "quoted"';
const env = 'production';

interface Received {
  method: string;
  url: string;
  headers: IncomingMessage['headers'];
  body: string;
}

let service: TestService;
let client: Signalbox;
let server: Server;
let host: string;
let origin: string;
let received: Received[];
let reply: (request: IncomingMessage, response: ServerResponse) => void;

beforeAll(async () => {
  service = await startTestService();
  ({ client } = service);
  server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { method = '', url = '', headers } = request;
    received.push({ method, url, headers, body: Buffer.concat(chunks).toString() });
    reply(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  origin = `http://${host}`;
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await service.stop();
});
beforeEach(() => {
  received = [];
  reply = (_request, response) => response.end();
});

let keys = 0;
/** A secret of its own, so that no list of another test is kept for it. */
async function newKey(allowedHosts = [host]): Promise<{ name: string; value: string }> {
  const key = { name: `KEY_${++keys}`, value: `secret-of-provider-${keys}` };
  await client.environments.secrets.set(env, key.name, { value: key.value, allowedHosts });
  return key;
}

function json(value: unknown, status = 200): typeof reply {
  return (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(value));
  };
}

describe('the models of a provider', () => {
  /** Prices and ends are known for the provider's own server. */
  const elsewhere = { prices: null, endsAt: null, replacement: null };
  const lists: [
    provider: Exclude<ProviderName, 'worker' | 'scripted'>,
    header: string,
    path: string,
    list: unknown,
    models: object[],
  ][] = [
    [
      'openai',
      'authorization',
      '/v1/models',
      {
        object: 'list',
        data: [{ id: 'o9-unheard' }, { id: 'gpt-5' }, { id: 'text-embedding-3-small' }, { id: 'gpt-image-1' }],
      },
      [
        { model: 'gpt-5', displayName: null, contextTokens: 400_000, input: ['image', 'pdf'], ...elsewhere },
        { model: 'o9-unheard', displayName: null, contextTokens: null, input: null, ...elsewhere },
      ],
    ],
    [
      'anthropic',
      'x-api-key',
      '/v1/models?limit=1000',
      { data: [{ id: 'claude-sonnet-4-5', display_name: 'Claude Sonnet 4.5' }], has_more: false },
      [{ model: 'claude-sonnet-4-5', displayName: 'Claude Sonnet 4.5', contextTokens: 200_000 }],
    ],
    [
      'google',
      'x-goog-api-key',
      '/v1/models?pageSize=1000',
      {
        models: [
          {
            name: 'models/newest',
            displayName: 'Newest',
            inputTokenLimit: 7_000,
            supportedGenerationMethods: ['generateContent'],
          },
          { name: 'models/embedder', supportedGenerationMethods: ['embedContent'] },
        ],
      },
      [{ model: 'newest', displayName: 'Newest', contextTokens: 7_000 }],
    ],
    [
      'azure',
      'api-key',
      '/v1/models',
      { data: [{ id: 'gpt-5' }, { id: 'text-embedding-3-large' }] },
      [{ model: 'gpt-5', contextTokens: 400_000, input: ['image', 'pdf'] }],
    ],
    [
      'vertex',
      'x-goog-api-key',
      '/v1/models?pageSize=1000',
      {
        publisherModels: [
          { name: 'publishers/google/models/gemini-2.5-pro', launchStage: 'GA' },
          { name: 'publishers/google/models/imagen-4.0-generate-001' },
          { name: 'publishers/google/models/gemini-embedding-001' },
        ],
      },
      [{ model: 'gemini-2.5-pro', contextTokens: 1_048_576, input: ['image', 'pdf', 'audio'] }],
    ],
    [
      'openai-compatible',
      'authorization',
      '/v1/models',
      { data: [{ id: 'meta/llama', context_length: 131_072 }] },
      [{ model: 'meta/llama', contextTokens: 131_072, input: null }],
    ],
  ];
  test.each(lists)(
    'of %s are those of its own list, with what is known about each',
    async (provider, header, path, list, models) => {
      const key = await newKey();
      reply = json(list);
      const found = await client.agents.models(env, { provider, baseUrl: `${origin}/v1/`, apiKeySecret: key.name });
      expect(found).toMatchObject({ models, problem: null, pricesDate: knownModels().date });
      expect(found.models).toHaveLength(models.length);
      expect(received).toHaveLength(1);
      expect([received[0]!.method, received[0]!.url]).toEqual(['GET', path]);
      expect(received[0]!.headers[header]).toContain(key.value);
    },
  );

  const openai = (apiKeySecret: string, more: object = {}) =>
    client.agents.models(env, { provider: 'openai', baseUrl: `${origin}/v1`, apiKeySecret, ...more });

  test('the scripted provider lists itself, without network', async () => {
    const { models, problem } = await client.agents.models(env, { provider: 'scripted' });
    expect([models.length, problem, received.length]).toEqual([1, null, 0]);
  });

  test('a cloud that lists its models elsewhere says so, and a key for its server of models is not sent there', async () => {
    const [host, name] = ['bedrock-runtime.us-east-1.amazonaws.com', 'AWS_BEARER_TOKEN_BEDROCK'];
    await client.environments.secrets.set(env, name, { value: 'a-key', allowedHosts: [host] });
    const list = await client.agents.models(env, { provider: 'bedrock', baseUrl: `https://${host}` });
    expect(list).toMatchObject({ models: [], problem: { message: expect.stringContaining('enter the model’s ID') } });
  });

  test('a missing key is named, and nothing is sent', async () => {
    expect(await client.agents.models(env, { provider: 'anthropic' })).toMatchObject({
      models: [],
      problem: { code: 'model_key_missing', message: expect.stringContaining('no secret ANTHROPIC_API_KEY') },
    });
    expect(received).toEqual([]);
  });

  test('a key is not sent to a host that it is not for', async () => {
    const key = await newKey(['api.openai.com']);
    expect((await openai(key.name)).problem).toMatchObject({ code: 'model_not_allowed' });
    expect(received).toEqual([]);
  });

  test.each<[string, () => void, string]>([
    ['refuses the key', () => (reply = json({ error: { code: 'invalid_api_key' } }, 401)), 'model_key_rejected'],
    ['is overloaded', () => (reply = json({}, 503)), 'model_unavailable'],
    ['sends something else', () => (reply = (_request, response) => response.end('<html>')), 'model_protocol'],
    [
      'sends a redirect',
      () => (reply = (_request, response) => response.writeHead(302, { location: '/' }).end()),
      'model_rejected',
    ],
    ['closes the connection', () => (reply = (request) => request.socket.destroy()), 'model_unavailable'],
    [
      'sends without end',
      () => (reply = (_request, response) => response.end('x'.repeat(5 * 1024 * 1024))),
      'model_protocol',
    ],
  ])('a provider that %s is a problem that is explained, without a model', async (_title, begin, code) => {
    begin();
    const { name, value } = await newKey();
    const { models, problem } = await openai(name);
    expect([models, problem?.code]).toEqual([[], code]);
    expect(problem?.message).not.toContain(value);
  });

  test('a name that quotes the key, or is too long, is left out', async () => {
    const key = await newKey();
    reply = json({
      data: [{ id: key.value }, { id: `a-${key.value}` }, { id: 'x'.repeat(300) }, { id: 7 }, null, { id: 'good' }],
    });
    expect((await openai(key.name)).models.map(({ model }) => model)).toEqual(['good']);
  });

  test('a list is requested once for many callers, and again with another key', async () => {
    const key = await newKey();
    reply = json({ data: [{ id: 'one' }] });
    await Promise.all([1, 2, 3, 4].map(() => openai(key.name)));
    await openai(key.name);
    expect(received).toHaveLength(1);
    await client.environments.secrets.set(env, key.name, { value: 'another-secret-value', allowedHosts: [host] });
    await openai(key.name);
    expect(received).toHaveLength(2);
  });

  test('an address that the operator forbids is refused', async () => {
    await expect(
      client.agents.models(env, { provider: 'openai-compatible', baseUrl: 'http://10.0.0.1/v1' }),
    ).rejects.toMatchObject({ status: 422, code: 'url_not_allowed', errors: [{ path: 'baseUrl' }] });
    await expect(client.agents.models(env, { provider: 'openai-compatible' })).rejects.toMatchObject({
      status: 400,
      errors: [{ path: 'baseUrl' }],
    });
  });
});

describe('a test of an http tool', () => {
  const tool = (request: Partial<HttpTool['request']> = {}): HttpTool => ({
    type: 'http',
    name: 'refund',
    description: '',
    inputSchema: { type: 'object', properties: { order: { type: 'string' } }, required: ['order'] },
    request: {
      method: 'POST',
      url: `${origin}/orders/{{input.order}}?key={{secrets.SHOP}}`,
      headers: { Authorization: 'Bearer {{secrets.SHOP}}' },
      body: { order: '{{input.order}}', by: '{{session.endUser.id}}', key: '{{secrets.SHOP}}' },
      ...request,
    },
    approval: 'always',
  });
  const input = { order: 'a b' };
  const endUser = { id: 'customer-1' };
  beforeAll(() => client.environments.secrets.set(env, 'SHOP', { value: SECRET, allowedHosts: [host] }));

  test('sends the request once, without an approval, and shows request and response without secrets', async () => {
    reply = (request, response) => {
      response.writeHead(200, {
        'content-type': 'application/json',
        'x-echo': request.headers.authorization!,
        'set-cookie': 'sid=1',
      });
      response.end(JSON.stringify({ echo: SECRET, ok: true }));
    };
    const test = await client.agents.testTool(env, { tool: tool(), input, endUser });
    expect(received).toHaveLength(1);
    expect(received[0]).toMatchObject({ method: 'POST', headers: { authorization: `Bearer ${SECRET}` } });
    expect(JSON.parse(received[0]!.body)).toEqual({ order: 'a b', by: 'customer-1', key: SECRET });
    expect(test).toMatchObject({
      request: { method: 'POST', url: `${origin}/orders/a%20b?key=[secret SHOP]` },
      response: { status: 200 },
      output: { echo: '[secret SHOP]', ok: true },
    });
    expect(test.request!.headers).toContainEqual(['Authorization', 'Bearer [secret SHOP]']);
    expect(test.response!.headers).toContainEqual(['x-echo', 'Bearer [secret SHOP]']);
    expect(test.response!.headers).toContainEqual(['set-cookie', '[removed]']);
    expect(JSON.parse(test.request!.body!)).toMatchObject({ key: '[secret SHOP]' });
    expect(JSON.stringify(test)).not.toContain('4711');
  });

  test('is in the event log before it is sent, with its caller and its host, without its path', async () => {
    let logged: unknown;
    reply = (_request, response) => {
      void client.events.list({ limit: 1 }).then(({ data }) => {
        logged = data[0];
        response.end('{}');
      });
    };
    await client.agents.testTool(env, { tool: tool(), input, endUser });
    expect(logged).toMatchObject({
      type: 'agent.tool_tested',
      actor: { type: 'api_key' },
      resource: { type: 'tool', id: 'refund' },
      environment: env,
      changes: { request: [null, `POST ${origin}`] },
    });
  });

  test('shows the error that the model would get', async () => {
    reply = json({ message: 'No such order' }, 404);
    expect(await client.agents.testTool(env, { tool: tool(), input, endUser })).toMatchObject({
      response: { status: 404 },
      error: expect.stringContaining('HTTP 404'),
    });
    reply = (request) => request.socket.destroy();
    expect(await client.agents.testTool(env, { tool: tool(), input, endUser })).toMatchObject({
      response: null,
      error: expect.stringContaining('may have taken effect'),
      outcomeUnknown: true,
    });
  });

  test('sends nothing if a secret is missing or is not for the host, and names the secret', async () => {
    const missing = tool({ headers: { 'X-Key': '{{secrets.NO_SUCH}}' } });
    const test = await client.agents.testTool(env, { tool: missing, input, endUser });
    expect(test).toMatchObject({ request: null, response: null, error: expect.stringContaining('NO_SUCH') });
    await client.environments.secrets.set(env, 'ELSEWHERE', { value: 'for another host', allowedHosts: ['a.example'] });
    const other = tool({ headers: { 'X-Key': '{{secrets.ELSEWHERE}}' } });
    expect(await client.agents.testTool(env, { tool: other, input, endUser })).toMatchObject({
      request: null,
      error: expect.stringContaining('ELSEWHERE may not be sent to this host'),
    });
    expect(received).toEqual([]);
  });

  test('refuses what an agent can’t be saved with, and an input that does not match, each at its field', async () => {
    const refusals: [object, string][] = [
      [{ tool: tool(), input: { order: 7 } }, 'input'],
      [{ tool: tool({ url: 'http://{{input.order}}/' }), input }, 'tool.request.url'],
      [{ tool: tool({ url: 'http://10.0.0.1/' }), input }, 'tool.request.url'],
      [
        { tool: { ...tool(), inputSchema: { type: 'object', properties: { a: { type: 'text' } } } }, input },
        'tool.inputSchema',
      ],
    ];
    for (const [params, path] of refusals) {
      await expect(client.agents.testTool(env, params as never)).rejects.toMatchObject({ errors: [{ path }] });
    }
    expect(received).toEqual([]);
  });

  test('eight can be under way at once in an organization; another is refused', async () => {
    const held: ServerResponse[] = [];
    let arrived = () => {};
    reply = (_request, response) => {
      held.push(response);
      arrived();
    };
    const running: Promise<unknown>[] = [];
    for (let count = 1; count <= 8; count++) {
      const { promise, resolve } = Promise.withResolvers<void>();
      arrived = resolve;
      running.push(client.agents.testTool(env, { tool: tool(), input, endUser }));
      await promise;
    }
    const response = await service.fetch(`/api/v1/environments/${env}/tool_tests`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ tool: tool(), input, endUser }),
    });
    expect([response.status, response.headers.get('retry-after')]).toEqual([429, '1']);
    for (const one of held) one.end('{}');
    await Promise.all(running);
    reply = (_request, one) => one.end('{}');
    expect((await client.agents.testTool(env, { tool: tool(), input, endUser })).error).toBeUndefined();
  });
});

describe('the tools of an MCP server', () => {
  let mcp: McpTestServer;
  beforeAll(async () => {
    mcp = await startMcpServer();
  });
  afterAll(() => mcp.close());

  test('are listed with their own names, whatever the agent allows, and with who needs an approval', async () => {
    mcp.tools = [
      {
        name: 'find customer',
        description: 'Finds.',
        inputSchema: { type: 'object' },
        annotations: { readOnlyHint: true },
      },
      { name: 'delete', inputSchema: { type: 'object', properties: { id: { type: 'integer' } } } },
      { name: 'broken', inputSchema: { type: 'string' } },
    ];
    const list = await client.agents.mcpTools(env, {
      server: { type: 'mcp', name: 'crm', url: mcp.url, allowedTools: ['delete'] },
    });
    expect(list.problem).toBeNull();
    expect(list.tools).toMatchObject([
      { name: 'delete', offeredAs: 'crm__delete', needsApproval: true },
      { name: 'find customer', offeredAs: 'crm__find_customer', description: 'Finds.', needsApproval: false },
    ]);
    expect(list.leftOut).toMatchObject([{ name: 'broken', reason: expect.stringContaining('input schema') }]);
  });

  test('are listed with the names in the agent that are not tools of the server', async () => {
    mcp.tools = [{ name: 'find', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } }];
    const server = { type: 'mcp', name: 'crm', url: mcp.url } as const;
    const harmless = await client.agents.mcpTools(env, {
      server: { ...server, allowedTools: ['fined'], approval: { found: 'never' } },
    });
    const why = 'is not a tool of the server';
    expect(harmless).toMatchObject({
      tools: [{ name: 'find' }],
      leftOut: [
        { name: 'fined', reason: why },
        { name: 'found', reason: why },
      ],
      problem: null,
    });
    const { tools, leftOut, problem } = await client.agents.mcpTools(env, {
      server: { ...server, approval: { fined: 'always' } },
    });
    expect(tools).toMatchObject([{ name: 'find', needsApproval: false }]);
    expect(leftOut).toEqual([]);
    expect(problem).toBe('The agent’s approval names tools that the server does not have: "fined". It has: "find".');
  });

  test('more than a model can be offered are listed too, to choose from', async () => {
    mcp.tools = Array.from({ length: 300 }, (_, index) => ({ name: `tool_${index}`, inputSchema: { type: 'object' } }));
    const { tools, problem } = await client.agents.mcpTools(env, {
      server: { type: 'mcp', name: 'crm', url: mcp.url },
    });
    expect([tools.length, problem]).toEqual([300, null]);
  });

  test('a server that can’t be reached, or lacks a secret, is a problem that is explained', async () => {
    reply = json({}, 500);
    const at = async (more: object) =>
      (await client.agents.mcpTools(env, { server: { type: 'mcp', name: 'crm', url: `${origin}/mcp`, ...more } }))
        .problem;
    expect(await at({})).toContain('500');
    expect(await at({ headers: { 'X-Key': '{{secrets.NO_SUCH}}' } })).toContain(
      'the environment has no secret NO_SUCH',
    );
  });
});

test('each needs the scope that changing agents needs, and none is open to limited keys, tokens or other organizations', async () => {
  const tool: HttpTool = {
    type: 'http',
    name: 'a',
    description: '',
    inputSchema: {},
    request: { method: 'GET', url: origin },
  };
  const requests: [string, string, unknown][] = [
    ['GET', 'models?provider=scripted', undefined],
    ['POST', 'tool_tests', { tool }],
    ['POST', 'mcp_tool_lists', { server: { type: 'mcp', name: 'crm', url: `${origin}/mcp` } }],
  ];
  const statuses = async (key: string, name = env) =>
    await Promise.all(
      requests.map(async ([method, path, body]) => {
        const response = await service.fetch(`/api/v1/environments/${name}/${path}`, {
          method,
          headers: {
            authorization: `Bearer ${key}`,
            ...(body !== undefined && { 'content-type': 'application/json' }),
          },
          ...(body !== undefined && { body: JSON.stringify(body) }),
        });
        await response.text();
        return response.status;
      }),
    );
  const keyWith = async (fields: object) =>
    (await client.keys.create({ name: 'k', permission: 'write', ...fields } as never)).secret!;
  const agent = await client.agents.create({ name: 'A', model: 'scripted/test' });
  expect(await statuses(await keyWith({}))).toEqual([200, 200, 200]);
  expect(await statuses(await keyWith({ permission: 'read' }))).toEqual([403, 403, 403]);
  expect(await statuses(await keyWith({ environments: [env] }))).toEqual([403, 403, 403]);
  expect(await statuses(await keyWith({ agents: [agent.agentId] }))).toEqual([403, 403, 403]);
  expect(await statuses('sk_unknown')).toEqual([401, 401, 401]);
  const session = await client.sessions.open({ agentId: agent.agentId, environment: env });
  const { token } = await client.sessions.createToken(session.sessionId, { scopes: ['read'] });
  expect(await statuses(token!)).toEqual([404, 404, 404]);
  // Every environment that the caller can't see is one that does not exist.
  expect(await statuses(service.adminKey, 'nowhere')).toEqual([404, 404, 404]);
  expect(received.filter(({ url }) => url === '/').length).toBe(1);
});
