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
  version,
} from '@signalbox/server';
import { logText } from './log-text.ts';
import { columns, parseOptions } from './usage.ts';
import { wrappedColumns } from './wrap.ts';

// The build of the console package.
const consoleDir = fileURLToPath(new URL('dist/', import.meta.resolve('@signalbox/console/package.json')));
// The terminal sends Ctrl-C to every process, and npm forwards it to its child a second time.
const SAME_SIGNAL_MS = 500;

export async function start(args: string[]): Promise<void> {
  const values = parseOptions(
    'start',
    args,
    Object.fromEntries(optionNames().map((name) => [name, { type: 'string' }])),
  );
  if (values.help) {
    process.stdout.write(help());
    return;
  }
  const config = readConfig(values as Record<string, string>);
  const isText = config.logFormat === 'text' || (config.logFormat === 'auto' && process.stdout.isTTY === true);
  const lines = holdLines(isText ? textWriter(config) : (line) => process.stdout.write(line));
  const log = createLog({ level: config.logLevel, destination: lines });
  process.on('uncaughtException', (error, origin) => {
    log.fatal({ err: error, origin }, 'stopped by an unhandled error');
    lines.release();
    process.exit(1);
  });
  const asked = untilSignal();
  try {
    const service = await startService(config, { log, consoleDir });
    // On a terminal the links come last, where they are found. Programs read the log without anything between its lines.
    if (isText) lines.release();
    process.stderr.write(announcement(config, service));
    lines.release();
    const signal = await asked;
    process.stderr.write('\nStopping. Press Ctrl-C again to stop at once.\n');
    // SIGTERM comes from a process manager, with perhaps a load balancer in front. After Ctrl-C there is no load balancer to wait for.
    if (signal === 'SIGTERM') await service.drain();
    await service.stop();
  } finally {
    lines.release();
  }
  // Everything has stopped: exit even if something still keeps the event loop alive.
  process.exit();
}

function optionNames(): string[] {
  return Object.values(settings).flatMap((setting) => ('option' in setting && setting.option ? [setting.option] : []));
}

/** In the groups of the table of settings, in two columns that fit the terminal. */
function help(): string {
  const groups = Object.entries(settingGroups).map(([title, group]) => {
    const all = Object.values(group) as { option?: string; variable: string; default?: string; about: string }[];
    const rows = all.map(({ option, variable, default: value, about }): [string, string] => [
      option ? `--${option}, ${variable}` : variable,
      about + (value ? ` (${value})` : ''),
    ]);
    return { title, rows };
  });
  const leftWidth = Math.max(...groups.flatMap(({ rows }) => rows.map(([left]) => left.length)));
  const text = groups.map(({ title, rows }) => `${title}\n${wrappedColumns(rows, leftWidth)}\n`);
  return `Runs the service.\n\n${text.join('')}An option takes precedence over its variable. Details: docs/reference/configuration.md.\n`;
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
        ['Create key', `${where}npx signalbox keys create --name first --permission admin`],
      ]
    : [['API', 'not on this node (SIGNALBOX_ROLES)']];
  const once = setupLink
    ? `Open the console link to create the first account. It works once, within 24 hours. For a new one: ${where}npx signalbox users setup-link\n\n`
    : '';
  return `\nSignalbox ${version} is running. Ctrl-C stops it.\n\n${columns(rows)}\n${once}`;
}

/** Writes log lines as text. */
function textWriter({ logLevel }: Config): (line: string) => void {
  // False on a terminal without colours, and with NO_COLOR.
  const colour = process.stdout.isTTY === true && process.stdout.hasColors();
  const options = { colour, isVerbose: logLevel === 'debug' || logLevel === 'trace' };
  return (line) => {
    const text = logText(line, options);
    if (text !== undefined) process.stdout.write(text);
  };
}

/** Holds back log lines until `release` is called. */
function holdLines(print: (line: string) => void): { write(line: string): void; release(): void } {
  let held: string[] | undefined = [];
  return {
    write(line) {
      if (held) held.push(line);
      else print(line);
    },
    release() {
      const lines = held ?? [];
      held = undefined;
      for (const line of lines) print(line);
    },
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
