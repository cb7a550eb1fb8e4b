// Which columns a table shows: those that the person chose, as far as there is room. The browser remembers the choice for each table.
import type { ReactNode } from 'react';
import { useSyncExternalStore } from 'react';
import { useIsDesktop, useIsPhone, useIsWide } from '../../lib/width.ts';
import { columnsThatFit } from './fit.ts';

export interface Column<T> {
  /** In the URL if one can sort by it, and in the stored choice of columns. */
  id: string;
  label: string;
  cell: (item: T) => ReactNode;
  /** Aligns numbers to the end. */
  end?: boolean;
  /** A CSS width. Columns without one share the rest. */
  width?: string;
  sorts?: boolean;
  /** The person may hide it, and it is shown or hidden at first. Without it, it is always shown. */
  choice?: 'shown' | 'hidden';
  /** The least screen with room for it. Default: a tablet. It also gives its room to the first column if that would be cut. */
  from?: 'desktop' | 'wide';
  /** Its place on a phone, where a row has two lines. Without one it is not shown there. The first column is the title by default. */
  phone?: 'title' | 'aside' | 'under' | 'under-aside';
}

const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/**
 * The columns that are shown, and whether each optional one is chosen. `widthRem` is undefined until it is known. A phone has all of
 * them, because its rows have two lines and places for some.
 */
export function useColumns<T>(
  name: string,
  columns: readonly Column<T>[],
  { widthRem, besideRem }: { widthRem: number | undefined; besideRem: number },
) {
  const key = `signalbox.columns.${name}`;
  const stored = useSyncExternalStore(subscribe, () => localStorage.getItem(key) ?? '{}');
  const chosen = readChoice(stored);
  const isShown = ({ id, choice }: Column<T>) => choice === undefined || (chosen[id] ?? choice === 'shown');
  const isPhone = useIsPhone();
  const hasScreen = { desktop: useIsDesktop(), wide: useIsWide() };
  const chosenColumns = columns.filter(isShown);
  const onScreen = chosenColumns.filter(({ from }) => from === undefined || hasScreen[from]);
  const isMeasured = widthRem !== undefined;
  const shown = isPhone ? chosenColumns : isMeasured ? columnsThatFit(onScreen, widthRem, besideRem) : onScreen;
  return {
    shown,
    optional: columns.filter(({ choice }) => choice !== undefined),
    isShown,
    /** It is chosen, and the screen or the table is too narrow for it. */
    hasNoRoom: (column: Column<T>) => isShown(column) && !shown.includes(column),
    toggle: (column: Column<T>) => {
      localStorage.setItem(key, JSON.stringify({ ...chosen, [column.id]: !isShown(column) }));
      for (const listener of listeners) listener();
    },
  };
}

function readChoice(text: string): Record<string, boolean | undefined> {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}
