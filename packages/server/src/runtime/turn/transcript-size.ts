// The maximum size of one message of a transcript: of the results of a step, of which each may be large. Everything else that becomes
// a message has a limit of its own.
import type { MessagePart } from '@signalbox/contract';

const RESULTS_MAX_BYTES = 4 * 1024 * 1024;

const LEFT_OUT = 'The result is not shown: the results of this step have more than 4 MiB together.';

/** Results that do not fit are replaced by an error for the model. The journal and the operations have all of them. */
export function thatFit(results: MessagePart[]): MessagePart[] {
  let left = RESULTS_MAX_BYTES;
  // Stops at the first that does not fit: a step may have results of 100 MiB.
  const end = results.findIndex((part) => {
    left -= Buffer.byteLength(JSON.stringify(part));
    return left < 0;
  });
  if (end === -1) return results;
  return results.map((part, index) =>
    index < end || part.type !== 'tool_result'
      ? part
      : { type: part.type, toolCallId: part.toolCallId, error: LEFT_OUT },
  );
}
