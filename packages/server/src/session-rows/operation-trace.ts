// What is stored of an operation for people who debug it, in its row. It never changes what a turn does.
import type { Operation } from './operations.ts';

export interface OperationTrace {
  /** When the response of a model call began. */
  readonly firstTokenAt?: string;
  /** The newest attempts of a model call that failed at least once, oldest first, with the one that succeeded. */
  readonly attempts?: readonly StoredAttempt[];
  /** What the successful request of a model call lacked, because the provider had refused it. */
  readonly sentWithout?: readonly OmittedFromRequest[];
  /** The tools that were left out of this model call, and of no earlier one of the turn. */
  readonly toolsLeftOut?: readonly LeftOutTool[];
  /** The response to a call of an `http` or `mcp` tool. */
  readonly response?: StoredResponse;
}

/** `reasoning`: the setting that asks for it. `providerData`: the reasoning of earlier responses. The others are parameters. */
export type OmittedFromRequest =
  | 'reasoning'
  | 'providerData'
  | 'max_tokens'
  | 'max_completion_tokens'
  | 'stream_options'
  | 'include'
  | 'prompt_cache_key';

/** A tool of the agent that a model does not get. */
export interface LeftOutTool {
  readonly name: string;
  readonly reason: string;
}

export interface StoredAttempt {
  readonly model: string;
  readonly startedAt: string;
  readonly endedAt: string;
  readonly error: { readonly code: string; readonly message: string } | null;
}

/** The response of a tool's server, without secrets. */
export interface StoredResponse {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly bytes: number;
  /** Only if the result of the call does not have it. */
  readonly body?: string;
  /** The message that was sent to an `mcp` tool's server. */
  readonly sent?: SentMessage;
}

/** What the protocol's client added to the request of a call. */
export interface SentMessage {
  /** The message as JSON, with null in place of the call's arguments. */
  readonly message: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
}

/** An outage can have thousands. */
const MAX_ATTEMPTS = 20;
const MESSAGE_MAX_CHARACTERS = 300;

/** The model begins to respond. */
export function recordFirstToken(operation: Operation, now: Date): void {
  operation.trace = { ...operation.trace, firstTokenAt: now.toISOString() };
}

export function recordFailedAttempt(
  operation: Operation,
  model: string,
  [startedAt, endedAt]: readonly [Date, Date],
  { code, message }: { code: string; message: string },
): void {
  // The text of an attempt that failed is void.
  const { firstTokenAt: _, ...trace } = operation.trace ?? {};
  const error = { code, message: message.slice(0, MESSAGE_MAX_CHARACTERS).toWellFormed() };
  operation.trace = { ...trace, attempts: withAttempt(trace, model, startedAt, endedAt, error) };
}

/** Does nothing if there was no other attempt: the operation's own times say everything. */
export function recordSuccess(
  operation: Operation,
  model: string,
  [startedAt, endedAt]: readonly [Date, Date],
  sentWithout: readonly OmittedFromRequest[] = [],
): void {
  const { trace } = operation;
  const without = sentWithout.length === 0 ? {} : { sentWithout };
  const attempts = trace?.attempts ? { attempts: withAttempt(trace, model, startedAt, endedAt, null) } : {};
  operation.trace = trace || sentWithout.length > 0 ? { ...trace, ...attempts, ...without } : null;
}

/** `operations`: of the turn. A turn can have hundreds of model calls with the same tools, so they are stored once. */
export function recordLeftOut(
  operation: Operation,
  operations: readonly Operation[],
  leftOut: readonly LeftOutTool[] = [],
): void {
  if (leftOut.length === 0) return;
  const known = new Set(operations.flatMap(({ trace }) => trace?.toolsLeftOut ?? []).map(({ name }) => name));
  const added = leftOut.filter(({ name }) => !known.has(name));
  if (added.length === 0) return;
  const { toolsLeftOut = [] } = operation.trace ?? {};
  operation.trace = { ...operation.trace, toolsLeftOut: [...toolsLeftOut, ...added] };
}

function withAttempt(
  { attempts = [] }: OperationTrace,
  model: string,
  startedAt: Date,
  endedAt: Date,
  error: StoredAttempt['error'],
): StoredAttempt[] {
  const added = { model, startedAt: startedAt.toISOString(), endedAt: endedAt.toISOString(), error };
  return [...attempts, added].slice(-MAX_ATTEMPTS);
}
