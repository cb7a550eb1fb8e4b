// The stored form of chunks, and the envelope in which readers get them.
//
// A segment is the run of chunks that one commit added to one turn of a session. Its body is a JSON array in which a string
// is the delta of a `message.chunk`, by far the most common chunk, and an object is any other chunk, or a `message.chunk` with
// more than text, without `turn` and `seq`: both follow from the segment's position.
import { type Chunk, type ChunkType, type Envelope, voidableChunkTypes } from '@signalbox/contract';
import { formatId } from '../lib/ids.ts';
import { jsonOfList } from '../lib/json/json-text.ts';
import { formatCursor, type Position } from './cursor.ts';

type Without<T> = T extends unknown ? Omit<T, 'turn' | 'seq'> : never;
/** A chunk before it has a position in the journal. */
export type NewChunk =
  | Without<Exclude<Chunk, { type: 'message.chunk' }>>
  // What a text cites.
  | (Without<Extract<Chunk, { type: 'message.chunk' }>> & { delta: '' });
/** A delta of text, or any other chunk. */
export type Item = string | NewChunk;

export interface Segment {
  turn: number;
  seqFrom: number;
  seqTo: number;
  body: string;
  createdAt: Date;
}

/** The session of a journal, as envelopes name it. */
export interface JournalOwner {
  sessionId: string;
  agentId: string;
  environment: string;
}

export function encodeItems(items: readonly Item[]): string {
  return jsonOfList(items);
}

/** The segment of some items, the first of which has this seq. */
export function segmentOf(turn: number, seqFrom: number, items: readonly Item[], createdAt: Date): Segment {
  return { turn, seqFrom, seqTo: seqFrom + items.length - 1, body: encodeItems(items), createdAt };
}

/** What of these segments is after a position. */
export function segmentsAfter(segments: readonly Segment[], { turn, seq }: Position): Segment[] {
  return segments.flatMap((segment) => {
    if (segment.turn > turn || (segment.turn === turn && segment.seqFrom > seq)) return segment;
    if (segment.turn < turn || segment.seqTo <= seq) return [];
    const items = (JSON.parse(segment.body) as Item[]).slice(seq + 1 - segment.seqFrom);
    return segmentOf(turn, seq + 1, items, segment.createdAt);
  });
}

/** The chunks of a segment after a position, of the requested types. */
export function chunksOf(segment: Segment, after: Position, types?: ReadonlySet<ChunkType>): Chunk[] {
  const items = JSON.parse(segment.body) as Item[];
  const chunks: Chunk[] = [];
  for (const [index, item] of items.entries()) {
    const seq = segment.seqFrom + index;
    if (segment.turn < after.turn || (segment.turn === after.turn && seq <= after.seq)) continue;
    const chunk = (
      typeof item === 'string'
        ? { type: 'message.chunk', delta: item, turn: segment.turn, seq }
        : { ...item, turn: segment.turn, seq }
    ) as Chunk;
    if (!types || types.has(chunk.type)) chunks.push(chunk);
  }
  return chunks;
}

/** The envelope of some chunks, whose last position is `at` (also if the last chunks were filtered out). */
export function envelopeOf(owner: JournalOwner, at: Position, timestamp: Date, chunks: Chunk[]): Envelope {
  return {
    event: 'session.chunks',
    environment: owner.environment,
    sessionId: formatId('ses', owner.sessionId),
    agentId: formatId('agt', owner.agentId),
    cursor: formatCursor(at),
    timestamp: timestamp.toISOString(),
    chunks,
  };
}

/** `types` of a query or a subscription. A reader of what a model shows also gets `message.reset`, which says that some of it is void. */
export function typeSet(types: readonly ChunkType[]): ReadonlySet<ChunkType> {
  return new Set(voidableChunkTypes.some((type) => types.includes(type)) ? [...types, 'message.reset'] : types);
}
