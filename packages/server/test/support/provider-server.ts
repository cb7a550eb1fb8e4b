/**
 * A server in a provider's place: it records requests and answers them as a test says. What an answer looks like on the wire is
 * in the file of each format (`openai-server.ts`, `responses-wire.ts`, `anthropic-wire.ts`, `google-wire.ts`).
 *
 *   const server = await startProviderServer('/v1');
 *   server.next(refuse(429, { headers: { 'retry-after': '2' } }), anthropic.answer({ parts: [{ text: ['Hel', 'lo'] }] }));
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
  /** Resolves when the connection's response has ended on either side; true if it was complete. */
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
  /** The replies to the next requests, one each. Without one a request is given `fallback`'s. */
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
    const request: RecordedRequest<Body> = {
      path: incoming.url ?? '',
      headers: incoming.headers,
      body: JSON.parse(Buffer.concat(chunks).toString() || '{}'),
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

/** What a model is to answer, whatever the format. */
export interface ModelAnswer {
  parts?: AnswerPart[];
  /** Default: what the parts amount to. */
  stop?: 'maxOutputTokens' | 'refusal';
  /** `input` and `output` are the whole, `cached` is of the input. */
  usage?: { input: number; cached: number; output: number };
  /** How it ends: as it should; by closing cleanly, or by a reset, before the end; never; or with an error event. */
  end?: 'done' | 'cut' | 'reset' | 'hang' | StreamedError;
}

export type StreamedError = 'overloaded' | 'rateLimited';

/** `seal`: what the provider wants to see again with it. Each string is a delta of its own; a call's input comes in pieces. */
export type AnswerPart =
  | { reasoning: string[]; seal?: string }
  | { text: string[]; seal?: string }
  | { call: string; input: unknown; seal?: string };

/** A provider's format. */
export interface Wire {
  /** Of its base url. */
  readonly basePath: string;
  answer(given: ModelAnswer): Reply;
  /** The body of a refusal. */
  error(status: number, message: string): unknown;
}

/** An answer with a status of its own and, unless said otherwise, an error in OpenAI's form. */
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

/** An event stream of exactly these texts; it ends after them, unless `hang`. */
export function raw(texts: (string | Buffer)[], { hang = false }: { hang?: boolean } = {}): Reply<unknown> {
  return async (response) => {
    begin(response);
    for (const text of texts) await write(response, text);
    if (!hang) response.end();
  };
}

/** The same answer, a byte at a time. */
export function byteByByte(reply: Reply): Reply {
  return (response, request) => {
    const writeOut = response.write.bind(response);
    // Each is an HTTP chunk, which the client reads by itself, however they travel.
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

/** Sends the events, and then ends as the answer says; `frame` makes an event's text. */
export async function stream(
  response: ServerResponse,
  end: NonNullable<ModelAnswer['end']>,
  events: { before: string[]; last: string[]; error(kind: StreamedError): string },
): Promise<void> {
  begin(response);
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

export function begin(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' });
  response.flushHeaders();
}

/** Resolves when it is on its way, or when nobody is there any more. */
export function write(response: ServerResponse, text: string | Buffer): Promise<void> {
  if (response.destroyed) return Promise.resolve();
  return new Promise((resolve) => response.write(text, () => resolve()));
}

/** A call's input as its text; a string is taken as it is, so that it may be broken. */
export function textOfInput(input: unknown): string {
  return typeof input === 'string' ? input : JSON.stringify(input);
}

/** Three characters at a time. */
export function pieces(text: string): string[] {
  return text.match(/[\s\S]{1,3}/g) ?? [];
}
