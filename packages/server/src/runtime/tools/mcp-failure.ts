// How an exchange with an MCP server can fail, in addition to what can fail in any request (`EgressError`), and the messages for it.
import { EgressError } from '../../egress/errors.ts';
import { type Redact, type Redacted, said } from './redact.ts';
import { beginningOf, messageOf, shownText, uncertain, withoutResponse } from './result.ts';
import type { ToolFailure } from './tool.ts';

/** The server sent something that is not a valid response. The message is ours: it quotes nothing from the server. */
export class McpResponseError extends Error {
  override readonly name = 'McpResponseError';

  get words(): Redacted {
    return this.message as Redacted;
  }
}

/** The protocol says 404. Many servers send 400 instead, with a message that says that they do not know the session. */
const SAYS_SESSION_IS_GONE =
  /\bsession.?id\b|\b(?:no valid|invalid|unknown|missing|expired) session\b|\bsession (?:not found|expired|is invalid)\b|\bserver not initialized\b/i;

/** The server responded with an HTTP status that is not a success. */
export class McpHttpError extends Error {
  override readonly name = 'McpHttpError';
  readonly status: number;
  /** The body, or its beginning: text of the server's, which may contain anything. */
  readonly body: string;

  constructor(status: number, body: string) {
    super(`HTTP ${status}`);
    this.status = status;
    this.body = body;
  }

  /** Whether the server reports that it does not know the session, and therefore has not processed the message. */
  get sessionIsGone(): boolean {
    return this.status === 404 || (this.status === 400 && SAYS_SESSION_IS_GONE.test(this.body));
  }
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
    return said`The server refused the request: ${reason || said`it gave no reason`} (${error.code}).`;
  }
  if (error instanceof McpHttpError) {
    const body = beginningOf(shownText(error.body, redact));
    return body === '' ? said`HTTP ${error.status}` : said`HTTP ${error.status}: ${body}`;
  }
  if (error instanceof EgressError) return said`${messageOf(error)}.`;
  const problem = error instanceof McpResponseError ? error.words : said`it does not follow the protocol`;
  return said`The server’s response can’t be used: ${problem}.`;
}

/** Why a call failed. If it was `sent`, it may have taken effect. */
export function failureFor(error: unknown, redact: Redact, sent: boolean): ToolFailure {
  if (!sent || error instanceof McpRefusal || error instanceof McpHttpError) return { error: reasonFor(error, redact) };
  return error instanceof EgressError ? withoutResponse(error) : uncertain(reasonFor(error, redact));
}
