// How an exchange with an MCP server can fail, in addition to what can fail in any request (`EgressError`), and the messages for it.
import { EgressError } from '../../egress/errors.ts';
import { type Redirect, redirectMessage } from '../../egress/redirect.ts';
import { type Redact, type Redacted, trustedText } from '../tool/redact.ts';
import { beginningOf, messageOf, outcomeUnknown, shownText, withoutResponse } from '../tool/result.ts';
import type { ToolFailure } from '../tool/tool.ts';

/** The limit of a demand for a credential. */
const CHALLENGE_MAX_CHARACTERS = 500;

/** The server sent something that is not a valid response. The message is ours: it quotes nothing from the server. */
export class McpResponseError extends Error {
  override readonly name = 'McpResponseError';

  get words(): Redacted {
    return this.message as Redacted;
  }
}

/** The server does not offer the protocol in a way that is supported. The message is ours. */
export class McpUnsupported extends McpResponseError {}

/** The server responded with a redirect that is not followed. */
export class McpRedirectError extends Error {
  override readonly name = 'McpRedirectError';
  readonly status: number;
  /** Has text of the server's. */
  readonly redirect: Redirect;

  constructor(status: number, redirect: Redirect) {
    super(`HTTP ${status}`);
    this.status = status;
    this.redirect = redirect;
  }
}

/** The server responded with an HTTP status that is not a success. */
export class McpHttpError extends Error {
  override readonly name = 'McpHttpError';
  readonly status: number;
  /** The body, or its beginning: text of the server's, which may contain anything. */
  readonly body: string;
  /** `WWW-Authenticate` of a response that demands a credential: text of the server's. */
  readonly challenge: string | undefined;

  constructor(status: number, body: string, challenge?: string) {
    super(`HTTP ${status}`);
    this.status = status;
    this.body = body;
    this.challenge = challenge;
  }
}

/** The session was lost during a call that may have run, and that may not run twice. `cause` is the error of the call. */
export class McpSessionLost extends Error {
  override readonly name = 'McpSessionLost';
}

/** The server responded with a JSON-RPC error: it refused the request. */
export class McpRefusal extends Error {
  override readonly name = 'McpRefusal';
  readonly code: number;
  /** Text of the server's, which may contain anything. */
  readonly reason: string;

  constructor(code: number, reason: string) {
    super(`JSON-RPC error ${code}`);
    this.code = code;
    this.reason = reason;
  }
}

/** Why the server's tools could not be listed, for the model and for the users of the API. */
export function reasonFor(error: unknown, redact: Redact): Redacted {
  if (error instanceof McpRefusal) {
    const reason = beginningOf(shownText(error.reason, redact));
    return trustedText`The server refused the request: ${reason || trustedText`it gave no reason`} (${error.code}).`;
  }
  if (error instanceof McpHttpError) {
    const body = beginningOf(shownText(error.body, redact));
    if (error.challenge !== undefined) return wantsCredential(error.status, shownText(error.challenge, redact), body);
    return body === '' ? trustedText`HTTP ${error.status}` : trustedText`HTTP ${error.status}: ${body}`;
  }
  if (error instanceof McpRedirectError) {
    const { status, redirect } = error;
    // Our own text around the address.
    return redirectMessage(status, redirect, beginningOf(shownText(redirect.shown, redact))) as Redacted;
  }
  if (error instanceof EgressError) return trustedText`${messageOf(error)}.`;
  if (error instanceof McpUnsupported) return error.words;
  const problem = error instanceof McpResponseError ? error.words : trustedText`it does not follow the protocol`;
  return trustedText`The server’s response can’t be used: ${problem}.`;
}

function sentence(text: Redacted): Redacted {
  return /[.!?]$/.test(text) ? text : trustedText`${text}.`;
}

function wantsCredential(status: number, challenge: Redacted, body: Redacted): Redacted {
  const what = /^\s*(bearer|dpop)\b/i.test(challenge) ? trustedText`OAuth` : trustedText`a credential`;
  const shown = challenge.slice(0, CHALLENGE_MAX_CHARACTERS).toWellFormed() as Redacted;
  const advice = trustedText`Signing in is not supported: set a valid token in the “headers” of the tool, such as "Authorization": "Bearer {{secrets.NAME}}".`;
  const reason = body === '' ? trustedText`` : trustedText` The response: ${body}`;
  return trustedText`The server wants ${what}: HTTP ${status} with WWW-Authenticate: ${shown}. ${advice}${reason}`;
}

/** Why a call failed. If it was `sent`, it may have taken effect. */
export function failureFor(error: unknown, redact: Redact, sent: boolean): ToolFailure {
  if (error instanceof McpSessionLost)
    return outcomeUnknown(trustedText`The server has lost the session. ${sentence(reasonFor(error.cause, redact))}`);
  const reason = reasonFor(error, redact);
  const isAnswer = error instanceof McpRefusal || error instanceof McpHttpError;
  // With 303 a server says that it has handled the message.
  if (!sent || isAnswer || (error instanceof McpRedirectError && error.status !== 303)) return { error: reason };
  return error instanceof EgressError ? withoutResponse(error) : outcomeUnknown(reason);
}
