/** What the journal of a session has shown, from its chunks. Pure, like `turn.ts`. */
import { isAfter, type Position } from '../cursor.ts';
import type { Chunk, SessionStatus, WaitingFor } from '../types.generated.ts';
import { applyToTurn, newTurn, type TurnState } from './turn.ts';

export interface JournalState {
  /** The position of the last chunk. */
  readonly at: Position;
  /** In order. The first may be any turn: earlier ones are not needed. */
  readonly turns: readonly TurnState[];
  /** null before the first status. */
  readonly status: SessionStatus | null;
  readonly waitingFor: WaitingFor | null;
}

/** A journal of which nothing has been read, to be read after this position. */
export function journalAfter(at: Position): JournalState {
  return { at, turns: [], status: null, waitingFor: null };
}

/** The state after this chunk; the same object if the chunk was applied before. */
export function applyChunk(state: JournalState, chunk: Chunk): JournalState {
  if (!isAfter(chunk, state.at)) return state;
  const { turn, seq } = chunk;
  const last = state.turns.at(-1);
  const turns =
    turn === 0
      ? state.turns
      : last?.turn === turn
        ? state.turns.with(-1, applyToTurn(last, chunk))
        : // Earlier turns do not change any more, so their pieces are not needed.
          [
            ...state.turns.map((one) => (one.lastPiece ? { ...one, lastPiece: null } : one)),
            applyToTurn(newTurn(turn), chunk),
          ];
  const isStatus = chunk.type === 'session.status';
  return {
    at: { turn, seq },
    turns,
    status: isStatus ? chunk.status : state.status,
    waitingFor: isStatus ? chunk.waitingFor : state.waitingFor,
  };
}
