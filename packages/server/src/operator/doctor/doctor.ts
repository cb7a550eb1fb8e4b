// `signalbox doctor`: what is wrong with an installation, also if the service does not start. It changes nothing, except that it starts the
// embedded database for as long as it runs, if that is there and not running.
import { ConfigError, readConfig, unknownVariables } from '../../config/config.ts';
import { findEmbeddedPostgres, hasEmbeddedPostgres, startEmbeddedPostgres } from '../../db/embedded.ts';
import { lacksFixes, newerVersion } from '../../lib/newest-versions.ts';
import { version } from '../../lib/version.ts';
import { explainStart } from '../start-error.ts';
import { type Finding, failed, ok, type Report, run, skipped, warning } from './check.ts';
import { checkDatabase } from './database.ts';
import { checkHost } from './host.ts';
import { checkNetwork, type NetworkOptions } from './network.ts';

// An embedded database that recovers after a crash takes its time.
const START_MS = 60_000;
const START_LIMIT = 'See postgres.log in the folder postgres of the data directory.';

/** `options` as of `start`. Reports every finding when it is known, and resolves to all of them. Never rejects. */
export async function examine(
  options: Readonly<Record<string, string | undefined>>,
  wish: NetworkOptions,
  report: Report = () => {},
): Promise<Finding[]> {
  const findings: Finding[] = [];
  const note: Report = (finding) => {
    findings.push(finding);
    report(finding);
  };
  note({ check: 'version', ...checkVersion(process.versions.node) });
  let config: ReturnType<typeof readConfig>;
  try {
    config = readConfig(options);
    const unknown = unknownVariables();
    for (const variable of unknown)
      note({
        check: 'configuration',
        ...warning(`${variable} is not a setting, so it has no effect`, 'See docs/reference/configuration.md.'),
      });
    if (unknown.length === 0) note({ check: 'configuration', ...ok('all settings are valid') });
  } catch (error) {
    const problems = error instanceof ConfigError ? error.problems : [(error as Error).message];
    for (const problem of problems)
      note({ check: 'configuration', ...failed(problem, 'Correct the setting; see docs/reference/configuration.md.') });
    return findings;
  }
  await checkHost(config, note);
  const embedded = config.databaseUrl === undefined ? await openEmbedded(config.dataDir, note) : undefined;
  try {
    const isThere = config.databaseUrl !== undefined || embedded !== undefined;
    const connection = isThere ? await checkDatabase(config, embedded?.url, note) : undefined;
    try {
      await checkNetwork(config, wish, connection, note);
    } finally {
      connection?.close();
    }
  } finally {
    await embedded?.stop();
  }
  return findings;
}

function checkVersion(node: string) {
  const newer = newerVersion('Node.js', node);
  if (!newer) return ok(`Signalbox ${version} on Node.js ${node}`);
  return warning(
    lacksFixes('Node.js', node, newer),
    `Install Node.js ${newer.version} or a later version of its line.`,
  );
}

async function openEmbedded(
  dataDir: string,
  report: Report,
): Promise<{ url: string; stop(): Promise<void> } | undefined> {
  let opened: { url: string; stop(): Promise<void> } | undefined;
  let starting: ReturnType<typeof startEmbeddedPostgres> | undefined;
  const isOpen = await run(
    report,
    'database.server',
    async () => {
      if (!(await hasEmbeddedPostgres(dataDir))) return skipped('there is no database yet');
      const running = await findEmbeddedPostgres(dataDir);
      if (running !== undefined) {
        opened = { url: running, stop: async () => {} };
        return ok('the embedded PostgreSQL is running');
      }
      starting = startEmbeddedPostgres(dataDir);
      const server = await starting.catch((error) => {
        throw explainStart(error, { databaseUrl: undefined });
      });
      opened = { url: server.url, stop: () => server.stop() };
      return ok('the embedded PostgreSQL starts');
    },
    { fix: START_LIMIT, limitMs: START_MS },
  );
  // It may start after all.
  if (!isOpen) void starting?.then((server) => server.stop()).catch(() => {});
  return isOpen ? opened : undefined;
}
