// Test helper: runs a program as a process of its own.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';

const COMPILED = resolve(import.meta.dirname, '../node_modules/.cache/signalbox-examples');

export interface Running {
  readonly process: ChildProcess;
  /** Everything printed so far, both streams. */
  readonly printed: string;
  /** Resolves as soon as this text has been printed. Rejects if the program ends without printing it. */
  until(text: string): Promise<void>;
  /** The exit code, or the name of the signal that ended it. */
  readonly ended: Promise<number | string | null>;
}

/** `name`: in this folder, or an absolute path. */
export function runProgram(name: string, args: string[], env: Record<string, string>): Running {
  const program = spawn(process.execPath, [resolve(import.meta.dirname, name), ...args], {
    // What one program compiled of the client, the next one reads.
    env: { PATH: process.env.PATH, NO_COLOR: '1', NODE_COMPILE_CACHE: COMPILED, ...env },
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
        const hasEnded = await Promise.race([once(program, 'printed').then(() => false), ended.then(() => true)]);
        if (hasEnded && !printed.includes(text))
          throw new Error(`The program ended without printing "${text}":\n${printed}`);
      }
    },
    ended,
  };
}
