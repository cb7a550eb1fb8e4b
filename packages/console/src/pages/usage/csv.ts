// CSV files that spreadsheets open.

/** Quoted if needed. A text that a spreadsheet would take for a formula begins with an apostrophe. */
export function csvCell(value: string | number): string {
  const text = typeof value === 'string' && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Lets the browser save the rows. */
export function saveCsv(
  filename: string,
  head: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): void {
  const text = [head, ...rows].map((row) => `${row.map(csvCell).join(',')}\r\n`).join('');
  // Without the mark, Excel reads UTF-8 as another encoding.
  const url = URL.createObjectURL(new Blob(['\ufeff', text], { type: 'text/csv;charset=utf-8' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = filename;
  link.click();
  // The download has begun by the next task.
  setTimeout(() => URL.revokeObjectURL(url));
}
