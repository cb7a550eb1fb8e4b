// Runs the command on a terminal of its own, as a person sees it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { programFile } from '../../../server/test/support/programs.ts';

const command = await programFile('command');

export interface OnTerminal {
  /** Everything that the terminal showed. */
  screen(): string;
  type(text: string): void;
  /** Resolves when the terminal shows it; rejects if the command ends first. */
  shows(text: string | RegExp): Promise<string>;
  /** The exit status. */
  readonly ended: Promise<number>;
  kill(): Promise<void>;
}

/** `script` connects the command to a new terminal. */
export function onTerminal(args: readonly string[], env: Record<string, string>): OnTerminal {
  const line = [process.execPath, command, ...args].map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
  const child = spawn('script', ['-qefc', `exec ${line}`, '/dev/null'], {
    env: { PATH: process.env.PATH, TERM: 'xterm', SHELL: '/bin/sh', ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let screen = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    screen += text;
  });
  const closed = once(child, 'close').then(([code]) => Number(code));
  return {
    screen: () => screen,
    type: (text) => void child.stdin.write(text),
    ended: closed,
    async shows(text) {
      let isOver = false;
      void closed.then(() => {
        isOver = true;
      });
      const isShown = () => (typeof text === 'string' ? screen.includes(text) : text.test(screen));
      while (!isShown()) {
        if (isOver) throw new Error(`It ended without showing ${text}:\n${screen}`);
        await Promise.race([once(child.stdout, 'data'), closed]);
      }
      return screen;
    },
    async kill() {
      child.kill('SIGKILL');
      await closed;
    },
  };
}
