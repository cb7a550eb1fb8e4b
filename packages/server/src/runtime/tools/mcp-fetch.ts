// HTTP as the MCP client is given it. Its transport sends each message by POST, and the server answers with one JSON value or
// with a stream of events, one of which is the answer; a server may cut that stream and let it be taken up again. Here all of it
// is one exchange, and the transport is handed the answer alone, as JSON. So what a server can do to us is decided in this file:
//
//   where       the one url, through the egress; redirects are answers like any other
//   how much    1 MiB for an answer, 8 MiB for the stream around it, 64 KiB of an error
//   how long    as long as the signal says; the client's word that it cancels a request ends its exchange at once
//   asking us   a server's own requests (sampling, elicitation, roots) are refused, a few; what it only tells is passed over
//   unasked     the stream on which a server may speak without being asked is never opened
import { createParser } from 'eventsource-parser';
import { EgressError, toEgressError } from '../../egress/errors.ts';
import type { Clock } from '../../lib/clock.ts';
import { parseJson } from '../../lib/json.ts';
import type { Platform } from '../../platform.ts';
import { startDeadline } from './deadline.ts';
import { McpResponseError } from './mcp-failure.ts';
import { RESPONSE_MAX_BYTES, TOO_LONG } from './result.ts';

type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;
type MessageId = string | number;

/** A message of JSON-RPC as far as we look at it. */
interface Message {
  id?: MessageId;
  method?: string;
  params?: { requestId?: MessageId };
}

/** Some minutes of progress, told often. */
const STREAM_MAX_BYTES = 8 * RESPONSE_MAX_BYTES;
/** More of an error than is ever shown, and enough for the errors of the protocol, which the client reads. */
const ERROR_MAX_BYTES = 64 * 1024;
/** A server that asks more than this during one call is not waiting for our answers. */
const MAX_REQUESTS_OF_SERVER = 16;
/** A stream that is cut after every poll, for as long as a call may take. */
const MAX_RESUMPTIONS = 100;
/** A server that is restarting is asked again, but a stream that is gone does not come back. */
const MAX_FAILED_RESUMPTIONS = 3;
const RESUME_AFTER_MS = { least: 100, unsaid: 1000, most: 30_000 };
/** For what is sent without anyone waiting: that a call is cancelled, that a session is over. */
const ASIDE_TIMEOUT_SECONDS = 2;

const METHOD_NOT_FOUND = -32601;

/** `headers` are the Agent's, for every request; those of the protocol go before them. */
export function createMcpFetch(
  { egress, clock }: Pick<Platform, 'egress' | 'clock'>,
  url: string,
  headers: Readonly<Record<string, string>>,
): Fetch {
  const underWay = new Map<MessageId, AbortController>();

  async function send(init: RequestInit): Promise<Response> {
    const all = new Headers({ 'User-Agent': 'Signalbox', ...headers });
    for (const [name, value] of new Headers(init.headers)) all.set(name, value);
    return await egress.fetch(url, { ...init, headers: all }).catch((error) => {
      throw networkFailure(error, init.signal);
    });
  }

  /** Sent, and whatever comes of it is not looked at. */
  async function sendAside(init: RequestInit): Promise<void> {
    const time = startDeadline(clock, ASIDE_TIMEOUT_SECONDS);
    const answer = await send({ ...init, signal: time.signal }).catch(() => null);
    await answer?.body?.cancel().catch(() => {});
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
      underWay.get(message.params?.requestId ?? '')?.abort();
      await sendAside(init);
      return new Response(null, { status: 202 });
    }
    const cancelled = new AbortController();
    underWay.set(message.id, cancelled);
    const signal = init.signal ? AbortSignal.any([init.signal, cancelled.signal]) : cancelled.signal;
    try {
      const answer = await new Exchange(send, clock, { ...init, signal }, message.id, signal).answer();
      return message.method === 'server/discover' ? asVerdict(answer) : answer;
    } catch (error) {
      // A server that can't make sense of the question is one of those that were there before it.
      if (message.method === 'server/discover' && error instanceof McpResponseError) return notModern();
      throw error;
    } finally {
      underWay.delete(message.id);
    }
  };
}

/** Whoever refuses the question, or fails over it, may still know the handshake of before; if not, that will say so. */
function asVerdict(answer: Response): Response {
  return answer.ok || answer.status === 400 || answer.status === 404 ? answer : notModern();
}

function notModern(): Response {
  return new Response(null, { status: 404 });
}

async function notify(send: (init: RequestInit) => Promise<Response>, init: RequestInit): Promise<Response> {
  const answer = await send(init);
  if (!answer.ok) return await errorOf(answer, init.signal);
  await answer.body?.cancel().catch(() => {});
  return new Response(null, { status: 202 });
}

/** One request of the client's and what comes of it. */
class Exchange {
  readonly #send: (init: RequestInit) => Promise<Response>;
  readonly #clock: Clock;
  readonly #init: RequestInit;
  readonly #id: MessageId;
  readonly #signal: AbortSignal;
  #streamBytes = 0;
  #requestsOfServer = 0;
  #lastEventId: string | undefined;
  #resumeAfterMs = RESUME_AFTER_MS.unsaid;

  constructor(
    send: (init: RequestInit) => Promise<Response>,
    clock: Clock,
    init: RequestInit,
    id: MessageId,
    signal: AbortSignal,
  ) {
    this.#send = send;
    this.#clock = clock;
    this.#init = init;
    this.#id = id;
    this.#signal = signal;
  }

  /** Throws `McpAnswerError`, `EgressError`, or the signal's reason. */
  async answer(): Promise<Response> {
    const response = await this.#send(this.#init);
    if (!response.ok) return await errorOf(response, this.#signal);
    const type = mediaTypeOf(response);
    if (type === 'application/json') return answered(response, this.#answerIn(await this.#wholeOf(response)));
    if (type === 'text/event-stream') return answered(response, await this.#streamed(response));
    await response.body?.cancel().catch(() => {});
    throw new McpResponseError(`its answer (HTTP ${response.status}) is neither JSON nor a stream of events`);
  }

  async #wholeOf(response: Response): Promise<unknown> {
    const bytes: Uint8Array[] = [];
    let length = 0;
    for await (const chunk of bodyOf(response, this.#signal)) {
      length += chunk.byteLength;
      if (length > RESPONSE_MAX_BYTES) throw new McpResponseError(TOO_LONG);
      bytes.push(chunk);
    }
    return messageIn(Buffer.concat(bytes).toString('utf8'));
  }

  /** The answer among the messages of one value, which older servers may send several of. */
  #answerIn(value: unknown): string {
    const answer = this.#find([value].flat());
    if (answer === undefined) throw new McpResponseError('it answers something else than was asked');
    return answer;
  }

  #find(messages: readonly unknown[]): string | undefined {
    for (const message of messages) {
      if (typeof message !== 'object' || message === null || !('result' in message || 'error' in message)) continue;
      const { id } = message as Message;
      // A server that could not read the request answers without its id.
      const ours = id === this.#id || String(id) === String(this.#id) || ('error' in message && (id ?? null) === null);
      if (ours) return JSON.stringify({ ...message, id: this.#id });
    }
    return undefined;
  }

  async #streamed(first: Response): Promise<string> {
    const answer = await this.#untilCut(first);
    if (answer !== undefined) return answer;
    let failed = 0;
    for (let resumed = 0; this.#lastEventId !== undefined && resumed < MAX_RESUMPTIONS; resumed++) {
      await this.#clock.sleep(this.#resumeAfterMs, this.#signal);
      const before = this.#lastEventId;
      const answer = await this.#resume();
      if (answer !== undefined) return answer;
      failed = this.#lastEventId === before ? failed + 1 : 0;
      if (failed === MAX_FAILED_RESUMPTIONS) break;
    }
    throw new EgressError('reset', 'the event stream ended before the response');
  }

  async #resume(): Promise<string | undefined> {
    const headers = new Headers(this.#init.headers);
    headers.delete('content-type');
    headers.delete('idempotency-key');
    headers.set('accept', 'text/event-stream');
    headers.set('last-event-id', this.#lastEventId ?? '');
    const response = await this.#send({ method: 'GET', headers, signal: this.#signal }).catch((error) => {
      if (error instanceof EgressError) return null;
      throw error;
    });
    if (response === null) return undefined;
    if (response.ok && mediaTypeOf(response) === 'text/event-stream') return await this.#untilCut(response);
    await response.body?.cancel().catch(() => {});
    return undefined;
  }

  /** The answer; undefined where the stream ends or breaks before it came. */
  async #untilCut(response: Response): Promise<string | undefined> {
    let answer: string | undefined;
    const parser = createParser({
      maxBufferSize: RESPONSE_MAX_BYTES,
      onError: ({ type }) => {
        if (type === 'max-buffer-size-exceeded') throw new McpResponseError(TOO_LONG);
      },
      onRetry: (ms) => {
        this.#resumeAfterMs = Math.min(Math.max(ms, RESUME_AFTER_MS.least), RESUME_AFTER_MS.most);
      },
      onEvent: ({ id, event = 'message', data }) => {
        // A line break would end the header in which it is sent back; the parser leaves none.
        if (id) this.#lastEventId = id;
        if (answer === undefined && event === 'message' && data !== '') answer = this.#hear(data);
      },
    });
    const decoder = new TextDecoder();
    try {
      for await (const chunk of bodyOf(response, this.#signal)) {
        this.#streamBytes += chunk.byteLength;
        if (this.#streamBytes > STREAM_MAX_BYTES) throw new McpResponseError('it goes on and on without an answer');
        parser.feed(decoder.decode(chunk, { stream: true }));
        if (answer !== undefined) return answer;
      }
    } catch (error) {
      if (error instanceof EgressError && error.kind === 'reset') return undefined;
      throw error;
    }
    return answer;
  }

  /** The answer, if this is it. */
  #hear(data: string): string | undefined {
    if (Buffer.byteLength(data) > RESPONSE_MAX_BYTES) throw new McpResponseError(TOO_LONG);
    const messages = [messageIn(data)].flat();
    for (const message of messages) this.#refuse(message as Message | null);
    return this.#find(messages);
  }

  /** Answers a request of the server's, so that it does not wait for us: that we are there, and else that we don't do this. */
  #refuse(message: Message | null): void {
    const { id, method } = message ?? {};
    if (typeof method !== 'string' || (typeof id !== 'string' && typeof id !== 'number')) return;
    this.#requestsOfServer += 1;
    if (this.#requestsOfServer > MAX_REQUESTS_OF_SERVER) throw new McpResponseError('it asks instead of answering');
    const error = { code: METHOD_NOT_FOUND, message: 'This client answers no requests of servers' };
    const body = JSON.stringify({ jsonrpc: '2.0', id, ...(method === 'ping' ? { result: {} } : { error }) });
    const headers = new Headers(this.#init.headers);
    headers.delete('idempotency-key');
    this.#send({ method: 'POST', headers, body, signal: this.#signal }).then(
      (answer) => answer.body?.cancel().catch(() => {}),
      () => {},
    );
  }
}

function answered(response: Response, message: string): Response {
  const session = response.headers.get('mcp-session-id');
  return new Response(message, {
    headers: { 'content-type': 'application/json', ...(session && { 'mcp-session-id': session }) },
  });
}

async function errorOf(response: Response, signal: AbortSignal | null | undefined): Promise<Response> {
  const { status } = response;
  if (status < 400) {
    await response.body?.cancel().catch(() => {});
    throw new McpResponseError(`it answers HTTP ${status}, and redirects are not followed`);
  }
  const bytes: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of bodyOf(response, signal)) {
    bytes.push(chunk.subarray(0, ERROR_MAX_BYTES - length));
    length += chunk.byteLength;
    if (length >= ERROR_MAX_BYTES) break;
  }
  return new Response(Buffer.concat(bytes).toString('utf8'), { status });
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

function networkFailure(error: unknown, signal: AbortSignal | null | undefined): unknown {
  if (signal?.aborted) return signal.reason;
  return toEgressError(error instanceof Error && error.cause !== undefined ? error.cause : error);
}

function messageIn(text: string): unknown {
  const value = parseJson(text);
  if (value === undefined) throw new McpResponseError('what it sends is not JSON, or nested too deep');
  return value;
}
