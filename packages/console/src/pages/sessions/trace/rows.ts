// The rows of a trace: turns, and the steps of those that are open, each with what is drawn of it on the time axis. Pure.
import type { SessionTurn, TurnOperation } from '@signalbox/client';
import type { Span } from './scale.ts';

/**
 * - `first`: a model before its first token
 * - `wait`: for a person, a program of the integrator's, or a model that is unavailable
 */
export type PieceKind = 'model' | 'first' | 'tool' | 'agent' | 'summary' | 'wait' | 'failed';

export interface Piece extends Span {
  readonly kind: PieceKind;
}

interface Row extends Span {
  readonly key: string;
  readonly turn: SessionTurn;
  readonly pieces: readonly Piece[];
}

export interface TurnRow extends Row {
  readonly type: 'turn';
  readonly isOpen: boolean;
}

export interface StepRow extends Row {
  readonly type: 'step';
  readonly operation: TurnOperation;
  readonly isStarted: boolean;
}

export type TraceRow = TurnRow | StepRow;

/** Turns in the order in which they ran. */
export function rowsOf(turns: readonly SessionTurn[], isOpen: (turn: SessionTurn) => boolean, now: number): TraceRow[] {
  return turns.flatMap((turn): TraceRow[] => {
    const steps = turn.operations.map((operation) => stepRow(turn, operation, now));
    const from = Date.parse(turn.startedAt);
    const until = Math.max(turn.endedAt ? Date.parse(turn.endedAt) : now, ...steps.map((step) => step.until), from);
    const opened = isOpen(turn);
    const pieces = joined(
      steps.flatMap((step) => step.pieces),
      (until - from) / MAX_PIECES,
    );
    return [
      { type: 'turn', key: turnKey(turn.turn), turn, from, until, isOpen: opened, pieces },
      ...(opened ? steps : []),
    ];
  });
}

function turnKey(turn: number): string {
  return `turn ${turn}`;
}

function stepKey({ operationId, kind }: Pick<TurnOperation, 'operationId' | 'kind'>): string {
  return `${kind} ${operationId}`;
}

/** When something works: what the axis shows in full. */
export function busyOf(rows: readonly TraceRow[]): Span[] {
  return rows.flatMap(({ type, pieces }) => (type === 'turn' ? pieces.filter(({ kind }) => kind !== 'wait') : []));
}

function stepRow(turn: SessionTurn, operation: TurnOperation, now: number): StepRow {
  const { startedAt, endedAt } = operation;
  const from = Date.parse(startedAt ?? endedAt ?? turn.startedAt);
  const until = Math.max(from, endedAt ? Date.parse(endedAt) : startedAt ? now : from);
  const isStarted = startedAt !== null;
  const pieces = isStarted ? piecesOf(operation, { from, until }) : [];
  return { type: 'step', key: stepKey(operation), turn, operation, from, until, isStarted, pieces };
}

const FAILED: readonly TurnOperation['status'][] = ['failed', 'unknown', 'denied', 'expired'];

export function isFailed({ status }: Pick<TurnOperation, 'status'>): boolean {
  return FAILED.includes(status);
}

function piecesOf(operation: TurnOperation, whole: Span): Piece[] {
  const { kind, toolType } = operation;
  if (kind === 'approval') return [{ ...whole, kind: 'wait' }];
  if (kind === 'tool') {
    const ran = toolType === 'client' ? 'wait' : toolType === 'agent' ? 'agent' : 'tool';
    return [{ ...whole, kind: isFailed(operation) ? 'failed' : ran }];
  }
  return modelPieces(operation, whole);
}

/** The attempts of a model call, the waits between them, and the wait for the first token. */
function modelPieces({ kind, status, attempts, firstTokenAt }: TurnOperation, whole: Span): Piece[] {
  const writes = kind === 'compaction' ? 'summary' : 'model';
  const pieces: Piece[] = [];
  let at = whole.from;
  for (const { startedAt, endedAt, error } of attempts) {
    const [from, until] = [Date.parse(startedAt), Date.parse(endedAt)];
    // Before the first attempt, it waited for a node.
    if (from > at && pieces.length > 0) pieces.push({ from: at, until: from, kind: 'wait' });
    if (error) pieces.push({ from, until, kind: 'failed' });
    at = error ? until : from;
  }
  if (whole.until <= at && pieces.length > 0) return pieces;
  const rest = { from: at, until: whole.until };
  if (status === 'waiting') return [...pieces, { ...rest, kind: 'wait' }];
  if (status === 'failed') return pieces.length > 0 ? pieces : [{ ...rest, kind: 'failed' }];
  const first = firstTokenAt === null ? at : Math.min(Date.parse(firstTokenAt), whole.until);
  if (first > at) pieces.push({ from: at, until: first, kind: 'first' });
  return [...pieces, { from: Math.max(at, first), until: whole.until, kind: writes }];
}

/** What a turn's one bar can show. */
const MAX_PIECES = 200;

/** Pieces of a kind that follow each other within `leastMs` are one; the newest that overlap are on top. */
function joined(pieces: readonly Piece[], leastMs: number): Piece[] {
  const found: { kind: PieceKind; from: number; until: number }[] = [];
  const last = new Map<PieceKind, { kind: PieceKind; from: number; until: number }>();
  for (const piece of pieces.toSorted((a, b) => a.from - b.from)) {
    const before = last.get(piece.kind);
    if (before && piece.from - before.until <= leastMs) before.until = Math.max(before.until, piece.until);
    else {
      const added = { ...piece };
      found.push(added);
      last.set(piece.kind, added);
    }
  }
  return found;
}
