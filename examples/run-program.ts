// Runs a program of this folder as people run it, for the tests beside it.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export interface Running {
  readonly process: ChildProcess;
  /** Everything printed so far, both streams. */
  readonly printed: string;
  /** Resolves as soon as this has been printed; rejects where the program ends without it. */
  until(text: string): Promise<void>;
  /** The exit code, or the name of the signal that ended it. */
  readonly ended: Promise<number | string | null>;
}

export function runProgram(name: string, args: string[], env: Record<string, string>): Running {
  const program = spawn(process.execPath, [fileURLToPath(new URL(name, import.meta.url)), ...args], {
    env: { PATH: process.env.PATH, NO_COLOR: '1', ...env },
  });
  let printed = '';
  for (const stream of [program.stdout, program.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
      program.emit('printed');
    });
  }
  const ended = once(program, 'close').then(([code, signal]) => code ?? signal);
  return {
    process: program,
    get printed() {
      return printed;
    },
    async until(text) {
      while (!printed.includes(text)) {
        const over = await Promise.race([once(program, 'printed').then(() => false), ended.then(() => true)]);
        if (over && !printed.includes(text)) throw new Error(`It ended without "${text}":\n${printed}`);
      }
    },
    ended,
  };
}
