// Chunks as rows: what a model writes arrives in many deltas, which are one text to a reader.
import type { Chunk } from '@signalbox/client';

export interface ChunkRow {
  /** Its turn and sequence numbers: `1:4`, or `1:4–19`. */
  id: string;
  /** The first one, if there are several. */
  chunk: Chunk;
  timestamp: string;
  count: number;
  /** The text that deltas write; undefined for other chunks. */
  text: string | undefined;
}

interface Timed {
  chunk: Chunk;
  timestamp: string;
}

export function rowOf({ chunk, timestamp }: Timed): ChunkRow {
  return { id: `${chunk.turn}:${chunk.seq}`, chunk, timestamp, count: 1, text: deltaOf(chunk) };
}

/** Deltas of one text that follow each other become one row. */
export function mergeDeltas(chunks: readonly Timed[]): ChunkRow[] {
  const rows: ChunkRow[] = [];
  let texts: string[] = [];
  const close = () => {
    const last = rows.at(-1);
    if (last && last.count > 1) last.text = texts.join('');
  };
  for (const one of chunks) {
    const last = rows.at(-1);
    const delta = deltaOf(one.chunk);
    if (last && delta !== undefined && last.text !== undefined && isSameText(last.chunk, one.chunk)) {
      last.count += 1;
      last.id = `${last.chunk.turn}:${last.chunk.seq}–${one.chunk.seq}`;
      texts.push(delta);
    } else {
      close();
      rows.push(rowOf(one));
      texts = [delta ?? ''];
    }
  }
  close();
  return rows;
}

function deltaOf(chunk: Chunk): string | undefined {
  const isDelta =
    chunk.type === 'message.chunk' || chunk.type === 'reasoning.chunk' || chunk.type === 'tool.input.chunk';
  // Sources are not a text: they are a row of their own.
  return isDelta && !('sources' in chunk && chunk.sources) ? chunk.delta : undefined;
}

function isSameText(one: Chunk, other: Chunk): boolean {
  if (one.turn !== other.turn || one.type !== other.type) return false;
  return one.type !== 'tool.input.chunk' || one.toolCallId === (other as typeof one).toolCallId;
}
