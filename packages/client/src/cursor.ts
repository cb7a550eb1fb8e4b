/** Positions in a session's journal: `turn_2:seq_17`. */

export function cursorOf({ turn, seq }: { turn: number; seq: number }): string {
  return `turn_${turn}:seq_${seq}`;
}

export function isAfter(cursor: string, other: string): boolean {
  const [turn, seq] = position(cursor);
  const [otherTurn, otherSeq] = position(other);
  return turn > otherTurn || (turn === otherTurn && seq > otherSeq);
}

function position(cursor: string): [turn: number, seq: number] {
  const [, turn, seq] = /^turn_(\d+):seq_(\d+)$/.exec(cursor) ?? [];
  return [Number(turn), Number(seq)];
}
