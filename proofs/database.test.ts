// Three nodes whose PostgreSQL crashes under load and recovers, and is then lost, with a standby in its place. (P1–P5, P7, P8)
import { once } from 'node:events';
import * as fs from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ask } from '../packages/embedded-postgres/test/support/ask.ts';
import {
  isPostgresAlive,
  type PostgresProcess,
  serverPidOf,
  spawnPostgres,
} from '../packages/embedded-postgres/test/support/postgres-process.ts';
import { freePort } from '../packages/server/test/support/free-port.ts';
import { type PostgresProxy, startPostgresProxy } from '../packages/server/test/support/postgres-proxy.ts';
import { createRandom } from '../packages/server/test/support/random.ts';
import { copyAsStandby } from '../packages/server/test/support/standby.ts';
import { type Load, startLoad } from './support/load.ts';
import { faults, type Nodes, startNodes } from './support/nodes.ts';

const NODES = 3;
const TIMEOUT_MS = 240_000 + faults.times * 30_000;

const random = createRandom(faults.seed);
let base: string;
const started: { dataDir: string; service: PostgresProcess }[] = [];
let primary: { dataDir: string; service: PostgresProcess; url: string };
/** The current primary. */
let databaseUrl: string;
let proxy: PostgresProxy;
let nodes: Nodes;
let load: Load;

function startPostgres(dataDir: string, port: number): PostgresProcess {
  const service = spawnPostgres(dataDir, { port });
  started.push({ dataDir, service });
  return service;
}

/** By TCP, because the standby connects to it. */
function atPort(url: string, port: number): string {
  const at = new URL(url);
  at.search = '';
  at.hostname = '127.0.0.1';
  at.port = String(port);
  return at.href;
}

/** Ends a server at once, like `pg_ctl stop -m immediate` or a power failure. */
async function crash(dataDir: string): Promise<void> {
  const pid = await serverPidOf(dataDir);
  process.kill(pid, 'SIGQUIT');
  await expect.poll(() => isPostgresAlive(pid)).toBe(false);
}

beforeAll(async () => {
  base = await fs.mkdtemp(join(tmpdir(), 'sb-'));
  const port = await freePort();
  const dataDir = join(base, 'primary');
  const service = startPostgres(dataDir, port);
  databaseUrl = atPort((await service.next()).url!, port);
  primary = { dataDir, service, url: databaseUrl };
  proxy = await startPostgresProxy(databaseUrl);
  nodes = await startNodes(NODES, proxy.url);
  load = await startLoad({ nodes, random: random.fork(), databaseUrl: () => databaseUrl });
}, 180_000);

afterAll(async () => {
  await nodes?.end();
  await load?.close();
  await proxy?.close();
  for (const { dataDir, service } of started) {
    service.child.kill('SIGKILL');
    await crash(dataDir).catch(() => {});
  }
  await fs.rm(base, { recursive: true, force: true });
}, 120_000);

test(`PostgreSQL crashes under load, repeatedly: nothing acknowledged is lost, and everything continues (seed ${faults.seed})`, {
  timeout: TIMEOUT_MS,
}, async () => {
  const chances = random.fork();
  const broken = await load.during(async () => {
    for (let crashes = 0; crashes < faults.times; crashes += 1) {
      await load.shown(20 + chances.below(60));
      // The supervisor restarts it.
      await crash(primary.dataDir);
    }
  });
  expect(broken).toEqual([]);
});

test(`the primary is lost and its synchronous standby promoted: nothing acknowledged is lost (seed ${faults.seed})`, {
  timeout: TIMEOUT_MS,
}, async () => {
  const chances = random.fork();
  const [dataDir, port] = [join(base, 'standby'), await freePort()];
  await copyAsStandby(primary, dataDir);
  const standby = startPostgres(dataDir, port);
  await ask(primary.url, `alter system set synchronous_standby_names = '*'`);
  await ask(primary.url, 'select pg_reload_conf()');
  const states = () => ask(primary.url, 'select sync_state from pg_stat_replication');
  await expect.poll(states).toEqual([{ sync_state: 'sync' }]);

  const broken = await load.during(async () => {
    await load.shown(40 + chances.below(60));
    primary.service.child.kill('SIGKILL');
    await once(primary.service.child, 'exit');
    await crash(primary.dataDir);
    databaseUrl = atPort(primary.url, port);
    await ask(databaseUrl, 'select pg_promote()');
    await standby.next();
    proxy.leadTo(databaseUrl);
    await load.shown(40);
  });
  expect(broken).toEqual([]);
});
