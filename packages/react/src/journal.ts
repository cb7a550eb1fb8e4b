/** What the journal of a session has shown, from its chunks. Pure, like `turn.ts`. */
import type { Chunk, SessionStatus, WaitingFor } from '@signalbox/client';
import { applyToTurn, newTurn, type TurnState } from './turn.ts';

export interface Position {
  readonly turn: number;
  readonly seq: number;
}

export interface JournalState {
  /** Of the last chunk. */
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

export function isAfter(one: Position, other: Position): boolean {
  return one.turn > other.turn || (one.turn === other.turn && one.seq > other.seq);
}

export function cursorOf({ turn, seq }: Position): string {
  return `turn_${turn}:seq_${seq}`;
}

export function positionOf(cursor: string): Position {
  const [, turn = 0, seq = 0] = /^turn_(\d+):seq_(\d+)$/.exec(cursor) ?? [];
  return { turn: Number(turn), seq: Number(seq) };
}
