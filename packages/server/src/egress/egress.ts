/**
 * The only way out. Every request to an address that a user configured goes through an `Egress`: webhooks, http and mcp tools, base
 * urls of models.
 *
 *   check    checks a url when it is configured, so that a forbidden one is refused where its author sees it
 *   of       for whom requests are sent: an organization, which has its own connections
 *     request  one exchange, limited in time and bytes: webhooks and http tools
 *     fetch    the same guard as a `fetch` function, for AI SDK providers and other libraries: streaming responses
 *
 * `policy.ts` decides what may be reached. `connector.ts` enforces it below the connections (connections.ts), so no kind of request can
 * bypass it. A connection belongs to one organization and one origin (scheme, host and port); HTTP/2 is not used, because there one
 * connection can serve several hosts. Redirects are returned, not followed. `HTTP_PROXY` and `NODE_USE_ENV_PROXY` have no effect,
 * because the dispatcher is always our own; only the operator's proxy for this purpose is used (proxy.ts).
 */
import { Dispatcher, Headers, type RequestInit as UndiciRequestInit, fetch as undiciFetch } from 'undici';
import { onceAborted } from '../lib/aborted.ts';
import { type Connection, Connections } from './connections.ts';
import { type ConnectorOptions, createConnector } from './connector.ts';
import { EgressError, toEgressError, UrlNotAllowed } from './errors.ts';
import { createLookup, type Lookup } from './lookup.ts';
import { type EgressPolicy, judgeUrl } from './policy.ts';

export interface EgressOptions extends Pick<ConnectorOptions, 'ca' | 'open' | 'proxy'> {
  readonly policy: EgressPolicy;
  readonly lookup?: Lookup;
  /** For look-up, TCP and TLS together. Default: 5 s. */
  readonly connectTimeoutMs?: number;
  /** How many connections each organization has to an origin. Default: 1,024. */
  readonly maxPerOrigin?: number;
}

export interface EgressRequest {
  readonly url: string;
  readonly method: string;
  /** Headers of the connection rather than the message (`Host`, `Connection`, …) are dropped. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer | null;
  /** For the whole exchange: waiting for a connection, connecting, sending, and reading the whole response. */
  readonly timeoutMs: number;
  /** A longer response is cut here, and has `truncated`. It may depend on the response's status and headers. */
  readonly maxResponseBytes: number | ((head: Pick<EgressResponse, 'status' | 'headers'>) => number);
  readonly signal?: AbortSignal;
}

export interface EgressResponse {
  readonly status: number;
  /** Names in lower case; an array if the header occurs more than once. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
  readonly truncated: boolean;
}

export interface Egress {
  /** Throws `UrlNotAllowed`. The connection may still be refused later. */
  check(url: string): void;
  /** The requests of an organization, by its id, or of the `OPERATOR`. They never wait for those of another. */
  of(organizationId: string): OrganizationEgress;
  /** Aborts current requests (`aborted`) and closes every connection. */
  close(): Promise<void>;
}

export interface OrganizationEgress {
  /** Resolves with the response, whatever its status; rejects only with `EgressError`. */
  request(request: EgressRequest): Promise<EgressResponse>;
  /**
   * As `globalThis.fetch`, but redirects are returned, not followed. Rejects with a `TypeError` whose `cause` is an `EgressError`, or
   * with the signal's reason. Time and size are not limited; the caller has to limit them.
   */
  readonly fetch: typeof globalThis.fetch;
}

/** In place of an organization's id, for requests that belong to none. */
export const OPERATOR = 'operator';

const CONNECT_TIMEOUT_MS = 5000;

/** Far more than real responses have; stops an endless header. */
const MAX_RESPONSE_HEADER_BYTES = 16 * 1024;

/**
 * Of each organization. Keeps the process from running out of file descriptors; with HTTP/1.1 each streaming model needs a connection.
 */
const MAX_CONNECTIONS_PER_ORIGIN = 1024;

/** Less than the 5 s after which Node's servers close idle connections: a request on a closing connection fails. */
const IDLE_TIMEOUT_MS = 4000;

/** The maximum, even if a server announces a longer keep-alive. */
const MAX_IDLE_TIMEOUT_MS = 60_000;

/** After this a connection gets no new request, so that a change of the host's address takes effect. */
const CONNECTION_LIFETIME_MS = 300_000;

/** How many checked urls are cached: a url that is used often, such as a receiver's, is checked once. */
const MAX_KNOWN_URLS = 1_000;

const NOTHING = Buffer.alloc(0);

const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** Headers of the connection, not of the message (RFC 9110, 7.6.1), and those that follow from the url and the body. */
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

/** The parts of an allowed url. */
interface Target {
  readonly origin: string;
  readonly path: string;
}

export function createEgress(options: EgressOptions): Egress {
  const {
    policy,
    lookup = createLookup(),
    connectTimeoutMs = CONNECT_TIMEOUT_MS,
    maxPerOrigin = MAX_CONNECTIONS_PER_ORIGIN,
  } = options;
  const connections = new Connections({
    client: {
      connect: createConnector({ ...options, lookup, connectTimeoutMs }),
      allowH2: false,
      pipelining: 1,
      keepAliveTimeout: IDLE_TIMEOUT_MS,
      keepAliveMaxTimeout: MAX_IDLE_TIMEOUT_MS,
      maxHeaderSize: MAX_RESPONSE_HEADER_BYTES,
    },
    maxPerOrigin,
    lifetimeMs: CONNECTION_LIFETIME_MS,
  });
  const known = new Map<string, Target>();

  function allowed(text: string): Target {
    const judgement = judgeUrl(policy, text);
    if (!judgement.ok) throw new UrlNotAllowed(judgement.reason);
    const { origin, pathname, search } = judgement.url;
    return { origin, path: pathname + search };
  }

  /** As `allowed`, with a cache: the policy never changes, so the result for a text doesn't either. */
  function knownToBeAllowed(text: string): Target {
    let target = known.get(text);
    if (!target) {
      target = allowed(text);
      if (known.size >= MAX_KNOWN_URLS) known.clear();
      known.set(text, target);
    }
    return target;
  }

  return {
    check(url) {
      allowed(url);
    },
    of: (organizationId) => ({
      async request(request) {
        const target = knownToBeAllowed(request.url);
        if (!METHODS.has(request.method)) throw new EgressError('protocol', 'the HTTP method is not supported');
        return await new Promise<EgressResponse>((resolve, reject) => {
          new Exchange(request, connections, resolve, reject).start(organizationId, target);
        });
      },
      fetch: guardedFetch(connections, organizationId, allowed),
    }),
    close: () => connections.destroy(),
  };
}

/** One `request`: undici's handler and the limits around it. It ends exactly once. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #request: EgressRequest;
  readonly #connections: Connections;
  readonly #resolve: (response: EgressResponse) => void;
  readonly #reject: (error: EgressError) => void;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;
  #maxBytes = 0;
  #status = 0;
  #headers: EgressResponse['headers'] = {};
  #connection: Connection | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #timer: NodeJS.Timeout | undefined;
  #forgetSignal = (): void => {};
  #ended = false;

  constructor(
    request: EgressRequest,
    connections: Connections,
    resolve: (response: EgressResponse) => void,
    reject: (error: EgressError) => void,
  ) {
    this.#request = request;
    this.#connections = connections;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  start(organizationId: string, { origin, path }: Target): void {
    const { method, headers = {}, body = null, timeoutMs, signal } = this.#request;
    if (signal?.aborted) {
      this.#fail(new EgressError('aborted', 'the signal was aborted before the request'));
      return;
    }
    if (signal) {
      this.#forgetSignal = onceAborted(signal, () => this.#fail(new EgressError('aborted', 'the signal was aborted')));
    }
    this.#timer = setTimeout(
      () => this.#fail(new EgressError('timeout', `no response within ${timeoutMs} ms`)),
      timeoutMs,
    );
    this.#connections.lend(organizationId, origin, (connection) => {
      this.#connection = connection;
      // Our own timer covers both.
      connection.client.dispatch(
        { path, method, headers: ofMessage(headers), body, headersTimeout: 0, bodyTimeout: 0 },
        this,
      );
    });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    // It ended while it waited for a connection, so nothing may be sent.
    if (this.#ended) controller.abort(new EgressError('aborted', 'the request ended before it was sent'));
  }

  onResponseStart(_controller: unknown, status: number, headers: EgressResponse['headers']): void {
    this.#status = status;
    this.#headers = headers;
    const { maxResponseBytes } = this.#request;
    this.#maxBytes = typeof maxResponseBytes === 'number' ? maxResponseBytes : maxResponseBytes({ status, headers });
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const room = this.#maxBytes - this.#bytes;
    this.#chunks.push(chunk.length > room ? chunk.subarray(0, room) : chunk);
    this.#bytes += chunk.length;
    if (chunk.length <= room) return;
    this.#succeed(true);
    // Keeping the connection would require reading the rest of the response, so it is closed.
    controller.abort(new EgressError('aborted', 'the response is longer than the limit'));
  }

  onResponseEnd(): void {
    this.#connections.giveBack(this.#connection!);
    this.#succeed(false);
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.#connections.giveBack(this.#connection!);
    this.#fail(toEgressError(error));
  }

  #succeed(truncated: boolean): void {
    if (!this.#end()) return;
    const [first = NOTHING] = this.#chunks;
    const body = this.#chunks.length <= 1 ? first : Buffer.concat(this.#chunks);
    this.#resolve({ status: this.#status, headers: this.#headers, body, truncated });
  }

  #fail(error: EgressError): void {
    if (!this.#end()) return;
    this.#controller?.abort(error);
    this.#reject(error);
  }

  #end(): boolean {
    if (this.#ended) return false;
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#forgetSignal();
    return true;
  }
}

/** Headers of the message, as undici takes them. */
function ofMessage(headers: Readonly<Record<string, string>>): string[] {
  const flat: string[] = [];
  for (const name in headers) {
    if (!CONNECTION_HEADERS.has(name.toLowerCase())) flat.push(name, headers[name]!);
  }
  return flat;
}

/** The dispatcher of undici's `fetch`. */
class EgressDispatcher extends Dispatcher {
  readonly #connections: Connections;
  readonly #organizationId: string;

  constructor(connections: Connections, organizationId: string) {
    super();
    this.#connections = connections;
    this.#organizationId = organizationId;
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    this.#connections.lend(this.#organizationId, String(options.origin), (connection) => {
      // undici calls `onResponseError` again for what comes of the error in the body, and after the end if the body can't be decoded.
      let isLent = true;
      const giveBack = () => {
        if (!isLent) return;
        isLent = false;
        this.#connections.giveBack(connection);
      };
      const translating: Dispatcher.DispatchHandler = Object.create(handler);
      translating.onResponseEnd = (controller, trailers) => {
        giveBack();
        handler.onResponseEnd?.call(translating, controller, trailers);
      };
      // undici's errors contain the socket with its addresses, and callers may log what they catch.
      translating.onResponseError = (controller, error) => {
        giveBack();
        handler.onResponseError?.call(translating, controller, toEgressError(error));
      };
      connection.client.dispatch(options, translating);
    });
    return true;
  }
}

function guardedFetch(
  connections: Connections,
  organizationId: string,
  allowed: (text: string) => unknown,
): typeof globalThis.fetch {
  const dispatcher = new EgressDispatcher(connections, organizationId);

  return async (input, init) => {
    const request = input instanceof Request ? input : undefined;
    const signal = init?.signal ?? request?.signal;
    try {
      const url = request === undefined ? String(input) : request.url;
      allowed(url);
      const headers = new Headers(init?.headers ?? request?.headers);
      for (const name of CONNECTION_HEADERS) headers.delete(name);
      const options = {
        ...(request === undefined ? {} : { method: request.method, body: request.body, duplex: 'half', signal }),
        ...init,
        headers: [...headers],
        redirect: 'manual',
        dispatcher,
      };
      // The two implementations of fetch are typed apart, down to their streams, but are the same at run time.
      return (await undiciFetch(url, options as unknown as UndiciRequestInit)) as unknown as Response;
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new TypeError('fetch failed', { cause: fetchCause(error) });
    }
  };
}

function fetchCause(error: unknown): EgressError {
  if (error instanceof EgressError) return error;
  if (error instanceof Error && error.cause !== undefined) return toEgressError(error.cause);
  // A malformed header: undici's message would quote its value, which may be a secret.
  return new EgressError('protocol', 'the request is malformed');
}
