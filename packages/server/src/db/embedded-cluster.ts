// The cluster: PostgreSQL's own directory, made once.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs/promises';
import { join } from 'node:path';
import { type Account, type Binaries, isReachable } from './embedded-binaries.ts';
import {
  DataDirectoryBroken,
  DataDirectoryForbidden,
  DataDirectoryVersion,
  DiskFull,
  EmbeddedPostgresFailed,
} from './embedded-errors.ts';

/** What the parts of the embedded server share. */
export interface Place {
  /** Holds the cluster, the socket and the log. */
  home: string;
  /** `home` as the account reaches it: see `reachFrom`. */
  homeForServer: string;
  cluster: string;
  account: Account | undefined;
  binaries: Binaries;
  /** An open descriptor of `home`, which the server's processes get as their descriptor 3. */
  homeDescriptor: number;
}

export const USER = 'signalbox';

const passwordFile = (cluster: string) => join(cluster, 'signalbox.password');

/**
 * A process may use a directory that it was handed open, whatever the permissions above it. So below a private
 * directory of root the data stays where it belongs, and PostgreSQL, running as nobody, reaches it as its descriptor 3.
 */
export async function reachFrom(home: string, account: Account | undefined): Promise<string> {
  if (await isReachable(home, account)) return home;
  if (process.platform === 'linux') return '/proc/self/fd/3';
  throw new EmbeddedPostgresFailed(
    `PostgreSQL cannot run as root, and the user nobody cannot reach ${home}. Start Signalbox as an ordinary user, ` +
      'choose a data directory outside of private directories, or set DATABASE_URL.',
  );
}

/** Turns errors of the file system into ones that say what to do. */
export function explain(error: unknown, path: string): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ENOSPC' || code === 'EDQUOT') return new DiskFull(path);
  if (code === 'EACCES' || code === 'EPERM') return new DataDirectoryForbidden(path, error);
  return error;
}

/** How a child is started: alone in its own session, as the account, with nothing of our environment. */
export function childOptions({ account }: Place) {
  return {
    cwd: '/',
    env: { LC_ALL: 'C', TZ: 'UTC', PATH: '/usr/bin:/bin' },
    // spawn takes the account as a signed number.
    ...(account ? { uid: account.uid | 0, gid: account.gid | 0 } : {}),
  };
}

/** The password of the cluster, which is made first if there is none. */
export async function openCluster(place: Place, durable: boolean): Promise<string> {
  const { cluster, binaries } = place;
  try {
    await removeDrafts(place.home);
    await fs.stat(cluster).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
      await createCluster(place, durable);
    });
    const found = await readIfThere(join(cluster, 'PG_VERSION'));
    if (!found) throw new DataDirectoryBroken(cluster, 'it has no PG_VERSION');
    const [major] = binaries.version.split('.');
    if (found.trim() !== major) throw new DataDirectoryVersion(cluster, found.trim(), `${major}`);
    return await readPassword(cluster);
  } catch (error) {
    throw explain(error, cluster);
  }
}

/** The password of the cluster's one user. */
export async function readPassword(cluster: string): Promise<string> {
  try {
    const password = await readIfThere(passwordFile(cluster));
    if (!password) throw new DataDirectoryBroken(cluster, 'it has no signalbox.password');
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
 * Made under another name and renamed, so that a cluster is whole or not there. Of two services that make one at
 * once, the second finds the name taken, throws its own away and uses the first's.
 */
async function createCluster(place: Place, durable: boolean): Promise<void> {
  const { home, homeForServer, cluster, account } = place;
  const draft = `initdb-${process.pid}-${randomBytes(4).toString('hex')}`;
  const password = randomBytes(24).toString('base64url');
  const secret = join(home, `${draft}.password`);
  await fs.writeFile(secret, password, { mode: 0o600, flush: durable });
  try {
    if (account) await fs.chown(secret, account.uid, account.gid);
    const sync = durable ? (process.platform === 'linux' ? ['--sync-method=syncfs'] : []) : ['--no-sync'];
    await runInitdb(place, [
      `--pgdata=${homeForServer}/${draft}`,
      `--username=${USER}`,
      `--pwfile=${homeForServer}/${draft}.password`,
      '--auth=scram-sha-256',
      '--encoding=UTF8',
      '--locale=C',
      // Sorted by code point and the same on every machine and for ever, unlike the locales of the C library.
      '--locale-provider=builtin',
      '--builtin-locale=C.UTF-8',
      '--no-instructions',
      ...sync,
    ]);
    await fs.rename(secret, passwordFile(join(home, draft)));
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

async function runInitdb(place: Place, args: string[]): Promise<void> {
  const child = spawn(place.binaries.initdb, args, {
    ...childOptions(place),
    stdio: ['ignore', 'ignore', 'pipe', place.homeDescriptor],
  });
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const code = await new Promise((resolve, reject) => child.on('error', reject).on('close', resolve));
  if (code !== 0) throw failure(said, place.home);
}

/** What a server or initdb said before it gave up, as an error. */
export function failure(said: string, path: string): Error {
  if (/No space left on device|Disk quota exceeded|Check free disk space/.test(said)) return new DiskFull(path);
  const advice = /could not look up effective user ID/.test(said)
    ? ' This user id has no entry in /etc/passwd: run as a user that has one, or set DATABASE_URL.'
    : '';
  return new EmbeddedPostgresFailed(
    `PostgreSQL did not start in ${path}.${advice} It said:\n${said.trim() || '(nothing)'}`,
  );
}

/** Drafts of services that were killed in the middle of making them. */
async function removeDrafts(home: string): Promise<void> {
  for (const name of await fs.readdir(home)) {
    const pid = /^initdb-(\d+)/.exec(name)?.[1];
    if (!pid || isAlive(Number(pid))) continue;
    // An initdb that outlived its service may still be writing there. The next start will find it gone.
    await fs.rm(join(home, name), { recursive: true, force: true }).catch(() => {});
  }
}

async function syncDirectory(path: string): Promise<void> {
  if (process.platform === 'win32') return;
  const directory = await fs.open(path, 'r');
  await directory.sync().finally(() => directory.close());
}

/** Whether there is a process of that number, of any user. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
