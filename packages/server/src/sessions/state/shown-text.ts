// The text that a step's answer has shown, from the journal.
import type { Db } from '../../db/db.ts';
import { readSegments } from '../../journal/read.ts';
import { chunksOf } from '../../journal/segment.ts';
import type { Operation } from './operations.ts';

export interface TurnOfSession {
  organizationId: string;
  sessionId: string;
  turn: number;
}

/** More than any model answers. What a program appends has no other bound than the turn's time, and is read into memory here. */
export const SHOWN_TEXT_MAX_CHARACTERS = 4_000_000;

// A program's segment can be as long as a request.
const READ_SEGMENTS = 50;

/**
 * Of a step that is unanswered, or was answered by the integrator's program: nobody else has written text since it began. Where
 * it is longer than may be, its beginning, which is longer as well.
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
