// Which rows of a table are in the page: all of a short one, those on the screen of a long one.
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { type RefObject, useLayoutEffect, useState } from 'react';
import { useRowPx } from '../../lib/density.ts';

/** A longer table has only the rows near the screen. */
const ALL_ROWS = 100;
const AHEAD_ROWS = 12;

export interface RowWindow {
  /** Indexes. */
  rows: readonly number[];
  /** The height of the rows before and after, which are not in the page. */
  beforePx: number;
  afterPx: number;
  /** Brings a row into the page. */
  show: (index: number) => void;
}

export function useRowWindow(count: number, body: RefObject<HTMLElement | null>): RowWindow {
  const rowPx = useRowPx();
  const isLong = count > ALL_ROWS;
  const [top, setTop] = useState(0);
  useLayoutEffect(() => {
    if (isLong && body.current) setTop(body.current.getBoundingClientRect().top + scrollY);
  });
  const virtualizer = useWindowVirtualizer({
    count: isLong ? count : 0,
    estimateSize: () => rowPx,
    overscan: AHEAD_ROWS,
    scrollMargin: top,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: measured again if the rows have another height
  useLayoutEffect(() => virtualizer.measure(), [rowPx, virtualizer]);
  if (!isLong) {
    return { rows: Array.from({ length: count }, (_, index) => index), beforePx: 0, afterPx: 0, show: () => {} };
  }
  const items = virtualizer.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const last = items.at(-1)?.index ?? -1;
  return {
    rows: items.map(({ index }) => index),
    beforePx: first * rowPx,
    afterPx: (count - 1 - last) * rowPx,
    show: (index) => virtualizer.scrollToIndex(index, { align: 'auto' }),
  };
}
