// A service in its own process, on its embedded PostgreSQL, with what it uses as seen from inside and outside. Numbers from /proc
// are 0 on systems without it.
import { execFile, fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { mkdtemp, open, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { processesOfDatabase } from '../../bench/support/cpu-quota.ts';
import { ask } from '../../packages/embedded-postgres/test/support/ask.ts';
import { findEmbeddedPostgres } from '../../packages/server/src/db/embedded.ts';
import { createKeyOnHost, readConfig } from '../../packages/server/src/main.ts';
import { programFile } from '../../packages/server/test/support/programs.ts';

export interface WatchedService {
  url: string;
  databaseUrl: string;
  adminKey: string;
  usage(): Promise<Usage>;
  /** Lines of its log that report an error. */
  errors(): Promise<string[]>;
  stop(): Promise<void>;
}

/** Sizes are in bytes, after a garbage collection. */
export interface Usage {
  /** The JavaScript heap without compiled code. */
  objects: number;
  /** V8 compiles functions that are used often, and discards the code of others. */
  code: number;
  /** Outside the heap, held by objects in it. */
  external: number;
  arrayBuffers: number;
  resident: number;
  /** The processor time of the service. */
  cpuSeconds: number;
  openFiles: number;
  /** What keeps its event loop alive, counted by kind: sockets, timers. */
  resources: Readonly<Record<string, number>>;
  /** What the processes of PostgreSQL do not share with each other. */
  database: number;
  connections: number;
  disk: number;
}

type Report = Omit<Usage, 'openFiles' | 'resources' | 'database' | 'connections' | 'disk'> & { resources: string[] };

/** `flags`: for V8, in addition to those that it is watched with. */
export async function startWatchedService(
  settings: Readonly<Record<string, string>>,
  flags: readonly string[],
): Promise<WatchedService> {
  const directory = await mkdtemp(join(tmpdir(), 'signalbox-soak-'));
  const dataDir = join(directory, 'data');
  const logFile = join(directory, 'service.log');
  const env = {
    SIGNALBOX_DATA_DIR: dataDir,
    SIGNALBOX_PORT: '0',
    SIGNALBOX_MASTER_KEY: randomBytes(32).toString('hex'),
    SIGNALBOX_EGRESS_ALLOW: '127.0.0.1/32',
    ...settings,
  };
  const log = await open(logFile, 'w');
  const child = fork(await programFile('watched'), {
    cwd: directory,
    // `kill -USR2` writes a heap snapshot into the directory.
    execArgv: ['--expose-gc', '--heapsnapshot-signal=SIGUSR2', ...flags],
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stdio: ['ignore', log.fd, log.fd, 'ipc'],
  });
  const gone = once(child, 'exit');
  const failed = gone.then(([code, signal]): never => {
    throw new Error(`The service ended with ${code ?? signal}`);
  });
  failed.catch(() => {});
  const url = await Promise.race([once(child, 'message'), failed])
    .then(([hello]) => String(hello))
    .catch(async (error) => {
      throw new Error(`${error}:\n${await readFile(logFile, 'utf8')}`);
    })
    .finally(() => log.close());
  const databaseUrl = (await findEmbeddedPostgres(dataDir))!;
  const { apiKey } = await createKeyOnHost(readConfig({}, env), { name: 'Soak', permission: 'admin' });

  return {
    url,
    databaseUrl,
    adminKey: apiKey.secret,
    async usage() {
      const report = once(child, 'message');
      child.send('usage');
      const [{ resources, ...own }] = (await Promise.race([report, failed])) as [Report];
      const [openFiles, database, connections, disk] = await Promise.all([
        readdir(`/proc/${child.pid}/fd`).catch(() => []),
        privateBytes(await processesOfDatabase(dataDir)),
        ask<{ count: number }>(databaseUrl, CONNECTIONS),
        sizeOnDisk(dataDir),
      ]);
      return {
        ...own,
        openFiles: openFiles.length,
        resources: countBy(resources),
        database,
        connections: connections[0]!.count,
        disk,
      };
    },
    async errors() {
      const errors: string[] = [];
      for await (const line of createInterface(createReadStream(logFile))) {
        if (/"level":"(error|fatal)"/.test(line)) errors.push(line);
      }
      return errors;
    },
    async stop() {
      child.kill('SIGTERM');
      await gone;
      await rm(directory, { recursive: true, force: true });
    },
  };
}

const CONNECTIONS = `
  select count(*)::int as count from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()`;

async function privateBytes(pids: readonly number[]): Promise<number> {
  const rollups = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => '')));
  const kilobytes = rollups.flatMap((rollup) => [...rollup.matchAll(/^Private_\w+: +(\d+) kB$/gm)]);
  return kilobytes.reduce((sum, [, size]) => sum + Number(size) * 1024, 0);
}

async function sizeOnDisk(directory: string): Promise<number> {
  // A file that PostgreSQL deletes meanwhile is an error, but the size is printed.
  const { stdout } = await promisify(execFile)('du', ['-sk', directory]).catch((error: { stdout: string }) => error);
  return Number(stdout.split('\t', 1)[0]) * 1024;
}

function countBy(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}
