/**
 * How a request of ours ends when it ends badly. People who gave the url read `kind` and `message`, so neither ever
 * holds an address, an answer of DNS, a header or a body; `reason` is for the operator's log.
 */
import { errors as undiciErrors } from 'undici';

/**
 * | kind | what happened |
 * |---|---|
 * | `not_allowed` | the url, or an address its host stands for, is not allowed; nothing was sent |
 * | `dns` | the host's addresses could not be looked up |
 * | `connect_timeout` | no connection, TLS included, within the connect time-out |
 * | `connect` | the connection was refused, or there is no way to the host |
 * | `tls` | the TLS handshake failed, or the certificate is not good for the host |
 * | `timeout` | the whole exchange, body included, took too long |
 * | `reset` | the connection broke while the request was under way: it may or may not have had its effect |
 * | `aborted` | the caller's signal, or our own shutdown |
 * | `protocol` | the answer is not HTTP as we take it, or the request's own headers are malformed |
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
  connect_timeout: 'The host did not take the connection in time',
  connect: 'The host could not be connected to',
  tls: 'The TLS handshake failed',
  timeout: 'The answer did not come in time',
  reset: 'The connection was closed before the answer was complete',
  aborted: 'The request was aborted',
  protocol: 'The exchange is not valid HTTP',
};

/** The one error of everything in this folder that sends. */
export class EgressError extends Error {
  override readonly name: string = 'EgressError';
  readonly kind: EgressErrorKind;
  /** For the operator's log alone: may name addresses. */
  readonly reason: string;

  /** `code` is a system's or TLS error code such as `ECONNREFUSED`, safe for anyone to read. */
  constructor(kind: EgressErrorKind, reason: string, code?: string) {
    super(code === undefined ? MESSAGES[kind] : `${MESSAGES[kind]} (${code})`);
    this.kind = kind;
    this.reason = reason;
  }
}

/**
 * What whoever gives a url is told of one that is refused: the same whatever the reason, which could speak of the operator's
 * network.
 */
export const whatUrlsMustBe =
  'must be an https URL at a public address, without user info and fragment; the operator can allow others in SIGNALBOX_EGRESS_ALLOW';

/** A url that is refused when it is given, before anything is looked up. */
export class UrlNotAllowed extends EgressError {
  override readonly name = 'UrlNotAllowed';

  constructor(reason: string) {
    super('not_allowed', reason);
  }
}

/** The error of a stage that can fail in one way only, with the system's code where there is one. */
export function stageError(kind: 'dns' | 'connect' | 'tls', error: unknown): EgressError {
  if (error instanceof EgressError) return error;
  const code = codeOf(error);
  // The system gave up before our own time-out did, which is the same to everyone.
  return new EgressError(code === 'ETIMEDOUT' && kind !== 'dns' ? 'connect_timeout' : kind, reasonOf(error), code);
}

/** What an error from undici, or from a socket below it, means here. */
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
