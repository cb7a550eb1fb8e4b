/** A tool call in the program: who waits for it, which function runs it, and its result. */
import { deferred } from '../deferred.ts';
import type { CallOutcome, PendingCall, ToolResult } from '../types.generated.ts';
import { ToolDeniedError, ToolFailedError } from './errors.ts';
import { cleanText } from './text.ts';

/** Runs a call of a `client` tool. What it returns is the tool's output, what it throws the tool's error. */
export type ToolFunction = (
  // biome-ignore lint/suspicious/noExplicitAny: its shape is what the tool's `inputSchema` says, and the service has checked it.
  input: any,
  /** `toolCallId` is the same if the call is repeated; `signal` aborts when the turn is lost. */
  call: { toolCallId: string; signal: AbortSignal },
) => unknown;

/** A call that the program waits for. */
export interface Call {
  tool: string;
  input: unknown;
  run: ToolFunction | undefined;
  resolve(outcome: CallOutcome): void;
  reject(error: unknown): void;
}

/** The limit of the service. */
const maxErrorCharacters = 100_000;

/** Never rejects: an error of the function becomes the result. Removes characters that the service refuses. */
export async function runCall(
  { toolCallId, tool, input }: PendingCall,
  run: ToolFunction | undefined,
  signal: AbortSignal,
): Promise<ToolResult> {
  if (!run) return { toolCallId, error: `The worker has no function for the tool "${tool}".` };
  try {
    const output = await run(input, { toolCallId, signal });
    const json = JSON.stringify(output, (_, value) => (typeof value === 'string' ? cleanText(value) : value));
    return { toolCallId, output: json === undefined ? null : JSON.parse(json) };
  } catch (error) {
    return { toolCallId, error: messageOf(error, maxErrorCharacters) };
  }
}

/** The output of a call. Throws if it was denied or failed. */
export function outputOf({ tool, toolCallId, status, error, output }: CallOutcome): unknown {
  if (error === undefined) return output;
  const Failure = status === 'denied' ? ToolDeniedError : ToolFailedError;
  throw new Failure(error, { tool, toolCallId, outcomeUnknown: status === 'unknown' });
}

/** The message of anything thrown. */
export function messageOf(error: unknown, maxCharacters: number): string {
  const message = error instanceof Error ? error.message : String(error);
  return cleanText(message.slice(0, maxCharacters)) || 'It failed without saying why.';
}

/** Rejects as soon as the signal aborts, even if the promise never settles. */
export async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const { promise: aborted, reject } = deferred<never>();
  const abort = () => reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** Avoids an unhandled rejection if the program never awaits the promise; if it does, it still gets the error. */
export function markHandled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
