/** The errors of the client. */
import type { ErrorCode, FieldError, Problem } from './types.generated.ts';

/**
 * The codes of the client itself, in addition to the codes of the service: no response, no response in time, a response that is
 * not from Signalbox (mostly from a proxy), or no session token because your function `token` failed.
 */
export type ClientErrorCode = 'connection_error' | 'timeout' | 'unexpected_response' | 'token_unavailable';

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
 * The error of every failed call. Branch on `code` or on the class, show `message` to people, and give `requestId` to the
 * operator of the service. It never contains the API key.
 *
 * A call that was aborted by its own `signal` rejects with the signal's reason instead, as `fetch` does.
 */
export class SignalboxError extends Error {
  /** The HTTP status; 0 if there was no response. */
  readonly status: number;
  /** What went wrong, for programs: a code of the service or one of the client's own. */
  readonly code: ErrorCode | ClientErrorCode;
  /** The particulars, for people. */
  readonly detail: string;
  /** `req_…`, as in the service's log and event log; null if there was no response. */
  readonly requestId: string | null;
  /** The invalid fields, for `invalid_request`; otherwise empty. */
  readonly errors: readonly FieldError[];
  /** The headers of the response; empty if there was none. */
  readonly headers: Headers;

  constructor({ status, code, detail, requestId = null, errors = [], headers = new Headers(), cause }: Details) {
    // `detail` already contains the first one.
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

/** 400: the request is invalid; `errors` names the fields. */
export class BadRequestError extends SignalboxError {}
/** 401: the key is missing, malformed, unknown, expired, rotated or deleted; `code` says which. */
export class AuthenticationError extends SignalboxError {}
/** 403: the key is valid but lacks the permission. */
export class PermissionError extends SignalboxError {}
/** 404: the resource does not exist in the caller's organization. */
export class NotFoundError extends SignalboxError {}
/** 409, 412: the state of the resource does not allow this; `code` says why. */
export class ConflictError extends SignalboxError {}
/** 422: understood, but refused: `url_not_allowed`, `budget_invalid`. */
export class UnprocessableError extends SignalboxError {}
/** 429: too many requests, even after the retries. */
export class RateLimitError extends SignalboxError {}
/** 500 and above: an error of the service, or of a proxy in front of it. */
export class ServerError extends SignalboxError {}
/** No response, or an incomplete one: the service or the network is down. `status` is 0. */
export class ConnectionError extends SignalboxError {}
/** No response within `timeoutMs`. `status` is 0, `code` is `timeout`. */
export class TimeoutError extends ConnectionError {}

const classes: Record<number, typeof SignalboxError> = {
  400: BadRequestError,
  401: AuthenticationError,
  403: PermissionError,
  404: NotFoundError,
  409: ConflictError,
  412: ConflictError,
  422: UnprocessableError,
  429: RateLimitError,
};

/** The error for a response that is not 2xx: from its Problem, or from its status and text if the body is not one. */
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
    detail: location(response) ?? `The response is not from Signalbox: ${body.slice(0, 200).trim() || 'no body'}`,
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

// Redirects are not followed: that would turn a POST into a GET, and a key belongs to one address.
function location({ status, headers, type }: Response): string | undefined {
  if (type !== 'opaqueredirect' && (status < 300 || status > 399)) return undefined;
  return `The address redirects${headers.has('location') ? ` to ${headers.get('location')}` : ''}: set baseUrl to the URL of the service itself`;
}
