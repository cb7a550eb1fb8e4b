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

/** What stands before every line, where a Session is shown inside another. */
let margin = '';

/** What is printed until the act is over stands inside what is printed around it. */
export async function inside<T>(act: () => Promise<T>): Promise<T> {
  const outside = margin;
  margin += `  ${styled('dim', '│')}`;
  return await act().finally(() => {
    margin = outside;
  });
}

export function line(text = ''): void {
  process.stdout.write(`${margin}${text}`.trimEnd().concat('\n'));
}

export function heading(text: string): void {
  line();
  line(styled('bold', text));
  line();
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

/** JSON as people write it on one line, text as it is. */
export function compact(value: unknown): string {
  if (typeof value === 'string') return value;
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
      line();
      process.stdout.write(`${margin}  ${styled('bold', this.#label.padEnd(LABEL_WIDTH))}`);
      this.#column = 0;
    }
    for (const piece of delta.split(/(\n|[^\S\n]+)/)) {
      const isSpace = piece.trim() === '';
      if (piece === '\n' || (!isSpace && this.#column > 0 && this.#column + piece.length > TEXT_WIDTH)) {
        process.stdout.write(`\n${margin}  ${' '.repeat(LABEL_WIDTH)}`);
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
    if (this.#column >= 0) {
      process.stdout.write('\n');
      line();
    }
    this.#column = -1;
    this.#space = '';
  }
}

/** Puts a question until `accept` makes something of the answer; undefined where the input ends before. */
export type Ask = <T>(question: string, accept: (answer: string) => T | undefined) => Promise<T | undefined>;

/**
 * Talks with the person at the terminal. Rejects with the signal's reason.
 * `onInterrupt`: Ctrl-C, which a terminal that is read line by line does not make a signal of.
 */
export async function withPerson<T>(
  { signal, onInterrupt }: { signal: AbortSignal; onInterrupt: () => void },
  talk: (ask: Ask) => Promise<T>,
): Promise<T> {
  const lines = createInterface({ input: process.stdin, output: process.stdout, signal });
  lines.on('SIGINT', onInterrupt);
  const answers = lines[Symbol.asyncIterator]();
  try {
    return await talk(async (question, accept) => {
      const prompt = `${margin}  ${question}`;
      lines.setPrompt(prompt);
      while (true) {
        if (lines.terminal) lines.prompt();
        else process.stdout.write(prompt);
        const { value = '', done } = await answers.next();
        signal.throwIfAborted();
        // What is typed at a terminal stands there already.
        if (!lines.terminal) process.stdout.write(`${value}\n`);
        if (done) return undefined;
        const accepted = accept(value.trim());
        if (accepted !== undefined) return accepted;
      }
    });
  } finally {
    lines.close();
  }
}
