/**
 * How an outgoing request fails. Users see `kind` and `message`, so neither contains an address, a response of DNS, a header or a
 * body. `reason` is for the operator's log.
 */
import { errors as undiciErrors } from 'undici';

/**
 * | kind | what happened |
 * |---|---|
 * | `not_allowed` | the url, or an address of its host, is not allowed; nothing was sent |
 * | `dns` | the host's addresses could not be looked up |
 * | `connect_timeout` | no connection, TLS included, within the connect timeout |
 * | `connect` | the connection was refused, or the host is unreachable |
 * | `tls` | the TLS handshake failed, or the certificate is not valid for the host |
 * | `timeout` | the exchange, including the body, took too long |
 * | `reset` | the connection was lost during the request, which may or may not have had an effect |
 * | `aborted` | the caller's signal, or the node is stopping |
 * | `protocol` | the response is not valid HTTP, or the request's own headers are malformed |
 */
export type EgressErrorKind =
  | 'not_allowed'
  | 'dns'
  | 'connect_timeout'
  | 'connect'
  | 'tls'
  | 'timeout'
  | 'reset'
  | 'aborted'
  | 'protocol';

const MESSAGES: Readonly<Record<EgressErrorKind, string>> = {
  not_allowed: 'The destination is not allowed',
  dns: 'The host could not be looked up',
  connect_timeout: 'The host did not accept the connection in time',
  connect: 'The host could not be connected to',
  tls: 'The TLS handshake failed',
  timeout: 'The response did not arrive in time',
  reset: 'The connection was closed before the response was complete',
  aborted: 'The request was aborted',
  protocol: 'The exchange is not valid HTTP',
};

/** The only error of requests through this folder. */
export class EgressError extends Error {
  override readonly name: string = 'EgressError';
  readonly kind: EgressErrorKind;
  /** Only for the operator's log: may contain addresses. */
  readonly reason: string;

  /** `code` is an error code of the system or of TLS, such as `ECONNREFUSED`. Safe to show to anyone. */
  constructor(kind: EgressErrorKind, reason: string, code?: string) {
    super(code === undefined ? MESSAGES[kind] : `${MESSAGES[kind]} (${code})`);
    this.kind = kind;
    this.reason = reason;
  }
}

const RULE =
  'must be an https URL at a public address, without user info and fragment; the operator can allow others in SIGNALBOX_EGRESS_ALLOW';

/**
 * The user's message for a refused url. It depends on nothing but the text of the url, because the reason could reveal something about
 * the operator's network.
 */
export function allowedUrlsHint(url: string): string {
  const host = URL.parse(url)?.hostname ?? '';
  const isLoopback = /^(localhost|.*\.localhost|127(\.\d+){3}|\[::1\])$/.test(host);
  return isLoopback ? `${RULE}: 127.0.0.1 for programs on the machine of the service` : RULE;
}

/** A url that is refused before anything is looked up. */
export class UrlNotAllowed extends EgressError {
  override readonly name = 'UrlNotAllowed';

  constructor(reason: string) {
    super('not_allowed', reason);
  }
}

/** The error of a stage that can fail in only one way, with the system's code if there is one. */
export function stageError(kind: 'dns' | 'connect' | 'tls', error: unknown): EgressError {
  if (error instanceof EgressError) return error;
  const code = codeOf(error);
  // The system's own timeout came before ours; users need no distinction.
  return new EgressError(code === 'ETIMEDOUT' && kind !== 'dns' ? 'connect_timeout' : kind, reasonOf(error), code);
}

/** Translates an error of undici, or of a socket below it. */
export function toEgressError(error: unknown): EgressError {
  if (error instanceof EgressError) return error;
  if (error instanceof undiciErrors.HeadersTimeoutError || error instanceof undiciErrors.BodyTimeoutError) {
    return new EgressError('timeout', reasonOf(error));
  }
  if (
    error instanceof undiciErrors.RequestAbortedError ||
    error instanceof undiciErrors.ClientDestroyedError ||
    error instanceof undiciErrors.ClientClosedError ||
    (error instanceof Error && error.name === 'AbortError')
  ) {
    return new EgressError('aborted', reasonOf(error));
  }
  const code = codeOf(error);
  if (error instanceof undiciErrors.SocketError || code === 'ECONNRESET' || code === 'EPIPE' || code === 'ETIMEDOUT') {
    return new EgressError('reset', reasonOf(error));
  }
  return new EgressError('protocol', reasonOf(error));
}

function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]{0,63}$/.test(code) ? code : undefined;
}

function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; ');
  return error instanceof Error ? error.message : String(error);
}
