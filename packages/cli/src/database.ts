// `signalbox database …`: what the operator does to the database of an installation, on the host and while no node runs.
import { distributeOnHost, readConfig } from '@signalbox/server';
import { parseOptions, UsageError } from './usage.ts';

const help = `Changes the database of an installation, while no node of it runs.

  signalbox database distribute   has Citus shard the database of DATABASE_URL by organization; see docs/sharding.md
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
      ? `Distributed ${tables.length} tables by organization. Start the service as before.\n`
      : 'Every table is distributed already.\n',
  );
}
