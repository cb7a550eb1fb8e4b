// The `fetch` of the MCP client. Its transport sends each message by POST, and the server responds with one JSON value or with a
// stream of events, one of which is the response; a server may also cut that stream and let the client resume it. Here all of
// that is one exchange, and the transport only gets the response, as JSON. Everything that a server can do to us is limited in
// this file:
//
//   destination        the one URL, or where it redirects to within the same server (mcp-send.ts)
//   size               1 MiB for a response, 8 MiB for the stream around it, 64 KiB of an error
//   time               until the signal is aborted; a cancellation by the client ends its exchange at once
//   server's requests  (sampling, elicitation, roots) are refused, up to a limit; its notifications are ignored
//   unsolicited        the stream on which a server could send messages outside of an exchange is never opened
import { createParser } from 'eventsource-parser';
import { EgressError } from '../../egress/errors.ts';
import { OVER, orAborted } from '../../lib/aborted.ts';
import type { Clock } from '../../lib/clock.ts';
import { createEventLines } from '../../lib/event-lines.ts';
import { parseJson } from '../../lib/json/json.ts';
import { COPIES_OF_TEXT, type HeldMemory, UNCOUNTED_BYTES } from '../../lib/memory.ts';
import { startDeadline } from '../request/deadline.ts';
import { RESPONSE_MAX_BYTES, TOO_LONG } from '../tool/result.ts';
import { McpHttpError, McpResponseError } from './mcp-failure.ts';
import { type McpSend, networkFailure } from './mcp-send.ts';

type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;
type MessageId = string | number;

/** A call of a tool as it was sent, and the head of its response: for people who debug the call. Not redacted. */
export interface McpExchange {
  /** The JSON of the message. */
  readonly message: string;
  /** Headers that the protocol's client sent, without the agent's own. */
  readonly sentHeaders: Readonly<Record<string, string>>;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The length of the body, or of the streams. */
  readonly bytes: number;
  /** The beginning of the body of a failed call. */
  readonly error?: string;
}

/** A JSON-RPC message, with the fields that we use. */
interface Message {
  id?: MessageId;
  method?: string;
  params?: { requestId?: MessageId };
  result?: unknown;
}

/** Enough for some minutes of frequent progress messages. */
const STREAM_MAX_BYTES = 8 * RESPONSE_MAX_BYTES;
/** More of an error than is ever shown, and enough for the protocol's own errors, which the client parses. */
const ERROR_MAX_BYTES = 64 * 1024;
/** A server that sends more requests than this during one call is not waiting for our responses. */
const MAX_REQUESTS_OF_SERVER = 16;
/** Enough for a stream that is cut after every poll during the longest call. */
const MAX_RESUMPTIONS = 100;
/** Retries while a server restarts. If its stream is gone after that, it does not come back. */
const MAX_FAILED_RESUMPTIONS = 3;
const RESUME_AFTER_MS = { least: 100, unsaid: 1000, most: 30_000 };
/** For messages that nothing waits for: a call is cancelled, a session is over. */
const ASIDE_TIMEOUT_SECONDS = 2;

const METHOD_NOT_FOUND = -32601;

/** What concerns the exchange of one call. */
export interface McpCallWatch {
  /** Whether the call may run twice. */
  readonly repeatable: boolean;
  /** Holds the response until the call is over. */
  readonly held: HeldMemory;
  /** Called with the result, of any form. The client gets an empty one, because it refuses what does not follow the protocol's schema. */
  onResult(result: unknown): void;
  /** Called with the response's head, if there is one. */
  readonly onExchange?: ((exchange: McpExchange) => void) | undefined;
}

/** `hold` holds the response to a message that is not a call. */
export function createMcpFetch(
  send: McpSend,
  clock: Clock,
  hold: (signal: AbortSignal) => HeldMemory,
  watchOf: (idempotencyKey: string) => McpCallWatch | undefined = () => undefined,
): Fetch {
  const underWay = new Map<MessageId, AbortController>();

  /** Sends a message, and ignores the outcome. */
  async function sendAside(init: RequestInit): Promise<void> {
    const time = startDeadline(clock, ASIDE_TIMEOUT_SECONDS);
    const response = await send({ ...init, signal: time.signal }, true).catch(() => null);
    await response?.body?.cancel().catch(() => {});
    time.end();
  }

  return async (_url, init = {}) => {
    if (init.method === 'GET') return new Response(null, { status: 405 });
    if (init.method !== 'POST') {
      await sendAside(init);
      return new Response(null, { status: 200 });
    }
    const message = JSON.parse(String(init.body)) as Message;
    if (message.id === undefined) {
      if (message.method !== 'notifications/cancelled') return await notify(send, init);
      underWay.get(message.params?.requestId ?? '')?.abort(OVER);
      await sendAside(init);
      return new Response(null, { status: 202 });
    }
    const cancelled = new AbortController();
    underWay.set(message.id, cancelled);
    const signal = init.signal ? AbortSignal.any([init.signal, cancelled.signal]) : cancelled.signal;
    const sentHeaders = Object.fromEntries(new Headers(init.headers));
    const watch = watchOf(sentHeaders['idempotency-key'] ?? '');
    const held = watch?.held ?? hold(signal);
    const repeatable = watch?.repeatable ?? message.method !== 'tools/call';
    const exchange = new Exchange(send, clock, { ...init, signal }, message.id, repeatable, signal, held);
    try {
      const response = await exchange.receive(watch?.onResult);
      return message.method === 'server/discover' ? asVerdict(response) : response;
    } catch (error) {
      // A server that can't parse the discovery request implements an older revision.
      const isRefusal = error instanceof McpResponseError || error instanceof McpHttpError;
      if (message.method === 'server/discover' && isRefusal) return notModern();
      throw error;
    } finally {
      underWay.delete(message.id);
      if (!watch) held.release();
      const { received } = exchange;
      if (received) watch?.onExchange?.({ message: String(init.body), sentHeaders, ...received });
    }
  };
}

/** A server that refuses the discovery request, or fails on it, may still support the older handshake, so that is tried next. */
function asVerdict(response: Response): Response {
  return response.ok || response.status === 400 || response.status === 404 ? response : notModern();
}

function notModern(): Response {
  return new Response(null, { status: 404 });
}

async function notify(send: McpSend, init: RequestInit): Promise<Response> {
  const response = await send(init, true);
  if (!response.ok) return refusalOf(response, await errorIn(response, init.signal));
  await response.body?.cancel().catch(() => {});
  return new Response(null, { status: 202 });
}

/** One request of the client's and its response. */
class Exchange {
  readonly #send: McpSend;
  readonly #clock: Clock;
  readonly #init: RequestInit;
  readonly #id: MessageId;
  readonly #repeatable: boolean;
  readonly #signal: AbortSignal;
  readonly #held: HeldMemory;
  #streamBytes = 0;
  #requestsOfServer = 0;
  #lastEventId: string | undefined;
  #resumeAfterMs = RESUME_AFTER_MS.unsaid;
  #head: Pick<McpExchange, 'status' | 'headers'> | undefined;
  #bytes = 0;
  #error: string | undefined;

  constructor(
    send: McpSend,
    clock: Clock,
    init: RequestInit,
    id: MessageId,
    repeatable: boolean,
    signal: AbortSignal,
    held: HeldMemory,
  ) {
    this.#send = send;
    this.#clock = clock;
    this.#init = init;
    this.#id = id;
    this.#repeatable = repeatable;
    this.#signal = signal;
    this.#held = held;
  }

  /** The head of the first response, and what has come of it; undefined if there was none. */
  get received(): Pick<McpExchange, 'status' | 'headers' | 'bytes' | 'error'> | undefined {
    const bytes = this.#bytes + this.#streamBytes;
    return this.#head && { ...this.#head, bytes, ...(this.#error !== undefined && { error: this.#error }) };
  }

  /** Throws `McpResponseError`, `McpHttpError`, `McpRedirectError`, `EgressError`, or the signal's reason. */
  async receive(onResult?: McpCallWatch['onResult']): Promise<Response> {
    const response = await this.#send(this.#init, this.#repeatable);
    this.#head = { status: response.status, headers: Object.fromEntries(response.headers) };
    if (!response.ok) {
      this.#error = await errorIn(response, this.#signal);
      this.#bytes = Buffer.byteLength(this.#error);
      return refusalOf(response, this.#error);
    }
    const type = mediaTypeOf(response);
    if (type === 'application/json')
      return jsonResponse(response, this.#responseIn(await this.#wholeOf(response)), onResult);
    if (type === 'text/event-stream') return jsonResponse(response, await this.#streamed(response), onResult);
    await response.body?.cancel().catch(() => {});
    throw new McpResponseError(`it is neither JSON nor an event stream (HTTP ${response.status})`);
  }

  async #wholeOf(response: Response): Promise<unknown> {
    const bytes: Uint8Array[] = [];
    let length = 0;
    for await (const chunk of bodyOf(response, this.#signal)) {
      length += chunk.byteLength;
      if (length > RESPONSE_MAX_BYTES) throw new McpResponseError(`it is ${TOO_LONG}`);
      bytes.push(chunk);
      await this.#hold(length);
    }
    this.#bytes = length;
    return messageIn(Buffer.concat(bytes).toString('utf8'));
  }

  /** Before more than a little is in memory. How long the response is, is known only at its end. */
  async #hold(bytes: number): Promise<void> {
    if (bytes > UNCOUNTED_BYTES) await orAborted(this.#held.take(COPIES_OF_TEXT * RESPONSE_MAX_BYTES), this.#signal);
  }

  /** Finds the response among the messages of one value: older servers may send several. */
  #responseIn(value: unknown): Message {
    const message = this.#find([value].flat());
    if (message === undefined) throw new McpResponseError('it does not belong to the request');
    return message;
  }

  #find(messages: readonly unknown[]): Message | undefined {
    for (const message of messages) {
      if (typeof message !== 'object' || message === null || !('result' in message || 'error' in message)) continue;
      const { id } = message as Message;
      // A server that could not parse the request responds without its id.
      const ours = id === this.#id || String(id) === String(this.#id) || ('error' in message && (id ?? null) === null);
      if (ours) return { ...message, id: this.#id };
    }
    return undefined;
  }

  async #streamed(first: Response): Promise<Message> {
    const message = await this.#untilCut(first);
    if (message !== undefined) return message;
    let failed = 0;
    for (let resumed = 0; this.#lastEventId !== undefined && resumed < MAX_RESUMPTIONS; resumed++) {
      await this.#clock.sleep(this.#resumeAfterMs, this.#signal);
      const before = this.#lastEventId;
      const message = await this.#resume();
      if (message !== undefined) return message;
      failed = this.#lastEventId === before ? failed + 1 : 0;
      if (failed === MAX_FAILED_RESUMPTIONS) break;
    }
    throw new EgressError('reset', 'the event stream ended before the response');
  }

  async #resume(): Promise<Message | undefined> {
    const headers = new Headers(this.#init.headers);
    headers.delete('content-type');
    headers.delete('idempotency-key');
    headers.set('accept', 'text/event-stream');
    headers.set('last-event-id', this.#lastEventId ?? '');
    // It has retries of its own.
    const response = await this.#send({ method: 'GET', headers, signal: this.#signal }, false).catch((error) => {
      if (error instanceof EgressError) return null;
      throw error;
    });
    if (response === null) return undefined;
    if (response.ok && mediaTypeOf(response) === 'text/event-stream') return await this.#untilCut(response);
    await response.body?.cancel().catch(() => {});
    return undefined;
  }

  /** The response; undefined if the stream ends or breaks before it arrives. */
  async #untilCut(response: Response): Promise<Message | undefined> {
    let message: Message | undefined;
    const parser = createParser({
      maxBufferSize: RESPONSE_MAX_BYTES,
      onError: ({ type }) => {
        if (type === 'max-buffer-size-exceeded') throw new McpResponseError(`it is ${TOO_LONG}`);
      },
      onRetry: (ms) => {
        this.#resumeAfterMs = Math.min(Math.max(ms, RESUME_AFTER_MS.least), RESUME_AFTER_MS.most);
      },
      onEvent: ({ id, event = 'message', data }) => {
        // The id is sent back in a header, which a line break would end. The parser removes line breaks.
        if (id) this.#lastEventId = id;
        if (message === undefined && event === 'message' && data !== '') message = this.#receive(data);
      },
    });
    const decoder = new TextDecoder();
    const eventLines = createEventLines();
    try {
      for await (const chunk of bodyOf(response, this.#signal)) {
        this.#streamBytes += chunk.byteLength;
        if (this.#streamBytes > STREAM_MAX_BYTES)
          throw new McpResponseError('its event stream reached 8 MiB without a response');
        await this.#hold(this.#streamBytes);
        parser.feed(decoder.decode(eventLines(chunk), { stream: true }));
        if (message !== undefined) return message;
      }
    } catch (error) {
      if (error instanceof EgressError && error.kind === 'reset') return undefined;
      throw error;
    }
    return message;
  }

  /** The response, if this is it. */
  #receive(data: string): Message | undefined {
    if (Buffer.byteLength(data) > RESPONSE_MAX_BYTES) throw new McpResponseError(`it is ${TOO_LONG}`);
    const messages = [messageIn(data)].flat();
    for (const message of messages) this.#refuse(message as Message | null);
    return this.#find(messages);
  }

  /** Responds to a request of the server's, so that it does not wait for us: to a ping, and with an error to anything else. */
  #refuse(message: Message | null): void {
    const { id, method } = message ?? {};
    if (typeof method !== 'string' || (typeof id !== 'string' && typeof id !== 'number')) return;
    this.#requestsOfServer += 1;
    if (this.#requestsOfServer > MAX_REQUESTS_OF_SERVER)
      throw new McpResponseError('the server sends requests instead of a response');
    const error = { code: METHOD_NOT_FOUND, message: 'This client does not support requests from servers' };
    const body = JSON.stringify({ jsonrpc: '2.0', id, ...(method === 'ping' ? { result: {} } : { error }) });
    const headers = new Headers(this.#init.headers);
    headers.delete('idempotency-key');
    this.#send({ method: 'POST', headers, body, signal: this.#signal }, false).then(
      (response) => response.body?.cancel().catch(() => {}),
      () => {},
    );
  }
}

function jsonResponse(response: Response, message: Message, onResult?: McpCallWatch['onResult']): Response {
  const session = response.headers.get('mcp-session-id');
  const { result } = message;
  const { resultType = 'complete' } = (result ?? {}) as { resultType?: unknown };
  const isTaken = onResult !== undefined && 'result' in message && resultType === 'complete';
  if (isTaken) onResult(result);
  return new Response(JSON.stringify(isTaken ? { ...message, result: { resultType, content: [] } } : message), {
    headers: { 'content-type': 'application/json', ...(session && { 'mcp-session-id': session }) },
  });
}

/** The body, or its beginning. */
async function errorIn(response: Response, signal: AbortSignal | null | undefined): Promise<string> {
  const bytes: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of bodyOf(response, signal)) {
    bytes.push(chunk.subarray(0, ERROR_MAX_BYTES - length));
    length += chunk.byteLength;
    if (length >= ERROR_MAX_BYTES) break;
  }
  return Buffer.concat(bytes).toString('utf8');
}

/** What the transport gets. It does not pass on headers, so a demand for a credential is thrown. */
function refusalOf({ status, headers }: Response, text: string): Response {
  if (status < 400) throw new McpResponseError(`it has the status ${status}`);
  const challenge = headers.get('www-authenticate') ?? undefined;
  const wantsCredential = status === 401 || (status === 403 && challenge?.includes('insufficient_scope'));
  if (challenge && wantsCredential) throw new McpHttpError(status, text, challenge);
  return new Response(text, { status });
}

function mediaTypeOf(response: Response): string | undefined {
  return response.headers.get('content-type')?.split(';')[0]?.trim().toLowerCase();
}

async function* bodyOf(response: Response, signal: AbortSignal | null | undefined): AsyncGenerator<Uint8Array> {
  try {
    // Leaving the loop early cancels the body, which closes the connection.
    for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) yield chunk;
  } catch (error) {
    throw networkFailure(error, signal);
  }
}

function messageIn(text: string): unknown {
  const value = parseJson(text);
  if (value === undefined) throw new McpResponseError('it is not JSON, or nested too deeply');
  return value;
}
