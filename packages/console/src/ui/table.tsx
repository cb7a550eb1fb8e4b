// A list as a table: one line a row, two on a phone. Loading, empty and failed are its states, not the page's.
import { Link, type LinkComponentProps, useRouter } from '@tanstack/react-router';
import { ArrowDown, ArrowUp, Columns3 } from 'lucide-react';
import { type ReactNode, type RefObject, useCallback, useEffect, useId, useRef, useState } from 'react';
import { noteOpened, takeOpened } from '../lib/returning.ts';
import { counted } from '../lib/text-format.ts';
import { Button } from './button.tsx';
import { Menu } from './menu.tsx';
import { ErrorNotice } from './notice.tsx';
import { Bone } from './skeleton.tsx';
import { useNoteLoading } from './slow.tsx';
import { type Column, useColumns } from './table/columns.ts';
import { useTableKeys } from './table/keys.ts';
import { useRowWindow } from './table/rows.ts';
import { TooLong } from './too-long.tsx';
import './table.css';

export type { Column } from './table/columns.ts';

/** A query of `useList`, or of `useApiQuery` for an array. */
interface QueryState<T> {
  data: readonly T[] | undefined;
  error: unknown;
  refetch: () => Promise<unknown>;
  hasNextPage?: boolean;
  isFetching?: boolean;
  isFetchingNextPage?: boolean;
  fetchNextPage?: () => Promise<unknown>;
  reload?: () => void;
}

export interface Selection<T> {
  /** Keys of rows. */
  selected: ReadonlySet<string>;
  onChange: (selected: ReadonlySet<string>) => void;
  /** Buttons for the selected rows that are loaded. */
  actions: (items: readonly T[]) => ReactNode;
}

interface Sort {
  /** The id of a column. */
  by: string;
  isDescending: boolean;
  onChange: (by: string, isDescending: boolean) => void;
}

/** For `query`, if the rows are already there. */
export function loaded<T>(data: readonly T[]): QueryState<T> {
  return { data, error: null, refetch: async () => {} };
}

export function Table<T>({
  name,
  caption,
  query,
  columns: all,
  rowKey,
  rowLink,
  actions,
  selection,
  sort,
  empty,
}: {
  /** The name of the list, for the browser's storage. */
  name: string;
  /** What is listed, for screen readers. */
  caption: string;
  query: QueryState<T>;
  columns: readonly Column<T>[];
  rowKey: (item: T) => string;
  /** What a click on a row opens: its item's page or drawer. Undefined for a row that opens nothing. */
  rowLink?: (item: T) => LinkComponentProps | undefined;
  /** Buttons or a menu, shown on the row that has the pointer or the focus. */
  actions?: (item: T) => ReactNode;
  selection?: Selection<T>;
  sort?: Sort;
  /** An `EmptyState`. */
  empty: ReactNode;
}) {
  const { data, error, refetch } = query;
  const hasLast = actions !== undefined || all.some(({ choice }) => choice !== undefined);
  const { measure, widthRem } = useWidth();
  const besideRem = (selection ? SELECT_REM : 0) + (hasLast ? LAST_REM : 0);
  const { shown, optional, isShown, hasNoRoom, toggle } = useColumns(name, all, { widthRem, besideRem });
  const id = useId();
  const table = useRef<HTMLTableElement>(null);
  const body = useRef<HTMLTableSectionElement>(null);
  const items = data ?? [];
  const window = useRowWindow(items.length, body);
  const select = selection && ((index: number) => toggleSelected(selection, rowKey(items[index]!)));
  useTableKeys({ table, count: items.length, show: window.show, onToggle: select });
  const noteOpening = useReturning(table, items.map(rowKey));
  if (!data && error) return <ErrorNotice error={error} retry={() => refetch()} />;
  if (data?.length === 0) return <div className="data-frame">{empty}</div>;
  return (
    <div className="stack" ref={measure}>
      {error != null && <ErrorNotice error={error} retry={() => refetch()} />}
      {query.reload && <TooLong reload={query.reload} />}
      <div className="data-frame">
        <table className="table" ref={table} data-keys aria-rowcount={items.length + 1} aria-busy={!data || undefined}>
          <caption className="visually-hidden">{data ? caption : 'Loading…'}</caption>
          <colgroup>
            {selection && <col className="select" />}
            {shown.map(({ id, width }) => (
              <col key={id} style={{ width }} />
            ))}
            {hasLast && <col className="last" />}
          </colgroup>
          <thead>
            <tr>
              {selection && (
                <th scope="col" className="select">
                  <SelectAll selection={selection} keys={items.map(rowKey)} />
                </th>
              )}
              {shown.map((column) => (
                <Head key={column.id} column={column} sort={sort} />
              ))}
              {hasLast && (
                <th scope="col" className="last">
                  {optional.length === 0 ? (
                    <span className="visually-hidden">Actions</span>
                  ) : (
                    <Menu
                      items={optional.map((column) => ({
                        label: column.label,
                        isChecked: isShown(column),
                        hint: hasNoRoom(column) ? 'no room' : undefined,
                        onSelect: () => toggle(column),
                      }))}
                    >
                      <Columns3 aria-hidden="true" />
                      <span className="visually-hidden">Columns</span>
                    </Menu>
                  )}
                </th>
              )}
            </tr>
          </thead>
          <tbody ref={body}>
            {!data && <BoneRows columns={shown} before={selection ? 1 : 0} after={hasLast ? 1 : 0} />}
            <Gap px={window.beforePx} />
            {window.rows.map((index) => {
              const item = items[index]!;
              const key = rowKey(item);
              const isSelected = selection?.selected.has(key);
              const link = rowLink?.(item);
              return (
                <tr
                  key={key}
                  data-index={index}
                  data-item
                  tabIndex={link ? undefined : -1}
                  aria-rowindex={index + 2}
                  aria-selected={isSelected}
                >
                  {selection && (
                    <td className="select">
                      <input
                        type="checkbox"
                        id={`${id}-select-${key}`}
                        aria-label="Select"
                        aria-labelledby={`${id}-select-${key} ${id}-${key}`}
                        checked={isSelected}
                        onChange={() => toggleSelected(selection, key)}
                      />
                    </td>
                  )}
                  {shown.map((column, at) => (
                    <Cell
                      key={column.id}
                      id={at === 0 ? `${id}-${key}` : undefined}
                      column={column}
                      item={item}
                      link={link && { ...link, onClick: (event) => noteOpening(key, event) }}
                    />
                  ))}
                  {hasLast && (
                    <td className="last">
                      <div>{actions?.(item)}</div>
                    </td>
                  )}
                </tr>
              );
            })}
            <Gap px={window.afterPx} />
          </tbody>
        </table>
        {selection && selection.selected.size > 0 && (
          <BulkBar selection={selection} items={items.filter((item) => selection.selected.has(rowKey(item)))} />
        )}
      </div>
      <More query={query} />
    </div>
  );
}

// As in table.css. On a touch screen, what is at the end of a row is larger.
const SELECT_REM = 2.5;
const LAST_REM = matchMedia('(hover: none)').matches ? 5.5 : 2.75;

/** The width of an element, which is known before it is painted. */
function useWidth() {
  const [widthRem, setWidthRem] = useState<number>();
  const measure = useCallback((element: HTMLElement | null) => {
    if (!element) return;
    const remPx = Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
    const read = () => setWidthRem(element.clientWidth / remPx);
    read();
    const observer = new ResizeObserver(read);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return { measure, widthRem };
}

/** Notes which row is opened, and focuses it if the person came back to the list from it. */
function useReturning(table: RefObject<HTMLElement | null>, keys: readonly string[]) {
  const router = useRouter();
  const entry = () => router.history.location.state.__TSR_key ?? '';
  // biome-ignore lint/correctness/useExhaustiveDependencies: only when the page opens
  useEffect(() => {
    const index = takeOpened(entry(), keys);
    const link = table.current?.querySelector<HTMLElement>(`tr[data-index="${index}"] .row-link`);
    link?.focus({ preventScroll: true });
  }, []);
  // A key that presses a link is a click without a count.
  return (row: string, { detail }: { detail: number }) => noteOpened(entry(), row, detail === 0);
}

function Head<T>({ column: { id, label, end, sorts }, sort }: { column: Column<T>; sort: Sort | undefined }) {
  const isSorted = sort?.by === id;
  const Arrow = sort?.isDescending ? ArrowDown : ArrowUp;
  return (
    <th
      scope="col"
      className={end ? 'end' : undefined}
      aria-sort={isSorted ? (sort.isDescending ? 'descending' : 'ascending') : undefined}
    >
      {sorts && sort ? (
        // The first click shows the latest, longest or most.
        <button type="button" onClick={() => sort.onChange(id, isSorted ? !sort.isDescending : true)}>
          {label}
          {isSorted && <Arrow aria-hidden="true" />}
        </button>
      ) : (
        label
      )}
    </th>
  );
}

function Cell<T>({
  id,
  column: { cell, end, phone },
  item,
  link,
}: {
  /** The ID of the first cell, which names the row. */
  id: string | undefined;
  column: Column<T>;
  item: T;
  link: LinkComponentProps | undefined;
}) {
  return (
    <td id={id} data-phone={phone ?? (id ? 'title' : undefined)} className={end ? 'end number' : undefined}>
      {id && link ? (
        <Link {...link} className="row-link">
          {cell(item)}
        </Link>
      ) : (
        <div>{cell(item)}</div>
      )}
    </td>
  );
}

/** One cell: more than the columns that are shown would add columns to the table. */
function Gap({ px }: { px: number }) {
  if (px <= 0) return null;
  return (
    <tr className="gap" style={{ height: px }}>
      <td />
    </tr>
  );
}

const SKELETON_ROWS = 8;

function BoneRows<T>({ columns, before, after }: { columns: readonly Column<T>[]; before: number; after: number }) {
  useNoteLoading();
  return Array.from({ length: SKELETON_ROWS }, (_, row) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the rows are all alike
    <tr key={row}>
      {before > 0 && <td className="select" />}
      {columns.map(({ id, phone }, at) => (
        <td key={id} data-phone={phone ?? (at === 0 ? 'title' : undefined)}>
          <Bone at={row + at} />
        </td>
      ))}
      {after > 0 && <td className="last" />}
    </tr>
  ));
}

function toggleSelected<T>({ selected, onChange }: Selection<T>, key: string): void {
  const next = new Set(selected);
  if (!next.delete(key)) next.add(key);
  onChange(next);
}

function SelectAll<T>({
  selection: { selected, onChange },
  keys,
}: {
  selection: Selection<T>;
  keys: readonly string[];
}) {
  const input = useRef<HTMLInputElement>(null);
  const isAll = keys.length > 0 && keys.every((key) => selected.has(key));
  const isSome = !isAll && selected.size > 0;
  useEffect(() => {
    input.current!.indeterminate = isSome;
  }, [isSome]);
  return (
    <input
      ref={input}
      type="checkbox"
      aria-label="Select all"
      checked={isAll}
      onChange={() => onChange(new Set(isAll ? [] : keys))}
    />
  );
}

function BulkBar<T>({ selection, items }: { selection: Selection<T>; items: readonly T[] }) {
  return (
    <div className="bulk-bar" role="toolbar" aria-label="Selected rows">
      <strong>{items.length.toLocaleString('en')} selected</strong>
      {selection.actions(items)}
      <Button look="bare" small onClick={() => selection.onChange(new Set())}>
        Clear
      </Button>
    </div>
  );
}

/** The next page is loaded before the end is in sight. The button is for those who go there by keyboard. */
function More<T>({ query }: { query: QueryState<T> }) {
  const { data, error, hasNextPage, isFetching, isFetchingNextPage, fetchNextPage } = query;
  const end = useRef<HTMLDivElement>(null);
  const fetchMore = useRef(fetchNextPage);
  fetchMore.current = fetchNextPage;
  const count = data?.length ?? 0;
  const hasFailed = error != null;
  // biome-ignore lint/correctness/useExhaustiveDependencies: observed again after each response, because the end may still be in sight
  useEffect(() => {
    // After a failed page only the person tries again.
    if (!hasNextPage || isFetching || hasFailed || !end.current) return;
    const observer = new IntersectionObserver(
      (entries) => {
        // A busy browser reports several changes at once. The last one is the present state.
        if (entries.at(-1)?.isIntersecting) void fetchMore.current?.();
      },
      { rootMargin: '600px' },
    );
    observer.observe(end.current);
    return () => observer.disconnect();
  }, [hasNextPage, isFetching, hasFailed, count]);
  if (!hasNextPage) return null;
  return (
    <div className="row" ref={end}>
      <Button busy={isFetchingNextPage ?? false} onClick={() => void fetchNextPage?.()}>
        Show more
      </Button>
      <span className="quiet small">{counted(count, 'row')} shown</span>
    </div>
  );
}
