// Which chunks travel in a Session's next delivery, and the bytes that carry them.
//
// In order, as many as wait, at most 100 or 64 KiB. Text waits up to 100 ms for company; anything else goes at once and takes
// the text before it along. Where nothing that waits was asked for, the position moves on without a delivery.
//
// The bytes follow from the range, the filter and the time stamp alone, so that after a crash they can be built again.
import type { Chunk, ChunkType } from '@signalbox/contract';
import { comparePositions, type Position } from '../../journal/cursor.ts';
import { chunksOf, envelopeOf, type JournalOwner, type Segment, typeSet } from '../../journal/segment.ts';

export const maxChunks = 100;
export const maxBodyBytes = 64 * 1024;
export const maxTextWaitMs = 100;

// For the envelope around the chunks: its names, two ids, an Environment's name of 63 characters, a cursor, a time.
const ENVELOPE_BYTES = 512;

/** What of a journal was read, in one snapshot. */
export interface UndeliveredJournal {
  owner: JournalOwner;
  /** The last position that needs no delivery any more. */
  after: Position;
  /** Where the journal ends. */
  head: Position;
  /** From `after` on, perhaps not to the end. */
  segments: readonly Segment[];
}

/** What a delivery holds; never changes. */
export interface DeliveryContent {
  /** Before the first chunk. */
  from: Position;
  /** Of the last chunk. */
  to: Position;
  chunkTypes: readonly ChunkType[];
  /** The time of the last chunk's commit. */
  occurredAt: Date;
}

/**
 * - `nothing`: all is delivered.
 * - `wait`: only text waits, and not long enough.
 * - `skip`: nothing up to `through` was asked for.
 * - `send`: `content`, as `body`. Up to `through` nothing else was asked for; `more`: behind it something may be.
 */
export type DeliveryStep =
  | { kind: 'nothing' }
  | { kind: 'wait' }
  | { kind: 'skip'; through: Position }
  | { kind: 'send'; content: DeliveryContent; body: Buffer; through: Position; more: boolean };

/** `waitedMs`: how long something has been waiting. */
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
  // A turn may have begun without a chunk yet, so the end of the journal can lie behind the last one.
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
  };
}

/** The journal does not hold the whole of a delivery (any more). */
export class JournalGone extends Error {
  override readonly name = 'JournalGone';
}

/** The bytes of a delivery that was fixed before. `segments` must cover its range; throws `JournalGone` where they do not. */
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

/** `chunks` is the envelope's last member, so the texts made for measuring are put into its end. */
function buildBody(owner: JournalOwner, { to, occurredAt }: DeliveryContent, texts: readonly string[]): Buffer {
  const envelope = JSON.stringify(envelopeOf(owner, to, occurredAt, []));
  return Buffer.from(`${envelope.slice(0, -2)}${texts.join(',')}]}`);
}

function positionOf({ turn, seq }: Position): Position {
  return { turn, seq };
}
