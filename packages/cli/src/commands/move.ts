// `signalbox move`: from the embedded database to another PostgreSQL.
import { command } from '../command.ts';
import { printResult } from '../print.ts';
import { progressLine } from '../progress.ts';
import { counted } from '../text.ts';
import { dataDir, printChains } from './backup.ts';

const move = command({
  name: '',
  summary: 'Move the embedded database to another PostgreSQL',
  details:
    'Stop the service first. Copies everything to an empty database whose user owns it, PostgreSQL 15 or later, compares both, and marks ' +
    'the embedded database so that it no longer starts. If it is interrupted, run it again. The password of the database goes into ' +
    'DATABASE_URL or PGPASSWORD, not into --to. See docs/operations/backups.md.',
  options: {
    to: { type: 'string', value: 'URL', about: 'the empty database, without a password', variable: 'DATABASE_URL' },
    'data-dir': dataDir,
    json: { type: 'boolean', about: 'print JSON' },
  },
  variables: { PGPASSWORD: { about: 'the password for --to' } },
  examples: [['move --to postgres://signalbox@db.example.com/signalbox', 'with the password in PGPASSWORD']],
  async run({ values, terminal }) {
    const { moveOnHost, readConfig } = await import('@signalbox/server');
    const config = readConfig({ 'data-dir': values['data-dir'] });
    const progress = progressLine(terminal);
    const moved = await moveOnHost(config, values.to, progress.show).finally(progress.clear);
    await printResult({ values, terminal }, moved, async () => {
      const { to, loaded } = moved;
      const what = loaded
        ? `${counted(loaded.rows, 'row')} of ${loaded.tables} tables`
        : 'everything, with the earlier command';
      await terminal.stderr.write(
        `Moved and verified ${what}, to ${to}.\n` +
          'Start the service with DATABASE_URL set to it, and with the same master key: on this machine it finds ' +
          `${config.dataDir}/master.key; on another one, set SIGNALBOX_MASTER_KEY to what is in it.\n`,
      );
      if (loaded) await printChains(terminal, loaded.chains);
    });
  },
});

export const commands = [move];
