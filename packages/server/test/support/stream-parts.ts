// Reassembles streams like their readers.
import type { JournalStream, StreamPart } from '../../src/journal/stream.ts';
import { onceAborted } from '../../src/lib/aborted.ts';

/** The parts of a stream until it ends or the signal is aborted. */
export async function* partsOf(stream: JournalStream, signal: AbortSignal): AsyncGenerator<StreamPart> {
  let more = Promise.withResolvers<void>();
  const reader = stream.open(() => more.resolve());
  const forget = onceAborted(signal, () => more.resolve());
  try {
    while (!signal.aborted) {
      more = Promise.withResolvers();
      const part = reader.take();
      if (part) yield part;
      else if (!reader.end) await more.promise;
      else if (reader.end.error !== undefined) throw reader.end.error;
      else return;
    }
  } finally {
    forget();
    reader.close();
  }
}

/** The complete envelopes of a stream. */
export async function* wholeOf(parts: AsyncIterable<StreamPart>): AsyncGenerator<{ cursor: string; json: string }> {
  let read: Buffer[] = [];
  for await (const { cursor, json, isFirst, isLast } of parts) {
    if (json === '') continue;
    if (isFirst !== (read.length === 0)) throw new Error('The parts of two envelopes are mixed');
    read.push(Buffer.from(json));
    if (!isLast) continue;
    yield { cursor, json: Buffer.concat(read).toString() };
    read = [];
  }
}
