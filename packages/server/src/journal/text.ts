// An envelope as the text that readers get, in parts that are short enough for a slow connection.
import { chunkForToken } from '@signalbox/contract';
import { formatCursor, type Position } from './cursor.ts';
import type { JournalInfo } from './read.ts';
import type { Text } from './recent.ts';
import { chunksOf, envelopeOf, type Segment } from './segment.ts';
import type { FollowOptions, StreamPart } from './stream.ts';

// A connection takes 16 KiB before it says to wait (http/connection/server.ts). With one more part it buffers less than 64 KiB.
const PART_BYTES = 47 * 1024;
// With characters of three bytes it is still not longer than a part.
const SHORT_CHARACTERS = 15 * 1024;

/** Undefined if no chunk is of the types. */
export function textOf(
  head: JournalInfo,
  segment: Segment,
  at: Position,
  { types, forToken }: FollowOptions,
): Text | undefined {
  const all = chunksOf(segment, at, types);
  if (all.length === 0) return undefined;
  const chunks = forToken ? all.map(chunkForToken) : all;
  const end = { turn: segment.turn, seq: segment.seqTo };
  const json = JSON.stringify(envelopeOf(head, end, segment.createdAt, chunks));
  return { cursor: formatCursor(end), json: json.length <= SHORT_CHARACTERS ? json : Buffer.from(json) };
}

/** Only a cursor. */
export function cursorPart(at: Position): StreamPart {
  return { cursor: formatCursor(at), json: '', isFirst: true, isLast: true };
}

/** A copy: a view would keep a whole long text in memory until its reader has taken it. */
export function partOf({ cursor, json }: Text, offset: number): StreamPart {
  if (typeof json === 'string') return { cursor, json, isFirst: true, isLast: true };
  const end = offset + PART_BYTES;
  const part = Buffer.from(json.subarray(offset, end));
  return { cursor, json: part, isFirst: offset === 0, isLast: end >= json.length };
}
