// A paginated list as a table, which becomes cards on a phone.
import type { ReactNode } from 'react';
import type { ListQuery } from '../organization.tsx';
import { Button } from './button.tsx';
import { ErrorNotice } from './notice.tsx';
import { SkeletonRows } from './skeleton.tsx';

export interface Column<T> {
  /** Empty for the column of actions. */
  label: string;
  cell: (item: T) => ReactNode;
  /** Aligns numbers and actions to the end. */
  end?: boolean;
}

/** `empty` says what belongs here and how to create it. */
export function List<T>({
  caption,
  query,
  columns,
  rowKey,
  empty,
}: {
  /** What is listed, for screen readers. */
  caption: string;
  query: ListQuery<T>;
  columns: readonly Column<T>[];
  rowKey: (item: T) => string;
  empty: ReactNode;
}) {
  const { data, error, refetch, isFetchingNextPage, hasNextPage, fetchNextPage } = query;
  if (!data) return error ? <ErrorNotice error={error} retry={() => void refetch()} /> : <Loading />;
  if (data.length === 0) return <div className="data-frame empty">{empty}</div>;
  return (
    <div className="stack">
      {error && <ErrorNotice error={error} retry={() => void refetch()} />}
      <div className="data-frame">
        <Rows caption={caption} items={data} columns={columns} rowKey={rowKey} />
      </div>
      {hasNextPage && (
        <div className="row">
          <Button busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
            Show more
          </Button>
          <span className="quiet small">{data.length} shown</span>
        </div>
      )}
    </div>
  );
}

/** The table without loading, for items that are already loaded. */
export function Rows<T>({
  caption,
  items,
  columns,
  rowKey,
}: {
  caption: string;
  items: readonly T[];
  columns: readonly Column<T>[];
  rowKey: (item: T) => string;
}) {
  return (
    <table className="data">
      <caption className="visually-hidden">{caption}</caption>
      <thead>
        <tr>
          {columns.map(({ label, end }) => (
            <th key={label} scope="col" className={end ? 'end' : undefined}>
              {label || <span className="visually-hidden">Actions</span>}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {items.map((item) => (
          <tr key={rowKey(item)}>
            {columns.map(({ label, cell, end }) => (
              <td key={label} data-label={label} className={end ? 'end' : undefined}>
                <div>{cell(item)}</div>
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function Loading() {
  return <SkeletonRows />;
}
