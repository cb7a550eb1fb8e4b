// The text that a step has shown so far, read from the journal.
import type { Db } from '../db/db.ts';
import { readSegments } from '../journal/read.ts';
import { chunksOf } from '../journal/segment.ts';
import type { Operation } from './operations.ts';

export interface TurnOfSession {
  organizationId: string;
  sessionId: string;
  turn: number;
}

/** More than any model produces. What would make the response of a worker longer is refused (workers/worker-turns.ts). */
export const SHOWN_TEXT_MAX_CHARACTERS = 4_000_000;

// A worker's segment can be as long as a request.
const READ_SEGMENTS = 50;

/**
 * For a step that has no response yet, or that a worker submitted: all text since its beginning belongs to it. If the text is
 * longer than the limit, returns a beginning that is longer as well.
 */
export async function shownText(
  db: Pick<Db, 'query'>,
  { organizationId, sessionId, turn }: TurnOfSession,
  { fromSeq }: Operation,
): Promise<string> {
  let after = { turn, seq: fromSeq! - 1 };
  let text = '';
  while (true) {
    const segments = await readSegments(db, organizationId, sessionId, after, READ_SEGMENTS);
    for (const segment of segments) {
      for (const chunk of chunksOf(segment, after)) if (chunk.type === 'message.chunk') text += chunk.delta;
    }
    const last = segments.at(-1);
    if (!last || segments.length < READ_SEGMENTS || text.length > SHOWN_TEXT_MAX_CHARACTERS) return text;
    after = { turn: last.turn, seq: last.seqTo };
  }
}
