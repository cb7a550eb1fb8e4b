// One PostgreSQL server process on the cluster: found, started, stopped. The lock decides who may use it (postgres.ts).
import { spawn, spawnSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import * as fs from 'node:fs/promises';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { childOptions, failure, isAlive, type Setup } from './cluster.ts';
import type { Endpoint } from './endpoint.ts';

export interface RunningServer {
  pid: number;
  endpoint: Endpoint;
  ready: boolean;
}

export type Settings = Record<string, string | number>;

// For a small host that runs other programs as well.
const SETTINGS: Settings = {
  shared_buffers: '128MB',
  // Enough for several pools and a few psql; a connection in use costs about 5 MB.
  max_connections: 100,
  max_wal_size: '1GB',
  checkpoint_timeout: '15min',
  // Every acknowledged commit is on disk.
  fsync: 'on',
  full_page_writes: 'on',
  synchronous_commit: 'on',
  // Until a table has statistics, its statements are planned for a few rows: on a new database, statements ran at a tenth of
  // their speed for the first minute, which is the default.
  autovacuum_naptime: '5s',
  // Compiling short statements costs more than it saves.
  jit: 'off',
  random_page_cost: 1.1,
  timezone: 'UTC',
  log_timezone: 'UTC',
  // Only what concerns the server. Errors of statements go to the client; in the log they would show values, and so secrets.
  log_min_messages: 'log',
  log_min_error_statement: 'panic',
  log_error_verbosity: 'terse',
  log_statement: 'none',
  log_checkpoints: 'off',
  logging_collector: 'off',
};

// Short compared with the time that a start takes.
const POLL_MS = 10;

// After this, the fast shutdown is followed by an immediate one, which the write-ahead log makes safe.
const FAST_SHUTDOWN_LIMIT_MS = 60_000;

const MAX_LOG_BYTES = 10_000_000;

const windows = process.platform === 'win32';

export function serverArguments(setup: Setup, endpoint: Endpoint, settings: Settings): string[] {
  const { home, homeForServer } = setup;
  const socket = endpoint.socketDirectory?.startsWith(`${home}/`)
    ? homeForServer + endpoint.socketDirectory.slice(home.length)
    : (endpoint.socketDirectory ?? '');
  const all: Settings = {
    ...SETTINGS,
    ...settings,
    listen_addresses: endpoint.tcp ? '127.0.0.1' : '',
    port: endpoint.port,
    unix_socket_directories: socket,
    unix_socket_permissions: '0700',
  };
  return [
    '-D',
    `${homeForServer}/cluster`,
    ...Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ];
}

/** Whether the running server was started with these arguments and by these binaries. */
export async function startedWith(setup: Setup, args: readonly string[]): Promise<boolean> {
  const written = await fs.readFile(join(setup.cluster, 'postmaster.opts'), 'utf8').catch(() => '');
  return written.trim() === [setup.binaries.postgres, ...args.map((arg) => `"${arg}"`)].join(' ');
}

/** The server that `postmaster.pid` names, if that process exists and is a PostgreSQL. */
export async function findServer(
  setup: Pick<Setup, 'home' | 'homeForServer' | 'cluster'>,
): Promise<RunningServer | undefined> {
  const text = await fs.readFile(join(setup.cluster, 'postmaster.pid'), 'utf8').catch(() => '');
  const [pidLine = '', , , port = '', socket = '', listen = '', , status = ''] = text.split('\n');
  const pid = Number(pidLine);
  if (!pid || !isAlive(pid)) return undefined;
  if (!(await isPostgres(pid, setup.cluster))) return undefined;
  const { home, homeForServer } = setup;
  const inHome = homeForServer !== home && socket.startsWith(homeForServer);
  return {
    pid,
    ready: status.trim() === 'ready',
    endpoint: {
      socketDirectory: windows ? undefined : inHome ? home + socket.slice(homeForServer.length) : socket,
      port: Number(port),
      tcp: listen.trim() !== '',
    },
  };
}

/** After a crash, another process may have the id; after a reboot, one probably has. */
async function isPostgres(pid: number, cluster: string): Promise<boolean> {
  if (process.platform === 'linux') {
    const directory = await fs.readlink(`/proc/${pid}/cwd`).catch(() => undefined);
    return directory !== undefined && directory === (await fs.realpath(cluster));
  }
  if (windows) return true;
  const { stdout } = spawnSync('/bin/ps', ['-o', 'comm=', '-p', String(pid)], { encoding: 'utf8', env: {} });
  return basename(stdout.trim()).startsWith('postgres');
}

/** Linux takes the directory of a process that ends before the process itself. A zombie has ended. */
async function isEnding(pid: number): Promise<boolean> {
  if (process.platform !== 'linux') return false;
  const code = await fs.readlink(`/proc/${pid}/cwd`).then(
    () => undefined,
    (error: NodeJS.ErrnoException) => error.code,
  );
  const stat = await fs.readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  return code === 'ENOENT' && stat !== undefined && !/\) [ZX] /.test(stat);
}

/**
 * Starts a server and waits until it accepts connections. Null if another server has the cluster.
 * Throws DiskFull, UserUnsuitable, or PostgresFailed with the server's output.
 */
export async function startServer(setup: Setup, endpoint: Endpoint, settings: Settings): Promise<RunningServer | null> {
  const args = serverArguments(setup, endpoint, settings);
  const logFile = join(setup.home, 'postgres.log');
  const size = await rotateLog(logFile);
  await disownStaleLocks(setup, endpoint);
  const log = openSync(logFile, 'a', 0o600);
  const child = windows
    ? spawn(
        setup.binaries.pgCtl,
        [
          'start',
          '-w',
          '-D',
          setup.cluster,
          '-l',
          logFile,
          '-o',
          args
            .slice(2)
            .map((arg) => `"${arg}"`)
            .join(' '),
        ],
        childOptions(setup),
      )
    : spawn(setup.binaries.postgres, args, {
        ...childOptions(setup),
        // A session of its own: Ctrl-C in the terminal is for this program, which still needs the database in order to stop.
        detached: true,
        stdio: ['ignore', log, log, setup.homeHandle.fd],
      });
  let ended = false;
  let failedToSpawn: Error | undefined;
  child.on('error', (error) => {
    failedToSpawn = error;
    ended = true;
  });
  child.on('exit', (code) => {
    ended = !windows || code !== 0;
  });
  child.unref();
  closeSync(log);
  for (;;) {
    if (ended) {
      if (failedToSpawn) throw failedToSpawn;
      const said = (await fs.readFile(logFile)).subarray(size).toString();
      if (/lock file ".*" already exists/.test(said)) return null;
      throw failure(said, setup.cluster);
    }
    const server = await findServer(setup);
    if (server?.ready && (windows || server.pid === child.pid)) return server;
    await sleep(POLL_MS);
  }
}

/**
 * After a crash, PostgreSQL refuses to start if the process id in its old lock files belongs to another process of the same
 * user now. It takes the id of its own parent for stale, so the files get that. The rest of `postmaster.pid` stays: PostgreSQL
 * uses it to make sure that no orphaned backend of the old server still uses the shared memory.
 */
async function disownStaleLocks({ cluster }: Setup, { socketDirectory, port }: Endpoint): Promise<void> {
  const paths = [join(cluster, 'postmaster.pid')];
  if (socketDirectory) paths.push(join(socketDirectory, `.s.PGSQL.${port}.lock`));
  for (const path of paths) {
    const text = await fs.readFile(path, 'utf8').catch(() => '');
    const pid = Number.parseInt(text, 10);
    if (!pid || !isAlive(pid) || (await isPostgres(pid, cluster))) continue;
    await fs.writeFile(path, text.replace(/^\d+/, String(process.pid)));
  }
}

async function rotateLog(path: string): Promise<number> {
  const size = (await fs.stat(path).catch(() => undefined))?.size ?? 0;
  if (size < MAX_LOG_BYTES) return size;
  await fs.rename(path, `${path}.1`);
  return 0;
}

/** A fast shutdown: open transactions are rolled back, committed ones are on disk. Waits until the process has ended. */
export async function stopServer(setup: Setup, pid: number): Promise<void> {
  if (windows) {
    spawnSync(setup.binaries.pgCtl, ['stop', '-m', 'fast', '-w', '-D', setup.cluster], { env: {} });
    return;
  }
  signal(pid, 'SIGINT');
  const limit = AbortSignal.timeout(FAST_SHUTDOWN_LIMIT_MS);
  let immediate = false;
  while (isAlive(pid) && ((await isPostgres(pid, setup.cluster)) || (await isEnding(pid)))) {
    if (limit.aborted && !immediate) {
      signal(pid, 'SIGQUIT');
      immediate = true;
    }
    await sleep(POLL_MS);
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
