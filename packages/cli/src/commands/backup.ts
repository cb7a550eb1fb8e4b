// `signalbox backup`: the whole database in one file.
import { readFile } from 'node:fs/promises';
import { CommandError, command } from '../command.ts';
import { printResult } from '../print.ts';
import { progressLine } from '../progress.ts';
import type { Terminal } from '../terminal.ts';
import { counted, sizeText } from '../text.ts';

/** Also of `restore`. */
export const dataDir = {
  type: 'string',
  value: 'DIRECTORY',
  about: 'the data directory of the service (./data)',
  variable: 'SIGNALBOX_DATA_DIR',
} as const;

const backup = command({
  name: '',
  summary: 'Save the database in a file',
  details:
    'Works while the service runs, and while it is stopped. The file is a consistent snapshot: gzip, readable by its owner only. It does ' +
    'not contain the master key, unless a passphrase encrypts it. See docs/operations/backups.md.',
  arguments: { file: { about: 'a new file; - is standard output' } },
  options: {
    'passphrase-file': {
      type: 'string',
      value: 'FILE',
      about: 'also save the master key, encrypted under the passphrase in this file',
    },
    'data-dir': dataDir,
    json: { type: 'boolean', about: 'print JSON' },
  },
  variables: { DATABASE_URL: { about: 'the database, instead of the embedded one' } },
  examples: [
    ['backup signalbox.backup', 'the database in ./data'],
    [
      'signalbox backup - --data-dir /var/lib/signalbox | ssh vault "cat > signalbox.backup"',
      'without a file on this machine',
    ],
  ],
  async run({ values, args, terminal }) {
    const { backupOnHost, readConfig } = await import('@signalbox/server');
    const isStream = args.file === '-';
    const progress = progressLine(terminal);
    const summary = await backupOnHost(
      readConfig({ 'data-dir': values['data-dir'] }),
      {
        into: isStream ? terminal.stdout.stream : args.file,
        passphrase: await readPassphrase(values['passphrase-file']),
      },
      progress.show,
    ).finally(progress.clear);
    const { rows, tables, bytes, sessions, masterKeyIn, otherStores } = summary;
    const target = isStream ? { ...terminal, stdout: terminal.stderr } : terminal;
    await printResult({ values, terminal: target }, { file: args.file, ...summary }, async () => {
      await terminal.stderr.write(
        `Saved ${counted(sessions, 'session')}, ${counted(rows, 'row')} of ${tables} tables, ${sizeText(bytes)}.\n`,
      );
      if (masterKeyIn)
        await terminal.stderr.write(
          `The file does not contain the master key. Keep ${masterKeyIn} in another place: without it, secrets can't be decrypted.\n`,
        );
      for (const [store, { files, bytes }] of Object.entries(otherStores))
        await terminal.stderr.write(
          `The content of ${counted(files, 'file')} (${sizeText(bytes)}) is in ${store}, not in the backup. Back up that store too.\n`,
        );
    });
  },
});

export const commands = [backup];

/** Throws `CommandError`. */
export async function readPassphrase(file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined;
  try {
    return (await readFile(file, 'utf8')).replace(/\r?\n$/, '');
  } catch (error) {
    throw new CommandError(`--passphrase-file ${file} can't be read (${(error as NodeJS.ErrnoException).code}).`);
  }
}

/** A log whose chain does not hold is not the fault of the copy. */
export async function printChains(
  { stderr }: Terminal,
  chains: readonly { organizationId: string; records: number; problem?: string }[],
): Promise<void> {
  for (const { problem } of chains) {
    if (problem === undefined) continue;
    await stderr.write(
      `${stderr.styled('yellow', 'Warning:')} the event log was changed before it was copied: ${problem}. ` +
        'The copy is as the original. See docs/guides/event-log.md.\n',
    );
  }
}
