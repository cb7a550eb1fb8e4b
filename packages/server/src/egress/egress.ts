/**
 * The only way out. Every request to an address that a user configured goes through an `Egress`: webhooks, http and mcp tools, base
 * urls of models.
 *
 *   check    checks a url when it is configured, so that a forbidden one is refused where its author sees it
 *   of       for whom requests are sent: an organization, which has its own connections
 *     request  one exchange, limited in time and bytes: webhooks
 *     open     the same, with a body that is read as it arrives: http tools
 *     fetch    the same guard as a `fetch` function, for AI SDK providers and other libraries: streaming responses
 *
 * `policy.ts` decides what may be reached. `connector.ts` enforces it below the connections (connections.ts), so no kind of request can
 * bypass it. A connection belongs to one organization and one origin (scheme, host and port); HTTP/2 is not used, because there one
 * connection can serve several hosts. Redirects are returned, not followed; redirect.ts says which ones a caller may follow. A request that
 * may run twice is sent again if its server closes a kept connection at that moment (repeat.ts). `HTTP_PROXY` and `NODE_USE_ENV_PROXY`
 * have no effect, because the dispatcher is always our own; only the operator's proxy for this purpose is used (proxy.ts).
 */
import { Dispatcher, Headers, type RequestInit as UndiciRequestInit, fetch as undiciFetch } from 'undici';
import { Connections } from './connections.ts';
import { type ConnectorOptions, createConnector } from './connector.ts';
import { EgressError, toEgressError, UrlNotAllowed } from './errors.ts';
import {
  CONNECTION_HEADERS,
  type EgressRequest,
  type EgressResponse,
  Exchange,
  type OpenRequest,
  type OpenResponse,
  openResponse,
  type ResponseReader,
  type Target,
  wholeResponse,
} from './exchange.ts';
import { createLookup, type Lookup } from './lookup.ts';
import { type EgressPolicy, judgeUrl } from './policy.ts';
import { dispatchOn } from './repeat.ts';

export interface EgressOptions extends Pick<ConnectorOptions, 'ca' | 'open' | 'proxy'> {
  readonly policy: EgressPolicy;
  readonly lookup?: Lookup;
  /** For look-up, TCP and TLS together. Default: 5 s. */
  readonly connectTimeoutMs?: number;
  /** How many connections each organization has to an origin. Default: 1,024. */
  readonly maxPerOrigin?: number;
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
  /** Resolves when the head of the response has arrived; rejects only with `EgressError`. */
  open(request: OpenRequest): Promise<OpenResponse>;
  /**
   * As `globalThis.fetch`, but redirects are returned, not followed. Rejects with a `TypeError` whose `cause` is an `EgressError`, or
   * with the signal's reason. Time and size are not limited; the caller has to limit them.
   */
  readonly fetch: EgressFetch;
}

/** `repeatable` is that of `OpenRequest`, for requests whose body is a string or absent. */
export type EgressFetch = (
  input: string | URL | Request,
  init?: RequestInit & { readonly repeatable?: boolean },
) => Promise<Response>;

/** In place of an organization's id, for requests that belong to none. */
export const OPERATOR = 'operator';

const CONNECT_TIMEOUT_MS = 5000;

/** Far more than real responses have; stops an endless header. */
const MAX_RESPONSE_HEADER_BYTES = 16 * 1024;

/** A limit for each organization, which saves file descriptors; with HTTP/1.1 each streaming model needs a connection. */
const MAX_CONNECTIONS_PER_ORIGIN = 1024;

/** Less than the 5 s after which Node's servers close idle connections: a request on a closing connection fails. */
const IDLE_TIMEOUT_MS = 4000;

/** The maximum, even if a server announces a longer keep-alive. */
const MAX_IDLE_TIMEOUT_MS = 60_000;

/** After this a connection gets no new request, so that a change of the host's address takes effect. */
const CONNECTION_LIFETIME_MS = 300_000;

/** How many checked urls are cached: a url that is used often, such as a receiver's, is checked once. */
const MAX_KNOWN_URLS = 1_000;

const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

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

  async function send<T>(organizationId: string, request: OpenRequest, reader: ResponseReader<T>): Promise<T> {
    const target = knownToBeAllowed(request.url);
    if (!METHODS.has(request.method)) throw new EgressError('protocol', 'the HTTP method is not supported');
    new Exchange(request, connections, reader).start(organizationId, target);
    return await reader.response;
  }

  return {
    check(url) {
      allowed(url);
    },
    of: (organizationId) => ({
      request: (request) => send(organizationId, request, wholeResponse(request)),
      open: (request) => send(organizationId, request, openResponse()),
      fetch: guardedFetch(connections, organizationId, allowed),
    }),
    close: () => connections.destroy(),
  };
}

/** The dispatcher of undici's `fetch`. */
class EgressDispatcher extends Dispatcher {
  readonly #connections: Connections;
  readonly #organizationId: string;
  readonly #repeatableBody: string | null | undefined;

  /** `repeatableBody`: of the one request that it sends, if that may run twice. undici's own copy can be read only once. */
  constructor(connections: Connections, organizationId: string, repeatableBody?: string | null) {
    super();
    this.#connections = connections;
    this.#organizationId = organizationId;
    this.#repeatableBody = repeatableBody;
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
      const body = this.#repeatableBody;
      const sent = body === undefined ? options : { ...options, body };
      dispatchOn(connection, sent, translating, body !== undefined);
    });
    return true;
  }
}

function guardedFetch(
  connections: Connections,
  organizationId: string,
  allowed: (text: string) => unknown,
): EgressFetch {
  const dispatcher = new EgressDispatcher(connections, organizationId);

  return async (input, { repeatable = false, ...init } = {}) => {
    const request = input instanceof Request ? input : undefined;
    const signal = init.signal ?? request?.signal;
    const body = request === undefined ? (init.body ?? null) : request.body;
    const mayRepeat = repeatable && (body === null || typeof body === 'string');
    try {
      const url = request === undefined ? String(input) : request.url;
      allowed(url);
      const headers = new Headers(init.headers ?? request?.headers);
      for (const name of CONNECTION_HEADERS) headers.delete(name);
      const options = {
        ...(request === undefined ? {} : { method: request.method, body: request.body, duplex: 'half', signal }),
        ...init,
        headers: [...headers],
        redirect: 'manual',
        dispatcher: mayRepeat ? new EgressDispatcher(connections, organizationId, body) : dispatcher,
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
