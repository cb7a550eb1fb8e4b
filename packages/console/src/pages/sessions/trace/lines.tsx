// A row of the trace: its name, what is drawn of it on the time axis, and its figures.
// biome-ignore-all lint/a11y/useFocusableInteractive: the grid has the focus, and names its active row
// biome-ignore-all lint/a11y/useSemanticElements: a table has no rows that open and close, and is not virtual
import type { SessionTurn, TurnOperation } from '@signalbox/client';
import { ChevronRight, ZoomIn, ZoomOut } from 'lucide-react';
import type { ReactNode } from 'react';
import { toolTitle } from '../../../lib/text-format.ts';
import { Status } from '../../../ui/badge.tsx';
import { Dollars } from '../../../ui/dollars.tsx';
import { PlainText } from '../../../ui/text.tsx';
import { duration } from '../../../ui/time.tsx';
import { number } from '../session-text.ts';
import { percent } from './axis.tsx';
import { isFailed, type Piece, type StepRow, type TurnRow } from './rows.ts';
import type { Scale } from './scale.ts';

interface LineProps {
  id: string;
  scale: Scale;
  top: number;
  /** From 1. */
  position: number;
  isActive: boolean;
  onOpen: () => void;
}

export function TurnLine({
  row,
  onZoom,
  isZoomed,
  ...line
}: LineProps & { row: TurnRow; onZoom: () => void; isZoomed: boolean }) {
  const { turn, isOpen, from, until, pieces } = row;
  const Zoom = isZoomed ? ZoomOut : ZoomIn;
  return (
    <Line {...line} level={1} isOpen={isOpen} kind="turn" isFailed={turn.status === 'failed'}>
      <span className="trace-name" role="rowheader" aria-label={`Turn ${turn.turn}, ${turn.status}`}>
        <ChevronRight className="trace-chevron" aria-hidden="true" />
        <b>Turn {turn.turn}</b>
        {turn.status !== 'completed' && turn.status !== 'failed' && <Status value={turn.status} />}
        <button
          type="button"
          className="trace-zoom"
          tabIndex={-1}
          aria-label={isZoomed ? 'Show all turns' : `Zoom to turn ${turn.turn}`}
          onClick={(event) => {
            event.stopPropagation();
            onZoom();
          }}
        >
          <Zoom aria-hidden="true" />
        </button>
      </span>
      <Track pieces={pieces} scale={line.scale} note={turnNote(row)} />
      <Figures tokens={turn.usage} costUsd={turn.usage.costUsd} ms={until - from} />
    </Line>
  );
}

/** Why it failed, unless one of its rows below says so. */
function turnNote({ turn: { error, operations }, isOpen }: TurnRow): string | undefined {
  const isSaid = isOpen && operations.some((one) => one.error === error?.message);
  return isSaid ? undefined : error?.message;
}

const KIND: Record<TurnOperation['kind'], string> = {
  model: 'Model',
  tool: 'Tool',
  approval: 'Approval of',
  compaction: 'Summary by',
};
/** What the color says alone of the others. */
const SAID: readonly TurnOperation['kind'][] = ['approval', 'compaction'];

export function StepLine({ row, isSelected, ...line }: LineProps & { row: StepRow; isSelected: boolean }) {
  const { operation, from, until, pieces, isStarted } = row;
  const { kind, name, status, usage, error } = operation;
  const title = kind === 'model' || kind === 'compaction' ? name : toolTitle(name);
  return (
    <Line {...line} level={2} isSelected={isSelected} kind={kind} isFailed={isFailed(operation)}>
      <span
        className="trace-name"
        role="rowheader"
        title={`${KIND[kind]} ${name}`}
        aria-label={`${KIND[kind]} ${title}, ${status}`}
      >
        <i className="trace-dot" data-kind={pieces.at(-1)?.kind ?? kind} aria-hidden="true" />
        <PlainText text={SAID.includes(kind) ? `${KIND[kind]} ${title}` : title} />
      </span>
      <Track
        pieces={pieces}
        scale={line.scale}
        note={isFailed(operation) ? (error ?? status) : isStarted ? undefined : status}
      />
      <Figures tokens={usage ?? undefined} costUsd={usage?.costUsd ?? null} ms={isStarted ? until - from : undefined} />
    </Line>
  );
}

function Line({
  id,
  top,
  position,
  isActive,
  onOpen,
  level,
  kind,
  isOpen,
  isSelected,
  isFailed,
  children,
}: LineProps & {
  level: number;
  kind: string;
  isOpen?: boolean;
  isSelected?: boolean;
  isFailed?: boolean;
  children: ReactNode;
}) {
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the grid has the keys
    <div
      id={id}
      role="row"
      className="trace-line"
      aria-level={level}
      aria-rowindex={position}
      {...(isOpen !== undefined && { 'aria-expanded': isOpen })}
      {...(isSelected !== undefined && { 'aria-selected': isSelected })}
      data-kind={kind}
      data-active={isActive}
      data-failed={isFailed === true}
      style={{ transform: `translateY(${top}px)` }}
      onClick={onOpen}
    >
      {children}
    </div>
  );
}

/** The least share of the width that a note takes beside its bar. */
const NOTE_SHARE = 0.3;

function Track({ pieces, scale, note }: { pieces: readonly Piece[]; scale: Scale; note?: string | undefined }) {
  const [first, last] = [pieces[0], pieces.at(-1)];
  const begin = first ? scale.at(first.from) : 0;
  const end = last ? scale.at(last.until) : 0;
  // Beside the bar where there is room, else on it.
  const place =
    1 - end >= NOTE_SHARE
      ? { left: percent(end), right: 0 }
      : begin >= NOTE_SHARE
        ? { right: percent(1 - begin) }
        : { left: percent(begin), right: 0 };
  return (
    <span className="trace-track" role="gridcell">
      {pieces.map(({ kind, from, until }) => (
        <span
          className="trace-bar"
          aria-hidden="true"
          data-kind={kind}
          key={`${kind} ${from} ${until}`}
          title={PIECE[kind] && `${PIECE[kind]} ${duration(until - from)}`}
          style={{ left: percent(scale.at(from)), width: percent(scale.at(until) - scale.at(from)) }}
        />
      ))}
      {note && (
        <span className="trace-note" style={place}>
          <PlainText text={note} />
        </span>
      )}
    </span>
  );
}

const PIECE: Record<Piece['kind'], string> = {
  first: 'First token after',
  model: 'Wrote for',
  summary: 'Wrote a summary for',
  tool: 'Ran for',
  agent: 'A child session ran for',
  wait: 'Waited for',
  failed: 'Failed after',
};

function Figures({
  tokens,
  costUsd,
  ms,
}: {
  tokens?: Pick<SessionTurn['usage'], 'inputTokens' | 'outputTokens'> | undefined;
  costUsd: number | null;
  ms: number | undefined;
}) {
  return (
    <span className="trace-figures number" role="gridcell">
      <span>
        {tokens && (tokens.inputTokens > 0 || tokens.outputTokens > 0) && (
          <>
            {number(tokens.inputTokens)}
            <span className="visually-hidden"> tokens in,</span>
            <span aria-hidden="true"> → </span>
            {number(tokens.outputTokens)}
            <span className="visually-hidden"> out</span>
          </>
        )}
      </span>
      <span>{costUsd !== null && <Dollars usd={costUsd} as="short" />}</span>
      <span>{ms === undefined ? '' : duration(ms)}</span>
    </span>
  );
}
