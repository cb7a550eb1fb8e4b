// Files of any length that are written while they are sent.

/** A file that is being sent. */
export interface ExportedFile {
  contentType: string;
  fileName: string;
  /** Parts of the file. Throws if it can't continue; the file is then incomplete. */
  read(signal: AbortSignal): AsyncGenerator<string>;
}

export function fileOf(name: string, format: 'csv' | 'jsonl', read: ExportedFile['read']): ExportedFile {
  return {
    contentType: format === 'csv' ? 'text/csv; charset=utf-8; header=present' : 'application/jsonl; charset=utf-8',
    fileName: `${name}.${format}`,
    read,
  };
}

/** RFC 4180. Text that a spreadsheet would run as a formula gets an apostrophe: names and messages can contain any text. */
export function csvLine(cells: readonly (string | number | null | undefined)[]): string {
  const written = cells.map((cell) => {
    const text = String(cell ?? '');
    const safe = typeof cell === 'string' && /^\s*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/.test(text) ? `'${text}` : text;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  });
  return `${written.join(',')}\r\n`;
}
