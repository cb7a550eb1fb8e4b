// Lines that a person types, or that a program pipes.
import { createInterface, type Interface } from 'node:readline';
import type { Terminal } from './terminal.ts';

export class LineReader {
  readonly #lines: Interface;
  readonly isTTY: boolean;
  readonly #typed: string[] = [];
  #isClosed = false;
  #waiting: ((line: string | undefined) => void) | undefined;
  /** Called for Ctrl-C on a terminal; a question that is open then has no answer. */
  onInterrupt: () => void = () => {};

  constructor({ stdin, stdout }: Terminal) {
    this.isTTY = stdin.isTTY === true;
    this.#lines = createInterface({
      input: stdin,
      ...(this.isTTY && { output: stdout.stream, terminal: stdout.isTTY }),
    });
    this.#lines.on('line', (line) => {
      if (this.#waiting) this.#answer(line);
      else this.#typed.push(line);
    });
    this.#lines.on('close', () => {
      this.#isClosed = true;
      this.#answer(undefined);
    });
    this.#lines.on('SIGINT', () => {
      this.onInterrupt();
      this.#answer(undefined);
    });
  }

  /** Resolves to undefined at the end of the input, and after Ctrl-C. */
  ask(question: string): Promise<string | undefined> {
    const typed = this.#typed.shift();
    if (typed !== undefined) return Promise.resolve(typed);
    if (this.#isClosed) return Promise.resolve(undefined);
    if (this.isTTY) {
      this.#lines.setPrompt(question);
      this.#lines.prompt();
    }
    return new Promise((resolve) => {
      this.#waiting = resolve;
    });
  }

  /** Text typed ahead must not answer a question that was not on the screen yet. */
  forgetTyped(): void {
    if (this.isTTY) this.#typed.length = 0;
  }

  close(): void {
    this.#lines.close();
  }

  #answer(line: string | undefined): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.(line);
  }
}
