// PgBouncer as Debian packages it, in front of the database of two nodes: what docs/operations/postgresql.md says about poolers.
// `npm run prove -- poolers` runs it; it needs `apt-get install -y pgbouncer`.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { freePort } from '../packages/server/test/support/free-port.ts';
import { createTestDatabase, type TestDatabase } from '../packages/server/test/support/postgres.ts';
import { createRandom } from '../packages/server/test/support/random.ts';
import { startLoad } from './support/load.ts';
import { faults, startNodes } from './support/nodes.ts';

const isProof = process.env.SIGNALBOX_POOLERS === '1';
const { seed } = faults;
const CHUNKS = 4000;
// Far below what two nodes open by themselves.
const SERVER_CONNECTIONS = 8;
// The advice found everywhere. It makes a transaction pooler accept a node that it can't serve.
const IGNORED = 'extra_float_digits,statement_timeout,idle_in_transaction_session_timeout,options';

const endings: (() => Promise<unknown>)[] = [];
let database: TestDatabase;

beforeEach(async () => {
  if (!isProof) return;
  if (!existsSync('/usr/sbin/pgbouncer'))
    throw new Error('pgbouncer is not installed. Do: apt-get install -y pgbouncer');
  database = await createTestDatabase();
  endings.push(() => database.drop());
});
afterEach(async () => {
  for (let end = endings.pop(); end; end = endings.pop()) await end();
});

/** A PgBouncer in front of `database`. Returns the URL of the database through it. */
async function startPgBouncer(settings: Readonly<Record<string, string | number>>): Promise<string> {
  const { hostname, port, username, password, pathname, searchParams } = new URL(database.url);
  const socket = searchParams.get('host');
  const directory = await mkdtemp(join(tmpdir(), 'signalbox-pgbouncer-'));
  const own = await freePort();
  const name = pathname.slice(1);
  const file = join(directory, 'pgbouncer.ini');
  const login = password ? ` password=${decodeURIComponent(password)}` : '';
  await writeFile(
    file,
    `[databases]
${name} = host=${socket ?? hostname} port=${port} dbname=${name} user=${decodeURIComponent(username)}${login}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${own}
unix_socket_dir =
auth_type = any
max_client_conn = 500
${Object.entries(settings)
  .map(([key, value]) => `${key} = ${value}`)
  .join('\n')}
`,
  );
  // It refuses to run as root. The user of the test's PostgreSQL reaches its socket.
  const { uid, gid } = socket ? await stat(socket) : { uid: 65534, gid: 65534 };
  const user = process.getuid?.() === 0 ? { uid, gid } : {};
  await chmod(directory, 0o755);
  const child = spawn('/usr/sbin/pgbouncer', [file], { stdio: 'ignore', ...user });
  const ended = once(child, 'close');
  endings.push(async () => {
    child.kill('SIGTERM');
    await ended;
    await rm(directory, { recursive: true });
  });
  for (;;) {
    if (child.exitCode !== null) throw new Error('PgBouncer ended. Run it by hand to see why.');
    const probe = connect(own, '127.0.0.1');
    const isUp = await new Promise<boolean>((resolve) => {
      probe.once('connect', () => resolve(true)).once('error', () => resolve(false));
    });
    probe.destroy();
    if (isUp) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const url = new URL(database.url);
  url.search = '';
  url.host = `127.0.0.1:${own}`;
  return url.href;
}

/** What a node says that does not start. */
function refusal(env: Readonly<Record<string, string>>): string {
  const { status, stderr } = spawnSync(process.execPath, ['packages/cli/src/main.ts', 'start', '--port', '0'], {
    env: { PATH: process.env.PATH, SIGNALBOX_MASTER_KEY: 'ab'.repeat(32), ...env },
    encoding: 'utf8',
    timeout: 60_000,
  });
  expect(status, stderr).toBe(1);
  return stderr;
}

/** How many connections of the nodes the server has; the tests' own do not count. */
async function serverConnections(): Promise<number> {
  const client = new pg.Client(database.url);
  await client.connect();
  const { rows } = await client.query<{ count: string }>(
    'select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
  );
  await client.end();
  return Number(rows[0]!.count);
}

test.runIf(isProof)(
  'two nodes keep every promise over eight server connections of a transaction pooler',
  {
    timeout: 300_000,
  },
  async () => {
    const pooled = await startPgBouncer({ pool_mode: 'transaction', default_pool_size: SERVER_CONNECTIONS });
    const nodes = await startNodes(2, pooled, { SIGNALBOX_LISTEN_URL: database.url });
    endings.push(() => nodes.end());
    const load = await startLoad({
      nodes,
      random: createRandom(seed),
      databaseUrl: () => database.url,
      isVaried: true,
    });
    endings.push(() => load.close());
    let most = 0;
    const broken = await load.during(async () => {
      for (let shown = 0; shown < CHUNKS; shown += CHUNKS / 10) {
        await load.shown(CHUNKS / 10);
        most = Math.max(most, await serverConnections());
      }
    });
    expect(broken).toEqual([]);
    expect(nodes.errors).toEqual([]);
    // A direct connection for hints, up to four for sign-ins, and the load's own; without the pooler it is up to 52.
    process.stdout.write(`\nat most ${most} connections to the server\n`);
    expect(most).toBeLessThan(20);
  },
);

test.runIf(isProof)(
  'a transaction pooler without a direct connection is refused, and the error names the setting',
  async () => {
    const plain = await startPgBouncer({ pool_mode: 'transaction', default_pool_size: SERVER_CONNECTIONS });
    expect(refusal({ DATABASE_URL: plain })).toContain('SIGNALBOX_LISTEN_URL');
    const ignoring = await startPgBouncer({
      pool_mode: 'transaction',
      default_pool_size: SERVER_CONNECTIONS,
      ignore_startup_parameters: IGNORED,
    });
    expect(refusal({ DATABASE_URL: ignoring })).toContain('SIGNALBOX_LISTEN_URL');
    expect(refusal({ DATABASE_URL: plain, SIGNALBOX_LISTEN_URL: ignoring })).toContain('SIGNALBOX_LISTEN_URL');
  },
);

test.runIf(isProof)(
  'two nodes keep every promise over a session pooler with room for all their connections',
  {
    timeout: 300_000,
  },
  async () => {
    const pooled = await startPgBouncer({
      pool_mode: 'session',
      default_pool_size: 60,
      ignore_startup_parameters: IGNORED,
    });
    const nodes = await startNodes(2, pooled);
    endings.push(() => nodes.end());
    const load = await startLoad({ nodes, random: createRandom(seed), databaseUrl: () => database.url });
    endings.push(() => load.close());
    expect(await load.during(() => load.shown(CHUNKS / 4))).toEqual([]);
    expect(nodes.errors).toEqual([]);
  },
);
