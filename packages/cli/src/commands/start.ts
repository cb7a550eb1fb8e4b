// `signalbox start`: runs the service until it receives a signal.
import { fileURLToPath } from 'node:url';
import {
  type Config,
  createLog,
  readConfig,
  type Service,
  settingGroups,
  settings,
  startService,
  unknownVariables,
  version,
} from '@signalbox/server';
import { command, type Options } from '../command.ts';
import { logText } from '../log-text.ts';
import { defaultUrl } from '../profiles.ts';
import { columns } from '../text.ts';

// The build of the console package.
const consoleDir = fileURLToPath(new URL('dist/', import.meta.resolve('@signalbox/console/package.json')));
// The terminal sends Ctrl-C to every process, and npm forwards it to its child a second time.
const SAME_SIGNAL_MS = 500;

interface Listed {
  option?: string;
  variable: string;
  default?: string;
  about: string;
}
const all = Object.entries(settingGroups).flatMap(([group, members]) =>
  Object.values(members as Record<string, Listed>).map(({ option, variable, about, default: value }) => ({
    option,
    variable,
    group,
    about: about + (value ? ` (${value})` : ''),
  })),
);

const start = command({
  name: '',
  summary: 'Run the service until Ctrl-C',
  details: 'An option takes precedence over its variable. Details: docs/reference/configuration.md.',
  options: optionsOf(),
  variables: Object.fromEntries(
    all.filter(({ option }) => !option).map(({ variable, about, group }) => [variable, { about, group }]),
  ),
  examples: [
    ['start', 'on http://127.0.0.1:4500, with its own database in ./data'],
    ['DATABASE_URL=postgres://… signalbox start --host 0.0.0.0', 'on an existing PostgreSQL, for other machines too'],
  ],
  run: ({ values }) => run(values as Record<string, string>),
});

export const commands = [start];

function optionsOf(): Options {
  return Object.fromEntries(
    all.flatMap(({ option, ...rest }) => (option ? [[option, { type: 'string', value: '', ...rest }]] : [])),
  );
}

async function run(values: Record<string, string>): Promise<void> {
  const config = readConfig(values);
  const isText = config.logFormat === 'text' || (config.logFormat === 'auto' && process.stdout.isTTY === true);
  const write = isText ? textWriter(config) : (line: string) => void process.stdout.write(line);
  continueWithoutReaders();
  const log = createLog({ level: config.logLevel, destination: { write } });
  for (const variable of unknownVariables()) log.warn({ variable }, 'a variable that is not a setting has no effect');
  process.on('uncaughtException', (error, origin) => {
    log.fatal({ err: error, origin }, 'stopped by an unhandled error');
    process.exit(1);
  });
  const asked = untilSignal();
  const service = await startService(config, { log, consoleDir });
  process.stderr.write(announcement(config, service));
  const signal = await asked;
  process.stderr.write('\nStopping. Press Ctrl-C again to stop at once.\n');
  // SIGTERM comes from a process manager, with perhaps a load balancer in front. After Ctrl-C there is no load balancer to wait for.
  if (signal === 'SIGTERM') await service.drain();
  await service.stop();
  // Everything has stopped: exit even if something still keeps the event loop alive.
  process.exit();
}

/** The addresses of the service and the next steps. */
function announcement({ databaseUrl, dataDir }: Config, { url, consoleUrl, setupLink }: Service): string {
  const where = databaseUrl
    ? 'DATABASE_URL=… '
    : dataDir === settings.dataDir.parse(settings.dataDir.default, {})
      ? ''
      : `SIGNALBOX_DATA_DIR='${dataDir.replaceAll("'", "'\\''")}' `;
  const rows: [string, string][] = url
    ? [
        ['API', `${url}/api/v1`],
        ['Console', setupLink ?? consoleUrl ?? ''],
        ['Reference', `${url}/docs`],
        // Elsewhere programs and commands look for it at the default address.
        ...(url === defaultUrl() ? [] : [['Programs', `export SIGNALBOX_URL=${url}`] as [string, string]]),
        ['Create key', `${where}npx signalbox keys create --name first --permission admin`],
      ]
    : [['API', 'not on this node (SIGNALBOX_ROLES)']];
  const once = setupLink
    ? `Open the console link to create the first account. It works once, within 24 hours. For a new one: ${where}npx signalbox users setup-link\n\n`
    : '';
  return `\nSignalbox ${version} is running. Ctrl-C stops it.\n\n${columns(rows)}\n${once}`;
}

/** A program that collects the log may end before the service, which then continues without a log. */
function continueWithoutReaders(): void {
  process.stdout.removeAllListeners('error');
  process.stdout.once('error', () => {
    process.stdout.write = () => true;
    process.stderr.write(
      '\nStandard output was closed: the service continues, and its log is lost. Restart it to see the log again.\n',
    );
  });
  process.stderr.on('error', () => undefined);
}

/** Writes log lines as text. */
function textWriter({ logLevel }: Config): (line: string) => void {
  // False on a terminal without colors, and with NO_COLOR.
  const color = process.stdout.isTTY === true && process.stdout.hasColors();
  const options = { color, isVerbose: logLevel === 'debug' || logLevel === 'trace' };
  return (line) => {
    const text = logText(line, options);
    if (text !== undefined) process.stdout.write(text);
  };
}

/** Resolves at the first signal to stop; a second one ends the process at once. */
function untilSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let first: number | undefined;
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.on(signal, () => {
        const now = performance.now();
        first ??= now;
        if (now - first > SAME_SIGNAL_MS) process.exit(130);
        resolve(signal);
      });
    }
  });
}
