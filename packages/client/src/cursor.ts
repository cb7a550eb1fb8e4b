/** Positions in a session's journal, and their cursors: `turn_2:seq_17`. */

export interface Position {
  readonly turn: number;
  readonly seq: number;
}

export function cursorOf({ turn, seq }: Position): string {
  return `turn_${turn}:seq_${seq}`;
}

/** The position of a cursor; without one, the position before the first chunk. */
export function positionOf(cursor: string | null): Position {
  const [, turn = 0, seq = 0] = /^turn_(\d+):seq_(\d+)$/.exec(cursor ?? '') ?? [];
  return { turn: Number(turn), seq: Number(seq) };
}

/** Whether a position, or a cursor, is later than another one. Sequence numbers begin again in each turn. */
export function isAfter(one: Position | string | null, other: Position | string | null): boolean {
  const [a, b] = [placeOf(one), placeOf(other)];
  return a.turn > b.turn || (a.turn === b.turn && a.seq > b.seq);
}

function placeOf(place: Position | string | null): Position {
  return typeof place === 'string' || place === null ? positionOf(place) : place;
}
