// A position in a session's journal: `turn_<n>:seq_<n>`, ordered by turn, then seq.
import { cursorPattern } from '@signalbox/contract';
import { ApiError } from '../lib/api-error.ts';

export interface Position {
  turn: number;
  seq: number;
}

/** Before the first chunk. */
export const beginning: Position = { turn: 0, seq: 0 };

const PATTERN = new RegExp(cursorPattern);

export function formatCursor({ turn, seq }: Position): string {
  return `turn_${turn}:seq_${seq}`;
}

/** Throws `invalid_cursor`. */
export function parseCursor(cursor: string): Position {
  const [, turn, seq] = PATTERN.exec(cursor) ?? [];
  if (turn === undefined) throw invalidCursor('is not of the form turn_<n>:seq_<n>');
  return { turn: Number(turn), seq: Number(seq) };
}

export function invalidCursor(what: string): ApiError {
  return new ApiError('invalid_cursor', `cursor: ${what}. Send the cursor of an envelope of this session.`, {
    errors: [{ path: 'cursor', message: what }],
  });
}

/** Where a journal ends. Before its first chunk a fork has a turn already, that of its origin. */
export function endOfJournal({ turn, nextSeq }: { turn: number; nextSeq: number }): Position {
  return nextSeq === 1 ? beginning : { turn, seq: nextSeq - 1 };
}

/** Negative if `a` is before `b`, 0 if they are equal. */
export function comparePositions(a: Position, b: Position): number {
  return a.turn - b.turn || a.seq - b.seq;
}
