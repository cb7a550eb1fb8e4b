// Prints rows of a label and a text, and streams a model's text.
import { createInterface } from 'node:readline';
import { styleText } from 'node:util';

const LABEL_WIDTH = 13;
const TEXT_WIDTH = 76;

type Style = 'bold' | 'dim' | 'green' | 'yellow' | 'red' | 'cyan';

/** Styles `text` if the output is a TTY and NO_COLOR is not set. */
export function styled(style: Style, text: string): string {
  return styleText(style, text, { stream: process.stdout });
}

/** Printed before every line. Not empty while a child session is shown inside its parent. */
let margin = '';

/** Indents everything that `act` prints. */
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

/** A label and a text, in two columns. */
export function row(label: string, text: string): void {
  line(`  ${styled('dim', label.padEnd(LABEL_WIDTH))}${text}`);
}

/** A table whose columns are as wide as their widest cell. */
export function table(rows: readonly (readonly string[])[]): void {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0)));
  for (const cells of rows) {
    line(`  ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('   ')}`.trimEnd());
  }
}

/** Text unchanged, any other value as compact JSON on one line. */
export function compact(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return JSON.stringify(value);
  return Object.entries(value)
    .map(([name, one]) => `${name}: ${JSON.stringify(one)}`)
    .join(', ');
}

/** Text that arrives in pieces, next to a label and wrapped at spaces. */
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
        // Print spaces only once a word follows them, so that no line ends with any.
        if (piece !== '\n') this.#space += piece;
        continue;
      }
      process.stdout.write(this.#space + piece);
      this.#column += this.#space.length + piece.length;
      this.#space = '';
    }
  }

  /** Ends the text, so that what is printed next is on a line of its own. */
  end(): void {
    if (this.#column >= 0) {
      process.stdout.write('\n');
      line();
    }
    this.#column = -1;
    this.#space = '';
  }
}

/** Asks until `accept` returns a value. Resolves with undefined if the input ends first. */
export type Ask = <T>(question: string, accept: (answer: string) => T | undefined) => Promise<T | undefined>;

/**
 * Asks the person at the terminal. Rejects with the signal's reason.
 * `onInterrupt`: called on Ctrl-C, which raises no SIGINT while readline reads from the terminal.
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
        // A terminal echoes what is typed. A pipe does not.
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
