// How the demo prints: calm lines of a label and a text, and a model's words as they come.
import { createInterface } from 'node:readline';
import { styleText } from 'node:util';

const LABEL_WIDTH = 13;
const TEXT_WIDTH = 76;

type Style = 'bold' | 'dim' | 'green' | 'yellow' | 'red' | 'cyan';

/** `text` in a style, where the terminal shows styles (a TTY, and NO_COLOR not set). */
export function styled(style: Style, text: string): string {
  return styleText(style, text, { stream: process.stdout });
}

export function line(text = ''): void {
  process.stdout.write(`${text}\n`);
}

export function heading(text: string): void {
  line(`\n${styled('bold', text)}\n`);
}

/** A label in its column, and a text. */
export function row(label: string, text: string): void {
  line(`  ${styled('dim', label.padEnd(LABEL_WIDTH))}${text}`);
}

/** Cells in columns as wide as they need to be. */
export function table(rows: readonly (readonly string[])[]): void {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0)));
  for (const cells of rows) {
    line(`  ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('   ')}`.trimEnd());
  }
}

/** JSON as people write it on one line. */
export function compact(value: unknown): string {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return JSON.stringify(value);
  return Object.entries(value)
    .map(([name, one]) => `${name}: ${JSON.stringify(one)}`)
    .join(', ');
}

/** Text that comes piece by piece, wrapped at spaces, beside a label. */
export class Stream {
  readonly #label: string;
  #column = -1;
  #space = '';

  constructor(label: string) {
    this.#label = label;
  }

  write(delta: string): void {
    if (this.#column < 0) {
      process.stdout.write(`\n  ${styled('bold', this.#label.padEnd(LABEL_WIDTH))}`);
      this.#column = 0;
    }
    for (const piece of delta.split(/(\n|[^\S\n]+)/)) {
      const isSpace = piece.trim() === '';
      if (piece === '\n' || (!isSpace && this.#column > 0 && this.#column + piece.length > TEXT_WIDTH)) {
        process.stdout.write(`\n  ${' '.repeat(LABEL_WIDTH)}`);
        this.#column = 0;
        this.#space = '';
      }
      if (isSpace) {
        // Held back until a word follows: none may, before the line's end.
        if (piece !== '\n') this.#space += piece;
        continue;
      }
      process.stdout.write(this.#space + piece);
      this.#column += this.#space.length + piece.length;
      this.#space = '';
    }
  }

  /** The text is over; what is printed next begins on a line of its own. */
  end(): void {
    if (this.#column >= 0) line('\n');
    this.#column = -1;
    this.#space = '';
  }
}

/**
 * Asks until the answer is yes or no; no where the input ends without one. Rejects with the signal's reason.
 * `onInterrupt`: Ctrl-C, which a terminal that is read line by line does not make a signal of.
 */
export async function confirm(question: string, signal: AbortSignal, onInterrupt: () => void): Promise<boolean> {
  const lines = createInterface({ input: process.stdin, output: process.stdout, prompt: question, signal });
  lines.on('SIGINT', onInterrupt);
  try {
    lines.prompt();
    for await (const answer of lines) {
      const [, yes, no] = /^\s*(?:(y|yes)|(n|no))\s*$/i.exec(answer) ?? [];
      if (yes || no) return yes !== undefined;
      lines.prompt();
    }
    signal.throwIfAborted();
    return false;
  } finally {
    lines.close();
  }
}
