/**
 * A model provider's server for tests: records requests and gives the responses that a test scripts. Each format has a file
 * (`openai-server.ts`, `responses-wire.ts`, `anthropic-wire.ts`, `google-wire.ts`).
 *
 *   const server = await startProviderServer('/v1');
 *   server.next(refuse(429, { headers: { 'retry-after': '2' } }), anthropic.respond({ parts: [{ text: ['Hel', 'lo'] }] }));
 *   … { provider: 'anthropic', model: 'any', baseUrl: server.url } …
 *   server.requests[0].body
 */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface RecordedRequest<Body = Record<string, unknown>> {
  path: string;
  headers: IncomingHttpHeaders;
  body: Body;
  /** The body as it was sent. */
  text: string;
  /** Resolves when either side has ended the response; true if it was complete. */
  closed: Promise<boolean>;
}

export type Reply<Body = Record<string, unknown>> = (
  response: ServerResponse,
  request: RecordedRequest<Body>,
) => void | Promise<void>;

export interface ProviderServer<Body = Record<string, unknown>> {
  /** For `baseUrl`. */
  readonly url: string;
  /** `127.0.0.1:port`, for a secret's `allowedHosts`. */
  readonly host: string;
  readonly requests: RecordedRequest<Body>[];
  /** The replies to the next requests, one each. Then requests get `fallback`. */
  next(...replies: Reply<Body>[]): void;
  close(): Promise<void>;
}

export async function startProviderServer<Body = Record<string, unknown>>(
  basePath: string,
  fallback: Reply<Body> = refuse(500),
): Promise<ProviderServer<Body>> {
  const requests: RecordedRequest<Body>[] = [];
  const replies: Reply<Body>[] = [];
  const server = createServer(async (incoming, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    const request: RecordedRequest<Body> = {
      path: incoming.url ?? '',
      headers: incoming.headers,
      body: JSON.parse(text || '{}'),
      text,
      closed: new Promise((resolve) => response.once('close', () => resolve(response.writableFinished))),
    };
    requests.push(request);
    await (replies.shift() ?? fallback)(response, request);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: `http://${host}${basePath}`,
    host,
    requests,
    next: (...more) => {
      replies.push(...more);
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** A scripted model response, in any format. */
export interface ModelResponse {
  parts?: ResponsePart[];
  /** Default: follows from the parts. */
  stop?: 'maxOutputTokens' | 'refusal';
  /** `input` and `output` are totals; `cached` and `written` (to the cache) are parts of the input. */
  usage?: { input: number; cached: number; written?: number; output: number };
  /** How the response ends: completely; closed cleanly, or reset, before its end; never; or with an error event. */
  end?: 'done' | 'cut' | 'reset' | 'hang' | StreamedError;
}

export type StreamedError = 'overloaded' | 'rateLimited';

/** `seal`: what the provider needs back with the part. Each string is a separate delta; a call's input is sent in pieces. */
export type ResponsePart =
  | { reasoning: string[]; seal?: string }
  | { text: string[]; seal?: string }
  | { call: string; input: unknown; seal?: string };

/** A provider's format. */
export interface Wire {
  /** The path of its base URL. */
  readonly basePath: string;
  respond(given: ModelResponse): Reply;
  /** The body of an error response. */
  error(status: number, message: string): unknown;
}

/** A response with this status. Default body: an error in OpenAI's format. */
export function refuse(
  status: number,
  { headers = {}, body }: { headers?: Record<string, string>; body?: unknown } = {},
): Reply<unknown> {
  return (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    const error = { error: { message: `Refused with ${status}`, type: 'test_error', param: null, code: null } };
    response.end(typeof body === 'string' ? body : JSON.stringify(body ?? error));
  };
}

/** An event stream of exactly these texts. It ends after them unless `hang` is set. */
export function raw(texts: (string | Buffer)[], { hang = false }: { hang?: boolean } = {}): Reply<unknown> {
  return async (response) => {
    begin(response);
    for (const text of texts) await write(response, text);
    if (!hang) response.end();
  };
}

/** The same response, one byte at a time. */
export function byteByByte(reply: Reply): Reply {
  return (response, request) => {
    const writeOut = response.write.bind(response);
    // Each byte is an HTTP chunk, which the client parses separately even if they arrive together.
    response.write = ((data: string | Buffer, done: () => void) => {
      const bytes = Buffer.from(data as string);
      bytes.forEach((_, at) => {
        writeOut(bytes.subarray(at, at + 1));
      });
      return writeOut('', done as never);
    }) as typeof response.write;
    return reply(response, request);
  };
}

type Bytes = string | Buffer;

/** Sends the events and ends as the response specifies; `frame` returns the text of an event. */
export async function stream(
  response: ServerResponse,
  end: NonNullable<ModelResponse['end']>,
  events: { before: Bytes[]; last: Bytes[]; error(kind: StreamedError): Bytes },
  contentType?: string,
): Promise<void> {
  begin(response, contentType);
  for (const event of events.before) await write(response, event);
  if (end === 'hang') return;
  if (end === 'reset') {
    response.socket?.resetAndDestroy();
    return;
  }
  if (end === 'done') for (const event of events.last) await write(response, event);
  else if (end !== 'cut') await write(response, events.error(end));
  response.end();
}

export function begin(response: ServerResponse, contentType = 'text/event-stream; charset=utf-8'): void {
  response.writeHead(200, { 'content-type': contentType, 'cache-control': 'no-cache' });
  response.flushHeaders();
}

/** Resolves when it is sent or the client has disconnected. */
export function write(response: ServerResponse, text: string | Buffer): Promise<void> {
  if (response.destroyed) return Promise.resolve();
  return new Promise((resolve) => response.write(text, () => resolve()));
}

/** The input of a call in JSON. A string is used unchanged, so that it can be invalid. */
export function textOfInput(input: unknown): string {
  return typeof input === 'string' ? input : JSON.stringify(input);
}

/** Splits into pieces of three characters. */
export function pieces(text: string): string[] {
  return text.match(/[\s\S]{1,3}/g) ?? [];
}
