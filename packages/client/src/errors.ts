/** What the client throws. */
import type { ErrorCode, FieldError, Problem } from './types.generated.ts';

/**
 * The codes that the client itself gives, beside those of the service: no answer came, none came in time, or one came
 * that Signalbox does not send (from a proxy, mostly).
 */
export type ClientErrorCode = 'connection_error' | 'timeout' | 'unexpected_response';

interface Details {
  status: number;
  code: ErrorCode | ClientErrorCode;
  detail: string;
  requestId?: string | null;
  errors?: FieldError[];
  headers?: Headers;
  cause?: unknown;
}

/**
 * Every failure of a call. Branch on `code`, or on the class; show people `message`; give `requestId` to whoever
 * operates the service. It never holds the API key.
 *
 * A call that its own `signal` aborted rejects with the signal's reason instead, as `fetch` does.
 */
export class SignalboxError extends Error {
  /** The HTTP status; 0 when no answer came. */
  readonly status: number;
  /** What went wrong, for programs (api.md section 1, "Errors"). */
  readonly code: ErrorCode | ClientErrorCode;
  /** What went wrong this time, for people. */
  readonly detail: string;
  /** `req_…`, as in the service's log and event log; null when no answer came. */
  readonly requestId: string | null;
  /** The fields that are wrong, for `invalid_request`; else empty. */
  readonly errors: readonly FieldError[];
  /** The headers of the answer; empty when none came. */
  readonly headers: Headers;

  constructor({ status, code, detail, requestId = null, errors = [], headers = new Headers(), cause }: Details) {
    // The detail names the first of them itself.
    const more = errors.map(({ path, message }) => `${path}: ${message}`).filter((field) => !detail.includes(field));
    const fields = more.map((field) => `; ${field}`).join('');
    const request = requestId === null ? '' : ` (${requestId})`;
    super(`${status === 0 ? '' : `${status} `}${code}: ${detail}${fields}${request}`, { cause });
    this.name = new.target.name;
    this.status = status;
    this.code = code;
    this.detail = detail;
    this.requestId = requestId;
    this.errors = errors;
    this.headers = headers;
  }
}

/** 400: the request is not valid; `errors` names the fields. */
export class BadRequestError extends SignalboxError {}
/** 401: the key is missing, malformed, unknown, expired, rotated or deleted; `code` says which (source section 7). */
export class AuthenticationError extends SignalboxError {}
/** 403: the key is valid but lacks the permission (source section 7). */
export class PermissionError extends SignalboxError {}
/** 404: there is no such thing in the key's organization. */
export class NotFoundError extends SignalboxError {}
/** 409: the resource does not allow this now; `code` says why. */
export class ConflictError extends SignalboxError {}
/** 422: understood, but refused: `url_not_allowed`, `budget_invalid`. */
export class UnprocessableError extends SignalboxError {}
/** 429: too many requests, also after the retries. */
export class RateLimitError extends SignalboxError {}
/** 500 and above: the service's own fault, or that of a proxy before it. */
export class ServerError extends SignalboxError {}
/** No answer, or one that broke off: the service is away, or the network is. `status` is 0. */
export class ConnectionError extends SignalboxError {}
/** No answer within `timeoutMs`. `status` is 0, `code` is `timeout`. */
export class TimeoutError extends ConnectionError {}

const classes: Record<number, typeof SignalboxError> = {
  400: BadRequestError,
  401: AuthenticationError,
  403: PermissionError,
  404: NotFoundError,
  409: ConflictError,
  422: UnprocessableError,
  429: RateLimitError,
};

/** The error of an answer that is not 2xx: its Problem, or what can be said of a body that is none. */
export function errorOf(response: Response, body: string): SignalboxError {
  const { status, headers } = response;
  const ErrorClass = classes[status] ?? (status >= 500 ? ServerError : SignalboxError);
  const problem = problemIn(body);
  if (problem) {
    const { code, detail, requestId, errors = [] } = problem;
    return new ErrorClass({ status, code, detail, requestId, errors, headers });
  }
  return new ErrorClass({
    status,
    code: 'unexpected_response',
    detail: location(response) ?? `The answer is not from Signalbox: ${body.slice(0, 200).trim() || 'no body'}`,
    requestId: headers.get('x-request-id'),
    headers,
  });
}

function problemIn(body: string): Problem | undefined {
  try {
    const value: unknown = JSON.parse(body);
    if (typeof value !== 'object' || value === null) return undefined;
    const { code, detail, requestId } = value as Partial<Problem>;
    const whole = typeof code === 'string' && typeof detail === 'string' && typeof requestId === 'string';
    return whole ? (value as Problem) : undefined;
  } catch {
    return undefined;
  }
}

// A redirect is never followed: it would turn a POST into a GET, and a key belongs to one address.
function location({ status, headers, type }: Response): string | undefined {
  if (type !== 'opaqueredirect' && (status < 300 || status > 399)) return undefined;
  return `The address redirects${headers.has('location') ? ` to ${headers.get('location')}` : ''}: set baseUrl to where the service itself answers`;
}
