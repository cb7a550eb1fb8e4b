// Which row of a table was opened by keyboard. When the person goes back, the focus is on that row rather than on the heading.

/** The key of the row, by the entry of the browser's history. */
const opened = new Map<string, string>();

export function noteOpened(entry: string, row: string, isByKeyboard: boolean): void {
  if (isByKeyboard) opened.set(entry, row);
  else opened.delete(entry);
}

/** The index of the row to return to, once. */
export function takeOpened(entry: string, rows: readonly string[]): number | undefined {
  const index = rows.indexOf(opened.get(entry) ?? '');
  if (index < 0) return undefined;
  opened.delete(entry);
  return index;
}
