/** The errors of turns, in addition to the errors of API calls. */
import { ConflictError } from '../errors.ts';

/**
 * This program no longer has the turn: it was interrupted, cancelled or timed out, its lease expired, or this program is
 * stopping. If there is more to do, a new `onTurn` does it, here or in another process. Do not catch it.
 */
export class TurnLostError extends Error {
  override readonly name = 'TurnLostError';
}

/**
 * Throw it in `onTurn` to end the turn with an error of your own, which end users may see. After any other error the code is
 * `worker_failed`, and the message stays in your program.
 */
export class TurnFailedError extends Error {
  override readonly name = 'TurnFailedError';
  /** Lower case letters, digits and `_`, starting with a letter; at most 63 characters. */
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    // The service would refuse it, and with it the end of the turn.
    if (!/^[a-z][a-z0-9_]{0,62}$/.test(code)) throw new TypeError(`Not an error code: ${code}`);
    this.code = code;
  }
}

/** A tool call ended with an error, which is its result in the transcript. */
export class ToolFailedError extends Error {
  override readonly name: string = 'ToolFailedError';
  readonly tool: string;
  readonly toolCallId: string;
  /** The call was interrupted: it may or may not have taken effect. */
  readonly outcomeUnknown: boolean;

  constructor(message: string, call: { tool: string; toolCallId: string; outcomeUnknown?: boolean }) {
    super(message);
    this.tool = call.tool;
    this.toolCallId = call.toolCallId;
    this.outcomeUnknown = call.outcomeUnknown ?? false;
  }
}

/** The call was denied, or its approval expired, so it did not run. The message has the reason, if there is one. */
export class ToolDeniedError extends ToolFailedError {
  override readonly name = 'ToolDeniedError';
}

/** Whether the service refuses a request because the program has lost the turn. */
export function isTurnLost(error: unknown): error is ConflictError {
  return error instanceof ConflictError && error.code === 'turn_lost';
}
