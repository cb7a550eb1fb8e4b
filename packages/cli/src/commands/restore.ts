// `signalbox restore`: the database of a backup.
import { command, UsageError } from '../command.ts';
import { printResult } from '../print.ts';
import { progressLine } from '../progress.ts';
import { counted, shown } from '../text.ts';
import { dataDir, printChains, readPassphrase } from './backup.ts';

const restore = command({
  name: '',
  summary: 'Create the database of a backup',
  details:
    'Creates it in a data directory without a database, or in the empty database of DATABASE_URL, and compares everything with the ' +
    'backup before anyone can use it. If it is interrupted, run it again. A backup of an earlier release is migrated. See ' +
    'docs/operations/backups.md.',
  arguments: { file: { about: 'a file that signalbox backup wrote; - is standard input' } },
  options: {
    check: { type: 'boolean', about: 'only check that the file is whole and that this release can restore it' },
    force: {
      type: 'boolean',
      about: 'replace the database of the data directory; the previous one is kept next to it',
    },
    'passphrase-file': {
      type: 'string',
      value: 'FILE',
      about: 'also restore the master key, with the passphrase in this file',
    },
    'data-dir': dataDir,
    json: { type: 'boolean', about: 'print JSON' },
  },
  variables: { DATABASE_URL: { about: 'an empty database to restore into, instead of the data directory' } },
  examples: [
    ['restore signalbox.backup --check', 'whether the file is good'],
    ['restore signalbox.backup --data-dir ./restored', 'into a new data directory'],
  ],
  async run({ values, args, terminal, command }) {
    const { checkBackup, readConfig, restoreOnHost } = await import('@signalbox/server');
    const from = args.file === '-' ? terminal.stdin : args.file;
    const { stderr } = terminal;
    const progress = progressLine(terminal);
    if (values.check) {
      if (values.force)
        throw new UsageError(`${command}: --check changes nothing, so --force has no meaning`, '--help');
      const found = await checkBackup(from, progress.show).finally(progress.clear);
      return printResult(
        { values, terminal },
        found,
        `The backup is whole: ${counted(found.rows, 'row')} of ${found.tables} tables, of ${found.createdAt}, by Signalbox ` +
          `${found.release}, ${found.containsKey ? 'with' : 'without'} the master key.`,
      );
    }
    const config = readConfig({ 'data-dir': values['data-dir'] });
    const passphrase = await readPassphrase(values['passphrase-file']);
    const wish = { from, replace: values.force, passphrase };
    const restored = await restoreOnHost(config, wish, progress.show).finally(progress.clear);
    await printResult({ values, terminal }, restored, async () => {
      await stderr.write(
        `Restored and verified ${counted(restored.rows, 'row')} of ${restored.tables} tables, as of ${restored.createdAt}.\n`,
      );
      if (restored.keptIn)
        await stderr.write(`The previous database is in ${restored.keptIn}. Delete it once you no longer need it.\n`);
      if (restored.masterKeyIn) await stderr.write(`Wrote the master key to ${restored.masterKeyIn}.\n`);
      if (!restored.hasRightKey)
        await stderr.write(
          `${stderr.styled('yellow', 'Before you start the service:')} the secrets need the master key of the backed-up installation. ${
            restored.containsKey
              ? 'It is in the backup: restore again with --passphrase-file, or set SIGNALBOX_MASTER_KEY.'
              : `Set SIGNALBOX_MASTER_KEY, or copy its master.key to ${config.dataDir}.`
          }\n`,
        );
      for (const [store, { files }] of Object.entries(restored.otherStores))
        await stderr.write(`The content of ${counted(files, 'file')} must be in ${shown(store)}.\n`);
      await printChains(terminal, restored.chains);
    });
  },
});

export const commands = [restore];
