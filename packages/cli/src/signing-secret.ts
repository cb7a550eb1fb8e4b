// A signing secret, which the service shows only once.
import type { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { FileError, writeOutputFile } from '@signalbox/server/output-file';
import { CommandError } from './command.ts';
import { printResult } from './print.ts';
import type { Terminal } from './terminal.ts';

/**
 * Creates a secret and prints it for a program to read, or writes it to a new file that only its owner can read. `again`: the command that
 * creates another one, if writing fails.
 */
export async function printSecret(
  input: { values: { json: boolean | undefined; 'secret-file': string | undefined }; terminal: Terminal },
  create: () => Promise<{ signingSecret?: string }>,
  again: () => string,
): Promise<void> {
  const { values, terminal } = input;
  const path = values['secret-file'];
  if (path === undefined) {
    const created = await create();
    await printResult(input, created, created.signingSecret ?? '');
    if (!values.json) await terminal.stderr.write('This is the signing secret. It is shown only once.\n');
    return;
  }
  let isCreated = false;
  // Creates the secret only when there is a file for it.
  const write = async (file: Writable) => {
    const { signingSecret = '' } = await create();
    isCreated = true;
    await pipeline([`${signingSecret}\n`], file);
  };
  await writeOutputFile(path, write, { isNew: true, mode: 0o600 }).catch((error: unknown) => {
    if (!isCreated || !(error instanceof FileError)) throw error;
    throw new CommandError(`${error.message} The service has the new secret: get another one with \`${again()}\`.`);
  });
  await terminal.stderr.write(`The signing secret is in ${path}.\n`);
}
