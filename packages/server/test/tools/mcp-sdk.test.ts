// The MCP tools against servers built with the protocol's own server package, which checks what it is sent and what it returns.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server as HttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { requireBearerAuth } from '@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js';
import { createMcpExpressApp } from '@modelcontextprotocol/sdk/server/express.js';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { CallToolRequestSchema, type CallToolResult, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import type { McpTool } from '@signalbox/contract';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { createMcpTools, type McpTools } from '../../src/tools/mcp/mcp-tools.ts';
import type { ToolOutcome, ToolOwner, TurnTool } from '../../src/tools/tool/tool.ts';
import { createTestPlatform, type TestPlatform } from '../support/platform.ts';

const never = new AbortController().signal;
const OPERATION = { operationId: 'op_1', sessionId: 'ses_1' };

let base: TestPlatform;
let owner: ToolOwner;
let tools: McpTools;
let http: HttpServer;
let origin: string;
let handle: (request: IncomingMessage, response: ServerResponse) => unknown;
let result: CallToolResult;
let called: string[];

beforeAll(async () => {
  base = await createTestPlatform();
  owner = { organizationId: base.organizationId, environment: 'production', endUser: null };
});
afterAll(() => base.close());

beforeEach(async () => {
  called = [];
  result = { content: [{ type: 'text', text: 'here' }] };
  tools = createMcpTools(base.platform);
  http = createServer((request, response) => void handle(request, response));
  await once(http.listen(0, '127.0.0.1'), 'listening');
  origin = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
});
afterEach(async () => {
  await tools.close();
  http.closeAllConnections();
  http.close();
});

function mcpServer(): Server {
  const server = new Server({ name: 'test', version: '1' }, { capabilities: { tools: {} } });
  const tool = (name: string, readOnlyHint: boolean) => ({
    name,
    inputSchema: { type: 'object' as const },
    outputSchema: { type: 'object' as const, properties: { total: { type: 'number' } } },
    annotations: { readOnlyHint },
  });
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [tool('look', true), tool('book', false)] }));
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => {
    called.push(params.name);
    return result;
  });
  return server;
}

/** As in the package's examples: a transport for each session, and `unknown` responds to the others. */
function withSessions(unknown?: (response: ServerResponse) => void) {
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  const start = async () => {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void sessions.set(id, transport),
    });
    await mcpServer().connect(transport);
    return transport;
  };
  handle = async (request, response) => {
    const body = request.method === 'POST' ? JSON.parse((await buffer(request)).toString()) : undefined;
    const id = request.headers['mcp-session-id'];
    const known = sessions.get(String(id));
    if (!known && id !== undefined && unknown) return unknown(response);
    await (known ?? (await start())).handleRequest(request, response, body);
  };
  return sessions;
}

const source = (path = '/mcp', more: Partial<McpTool> = {}): McpTool => ({
  type: 'mcp',
  name: 'crm',
  url: origin + path,
  ...more,
});

async function call(name: string, path?: string): Promise<ToolOutcome> {
  const listed = await tools.list(owner, source(path), never);
  const tool = typeof listed === 'string' ? undefined : listed.find(({ remoteName }) => remoteName === name);
  return await tools.run({ ...owner, ...OPERATION, tool: tool as TurnTool, input: {} }, never);
}

test.each<[string, CallToolResult, ToolOutcome]>([
  [
    'a text next to structured content',
    { content: [{ type: 'text', text: 'See page 2.' }], structuredContent: { total: 3 } },
    { output: [{ total: 3 }, { type: 'text', text: 'See page 2.' }] },
  ],
  [
    'structured content and its JSON',
    { content: [{ type: 'text', text: '{"total":3}' }], structuredContent: { total: 3 } },
    { output: { total: 3 } },
  ],
  [
    'structured content that does not match the schema',
    { content: [], structuredContent: { total: 'three' } },
    { output: { total: 'three' } },
  ],
  ['no structured content, although there is a schema', { content: [{ type: 'text', text: 'a' }] }, { output: 'a' }],
  [
    'an error with both',
    { content: [{ type: 'text', text: 'no' }], structuredContent: { total: 0 }, isError: true },
    { error: 'no\n{"total":0}' },
  ],
  [
    'a link, a resource and audio',
    {
      content: [
        { type: 'resource_link', uri: 'a:1', name: 'A', description: 'B' },
        { type: 'resource', resource: { uri: 'a:2', mimeType: 'text/csv', text: 'a,b' } },
        { type: 'audio', mimeType: 'audio/wav', data: 'AAEC' },
      ],
    },
    {
      output: [
        { type: 'resource_link', uri: 'a:1', name: 'A', description: 'B' },
        { type: 'resource', uri: 'a:2', mimeType: 'text/csv', text: 'a,b' },
        { type: 'audio', mimeType: 'audio/wav', bytes: 3, note: 'the bytes are not shown' },
      ],
    },
  ],
])('the model gets %s', async (_title, returned, expected) => {
  withSessions();
  result = returned;
  expect(await call('look')).toEqual(expected);
});

test.each<[string, ((response: ServerResponse) => void) | undefined]>([
  // A new transport responds with 400 "Server not initialized".
  ['as the package does', undefined],
  [
    'as its examples do',
    (response) => {
      const error = { code: -32000, message: 'Bad Request: No valid session ID provided' };
      response.writeHead(400, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ jsonrpc: '2.0', error, id: null }));
    },
  ],
])(
  'after a restart, which the server reports %s, a call with an effect runs once in a new session',
  async (_title, unknown) => {
    const sessions = withSessions(unknown);
    expect(await call('book')).toEqual({ output: 'here' });
    sessions.clear();
    expect(await call('book')).toEqual({ output: 'here' });
    expect(called).toEqual(['book', 'book']);
  },
);

test('a redirect to the same path with a slash is followed', async () => {
  withSessions();
  const serve = handle;
  handle = (request, response) =>
    request.url === '/mcp' ? response.writeHead(307, { location: '/mcp/' }).end() : serve(request, response);
  expect(await call('book')).toEqual({ output: 'here' });
});

test('a server with only the older SSE transport is unavailable, with this reason', async () => {
  const app = createMcpExpressApp();
  app.get('/sse', (_request, response) => mcpServer().connect(new SSEServerTransport('/messages', response)));
  handle = app;
  expect(await tools.list(owner, source('/sse'), never)).toMatch(
    /^The server speaks the older SSE transport, which is /,
  );
});

test('a server that wants OAuth is unavailable, with this reason', async () => {
  const app = createMcpExpressApp();
  const verifyAccessToken = () => Promise.reject(new Error('no'));
  const resourceMetadataUrl = 'https://a.example.com/.well-known/oauth-protected-resource';
  app.use(requireBearerAuth({ verifier: { verifyAccessToken }, resourceMetadataUrl }));
  handle = app;
  const reason = await tools.list(owner, source(), never);
  expect(reason).toMatch(/^The server wants OAuth: HTTP 401 with WWW-Authenticate: Bearer .*oauth-protected-resource/);
  expect(reason).toContain('set a valid token in the “headers” of the tool');
});
