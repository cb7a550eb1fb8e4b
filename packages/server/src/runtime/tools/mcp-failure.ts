// How an exchange with an MCP server can fail, beside what can happen to any request (`EgressError`), and the words for it.
import { EgressError } from '../../egress/errors.ts';
import { type Redact, type Redacted, said } from './redact.ts';
import { beginningOf, messageOf, shownText, uncertain, withoutResponse } from './result.ts';
import type { ToolFailure } from './tool.ts';

/** Something came that is not the answer. The message is ours: it quotes nothing of the server's. */
export class McpResponseError extends Error {
  override readonly name = 'McpAnswerError';

  get words(): Redacted {
    return this.message as Redacted;
  }
}

/** 404 is what the protocol says; many servers answer 400, and say in words that they do not know the session. */
const SAYS_SESSION_IS_GONE =
  /\bsession.?id\b|\b(?:no valid|invalid|unknown|missing|expired) session\b|\bsession (?:not found|expired|is invalid)\b|\bserver not initialized\b/i;

/** The server answered with an HTTP status that is no success. */
export class McpHttpError extends Error {
  override readonly name = 'McpHttpError';
  readonly status: number;
  /** The body, or its beginning: the server's words, which may hold anything. */
  readonly body: string;

  constructor(status: number, body: string) {
    super(`HTTP ${status}`);
    this.status = status;
    this.body = body;
  }

  /** Whether the server says that it knows nothing of the session: so it has not looked at the message in it. */
  get sessionIsGone(): boolean {
    return this.status === 404 || (this.status === 400 && SAYS_SESSION_IS_GONE.test(this.body));
  }
}

/** The server answered with an error of JSON-RPC: it did not take the request. */
export class McpRefusal extends Error {
  override readonly name = 'McpRefusal';
  readonly code: number;
  /** The server's words, which may hold anything. */
  readonly reason: string;

  constructor(code: number, reason: string) {
    super(`JSON-RPC error ${code}`);
    this.code = code;
    this.reason = reason;
  }
}

/** Why the server's tools could not be listed, for the model and people. */
export function reasonFor(error: unknown, redact: Redact): Redacted {
  if (error instanceof McpRefusal) {
    const reason = beginningOf(shownText(error.reason, redact));
    return said`The server refused it: ${reason || said`it does not say why`} (${error.code}).`;
  }
  if (error instanceof McpHttpError) {
    const body = beginningOf(shownText(error.body, redact));
    return body === '' ? said`HTTP ${error.status}` : said`HTTP ${error.status}: ${body}`;
  }
  if (error instanceof EgressError) return said`${messageOf(error)}.`;
  const problem = error instanceof McpResponseError ? error.words : said`its response does not follow the protocol`;
  return said`The server can’t be understood: ${problem}.`;
}

/** How a call failed, which may have had its effect if it was `sent`. */
export function failureFor(error: unknown, redact: Redact, sent: boolean): ToolFailure {
  if (!sent || error instanceof McpRefusal || error instanceof McpHttpError) return { error: reasonFor(error, redact) };
  return error instanceof EgressError ? withoutResponse(error) : uncertain(reasonFor(error, redact));
}
