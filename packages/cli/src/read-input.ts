// What commands read: definitions from files, and secrets, which are not shown.
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { CommandError } from './command.ts';
import type { Terminal } from './terminal.ts';

/** The JSON object in a file; `-` is standard input. Its fields are for the service to check. */
export async function readDefinition<T extends object>(path: string, { stdin }: Terminal): Promise<T> {
  const name = path === '-' ? 'standard input' : path;
  let content: string;
  try {
    content = path === '-' ? await text(stdin) : await readFile(path, 'utf8');
  } catch (error) {
    throw new CommandError(`${name} can't be read: ${(error as Error).message}`);
  }
  let value: unknown;
  try {
    value = JSON.parse(content);
  } catch (error) {
    throw new CommandError(`${name} is not JSON: ${(error as Error).message}`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new CommandError(`${name} must be a JSON object`);
  return value as T;
}

/** A secret: asked for without showing it on a terminal, otherwise all of standard input without the line break at its end. */
export async function readSecret(prompt: string, { stdin, stderr }: Terminal): Promise<string> {
  if (!stdin.isTTY) return (await text(stdin)).replace(/\r?\n$/, '');
  await stderr.write(prompt);
  const silent = new Writable({ write: (_part, _encoding, done) => done() });
  const lines = createInterface({ input: stdin, output: silent, terminal: true });
  try {
    return await new Promise<string>((resolve, reject) => {
      lines.once('line', resolve);
      for (const event of ['SIGINT', 'close'])
        lines.once(event, () => reject(new CommandError('Nothing was entered.')));
    });
  } finally {
    lines.close();
    await stderr.write('\n');
  }
}
