// A short table, which becomes cards on a phone. Lists are `Table`.
import type { ReactNode } from 'react';
import { SkeletonRows } from './skeleton.tsx';

export interface Column<T> {
  /** Empty for the column of actions. */
  label: string;
  cell: (item: T) => ReactNode;
  /** Aligns numbers and actions to the end. */
  end?: boolean;
}

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
