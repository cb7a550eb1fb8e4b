// The maximum size of one message of a transcript: of the results of a step, of which each may be large. Everything else that becomes
// a message has a limit of its own.
import type { MessagePart } from '@signalbox/contract';
import { jsonOf, jsonOfList } from '../lib/json/json-text.ts';
import { isFinished, type Operation } from '../session-rows/operations.ts';

const RESULTS_MAX_BYTES = 4 * 1024 * 1024;

export const LEFT_OUT = 'The result is not shown: the results of this step have more than 4 MiB together.';

/** Results that do not fit are replaced by an error for the model. The journal and the operations have all of them. */
export function truncateToFit(results: MessagePart[]): MessagePart[] {
  let left = RESULTS_MAX_BYTES;
  // Stops at the first that does not fit: a step may have results of 100 MiB.
  const end = results.findIndex((part) => {
    left -= bytesOf(part);
    return left < 0;
  });
  if (end === -1) return results;
  return results.map((part, index) =>
    index < end || part.type !== 'tool_result'
      ? part
      : { type: part.type, toolCallId: part.toolCallId, error: LEFT_OUT },
  );
}

function bytesOf(part: MessagePart): number {
  return Buffer.byteLength(jsonOfList([part]));
}

/**
 * Drops the results of finished calls, which are stored, that will not fit whatever the others return: a step may have 100 calls with
 * a MiB each, and waits for the slowest.
 */
export function dropLeftOut(calls: readonly Operation[]): void {
  let bytes = 0;
  for (const call of calls) {
    if (call.isLeftOut) bytes = Number.POSITIVE_INFINITY;
    else if (isFinished(call)) bytes += sizeOf(call);
    if (bytes > RESULTS_MAX_BYTES && isFinished(call)) Object.assign(call, { output: null, isLeftOut: true });
  }
}

const sizes = new WeakMap<Operation, { output: unknown; bytes: number }>();

/** The size of a result as it is in the message, or a little less. */
function sizeOf(call: Operation): number {
  const { output } = call;
  const known = sizes.get(call);
  if (known && known.output === output) return known.bytes;
  const bytes = call.error === null && output !== null ? Buffer.byteLength(jsonOf(output)) : 0;
  sizes.set(call, { output, bytes });
  return bytes;
}
