// What a command reads from and writes to. Tests pass their own; everything else uses the process's.
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { styleText } from 'node:util';
import { systemClock, type WaitingClock } from './time.ts';

export interface Terminal {
  stdin: Readable & { isTTY?: boolean };
  stdout: Output;
  stderr: Output;
  env: Readonly<Record<string, string | undefined>>;
  clock: WaitingClock;
}

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'blue' | 'cyan';

/** A stream, what is on its other end, and whether to color text for it. */
export class Output {
  readonly stream: Writable;
  readonly isTTY: boolean;
  readonly #hasColor: boolean;

  constructor(stream: Writable & { isTTY?: boolean }, env: Terminal['env'] = {}) {
    this.stream = stream;
    this.isTTY = stream.isTTY === true;
    this.#hasColor = wantsColor(this.isTTY, env);
  }

  /** The width of the terminal; undefined if it is not one. */
  get columns(): number | undefined {
    return this.isTTY ? ((this.stream as { columns?: number }).columns ?? 80) : undefined;
  }

  /** Await it in a loop: it resolves when the reader is ready for more. */
  async write(text: string): Promise<void> {
    if (text === '' || this.stream.write(text.replaceAll(LEFT_BY_JSON, escaped))) return;
    // A reader that has left (`| head`) never drains; the process then ends by the error of its stream.
    await Promise.race([once(this.stream, 'drain'), once(this.stream, 'close')]);
  }

  styled(style: Style | undefined, text: string): string {
    return style && this.#hasColor ? styleText(style, text, { validateStream: false }) : text;
  }
}

/**
 * What JSON does not escape, and a terminal may obey: control characters from U+007F on, and characters that turn the direction of text. Other
 * text has none of them (text.ts).
 */
const LEFT_BY_JSON = /[\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

/** As JSON writes it, so that JSON keeps its value. */
function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** https://no-color.org and https://force-color.org. */
function wantsColor(isTTY: boolean, { NO_COLOR, FORCE_COLOR, TERM }: Terminal['env']): boolean {
  if (FORCE_COLOR !== undefined && FORCE_COLOR !== '') return FORCE_COLOR !== '0' && FORCE_COLOR !== 'false';
  return isTTY && !NO_COLOR && TERM !== 'dumb';
}

export function processTerminal(): Terminal {
  const env = process.env;
  return {
    stdin: process.stdin,
    stdout: new Output(process.stdout, env),
    stderr: new Output(process.stderr, env),
    env,
    clock: systemClock,
  };
}
