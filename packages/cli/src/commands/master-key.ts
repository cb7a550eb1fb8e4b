// `signalbox keys reseal` and `keys unreadable`: secrets after the master key was replaced or lost. They run on the host.
import { command } from '../command.ts';
import { printResult } from '../print.ts';
import { progressLine } from '../progress.ts';
import { Table } from '../table.ts';
import type { Terminal } from '../terminal.ts';
import { counted, shown } from '../text.ts';
import { dataDir } from './backup.ts';

type Unreadable = Awaited<ReturnType<typeof import('@signalbox/server')['listUnreadableOnHost']>>;

const json = { type: 'boolean', about: 'print JSON' } as const;
const variables = { SIGNALBOX_MASTER_KEY: { about: 'as on the nodes; the first key encrypts, and all decrypt' } };

const reseal = command({
  name: 'reseal',
  summary: 'Encrypt all secrets under the newest master key',
  details:
    'For after the master key was replaced (SIGNALBOX_MASTER_KEY=new,old on every node). Nodes keep serving. If it is interrupted, run it ' +
    'again. Afterwards the old key can be removed. See docs/guides/keys.md.',
  options: { 'data-dir': dataDir, json },
  variables,
  examples: [['keys reseal', 'after the new master key was put first']],
  async run({ values, terminal }) {
    const { readConfig, resealOnHost } = await import('@signalbox/server');
    const progress = progressLine(terminal);
    const config = readConfig({ 'data-dir': values['data-dir'] });
    const result = await resealOnHost(config, progress.show).finally(progress.clear);
    const { resealed, unreadable } = result;
    await printResult({ values, terminal }, result, async () => {
      await terminal.stderr.write(`Encrypted ${counted(resealed, 'secret')} under the newest master key.\n`);
      if (unreadable.length === 0)
        await terminal.stderr.write(
          'All secrets are under it now. You can remove older keys from SIGNALBOX_MASTER_KEY or master.key and restart the nodes.\n',
        );
      else await printUnreadable(terminal, unreadable);
    });
    return unreadable.length === 0 ? 0 : 1;
  },
});

const unreadable = command({
  name: 'unreadable',
  summary: 'List or delete secrets whose master key is lost',
  details:
    'While there are such secrets, the service does not start. With --delete, stop all nodes first: environment secrets are deleted, and ' +
    'webhook subscriptions get a signing secret that no one knows and are paused, until their secret is rotated and they are enabled. ' +
    'Everything else stays.',
  options: { delete: { type: 'boolean', about: 'delete them, so that the service starts' }, 'data-dir': dataDir, json },
  variables,
  examples: [['keys unreadable', 'what the lost master key had encrypted']],
  async run({ values, terminal }) {
    const { deleteUnreadableOnHost, listUnreadableOnHost, readConfig } = await import('@signalbox/server');
    const config = readConfig({ 'data-dir': values['data-dir'] });
    const found = values.delete ? await deleteUnreadableOnHost(config) : await listUnreadableOnHost(config);
    if (values.json) return void (await terminal.stdout.write(found.map((one) => `${JSON.stringify(one)}\n`).join('')));
    if (found.length === 0) return void (await terminal.stderr.write('All secrets can be decrypted.\n'));
    await printUnreadable(terminal, found);
    await terminal.stderr.write(
      values.delete
        ? 'Deleted. Start the service, set the environment secrets again, rotate the signing secrets, and enable the subscriptions and destinations.\n'
        : 'To start without them: signalbox keys unreadable --delete\n',
    );
  },
});

export const commands = [reseal, unreadable];

async function printUnreadable({ stdout, stderr }: Terminal, found: Unreadable): Promise<void> {
  await stderr.write(`${counted(found.length, 'secret')} can't be decrypted with the configured master keys:\n`);
  await new Table(stdout, [
    { header: 'ENVIRONMENT', cell: ({ environment }: Unreadable[number]) => shown(environment ?? '') },
    {
      header: 'KIND',
      cell: ({ kind }) =>
        ({ environment_secret: 'secret', webhook_signing_secret: 'webhook', destination_secret: 'destination' })[kind],
    },
    { header: 'NAME', cell: ({ name }) => shown(name) },
  ]).print(found);
}
