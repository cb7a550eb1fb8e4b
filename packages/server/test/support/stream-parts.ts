// Reassembles streams like their readers.
import type { StreamPart } from '../../src/journal/live.ts';

/** The complete envelopes of a stream. */
export async function* wholeOf(parts: AsyncIterable<StreamPart>): AsyncGenerator<{ cursor: string; json: string }> {
  let read: Buffer[] = [];
  for await (const { cursor, json, isFirst, isLast } of parts) {
    if (isFirst !== (read.length === 0)) throw new Error('The parts of two envelopes are mixed');
    read.push(Buffer.from(json));
    if (!isLast) continue;
    yield { cursor, json: Buffer.concat(read).toString() };
    read = [];
  }
}
