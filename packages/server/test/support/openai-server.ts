/**
 * A server that speaks OpenAI's chat completions over HTTP, streaming, and answers as a test says:
 *
 *   const server = await startOpenAiServer();
 *   server.next(refuse(429, { headers: { 'retry-after': '2' } }), answer({ text: ['Hel', 'lo'] }));
 *   … { provider: 'openai-compatible', model: 'any', baseUrl: server.url } …
 *   server.requests[0].body.messages
 *
 * A reply is a function of the request and the stream; `answer`, `refuse` and `raw` make the common ones.
 */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The request's body, as far as tests look at it. */
export interface ChatRequest {
  model: string;
  messages: {
    role: string;
    content: string | null;
    tool_call_id?: string;
    tool_calls?: { id: string; type: string; function: { name: string; arguments: string } }[];
  }[];
  tools?: { type: string; function: { name: string; description: string; parameters: Record<string, unknown> } }[];
  stream?: boolean;
  stream_options?: { include_usage: boolean };
  [setting: string]: unknown;
}

export interface RecordedRequest {
  path: string;
  headers: IncomingHttpHeaders;
  body: ChatRequest;
  /** Resolves when the connection's answer is over, whoever ended it; true where it was complete. */
  closed: Promise<boolean>;
}

export type Reply = (response: ServerResponse, request: RecordedRequest) => void | Promise<void>;

export interface OpenAiServer {
  /** For `baseUrl`: up to and with `/v1`. */
  readonly url: string;
  /** `127.0.0.1:port`, for a secret's `allowedHosts`. */
  readonly host: string;
  readonly requests: RecordedRequest[];
  /** The replies to the next requests, one each. Without one a request is given `fallback`'s. */
  next(...replies: Reply[]): void;
  close(): Promise<void>;
}

export async function startOpenAiServer(fallback: Reply = refuse(500)): Promise<OpenAiServer> {
  const requests: RecordedRequest[] = [];
  const replies: Reply[] = [];
  const server = createServer(async (incoming, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const request: RecordedRequest = {
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
    url: `http://${host}/v1`,
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

export interface Answer {
  /** Each a delta of its own. */
  text?: string | string[];
  /** Each a delta of its own, before the text. */
  reasoning?: string[];
  /** In pieces: the name with the first, the arguments over several, those of different calls mixed. */
  toolCalls?: { name: string; arguments: unknown }[];
  /** Default: `tool_calls` where there are some, else `stop`. null: the stream ends without one. */
  finishReason?: string | null;
  usage?: { prompt: number; completion: number; cached?: number } | null;
  /** How it ends: as it should; by closing cleanly, or by a reset, before the finish; or never. */
  end?: 'done' | 'cut' | 'reset' | 'hang';
}

/** A streamed answer. */
export function answer(given: Answer): Reply {
  return async (response, { body }) => {
    const { end = 'done' } = given;
    begin(response);
    const chunk = (choice: object | null, more: object = {}) =>
      send(response, {
        id: 'chatcmpl-1',
        object: 'chat.completion.chunk',
        created: 1,
        model: body.model,
        choices: choice === null ? [] : [{ index: 0, finish_reason: null, ...choice }],
        ...more,
      });
    await chunk({ delta: { role: 'assistant', content: '' } });
    for (const delta of given.reasoning ?? []) await chunk({ delta: { reasoning_content: delta } });
    for (const delta of [given.text ?? []].flat()) await chunk({ delta: { content: delta } });
    for (const delta of callDeltas(given.toolCalls ?? [])) await chunk({ delta: { tool_calls: [delta] } });
    if (end === 'hang') return;
    if (end === 'reset') return void response.socket?.resetAndDestroy();
    if (end === 'done') {
      const reason =
        given.finishReason === undefined ? (given.toolCalls?.length ? 'tool_calls' : 'stop') : given.finishReason;
      if (reason !== null) await chunk({ delta: {}, finish_reason: reason });
      const usage = given.usage === undefined ? { prompt: 10, completion: 5 } : given.usage;
      if (usage && body.stream_options?.include_usage) {
        await chunk(null, {
          usage: {
            prompt_tokens: usage.prompt,
            completion_tokens: usage.completion,
            total_tokens: usage.prompt + usage.completion,
            prompt_tokens_details: { cached_tokens: usage.cached ?? 0 },
          },
        });
      }
      await write(response, 'data: [DONE]\n\n');
    }
    response.end();
  };
}

/** An answer with a status of its own and, unless said otherwise, an error in OpenAI's form. */
export function refuse(
  status: number,
  { headers = {}, body }: { headers?: Record<string, string>; body?: unknown } = {},
): Reply {
  return (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    const error = { error: { message: `Refused with ${status}`, type: 'test_error', param: null, code: null } };
    response.end(typeof body === 'string' ? body : JSON.stringify(body ?? error));
  };
}

/** An event stream of exactly these texts; it ends after them, unless `hang`. */
export function raw(texts: (string | Buffer)[], { hang = false }: { hang?: boolean } = {}): Reply {
  return async (response) => {
    begin(response);
    for (const text of texts) await write(response, text);
    if (!hang) response.end();
  };
}

function begin(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' });
  response.flushHeaders();
}

function send(response: ServerResponse, event: unknown): Promise<void> {
  return write(response, `data: ${JSON.stringify(event)}\n\n`);
}

/** Resolves when it is on its way, or when nobody is there any more. */
function write(response: ServerResponse, text: string | Buffer): Promise<void> {
  if (response.destroyed) return Promise.resolve();
  return new Promise((resolve) => response.write(text, () => resolve()));
}

/** Arguments three characters at a time, one piece of each call in turn. */
function callDeltas(calls: NonNullable<Answer['toolCalls']>): object[] {
  const texts = calls.map((call) =>
    typeof call.arguments === 'string' ? call.arguments : JSON.stringify(call.arguments),
  );
  const deltas: object[] = calls.map(({ name }, index) => ({
    index,
    id: `call_${index}`,
    type: 'function',
    function: { name, arguments: '' },
  }));
  for (let at = 0; texts.some((text) => at < text.length); at += 3) {
    for (const [index, text] of texts.entries()) {
      if (at < text.length) deltas.push({ index, function: { arguments: text.slice(at, at + 3) } });
    }
  }
  return deltas;
}
