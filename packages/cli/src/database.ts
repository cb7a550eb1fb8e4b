// `signalbox database …`: changes to the database of an installation, made by the operator on the host while no node is running.
import { distributeOnHost, readConfig } from '@signalbox/server';
import { parseOptions, UsageError } from './usage.ts';

const help = `Changes the database of an installation. Stop all of its nodes first.

  signalbox database distribute   shard the database of DATABASE_URL by organization with Citus; see docs/operations/sharding.md
`;

export async function database([verb = '--help', ...rest]: string[]): Promise<void> {
  const isHelp = parseOptions(`database ${verb}`, verb === '--help' ? ['--help'] : rest, {}).help;
  if (isHelp) {
    process.stdout.write(help);
    return;
  }
  if (verb !== 'distribute') throw new UsageError(`database: there is no "${verb}"`, 'database --help');
  const tables = await distributeOnHost(readConfig({}));
  process.stdout.write(tables.map((table) => `${table}\n`).join(''));
  process.stderr.write(
    tables.length > 0
      ? `Distributed ${tables.length} tables by organization. You can start the service again.\n`
      : 'All tables are already distributed.\n',
  );
}
