// Shared by all benchmarks: a service in its own process on a new data directory, and the measurement.
//
// This process generates the load in the same way for our measurement and for the limit, so its cost affects both equally.
import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, open, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Pool } from 'undici';
import { findEmbeddedPostgres } from '../../packages/server/src/db/embedded.ts';
import { createKeyOnHost, readConfig } from '../../packages/server/src/main.ts';
import { serverPid } from './cpu-quota.ts';
import { countStatements, profileOptions, reportStatements, startCounting } from './profile.ts';
import type { Row } from './table.ts';

export interface Benchmark {
  name: string;
  run(options: BenchmarkOptions): Promise<Row[]>;
}

export interface BenchmarkOptions {
  /** A million, unless the caller has less time or disk. */
  parkedSessions: number;
}

/** The service under test, as users run it, except that its log goes to a file. */
export interface Bench {
  /** Without `/api/v1`. */
  readonly url: string;
  readonly databaseUrl: string;
  readonly adminKey: string;
  readonly keyId: string;
  readonly organizationId: string;
  readonly dataDir: string;
  /** The key that seals secrets, in the form of `SIGNALBOX_MASTER_KEY`. */
  readonly masterKey: string;
  /** Its resource use, with that of the database's processes if they are visible, on Linux. */
  usage(): Promise<Usage>;
  /** Throws unless the response is a 2xx. */
  call<T>(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: object): Promise<T>;
  stop(): Promise<void>;
}

export interface Usage {
  /** Memory of the service alone, in MB. */
  residentMb: number;
  /** CPU time of the service, in milliseconds. */
  serviceMs: number;
  /** CPU time of the database since it started, in milliseconds. */
  databaseMs: number;
}

// Long enough for several garbage collections, and short enough for five pairs a minute.
const SAMPLE_MS = 2_000;
const PAIRS = 5;
const WARM_UP_MS = 1_000;
// Limits the concurrent calls of the setup to the number of the service's connections to its database.
const CALLS_AT_ONCE = 20;

export async function startBench(options: { roles?: string; settings?: Record<string, string> } = {}): Promise<Bench> {
  const directory = await mkdtemp(join(tmpdir(), 'signalbox-bench-'));
  const dataDir = join(directory, 'data');
  const logFile = join(directory, 'service.log');
  const masterKey = randomBytes(32).toString('hex');
  const settings = {
    SIGNALBOX_DATA_DIR: dataDir,
    SIGNALBOX_PORT: '0',
    SIGNALBOX_MASTER_KEY: masterKey,
    SIGNALBOX_EGRESS_ALLOW: '127.0.0.1/32',
    SIGNALBOX_ROLES: options.roles ?? 'api,runtime,delivery',
    ...options.settings,
  };
  const start = () => startChild('service-process.ts', { env: settings, logFile });
  let child = await start();
  if (await countStatements((await findEmbeddedPostgres(dataDir))!)) {
    await child.stop();
    child = await start();
  }
  const url = child.hello;
  const databaseUrl = (await findEmbeddedPostgres(dataDir))!;
  await startCounting(databaseUrl);
  const { apiKey, organizationId } = await createKeyOnHost(readConfig({}, settings), {
    name: 'Benchmark',
    permission: 'admin',
  });
  const pool = new Pool(url, { connections: CALLS_AT_ONCE });
  return {
    url,
    databaseUrl,
    dataDir,
    adminKey: apiKey.secret,
    keyId: apiKey.keyId,
    organizationId,
    masterKey,
    usage: async () => ({ ...(await child.usage()), databaseMs: await databaseMs(dataDir) }),
    async call(method, path, body) {
      const response = await pool.request({
        method,
        path: `/api/v1${path}`,
        headers: { authorization: `Bearer ${apiKey.secret}`, ...(body && { 'content-type': 'application/json' }) },
        ...(body && { body: JSON.stringify(body) }),
      });
      const text = await response.body.text();
      if (response.statusCode >= 300) throw new Error(`${method} ${path}: ${response.statusCode} ${text}`);
      return JSON.parse(text);
    },
    async stop() {
      await pool.close();
      await reportStatements(databaseUrl);
      await child.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

export interface Child {
  /** The first line of its output: its address. */
  readonly hello: string;
  readonly pid: number;
  /** The resource use of the service, which reports it on request. */
  usage(): Promise<Pick<Usage, 'residentMb' | 'serviceMs'>>;
  stop(): Promise<void>;
}

/** Starts a program of this folder; it prints one string when it is ready and ends on SIGTERM. */
export async function startChild(
  file: string,
  { env = {}, logFile }: { env?: Record<string, string>; logFile?: string } = {},
): Promise<Child> {
  const output = logFile === undefined ? undefined : await open(logFile, 'w');
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), {
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      NODE_OPTIONS: process.env.NODE_OPTIONS,
      ...env,
      ...profileOptions(file),
    },
    stdio: ['ignore', output?.fd ?? 'inherit', output?.fd ?? 'inherit', 'ipc'],
  });
  try {
    const [hello] = await Promise.race([once(child, 'message'), failed(child, file)]);
    return {
      hello: String(hello),
      pid: child.pid!,
      async usage() {
        const answer = once(child, 'message');
        child.send('usage');
        return (await answer)[0];
      },
      async stop() {
        const gone = once(child, 'exit');
        child.kill('SIGTERM');
        await gone;
      },
    };
  } catch (error) {
    if (logFile !== undefined) process.stderr.write(await readFile(logFile, 'utf8'));
    throw error;
  } finally {
    await output?.close();
  }
}

async function failed(child: ChildProcess, file: string): Promise<never> {
  const [code] = await once(child, 'exit');
  throw new Error(`${file} ended with ${code} before it was ready`);
}

/** The CPU time of the server in a data directory and its processes; 0 if there is no /proc. A tick is 10 ms. */
async function databaseMs(dataDir: string): Promise<number> {
  const server = await serverPid(dataDir);
  const processes = await readdir('/proc').catch(() => []);
  const stats = await Promise.all(processes.map((pid) => readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')));
  const ticks = stats.map((stat) => {
    const pid = stat.split(' ', 1)[0];
    const [, parent, ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // utime, stime and, for those that have ended, cutime and cstime.
    return pid === server || parent === server ? rest.slice(9, 13).reduce((sum, part) => sum + Number(part), 0) : 0;
  });
  return 10 * ticks.reduce((sum, part) => sum + part, 0);
}

/** Measures both alternately after a warm-up: A B A B …, so that other load on the machine affects both. */
export async function measurePairs<Ours, Limit = Ours>(
  ours: () => Promise<Ours>,
  limit: () => Promise<Limit>,
): Promise<{ ours: Ours; limit: Limit }[]> {
  const pairs: { ours: Ours; limit: Limit }[] = [];
  for (let pair = 0; pair <= PAIRS; pair += 1) {
    const measured = { ours: await ours(), limit: await limit() };
    if (pair > 0) pairs.push(measured);
  }
  return pairs;
}

/** The number of calls of `act` per second, repeated by this many callers at once. */
export async function ratePerSecond(concurrency: number, act: () => Promise<unknown>, ms = SAMPLE_MS): Promise<number> {
  let done = 0;
  const begin = performance.now();
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      while (performance.now() - begin < ms) {
        await act();
        done += 1;
      }
    }),
  );
  return (done / (performance.now() - begin)) * 1000;
}

/** How much a counter grows per second while something else runs. */
export async function growthPerSecond(count: () => number, ms = SAMPLE_MS): Promise<number> {
  await sleep(WARM_UP_MS / 2);
  const [from, begin] = [count(), performance.now()];
  await sleep(ms);
  return ((count() - from) / (performance.now() - begin)) * 1000;
}

/** The duration of each of this many sequential calls, in milliseconds. */
export async function durations(times: number, act: () => Promise<unknown>): Promise<number[]> {
  const taken: number[] = [];
  for (let time = 0; time < times; time += 1) {
    const begin = performance.now();
    await act();
    taken.push(performance.now() - begin);
  }
  return taken;
}
