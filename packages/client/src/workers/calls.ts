/** A call of a tool on the program's side: what asked for it, what runs it, and how it ends. */
import type { CallOutcome, PendingCall, ToolResult } from '../types.generated.ts';
import { ToolDeniedError, ToolFailedError } from './errors.ts';
import { cleanText } from './text.ts';

/** What runs a call of a `client` tool; its result is the tool's, what it throws the tool's error. */
export type ToolFunction = (
  // biome-ignore lint/suspicious/noExplicitAny: its shape is what the tool's `inputSchema` says, and the service has checked it.
  input: any,
  /** `toolCallId` is the same where the call is repeated; `signal` aborts when the turn is lost. */
  call: { toolCallId: string; signal: AbortSignal },
) => unknown;

/** A call that the program waits for. */
export interface Call {
  tool: string;
  input: unknown;
  run: ToolFunction | undefined;
  resolve(output: unknown): void;
  reject(error: unknown): void;
}

/** What a result's error may have. */
const maxErrorCharacters = 100_000;

/** Never rejects: what the function throws is the result. Its text is as the service takes it. */
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

/** Gives the call to who waits for it. */
export function settle(call: Call, outcome: CallOutcome | undefined): void {
  if (!outcome) {
    call.reject(new Error('The service gave no outcome of the call'));
  } else if (outcome.error === undefined) {
    call.resolve(outcome.output);
  } else {
    const { tool, toolCallId, status, error } = outcome;
    const Failure = status === 'denied' ? ToolDeniedError : ToolFailedError;
    call.reject(new Failure(error, { tool, toolCallId, outcomeUnknown: status === 'unknown' }));
  }
}

/** What is told of something thrown. */
export function messageOf(error: unknown, maxCharacters: number): string {
  const message = error instanceof Error ? error.message : String(error);
  return cleanText(message.slice(0, maxCharacters)) || 'It failed without saying why.';
}

/** As the promise, but rejects as soon as the signal aborts: what ignores it is left behind. */
export async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
