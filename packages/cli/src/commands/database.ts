// `signalbox database …`: changes to the database of an installation, made by the operator on the host while no node is running.
import { command } from '../command.ts';

const distribute = command({
  name: 'distribute',
  summary: 'Shard the database of DATABASE_URL by organization with Citus',
  details: 'Stop all nodes of the installation first. See docs/operations/sharding.md.',
  examples: [['DATABASE_URL=postgres://… signalbox database distribute', 'once, with all nodes stopped']],
  async run({ terminal }) {
    const { distributeOnHost, readConfig } = await import('@signalbox/server');
    const tables = await distributeOnHost(readConfig({}));
    await terminal.stdout.write(tables.map((table) => `${table}\n`).join(''));
    await terminal.stderr.write(
      tables.length > 0
        ? `Distributed ${tables.length} tables by organization. You can start the service again.\n`
        : 'All tables are already distributed.\n',
    );
  },
});

export const commands = [distribute];
