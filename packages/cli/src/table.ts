// Tables for people. A long table is printed page by page: its columns get their widths from the first page.
import type { Output, Style } from './terminal.ts';
import { truncate, widthOf } from './text.ts';

export interface Column<T> {
  header: string;
  /** The text of the cell. It must be safe for a terminal: clean untrusted text with `shown`. */
  cell(item: T): string;
  style?(item: T): Style | undefined;
  /** For numbers. */
  isRight?: true;
  /** Can be cut if the terminal is too narrow; ids never are, because people copy them. */
  shrinks?: true;
  /** Is left out if the terminal is too narrow. */
  optional?: true;
}

const GAP = 2;
/** A column that shrinks keeps at least this. */
const MIN_WIDTH = 8;

export class Table<T> {
  readonly #output: Output;
  #columns: readonly Column<T>[];
  #widths: number[] | undefined;

  constructor(output: Output, columns: readonly Column<T>[]) {
    this.#output = output;
    this.#columns = columns;
  }

  /** Prints rows, and the headers before the first ones. */
  async print(items: readonly T[]): Promise<void> {
    let text = '';
    if (!this.#widths) {
      this.#widths = this.#fit(items);
      text = this.#line(this.#columns.map(({ header }) => ({ text: header, style: 'dim' as const })));
    }
    for (const item of items)
      text += this.#line(this.#columns.map((column) => ({ text: column.cell(item), style: column.style?.(item) })));
    await this.#output.write(text);
  }

  #fit(items: readonly T[]): number[] {
    const wanted = new Map(
      this.#columns.map((column) => [
        column,
        Math.max(widthOf(column.header), ...items.map((item) => widthOf(column.cell(item)))),
      ]),
    );
    // A column in which nothing is written says nothing.
    this.#columns = this.#columns.filter((column) => items.some((item) => column.cell(item) !== ''));
    const { columns: available } = this.#output;
    if (available === undefined) return this.#columns.map((column) => wanted.get(column)!);

    const least = (column: Column<T>) =>
      column.shrinks ? Math.min(MIN_WIDTH, wanted.get(column)!) : wanted.get(column)!;
    const total = (of: (column: Column<T>) => number) =>
      this.#columns.reduce((sum, column) => sum + of(column) + GAP, -GAP);
    for (let last = this.#columns.length - 1; last > 0 && total(least) > available; last--)
      if (this.#columns[last]!.optional) this.#columns = this.#columns.toSpliced(last, 1);

    const widths = this.#columns.map((column) => wanted.get(column)!);
    let excess = total((column) => wanted.get(column)!) - available;
    while (excess > 0) {
      // The widest gives way first, down to the next widest.
      const shrinking = [...widths.keys()].filter((at) => this.#columns[at]!.shrinks && widths[at]! > MIN_WIDTH);
      if (shrinking.length === 0) break;
      const widest = shrinking.reduce((a, b) => (widths[b]! > widths[a]! ? b : a));
      widths[widest]! -= 1;
      excess -= 1;
    }
    return widths;
  }

  #line(cells: readonly { text: string; style: Style | undefined }[]): string {
    const isCut = this.#output.isTTY;
    let line = '';
    for (const [at, { text, style }] of cells.entries()) {
      const width = this.#widths![at]!;
      const cell = isCut && this.#columns[at]!.shrinks ? truncate(text, width) : text;
      const space = ' '.repeat(Math.max(0, width - widthOf(cell)));
      const styled = this.#output.styled(style, cell);
      line += (this.#columns[at]!.isRight ? space + styled : styled + space) + ' '.repeat(GAP);
    }
    return `${line.trimEnd()}\n`;
  }
}

const styles: Readonly<Record<string, Style>> = {
  running: 'blue',
  waiting: 'yellow',
  pending: 'yellow',
  paused: 'yellow',
  retrying: 'yellow',
  failing: 'yellow',
  completed: 'green',
  approved: 'green',
  delivered: 'green',
  enabled: 'green',
  healthy: 'green',
  success: 'green',
  opened: 'green',
  failed: 'red',
  denied: 'red',
  disabled: 'red',
  degraded: 'red',
  blocked: 'red',
  error: 'red',
  failure: 'red',
  cancelled: 'dim',
  expired: 'dim',
  skipped: 'dim',
  archived: 'dim',
};

/** The color of a status, wherever it appears. */
export function statusStyle(status: string): Style | undefined {
  return styles[status];
}
