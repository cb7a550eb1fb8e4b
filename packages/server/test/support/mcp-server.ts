/**
 * An MCP server over streamable HTTP, of version 2025-11-25 (with sessions) or 2026-07-28 (without). A test decides how it
 * misbehaves:
 *
 *   const server = await startMcpServer({ tools: [{ name: 'look', inputSchema: { type: 'object' } }] });
 *   server.on('tools/call', (exchange) => exchange.result({ content: [{ type: 'text', text: 'here' }] }));
 *   server.received.at(-1)?.headers['mcp-session-id']
 */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Received {
  httpMethod: string;
  path: string;
  headers: IncomingHttpHeaders;
  /** The JSON-RPC method, or `answer`, `GET`, `DELETE`. */
  method: string;
  message: { id?: string | number; params?: Record<string, unknown>; result?: unknown; error?: unknown };
}

/** One request and the ways to respond to it. */
export interface Exchange extends Received {
  request: IncomingMessage;
  response: ServerResponse;
  /** Responds with JSON. */
  result(result: unknown): void;
  error(code: number, message: string, status?: number): void;
  /** Starts an event stream. */
  stream(): void;
  /** Sends a message on the stream. */
  send(message: object, options?: { id?: string }): void;
  /** Sends the result on the stream. */
  sendResult(result: unknown): void;
}

type Handler = (exchange: Exchange) => void;

export interface McpTestServer {
  readonly url: string;
  /** Includes the port. */
  readonly host: string;
  readonly received: Received[];
  /** The messages of this method, in order. */
  of(method: string): Received[];
  /** Handles requests of this method instead. */
  on(method: string, handler: Handler): void;
  /** Resolves with the next request of this method. */
  next(method: string): Promise<Received>;
  tools: unknown[];
  /** The paths that respond with a redirect. */
  readonly redirects: Map<string, [status: number, location: string]>;
  /** The ids of its open sessions. */
  readonly sessions: Set<string>;
  /** Ends its sessions, and responds like this to whatever is sent in one of them. */
  forgetSessions(refuse: Handler): void;
  close(): Promise<void>;
}

export async function startMcpServer(
  options: { tools?: unknown[]; modern?: boolean; port?: number } = {},
): Promise<McpTestServer> {
  const { modern = false } = options;
  const handlers = new Map<string, Handler>();
  const waiting = new Map<string, ((received: Received) => void)[]>();
  const received: Received[] = [];
  const sessions = new Set<string>();
  let refuseSession: Handler = ({ error }) => error(-32001, 'Session not found', 404);
  const redirects: McpTestServer['redirects'] = new Map();
  const complete = modern ? { resultType: 'complete' } : {};

  const usual: Record<string, Handler> = {
    initialize: (exchange) => {
      const session = `session-${sessions.size + 1}-of-${received.length}`;
      sessions.add(session);
      exchange.response.setHeader('mcp-session-id', session);
      exchange.result({
        protocolVersion: '2025-11-25',
        capabilities: { tools: {} },
        serverInfo: { name: 'test', version: '1' },
      });
    },
    'server/discover': (exchange) => {
      if (modern) exchange.result({ supportedVersions: ['2026-07-28'], capabilities: { tools: {} } });
      else exchange.error(-32601, 'Method not found');
    },
    'tools/list': (exchange) => exchange.result({ tools: server.tools }),
    'tools/call': (exchange) =>
      exchange.result({ content: [{ type: 'text', text: JSON.stringify(exchange.message.params?.arguments) }] }),
    DELETE: ({ headers, response }) => {
      sessions.delete(String(headers['mcp-session-id']));
      response.writeHead(200).end();
    },
    GET: ({ response }) => response.writeHead(405).end(),
  };

  function exchangeOf(request: IncomingMessage, response: ServerResponse, body: string): Exchange {
    const message = (body === '' ? {} : JSON.parse(body)) as Received['message'] & { method?: string };
    const httpMethod = request.method ?? '';
    const exchange: Exchange = {
      httpMethod,
      path: request.url ?? '',
      headers: request.headers,
      method: httpMethod === 'POST' ? (message.method ?? 'answer') : httpMethod,
      message,
      request,
      response,
      result(result) {
        response.setHeader('content-type', 'application/json');
        response.end(
          JSON.stringify({ jsonrpc: '2.0', id: message.id, result: { ...complete, ...(result as object) } }),
        );
      },
      error(code, text, status = 200) {
        response.writeHead(status, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, error: { code, message: text } }));
      },
      stream() {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.flushHeaders();
      },
      send(sent, { id } = {}) {
        response.write(
          `${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify({ jsonrpc: '2.0', ...sent })}\n\n`,
        );
      },
      sendResult(result) {
        exchange.send({ id: message.id, result: { ...complete, ...(result as object) } });
        response.end();
      },
    };
    return exchange;
  }

  const http = createServer(async (request, response) => {
    response.on('error', () => {});
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const exchange = exchangeOf(request, response, Buffer.concat(chunks).toString());
    const { httpMethod, path, headers, method, message } = exchange;
    received.push({ httpMethod, path, headers, method, message });
    const listeners = waiting.get(method) ?? [];
    waiting.delete(method);
    for (const listener of listeners) listener(exchange);

    const [status, location] = redirects.get(path) ?? [];
    if (status !== undefined) return response.writeHead(status, { location }).end();
    const handler = handlers.get(method);
    if (handler) return handler(exchange);
    const session = headers['mcp-session-id'];
    if (session !== undefined && !sessions.has(String(session))) return refuseSession(exchange);
    if (httpMethod === 'POST' && (message.id === undefined || method === 'answer')) {
      response.writeHead(202).end();
      return;
    }
    (usual[method] ?? (() => exchange.error(-32601, 'Method not found')))(exchange);
  });
  http.listen(options.port ?? 0, '127.0.0.1');
  await once(http, 'listening');
  const host = `127.0.0.1:${(http.address() as AddressInfo).port}`;

  const server: McpTestServer = {
    url: `http://${host}/mcp`,
    host,
    received,
    redirects,
    sessions,
    tools: options.tools ?? [],
    of: (method) => received.filter((each) => each.method === method),
    on: (method, handler) => void handlers.set(method, handler),
    forgetSessions(refuse) {
      sessions.clear();
      refuseSession = refuse;
    },
    next(method) {
      return new Promise((resolve) => waiting.set(method, [...(waiting.get(method) ?? []), resolve]));
    },
    async close() {
      http.closeAllConnections();
      http.close();
      await once(http, 'close');
    },
  };
  return server;
}
