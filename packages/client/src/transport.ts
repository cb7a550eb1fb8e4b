/**
 * One API call over HTTP: URL, headers, timeout, retries, errors.
 *
 * The API key is in a private field of this class and in no other object, so `util.inspect`, `JSON.stringify` and errors can't
 * show it.
 */
import { credentialsOf, environment, localUrl } from './credentials.ts';
import { AuthenticationError, ConnectionError, errorOf, SignalboxError, TimeoutError } from './errors.ts';
import { retryDelayMs } from './retry.ts';
import { now, type Sleep, sleep } from './time.ts';
import { type GetToken, TokenSource } from './token-source.ts';
import { type Operations, operations } from './types.generated.ts';
import type { UploadBody } from './upload.ts';
import { version } from './version.ts';

export type ClientOptions = CommonOptions &
  (
    | {
        /**
         * `sbk_…`. Keep it on servers: never ship it in a browser or an app. Default: the environment variable
         * `SIGNALBOX_API_KEY`.
         */
        apiKey?: string | undefined;
        session?: undefined;
        token?: undefined;
      }
    | {
        /**
         * Gets a session token, for a page in the browser of an end user. Called when a call needs one: at first, and when the service
         * has refused the one before, because it has expired. The call is then repeated with the new one, and a stream resumes.
         */
        token: GetToken;
        apiKey?: undefined;
        session?: undefined;
      }
    | {
        /** The session of a user who is signed in to the console, for the page that the service itself serves. */
        session: BrowserSession;
        apiKey?: undefined;
        token?: undefined;
      }
  );

/** What a call needs in addition to the cookie, which the browser sends. */
export interface BrowserSession {
  /** `org_…`: the organization of the calls. */
  organizationId: string;
  /** From `GET /console/api/account`; bound to the sign-in. */
  csrfToken: string;
}

interface CommonOptions {
  /**
   * The URL of the service, without `/api/v1`. Default: the environment variable `SIGNALBOX_URL`, else `http://127.0.0.1:4500`, or
   * with the port in `SIGNALBOX_PORT`; with `session`, the origin of the page.
   */
  baseUrl?: string | undefined;
  /** How often a failed call is retried, if that is safe. Default: 2. */
  maxRetries?: number | undefined;
  /** How long one attempt can take, in milliseconds; for streams, until the headers arrive. Default: 60,000. */
  timeoutMs?: number | undefined;
  /** Your program, such as `billing/2.1`; prefixed to the client's own `User-Agent`. */
  userAgent?: string | undefined;
  /** Default: the global `fetch`. */
  fetch?: typeof globalThis.fetch | undefined;
  /** Replaces all waiting (pauses between attempts, timeouts); for tests. */
  sleep?: Sleep | undefined;
}

/** The last argument of every method. */
export interface RequestOptions {
  /**
   * For POST: a call repeated with the same key within 24 hours, even by another process, has its effect once.
   * Default: a new key for each call, which all of its attempts share.
   */
  idempotencyKey?: string | undefined;
  /** Aborts the call, which then rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Replaces the client's, for this call. */
  timeoutMs?: number | undefined;
  /** Replaces the client's, for this call. */
  maxRetries?: number | undefined;
}

type Name = keyof Operations;
type Part<N extends Name, K extends 'params' | 'query' | 'body'> = Operations[N] extends { [P in K]: infer T }
  ? T
  : never;

/** Path parameters, query and body of an operation. */
export type Input<N extends Name> = {
  [K in Extract<keyof Operations[N], 'params'>]: Part<N, K>;
} & {
  [K in Extract<keyof Operations[N], 'query' | 'body'>]?: Part<N, K> | undefined;
} & {
  /** Whether a PUT may create and not replace: `If-None-Match: *`. */
  onlyCreate?: true;
};
/** The query of an operation. */
export type Query<N extends Name> = Part<N, 'query'>;
/** The result of an operation. */
export type Result<N extends Name> = Operations[N]['result'];

/** A response whose body has not been read yet. */
export interface OpenResponse {
  response: Response;
  /** Ends the request and releases the connection; the rest of the body is not read. */
  close: () => void;
}

const defaultTimeoutMs = 60_000;
const defaultMaxRetries = 2;

export class Transport {
  /** Without those of a session token, which changes. */
  readonly #credentials: Record<string, string>;
  readonly #tokens: TokenSource | undefined;
  readonly #fetchOptions: RequestInit;
  readonly #baseUrl: string;
  /** Neither the program nor the environment says where the service is. */
  readonly #isUrlAssumed: boolean;
  readonly #fetch: typeof globalThis.fetch;
  readonly #maxRetries: number;
  readonly #timeoutMs: number;
  readonly #userAgent: string;
  readonly sleep: Sleep;

  constructor(options: ClientOptions) {
    const { session, token } = options;
    this.#credentials = credentialsOf(options);
    this.#tokens = token && new TokenSource(token);
    this.#fetchOptions = session ? { credentials: 'same-origin', cache: 'no-store' } : {};
    const defaultUrl = session ? ownOrigin() : environment('SIGNALBOX_URL');
    const url = options.baseUrl || defaultUrl;
    this.#baseUrl = checkedBaseUrl(url || localUrl());
    this.#isUrlAssumed = !url;
    // Bound, because browsers and workers refuse to call fetch as a method of another object.
    this.#fetch = options.fetch ?? globalThis.fetch.bind(globalThis);
    this.#maxRetries = options.maxRetries ?? defaultMaxRetries;
    this.#timeoutMs = options.timeoutMs ?? defaultTimeoutMs;
    // A browser sets its own.
    this.#userAgent =
      session || token ? '' : `${options.userAgent ? `${options.userAgent} ` : ''}signalbox-client/${version}`;
    this.sleep = options.sleep ?? sleep;
  }

  /** Sends the request and reads the response. */
  async call<N extends Name>(
    name: N,
    input: Input<N>,
    options: RequestOptions = {},
    upload?: UploadBody,
  ): Promise<Result<N>> {
    return await this.#withRetries(
      name,
      input,
      options,
      upload?.headers ?? {},
      async (exchange) => {
        const body = await exchange.text();
        return jsonIn(exchange.response, body) as Result<N>;
      },
      upload,
    );
  }

  /** Sends the request and reads the response as bytes, within the timeout. */
  async bytes<N extends Name>(
    name: N,
    input: Input<N>,
    options: RequestOptions = {},
  ): Promise<Uint8Array<ArrayBuffer>> {
    const headers = { accept: '*/*' };
    return await this.#withRetries(name, input, options, headers, async (exchange) => await exchange.bytes());
  }

  /** Sends the request and leaves the body to the caller. The timeout applies until the headers arrive. */
  async open<N extends Name>(
    name: N,
    input: Input<N>,
    options: RequestOptions,
    headers: Record<string, string>,
  ): Promise<OpenResponse> {
    return await this.#withRetries(name, input, options, headers, async (exchange) => exchange.keepOpen());
  }

  async #withRetries<N extends Name, T>(
    name: N,
    input: Input<N>,
    options: RequestOptions,
    extraHeaders: Record<string, string>,
    read: (exchange: Exchange) => Promise<T>,
    upload?: UploadBody,
  ): Promise<T> {
    const { method, path } = operations[name];
    const { params, query, body, onlyCreate } = input as {
      params?: object;
      query?: object;
      body?: object;
      onlyCreate?: true;
    };
    const url = this.#baseUrl + fillPath(path, params ?? {}) + queryString(query ?? {});
    const headers: Record<string, string> = {
      accept: 'application/json',
      ...(this.#userAgent && { 'user-agent': this.#userAgent }),
      ...extraHeaders,
      ...this.#credentials,
    };
    if (body !== undefined) headers['content-type'] = 'application/json';
    if (onlyCreate) headers['if-none-match'] = '*';
    if (method === 'POST') headers['idempotency-key'] = options.idempotencyKey ?? newKey();
    const init = {
      method,
      headers,
      redirect: 'manual' as const,
      ...this.#fetchOptions,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    };
    const maxRetries = options.maxRetries ?? this.#maxRetries;
    const isRepeatable = method !== 'PATCH' && !onlyCreate;

    for (let attempt = 0, hasNewToken = false; ; attempt++) {
      let token: string | undefined;
      try {
        token = await this.#tokens?.token();
        if (token !== undefined) headers.authorization = `Bearer ${token}`;
        return await this.#attempt(url, init, options, read, upload);
      } catch (error) {
        if (error instanceof AuthenticationError && token !== undefined && !hasNewToken) {
          await this.#tokens!.refused(token);
          hasNewToken = true;
          // A content that can't be read twice has maxRetries 0.
          if (upload === undefined || maxRetries > 0) {
            attempt -= 1;
            continue;
          }
        }
        if (!(error instanceof SignalboxError) || attempt >= maxRetries) throw error;
        const delayMs = retryDelayMs(isRepeatable, error, attempt, Math.random(), now());
        if (delayMs === null) throw error;
        await this.sleep(delayMs, options.signal);
      }
    }
  }

  async #attempt<T>(
    url: string,
    init: RequestInit,
    { signal, timeoutMs = this.#timeoutMs }: RequestOptions,
    read: (exchange: Exchange) => Promise<T>,
    upload?: UploadBody,
  ): Promise<T> {
    signal?.throwIfAborted();
    const controller = new AbortController();
    const abort = () => controller.abort(signal?.reason);
    signal?.addEventListener('abort', abort, { once: true });
    const timer = new AbortController();
    let timedOut = false;
    this.sleep(timeoutMs, timer.signal).then(
      () => {
        timedOut = true;
        controller.abort();
      },
      () => {},
    );
    let open = false;
    const finish = () => signal?.removeEventListener('abort', abort);
    try {
      const send = upload?.fetch ?? this.#fetch;
      const response = await send(url, {
        ...init,
        // A stream can be sent only if the response is awaited meanwhile.
        ...(upload && { body: upload.body(controller.signal), duplex: 'half' as const }),
        signal: controller.signal,
      });
      if (!response.ok) throw errorOf(response, await response.text());
      return await read({
        response,
        text: () => response.text(),
        bytes: async () => new Uint8Array(await response.arrayBuffer()),
        keepOpen: () => {
          open = true;
          return {
            response,
            close: () => {
              finish();
              controller.abort();
            },
          };
        },
      });
    } catch (error) {
      if (error instanceof SignalboxError) throw error;
      signal?.throwIfAborted();
      if (timedOut) {
        throw new TimeoutError({ status: 0, code: 'timeout', detail: `No response within ${timeoutMs} ms` });
      }
      throw connectionError(error, new URL(url).origin, this.#isUrlAssumed);
    } finally {
      timer.abort();
      if (!open) finish();
    }
  }
}

/** Not `randomUUID`: browsers have it only in secure contexts. */
function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** The origin of the current page. */
function ownOrigin(): string | undefined {
  return (globalThis as { location?: { origin: string } }).location?.origin;
}

interface Exchange {
  response: Response;
  text: () => Promise<string>;
  bytes: () => Promise<Uint8Array<ArrayBuffer>>;
  /** Keeps the request open, still tied to the caller's signal, until `close`. */
  keepOpen: () => OpenResponse;
}

/** The error with which fetch rejected, as a ConnectionError; fetch puts the reason ("connect ECONNREFUSED …") in `cause`. */
export function connectionError(error: unknown, origin?: string, isUrlAssumed = false): ConnectionError {
  const outer = error instanceof Error ? error : new Error(String(error));
  const { message, code } = (outer.cause ?? {}) as { message?: string; code?: string };
  // If a name has several addresses, the reason has only a code.
  const reason = message || code || outer.message;
  const detail = `The service${origin === undefined ? '' : ` at ${origin}`} can't be reached or broke off: ${reason}${isUrlAssumed ? '. If it is elsewhere, set SIGNALBOX_URL or baseUrl.' : ''}`;
  return new ConnectionError({ status: 0, code: 'connection_error', detail, cause: error });
}

function jsonIn(response: Response, body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    throw new SignalboxError({
      status: response.status,
      code: 'unexpected_response',
      detail: 'The response is not JSON: is baseUrl the URL of Signalbox?',
      requestId: response.headers.get('x-request-id'),
      headers: response.headers,
    });
  }
}

function checkedBaseUrl(given: string): string {
  if (!URL.canParse(given) || !/^https?:/i.test(given)) {
    throw new TypeError('baseUrl must be an http or https address, such as http://127.0.0.1:4500');
  }
  const { username, password, search, hash, origin, pathname } = new URL(given);
  if (username || password || search || hash) {
    throw new TypeError('baseUrl must hold neither user info nor a query nor a fragment');
  }
  return `${origin}${pathname.replace(/\/+$/, '').replace(/\/api\/v1$/, '')}/api/v1`;
}

function fillPath(path: string, params: object): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = (params as Record<string, unknown>)[name];
    // An empty segment would address the collection instead, as in `DELETE /sessions/`; `.` and `..` would go up.
    if (typeof value !== 'string' || value === '' || value === '.' || value === '..') {
      throw new TypeError(`${name} must be a non-empty string`);
    }
    return encodeURIComponent(value);
  });
}

/** Joins lists with commas, writes objects as `name[key]=value`, and omits undefined values. */
function queryString(query: object): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue;
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      for (const [key, one] of Object.entries(value)) {
        if (one !== undefined) search.append(`${name}[${key}]`, String(one));
      }
    } else {
      search.append(name, String(value));
    }
  }
  return search.size === 0 ? '' : `?${search}`;
}
