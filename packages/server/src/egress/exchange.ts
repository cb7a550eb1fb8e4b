/**
 * One request and its response, with the limits around them. A `ResponseReader` takes the response: as a whole, or as it arrives.
 *
 * A body that is read as it arrives is read only as fast as its reader takes it: the connection is paused meanwhile, so that the
 * server waits. Only the time in which we wait for the server counts.
 */
import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { onceAborted } from '../lib/aborted.ts';
import type { Connection, Connections } from './connections.ts';
import { EgressError, toEgressError } from './errors.ts';
import { dispatchOn } from './repeat.ts';

export interface OpenRequest {
  readonly url: string;
  readonly method: string;
  /** Headers of the connection rather than the message (`Host`, `Connection`, …) are dropped. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer | null;
  /** For the whole exchange: waiting for a connection, connecting, sending, and waiting for the whole response. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /** Whether the request may run twice: if a kept connection is closed before the response begins, it is sent once more. */
  readonly repeatable?: boolean;
}

export interface EgressRequest extends OpenRequest {
  /** A longer response is cut here, and has `truncated`. */
  readonly maxResponseBytes: number;
  /**
   * If given, the status decides, and the body is only wanted if it arrives within this time. It is cut then, or where the connection
   * breaks, and the response has `truncated`. By default a body that does not arrive whole is an error.
   */
  readonly bodyMs?: number;
}

export interface ResponseHead {
  readonly status: number;
  /** Names in lower case; an array if the header occurs more than once. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

export interface EgressResponse extends ResponseHead {
  readonly body: Buffer;
  readonly truncated: boolean;
}

export interface OpenResponse extends ResponseHead {
  /**
   * The server waits while it is not read, except for a few chunks. Fails only with an `EgressError`. Read it to the end, or destroy it,
   * which closes the connection.
   */
  readonly body: Readable;
}

/** The parts of an allowed url. */
export interface Target {
  readonly origin: string;
  readonly path: string;
}

/** The reader of one exchange. The last call is `end` or `fail`. */
export interface ResponseReader<T> {
  readonly response: Promise<T>;
  head(head: ResponseHead, flow: Flow): void;
  data(chunk: Buffer): void;
  end(): void;
  fail(error: EgressError): void;
}

/** What a reader can do to the exchange. */
export interface Flow {
  /** The rest of the response is not read any more, and the connection is closed. Nothing is called after it. */
  stop(): void;
  /** Nothing is read until `resume`. */
  pause(): void;
  resume(): void;
}

/** Headers of the connection, not of the message (RFC 9110, 7.6.1), and headers that follow from the url and the body. */
export const CONNECTION_HEADERS: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

const NOTHING = Buffer.alloc(0);

/** Undici's handler. It ends exactly once. */
export class Exchange implements Dispatcher.DispatchHandler, Flow {
  readonly #request: OpenRequest;
  readonly #connections: Connections;
  readonly #reader: ResponseReader<unknown>;
  #connection: Connection | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #timer: NodeJS.Timeout | undefined;
  #leftMs: number;
  #waitsSince = 0;
  #forgetSignal = (): void => {};
  #withdraw = (): void => {};
  #ended = false;

  constructor(request: OpenRequest, connections: Connections, reader: ResponseReader<unknown>) {
    this.#request = request;
    this.#connections = connections;
    this.#reader = reader;
    this.#leftMs = request.timeoutMs;
  }

  start(organizationId: string, { origin, path }: Target): void {
    const { method, headers = {}, body = null, signal, repeatable = false } = this.#request;
    if (signal?.aborted) {
      this.#fail(new EgressError('aborted', 'the signal was aborted before the request'));
      return;
    }
    if (signal) {
      this.#forgetSignal = onceAborted(signal, () => this.#fail(new EgressError('aborted', 'the signal was aborted')));
    }
    this.#startTimer();
    this.#withdraw = this.#connections.lend(organizationId, origin, (connection) => {
      this.#connection = connection;
      // Our own timer covers both.
      const options = { path, method, headers: ofMessage(headers), body, headersTimeout: 0, bodyTimeout: 0 };
      dispatchOn(connection, options, this, repeatable);
    });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // It ended while it waited for a connection, so nothing may be sent.
    if (this.#ended) controller.abort(new EgressError('aborted', 'the request ended before it was sent'));
  }

  onResponseStart(_controller: unknown, status: number, headers: ResponseHead['headers']): void {
    this.#reader.head({ status, headers }, this);
  }

  onResponseData(_controller: unknown, chunk: Buffer): void {
    if (!this.#ended) this.#reader.data(chunk);
  }

  onResponseEnd(): void {
    this.#connections.giveBack(this.#connection!);
    if (this.#end()) this.#reader.end();
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.#connections.giveBack(this.#connection!);
    this.#fail(toEgressError(error));
  }

  pause(): void {
    if (this.#ended || this.#timer === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#leftMs -= performance.now() - this.#waitsSince;
    this.#controller!.pause();
  }

  resume(): void {
    if (this.#ended || this.#timer !== undefined) return;
    this.#startTimer();
    this.#controller!.resume();
  }

  stop(): void {
    // Keeping the connection would require reading the rest of the response, so it is closed.
    if (this.#end()) this.#controller?.abort(new EgressError('aborted', 'the rest of the response is not read'));
  }

  #startTimer(): void {
    this.#waitsSince = performance.now();
    const timedOut = () => this.#fail(new EgressError('timeout', `no response within ${this.#request.timeoutMs} ms`));
    this.#timer = setTimeout(timedOut, this.#leftMs);
  }

  #fail(error: EgressError): void {
    if (!this.#end()) return;
    this.#controller?.abort(error);
    this.#reader.fail(error);
  }

  #end(): boolean {
    if (this.#ended) return false;
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#forgetSignal();
    this.#withdraw();
    return true;
  }
}

/** The response with its body as a whole. */
export function wholeResponse({ maxResponseBytes, bodyMs }: EgressRequest): ResponseReader<EgressResponse> {
  const { promise: response, resolve, reject } = Promise.withResolvers<EgressResponse>();
  const chunks: Buffer[] = [];
  let bytes = 0;
  let head: ResponseHead | undefined;
  let flow: Flow;
  let timer: NodeJS.Timeout | undefined;

  function succeed(truncated: boolean): void {
    clearTimeout(timer);
    const [first = NOTHING] = chunks;
    resolve({ ...head!, body: chunks.length <= 1 ? first : Buffer.concat(chunks), truncated });
  }
  function cut(): void {
    succeed(true);
    flow.stop();
  }

  return {
    response,
    head(received, control) {
      head = received;
      flow = control;
      if (bodyMs !== undefined) timer = setTimeout(cut, bodyMs);
    },
    data(chunk) {
      const room = maxResponseBytes - bytes;
      chunks.push(chunk.length > room ? chunk.subarray(0, room) : chunk);
      bytes += chunk.length;
      if (chunk.length > room) cut();
    },
    end: () => succeed(false),
    fail(error) {
      if (head && bodyMs !== undefined) succeed(true);
      else reject(error);
    },
  };
}

/** The response with its body as it arrives. */
export function openResponse(): ResponseReader<OpenResponse> {
  const { promise: response, resolve, reject } = Promise.withResolvers<OpenResponse>();
  let flow: Flow;
  let body: Readable | undefined;
  return {
    response,
    head(head, control) {
      flow = control;
      body = new Readable({
        read: () => flow.resume(),
        destroy(error, done) {
          flow.stop();
          done(error);
        },
      });
      // Its reader gets the error, but an 'error' event without a listener would end the process.
      body.on('error', () => {});
      flow.pause();
      resolve({ ...head, body });
    },
    data(chunk) {
      if (!body!.push(chunk)) flow.pause();
    },
    end: () => void body!.push(null),
    fail(error) {
      reject(error);
      body?.destroy(error);
    },
  };
}

/** Headers of the message, as undici takes them. */
function ofMessage(headers: Readonly<Record<string, string>>): string[] {
  const flat: string[] = [];
  for (const name in headers) {
    if (!CONNECTION_HEADERS.has(name.toLowerCase())) flat.push(name, headers[name]!);
  }
  return flat;
}
