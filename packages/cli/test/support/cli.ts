// Runs a command line in the process of the test, with streams of its own.
import { Readable, Writable } from 'node:stream';
import { runCommandLine } from '../../src/run.ts';
import { Output, type Terminal } from '../../src/terminal.ts';
import { systemClock } from '../../src/time.ts';

export interface Result {
  code: number;
  stdout: string;
  stderr: string;
}

export interface CliOptions {
  env?: Record<string, string>;
  stdin?: string;
  /** The width of the terminal; without it, the output is a pipe. */
  columns?: number;
}

export async function runCli(
  argv: readonly string[],
  { env = {}, stdin = '', columns }: CliOptions = {},
): Promise<Result> {
  const [stdout, stderr] = [new Collected(columns), new Collected(columns)];
  const terminal: Terminal = {
    stdin: Readable.from([Buffer.from(stdin)]),
    stdout: new Output(stdout, env),
    stderr: new Output(stderr, env),
    env,
    clock: systemClock,
  };
  const code = await runCommandLine(argv, terminal);
  return { code, stdout: stdout.text, stderr: stderr.text };
}

class Collected extends Writable {
  text = '';
  readonly isTTY: boolean;
  readonly columns: number;

  constructor(columns: number | undefined) {
    super();
    this.isTTY = columns !== undefined;
    this.columns = columns ?? 0;
  }

  override _write(part: Buffer, _encoding: string, done: () => void): void {
    this.text += part;
    done();
  }
}
