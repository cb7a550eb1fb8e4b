// The cluster: PostgreSQL's own directory, created once.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs/promises';
import { join } from 'node:path';
import { type Account, type Binaries, isReachable } from './binaries.ts';
import {
  DirectoryBroken,
  DirectoryForbidden,
  DirectoryNotEmpty,
  DiskFull,
  PostgresFailed,
  UserUnsuitable,
  WrongVersion,
} from './errors.ts';

/** A directory with a cluster, and how to run PostgreSQL in it. */
export interface Setup {
  /** Contains the cluster, the socket and the log. */
  home: string;
  /** `home` as the account reaches it: see `reachFrom`. */
  homeForServer: string;
  cluster: string;
  /** The database's one user, a superuser. */
  user: string;
  account: Account | undefined;
  binaries: Binaries;
  /** `home`, open: the server's processes get it as their descriptor 3. */
  homeHandle: fs.FileHandle;
}

// What this package and its processes create in `home`. Anything else belongs to someone else.
const OWN_NAMES = /^(socket|postgres\.log(\.1)?|initdb-.*|postgresql-.*)$/;

const passwordName = (user: string) => `${user}.password`;

/**
 * A process can use a directory that it inherits open, whatever the permissions of the directories above it. The data can
 * therefore be below a private directory of root: PostgreSQL, which runs as nobody, reaches it as its descriptor 3.
 */
export async function reachFrom(home: string, account: Account | undefined): Promise<string> {
  if (await isReachable(home, account)) return home;
  if (process.platform === 'linux') return '/proc/self/fd/3';
  throw new UserUnsuitable(
    `PostgreSQL can't run as root, and the user nobody can't reach ${home}. Start as an ordinary user, ` +
      'or use a directory outside of private directories.',
  );
}

/** Turns file system errors into errors that say what to do. */
export function explain(error: unknown, path: string): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ENOSPC' || code === 'EDQUOT') return new DiskFull(path);
  if (code === 'EACCES' || code === 'EPERM') return new DirectoryForbidden(path, error);
  return error;
}

/** Refuses a directory that has other files, because its permissions would be changed. */
export async function requireOwn(home: string): Promise<void> {
  const names = await fs.readdir(home);
  if (!names.includes('cluster') && !names.every((name) => OWN_NAMES.test(name))) throw new DirectoryNotEmpty(home);
}

/** How a child process is started: as the account, with nothing of this process's environment. */
export function childOptions({ account }: Setup) {
  return {
    cwd: '/',
    env: { LC_ALL: 'C', TZ: 'UTC', PATH: '/usr/bin:/bin' },
    // `spawn` takes signed numbers.
    ...(account ? { uid: account.uid | 0, gid: account.gid | 0 } : {}),
  };
}

/** The password of the cluster's user. The cluster is created first if there is none. */
export async function openCluster(setup: Setup, durable: boolean): Promise<string> {
  const { cluster, binaries } = setup;
  try {
    await removeDrafts(setup.home);
    await fs.stat(cluster).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
      await createCluster(setup, durable);
    });
    const found = await readIfThere(join(cluster, 'PG_VERSION'));
    if (!found) throw new DirectoryBroken(cluster, 'it has no PG_VERSION');
    const [major] = binaries.version.split('.');
    if (found.trim() !== major) throw new WrongVersion(cluster, found.trim(), `${major}`);
    return await readPassword(setup);
  } catch (error) {
    throw explain(error, cluster);
  }
}

export async function readPassword({ cluster, user }: Pick<Setup, 'cluster' | 'user'>): Promise<string> {
  try {
    const password = await readIfThere(join(cluster, passwordName(user)));
    if (!password) throw new DirectoryBroken(cluster, `it has no ${passwordName(user)}`);
    return password;
  } catch (error) {
    throw explain(error, cluster);
  }
}

async function readIfThere(path: string): Promise<string> {
  return fs.readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
}

/**
 * Creates it under another name and renames it, so that a cluster is either complete or not there. If two processes create one at
 * the same time, the second finds that the name is taken, removes its own and uses the other.
 */
async function createCluster(setup: Setup, durable: boolean): Promise<void> {
  const { home, homeForServer, cluster, user, account } = setup;
  const draft = `initdb-${process.pid}-${randomBytes(4).toString('hex')}`;
  const password = randomBytes(24).toString('base64url');
  const secret = join(home, `${draft}.password`);
  await fs.writeFile(secret, password, { mode: 0o600, flush: durable });
  try {
    if (account) await fs.chown(secret, account.uid, account.gid);
    const sync = durable ? (process.platform === 'linux' ? ['--sync-method=syncfs'] : []) : ['--no-sync'];
    await runInitdb(setup, [
      `--pgdata=${homeForServer}/${draft}`,
      `--username=${user}`,
      `--pwfile=${homeForServer}/${draft}.password`,
      '--auth=scram-sha-256',
      '--encoding=UTF8',
      '--locale=C',
      // Sorts by code point, the same on every machine and in every release, unlike the locales of the C library.
      '--locale-provider=builtin',
      '--builtin-locale=C.UTF-8',
      '--no-instructions',
      ...sync,
    ]);
    await fs.rename(secret, join(home, draft, passwordName(user)));
    if (durable) await syncDirectory(join(home, draft));
    await fs.rename(join(home, draft), cluster).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
    });
    if (durable) await syncDirectory(home);
  } finally {
    await fs.rm(join(home, draft), { recursive: true, force: true });
    await fs.rm(secret, { force: true });
  }
}

async function runInitdb(setup: Setup, args: string[]): Promise<void> {
  const child = spawn(setup.binaries.initdb, args, {
    ...childOptions(setup),
    stdio: ['ignore', 'ignore', 'pipe', setup.homeHandle.fd],
  });
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const code = await new Promise((resolve, reject) => child.on('error', reject).on('close', resolve));
  if (code !== 0) throw failure(said, setup.home);
}

/** The error for what a server or initdb said before it ended. */
export function failure(said: string, path: string): Error {
  if (/No space left on device|Disk quota exceeded|Check free disk space/.test(said)) return new DiskFull(path);
  if (/could not look up effective user ID/.test(said)) {
    return new UserUnsuitable(
      `PostgreSQL did not start in ${path}. This user id has no entry in /etc/passwd: start as a user that has one.`,
    );
  }
  return new PostgresFailed(`PostgreSQL did not start in ${path}. It said:\n${said.trim() || '(nothing)'}`);
}

/** Drafts of processes that were killed while they created a cluster. */
async function removeDrafts(home: string): Promise<void> {
  for (const name of await fs.readdir(home)) {
    const pid = /^initdb-(\d+)/.exec(name)?.[1];
    if (!pid || isAlive(Number(pid))) continue;
    // An initdb that outlived its parent may still be writing there. The next start removes what is left.
    await fs.rm(join(home, name), { recursive: true, force: true }).catch(() => {});
  }
}

async function syncDirectory(path: string): Promise<void> {
  if (process.platform === 'win32') return;
  const directory = await fs.open(path, 'r');
  await directory.sync().finally(() => directory.close());
}

/** Whether there is a process with that id, of any user. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
