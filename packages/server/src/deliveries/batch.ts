// Which chunks are in a session's next delivery, and its bytes.
//
// A delivery has all chunks that wait, in order, up to 100 or 64 KiB. Text waits up to 100 ms for more text; any other chunk is sent
// at once, together with the text before it. If no waiting chunk matches the filter, the position advances without a delivery.
//
// The bytes depend only on the range, the filter and the timestamp, so they can be rebuilt after a crash.
import type { Chunk, ChunkType } from '@signalbox/contract';
import { comparePositions, type Position } from '../journal/cursor.ts';
import { chunksOf, envelopeOf, type JournalOwner, type Segment, typeSet } from '../journal/segment.ts';

export const maxChunks = 100;
export const maxBodyBytes = 64 * 1024;
export const maxTextWaitMs = 100;

// For the envelope around the chunks: its field names, two ids, an environment name of 63 characters, a cursor, a time.
const ENVELOPE_BYTES = 512;

/** The undelivered part of a session's journal, read in one snapshot. */
export interface UndeliveredJournal {
  owner: JournalOwner;
  /** Everything up to this position was delivered or skipped. */
  after: Position;
  /** The end of the journal. */
  head: Position;
  /** The segments after `after`, perhaps not all of them. */
  segments: readonly Segment[];
}

/** What a delivery contains; never changes. */
export interface DeliveryContent {
  /** The position before the first chunk. */
  from: Position;
  /** The position of the last chunk. */
  to: Position;
  chunkTypes: readonly ChunkType[];
  /** When the last chunk was committed. */
  occurredAt: Date;
}

/**
 * - `nothing`: everything is delivered.
 * - `wait`: only text waits, and not long enough yet.
 * - `skip`: no chunk up to `through` matches the filter.
 * - `send`: `content`, as `body`. No other chunk up to `through` matches the filter; `more` says whether there may be chunks after
 *   it. `isFull`: another chunk would not fit.
 */
export type DeliveryStep =
  | { kind: 'nothing' }
  | { kind: 'wait' }
  | { kind: 'skip'; through: Position }
  | { kind: 'send'; content: DeliveryContent; body: Buffer; through: Position; more: boolean; isFull: boolean };

/** `waitedMs`: how long the oldest undelivered chunk has waited. */
export function nextStep(
  reading: UndeliveredJournal,
  chunkTypes: readonly ChunkType[],
  waitedMs: number,
): DeliveryStep {
  const { owner, after, head, segments } = reading;
  if (comparePositions(after, head) >= 0) return { kind: 'nothing' };
  const types = typeSet(chunkTypes);
  const texts: string[] = [];
  let bytes = ENVELOPE_BYTES;
  let first: Chunk | undefined;
  let last: { chunk: Chunk; at: Date } | undefined;
  let isOnlyText = true;
  let isFull = false;
  let through = after;

  read: for (const segment of segments) {
    for (const chunk of chunksOf(segment, after, types)) {
      const text = JSON.stringify(chunk);
      bytes += Buffer.byteLength(text) + 1;
      isFull = texts.length === maxChunks || (bytes > maxBodyBytes && texts.length > 0);
      if (isFull) break read;
      first ??= chunk;
      last = { chunk, at: segment.createdAt };
      isOnlyText &&= chunk.type === 'message.chunk';
      texts.push(text);
    }
    through = { turn: segment.turn, seq: segment.seqTo };
  }
  // A turn may have begun and not have a chunk yet, so the end of the journal can be after the last chunk.
  if (segments.length === 0) through = head;

  const mayGrow = !isFull && comparePositions(through, head) >= 0 && texts.length < maxChunks;
  if (isOnlyText && mayGrow && waitedMs < maxTextWaitMs) return { kind: 'wait' };
  if (!first || !last) return { kind: 'skip', through };
  const to = positionOf(last.chunk);
  const content: DeliveryContent = {
    from: { turn: first.turn, seq: first.seq - 1 },
    to,
    chunkTypes,
    occurredAt: last.at,
  };
  if (isFull) through = to;
  return {
    kind: 'send',
    content,
    body: buildBody(owner, content, texts),
    through,
    more: comparePositions(through, head) < 0,
    isFull,
  };
}

/** The journal does not contain the whole delivery, or no longer does. */
export class JournalGone extends Error {
  override readonly name = 'JournalGone';
}

/** The bytes of a stored delivery. `segments` must cover its range; throws `JournalGone` if they don't. */
export function rebuildBody(owner: JournalOwner, content: DeliveryContent, segments: readonly Segment[]): Buffer {
  const types = typeSet(content.chunkTypes);
  const chunks = segments
    .flatMap((segment) => chunksOf(segment, content.from, types))
    .filter((chunk) => comparePositions(chunk, content.to) <= 0);
  const last = chunks.at(-1);
  if (!last || comparePositions(last, content.to) !== 0)
    throw new JournalGone('The journal does not hold the whole delivery');
  return buildBody(
    owner,
    content,
    chunks.map((chunk) => JSON.stringify(chunk)),
  );
}

/** `chunks` is the last member of the envelope, so the chunks that were serialized to measure them are inserted at its end. */
function buildBody(owner: JournalOwner, { to, occurredAt }: DeliveryContent, texts: readonly string[]): Buffer {
  const envelope = JSON.stringify(envelopeOf(owner, to, occurredAt, []));
  return Buffer.from(`${envelope.slice(0, -2)}${texts.join(',')}]}`);
}

function positionOf({ turn, seq }: Position): Position {
  return { turn, seq };
}
