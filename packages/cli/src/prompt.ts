// Questions to the person at the terminal.
import { createInterface } from 'node:readline/promises';
import { text } from 'node:stream/consumers';
import { CommandError } from './command.ts';
import type { Terminal } from './terminal.ts';

/** The answer, or `fallback` if it is empty. */
export async function ask({ stdin, stderr }: Terminal, question: string, fallback: string): Promise<string> {
  const lines = createInterface({ input: stdin, output: stderr.stream });
  try {
    return (await lines.question(`${question} (${fallback}): `)).trim() || fallback;
  } finally {
    lines.close();
  }
}

/** What is typed is not shown. Without a terminal, the whole input is the answer. */
export async function askSecret({ stdin, stderr }: Terminal, question: string): Promise<string> {
  if (!stdin.isTTY) return (await text(stdin)).trim();
  const terminal = stdin as Terminal['stdin'] & { setRawMode(isRaw: boolean): void };
  // Before the question, so that nothing that is typed at once is shown.
  terminal.setRawMode(true);
  try {
    const answer = typed(terminal);
    await stderr.write(`${question}: `);
    return await answer;
  } finally {
    terminal.setRawMode(false);
    terminal.pause();
    await stderr.write('\n');
  }
}

const [ENTER, LINE_FEED, CTRL_C, CTRL_D, BACKSPACE, DELETE] = ['\r', '\n', '\u0003', '\u0004', '\b', '\u007f'];

function typed(stdin: Terminal['stdin']): Promise<string> {
  return new Promise((resolve, reject) => {
    let given = '';
    const end = (settle: () => void) => {
      stdin.off('data', read).off('end', cancel);
      settle();
    };
    const cancel = () => end(() => reject(new CommandError('Cancelled.')));
    const read = (data: Buffer | string) => {
      for (const character of String(data)) {
        if (character === ENTER || character === LINE_FEED) return end(() => resolve(given.trim()));
        if (character === CTRL_C || character === CTRL_D) return cancel();
        if (character === BACKSPACE || character === DELETE) given = given.slice(0, -1);
        else given += character;
      }
    };
    stdin.on('data', read).once('end', cancel).resume();
  });
}
