/** The errors that methods of a turn throw, in addition to those of API calls. */

/**
 * This program no longer has the turn: it was interrupted, cancelled or timed out, its lease expired, or this program is
 * stopping. If there is more to do, a new `onTurn` does it, here or in another process. Do not catch it.
 */
export class TurnLostError extends Error {
  override readonly name = 'TurnLostError';
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
