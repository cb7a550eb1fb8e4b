// The trace of a session: one waterfall over all its turns. Only visible rows are rendered, so that turns of 500 calls scroll.
// biome-ignore-all lint/a11y/useSemanticElements: a table has no rows that open and close, and is not virtual
import type { Session, SessionTurn, TurnOperation } from '@signalbox/client';
import { useVirtualizer } from '@tanstack/react-virtual';
import { ChevronsDownUp, ChevronsUpDown } from 'lucide-react';
import { type KeyboardEvent, memo, useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from 'react';
import { useShortcuts } from '../../../shortcuts/registry.ts';
import { Button } from '../../../ui/button.tsx';
import { useTicking } from '../../../ui/time.tsx';
import { isBusy } from '../use-session.ts';
import { Axis, Grid } from './axis.tsx';
import { StepLine, TurnLine } from './lines.tsx';
import { busyOf, rowsOf, type TraceRow } from './rows.ts';
import { createScale } from './scale.ts';
import { TraceSummary } from './summary.tsx';
import { useTrackWidth } from './use-track-width.ts';
import './trace.css';

interface TraceProps {
  session: Session;
  /** The turns that are loaded, in any order. */
  turns: readonly SessionTurn[];
  /** The operation that is shown beside the trace. */
  selected?: string | undefined;
  onStep: (operation: TurnOperation) => void;
  /** Loads earlier turns, if there are any. */
  onEarlier?: (() => void) | undefined;
}

/** More steps than this are collapsed at first, but for the newest turn and those that failed. */
const OPEN_STEPS = 60;
const ROW_PX = 32;
/** With the bar under the name. */
const STACKED_ROW_PX = 48;
const AHEAD_ROWS = 12;
const TICK_PX = 56;
const Summary = memo(TraceSummary);

export function Trace({ session, turns, selected, onStep, onEarlier }: TraceProps) {
  const id = useId();
  const [scroller, setScroller] = useState<HTMLDivElement | null>(null);
  const { trackPx, isStacked } = useTrackWidth(scroller);
  const now = useTicking(isBusy(session));
  const ordered = useMemo(() => turns.toSorted((a, b) => a.turn - b.turn), [turns]);
  const [toggled, setToggled] = useState<ReadonlyMap<number, boolean>>(new Map());
  const [zoomed, setZoomed] = useState<number>();
  const [active, setActive] = useState<string>();
  const hasBegun = useRef(false);
  const isAtEnd = useRef(true);

  const steps = ordered.reduce((sum, { operations }) => sum + operations.length, 0);
  const newest = ordered.at(-1)?.turn;
  const isSelected = (one: TurnOperation) => one.kind !== 'approval' && one.operationId === selected;
  const isOpen = ({ turn, status, operations }: SessionTurn) =>
    turn === zoomed ||
    (toggled.get(turn) ??
      (steps <= OPEN_STEPS || turn === newest || status === 'failed' || operations.some(isSelected)));
  // A key changes none of it, and a turn can have hundreds of steps.
  // biome-ignore lint/correctness/useExhaustiveDependencies: what `isOpen` reads
  const rows = useMemo(
    () => rowsOf(zoomed === undefined ? ordered : ordered.filter(({ turn }) => turn === zoomed), isOpen, now),
    [ordered, zoomed, toggled, selected, now],
  );
  const labelShare = Math.min(0.5, TICK_PX / trackPx);
  const scale = useMemo(() => {
    const from = rows[0]?.from ?? 0;
    const until = rows.reduce((latest, row) => Math.max(latest, row.until), from);
    return createScale({ from, until }, busyOf(rows), labelShare);
  }, [rows, labelShare]);

  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller,
    getItemKey: (index) => rows[index]!.key,
    estimateSize: () => (isStacked ? STACKED_ROW_PX : ROW_PX),
    overscan: AHEAD_ROWS,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: when the rows get another height
  useLayoutEffect(() => virtual.measure(), [isStacked]);
  const activeIndex = Math.max(
    0,
    rows.findIndex(({ key }) => key === active),
  );
  const selectedIndex = rows.findIndex((row) => row.type === 'step' && isSelected(row.operation));
  // Shows the step that the page's address names.
  // biome-ignore lint/correctness/useExhaustiveDependencies: only when another step is selected
  useEffect(() => {
    if (selectedIndex < 0) return;
    setActive(rows[selectedIndex]!.key);
    virtual.scrollToIndex(selectedIndex);
  }, [selected, selectedIndex < 0]);

  useShortcuts('Trace', [
    { keys: 'Enter', does: 'Open the call, or open and close the turn' },
    { keys: 'z', does: 'Zoom to the turn, and back' },
  ]);

  const newestIndex = rows.findLastIndex(({ type }) => type === 'turn');
  // Begins with the newest turn, and stays at the end of one that runs.
  // biome-ignore lint/correctness/useExhaustiveDependencies: when rows are added
  useLayoutEffect(() => {
    if (!scroller || selectedIndex >= 0 || newestIndex < 0) return;
    if (!hasBegun.current) virtual.scrollToIndex(newestIndex, { align: 'start' });
    else if (isAtEnd.current && isBusy(session)) virtual.scrollToIndex(rows.length - 1);
    hasBegun.current = true;
  }, [scroller, rows.length]);

  if (turns.length === 0) return <p className="quiet">No turns yet. Send a message to start the first one.</p>;

  const toggle = (turn: SessionTurn) => setToggled((before) => new Map(before).set(turn.turn, !isOpen(turn)));
  const toggleAll = (open: boolean) => setToggled(new Map(ordered.map(({ turn }) => [turn, open])));
  const areAllOpen = ordered.every(isOpen);
  const Fold = areAllOpen ? ChevronsDownUp : ChevronsUpDown;
  function open(row: TraceRow): void {
    setActive(row.key);
    if (row.type === 'turn') toggle(row.turn);
    else onStep(row.operation);
  }
  function move(index: number): void {
    const next = Math.min(Math.max(index, 0), rows.length - 1);
    setActive(rows[next]!.key);
    virtual.scrollToIndex(next);
  }
  function onKeyDown(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const row = rows[activeIndex]!;
    const parent = rows.findIndex((one) => one.type === 'turn' && one.turn.turn === row.turn.turn);
    const keys: Record<string, () => void> = {
      ArrowDown: () => move(activeIndex + 1),
      ArrowUp: () => move(activeIndex - 1),
      Home: () => move(0),
      End: () => move(rows.length - 1),
      PageDown: () => move(activeIndex + 10),
      PageUp: () => move(activeIndex - 10),
      ArrowRight: () => (row.type === 'turn' && !row.isOpen ? toggle(row.turn) : move(activeIndex + 1)),
      ArrowLeft: () => (row.type === 'turn' ? row.isOpen && toggle(row.turn) : move(parent)),
      Enter: () => open(row),
      ' ': () => open(row),
      z: () => setZoomed(zoomed === undefined ? row.turn.turn : undefined),
    };
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  const rowId = (index: number) => `${id}-${index}`;
  const shown = virtual.getVirtualItems();
  // The active row may be outside of what is scrolled to, and no row is there before the first measurement.
  const isActiveShown = shown.some(({ index }) => index === activeIndex);
  return (
    <section
      className="trace"
      aria-label="Trace"
      data-priced={ordered.some(({ usage }) => usage.costUsd !== null)}
      data-stacked={isStacked}
    >
      <header className="trace-head">
        <Summary rows={rows} allTurns={session.turn} now={now} />
        <span className="trace-actions">
          {onEarlier && (
            <Button small onClick={onEarlier}>
              Show earlier turns
            </Button>
          )}
          {zoomed === undefined ? (
            ordered.length > 1 && (
              <Button
                small
                look="bare"
                className="icon"
                aria-label={areAllOpen ? 'Collapse all' : 'Expand all'}
                title={areAllOpen ? 'Collapse all' : 'Expand all'}
                onClick={() => toggleAll(!areAllOpen)}
              >
                <Fold aria-hidden="true" />
              </Button>
            )
          ) : (
            <Button small onClick={() => setZoomed(undefined)}>
              Show all turns
            </Button>
          )}
        </span>
      </header>
      <div
        className="trace-scroll"
        ref={setScroller}
        onScroll={({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) => {
          isAtEnd.current = scrollTop + clientHeight > scrollHeight - ROW_PX;
        }}
      >
        <Axis scale={scale} labelShare={labelShare} />
        <Grid scale={scale} height={virtual.getTotalSize()} />
        <div
          className="trace-rows"
          role="treegrid"
          aria-label={zoomed === undefined ? 'Turns and their calls' : `Calls of turn ${zoomed}`}
          aria-rowcount={rows.length}
          aria-activedescendant={isActiveShown ? rowId(activeIndex) : undefined}
          tabIndex={0}
          onKeyDown={onKeyDown}
          style={{ height: virtual.getTotalSize() }}
        >
          {shown.map(({ index, start, key }) => {
            const row = rows[index]!;
            const shared = {
              id: rowId(index),
              scale,
              isActive: index === activeIndex,
              onOpen: () => open(row),
              top: start,
              position: index + 1,
            };
            return row.type === 'turn' ? (
              <TurnLine
                {...shared}
                key={key}
                row={row}
                onZoom={() => setZoomed(zoomed === undefined ? row.turn.turn : undefined)}
                isZoomed={zoomed !== undefined}
              />
            ) : (
              <StepLine {...shared} key={key} row={row} isSelected={isSelected(row.operation)} />
            );
          })}
        </div>
      </div>
    </section>
  );
}
