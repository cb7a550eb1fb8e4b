/** What the methods of a turn throw, beside the errors of a call. */

/**
 * The turn is not this program's any more, or not now: it was interrupted, cancelled or took too long, its lease ran out, or
 * this program stops. Whatever is still to be done of it is done in a new `onTurn`, here or elsewhere. Let it pass through.
 */
export class TurnLostError extends Error {
  override readonly name = 'TurnLostError';
}

/** A tool call ended with an error, which the transcript holds as its result. */
export class ToolFailedError extends Error {
  override readonly name: string = 'ToolFailedError';
  readonly tool: string;
  readonly toolCallId: string;
  /** Whoever ran the call stopped while it ran: it may or may not have had its effect. */
  readonly outcomeUnknown: boolean;

  constructor(message: string, call: { tool: string; toolCallId: string; outcomeUnknown?: boolean }) {
    super(message);
    this.tool = call.tool;
    this.toolCallId = call.toolCallId;
    this.outcomeUnknown = call.outcomeUnknown ?? false;
  }
}

/** A person said no, or nobody said yes in time: the call did not run. The message holds the reason, where there is one. */
export class ToolDeniedError extends ToolFailedError {
  override readonly name = 'ToolDeniedError';
}
