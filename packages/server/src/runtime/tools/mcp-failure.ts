// How an exchange with an MCP server can fail, beside what can happen to any request (`EgressError`), and the words for it.
import { EgressError } from '../../egress/errors.ts';
import { beginningOf, shownText, uncertain, withoutAnswer } from './answer.ts';
import type { Redact } from './redact.ts';
import type { ToolFailure } from './tool.ts';

/** Something came that is not the answer. The message is ours: it quotes nothing of the server's. */
export class McpAnswerError extends Error {
  override readonly name = 'McpAnswerError';
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

/** What the model and people are told. `called`: whether what failed was a call, which may have had its effect. */
export function failureFor(error: unknown, redact: Redact, called: boolean): ToolFailure {
  if (error instanceof McpRefusal) {
    const reason = beginningOf(shownText(error.reason, redact));
    return { error: `The server refused it: ${reason || 'it does not say why'} (${error.code}).` };
  }
  if (error instanceof McpHttpError) {
    const body = beginningOf(shownText(error.body, redact));
    return { error: body === '' ? `HTTP ${error.status}` : `HTTP ${error.status}: ${body}` };
  }
  if (error instanceof EgressError) return called ? withoutAnswer(error) : { error: `${error.message}.` };
  const problem = error instanceof McpAnswerError ? error.message : 'what it answers is not what the protocol says';
  const words = `The server can’t be understood: ${problem}.`;
  return called ? uncertain(words) : { error: words };
}
