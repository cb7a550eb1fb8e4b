// Where the PostgreSQL binaries are, and which user runs them.
//
// PostgreSQL refuses to run as root, and in a container or on a fresh host the program usually does. The server then runs as
// `nobody`, which can't reach what is below /root, so the binaries are copied to a directory that it can reach.
import { execFile } from 'node:child_process';
import * as fs from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { BinariesMissing, PostgresFailed, UserUnsuitable } from './errors.ts';
import type { PostgresLog } from './log.ts';

/** The user that PostgreSQL runs as, if it differs from the user of this process. */
export interface Account {
  uid: number;
  gid: number;
}

export interface Binaries {
  postgres: string;
  initdb: string;
  pgCtl: string;
  /** Such as `18.4`. */
  version: string;
}

// For copies that root makes. In a temporary directory, other users could replace them.
const SYSTEM_DIRECTORY = '/var/lib/embedded-postgres';

// Linux's number of nobody, for systems whose /etc/passwd doesn't have the name.
const NOBODY: Account = { uid: 65534, gid: 65534 };

/** Undefined unless this process runs as root. Then the owner of the cluster if there is one, else nobody. */
export async function accountFor(cluster: string): Promise<Account | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const owner = await fs.stat(cluster).catch(() => undefined);
  if (owner && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  const accounts = await fs.readFile('/etc/passwd', 'utf8').catch(() => '');
  const [, uid, gid] = /^nobody:[^:]*:(-?\d+):(-?\d+):/m.exec(accounts) ?? [];
  // macOS writes -2 where the system calls say 4294967294.
  return uid && gid ? { uid: Number(uid) >>> 0, gid: Number(gid) >>> 0 } : NOBODY;
}

/** Whether the account may enter every directory down to `path`, and read and enter that. */
export async function isReachable(path: string, account: Account | undefined): Promise<boolean> {
  if (!account) return true;
  const allows = async (at: string, bits: number): Promise<boolean> => {
    const { mode, uid, gid } = await fs.stat(at);
    const shift = uid === account.uid ? 6 : gid === account.gid ? 3 : 0;
    return ((mode >> shift) & bits) === bits;
  };
  if (!(await allows(path, 0o5))) return false;
  for (let at = dirname(path); ; at = dirname(at)) {
    if (!(await allows(at, 0o1))) return false;
    if (at === dirname(at)) return true;
  }
}

/** The binaries, complete and where the account can run them. `copies` is where a copy goes if this process doesn't run as root. */
export async function findBinaries(
  account: Account | undefined,
  copies: string,
  log: PostgresLog,
  packageRoot = findPackage(),
): Promise<Binaries> {
  const manifest = await fs.readFile(join(packageRoot, 'package.json'), 'utf8');
  const { name, version: packageVersion } = JSON.parse(manifest) as { name: string; version: string };
  let native = join(packageRoot, 'native');
  await fs.access(join(native, 'bin')).catch(() => {
    throw new BinariesMissing(name, 'installed without their files');
  });
  const complete = await restoreLinks(native);
  const reachable =
    (await isReachable(join(native, 'bin', 'postgres'), account)) && (await isReachable(join(native, 'lib'), account));
  if (!complete || !reachable) {
    native = await copyTo(join(account ? SYSTEM_DIRECTORY : copies, `postgresql-${packageVersion}`), native, log);
  }
  const suffix = process.platform === 'win32' ? '.exe' : '';
  const binary = (name: string) => join(native, 'bin', name + suffix);
  const { stdout } = await promisify(execFile)(binary('postgres'), ['--version'], { env: {} });
  const version = /(\d+\.\d+)/.exec(stdout)?.[1];
  if (!version) throw new PostgresFailed(`${binary('postgres')} --version said: ${stdout}`);
  return { postgres: binary('postgres'), initdb: binary('initdb'), pgCtl: binary('pg_ctl'), version };
}

function findPackage(): string {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  try {
    return dirname(dirname(createRequire(import.meta.url).resolve(name)));
  } catch {
    throw new BinariesMissing(name, 'not installed');
  }
}

interface Link {
  source: string;
  target: string;
}

/**
 * npm packages can't contain symbolic links. The package's install script creates them from a list. If install scripts are
 * disabled, this function does. False if links are missing and can't be created there.
 */
async function restoreLinks(native: string): Promise<boolean> {
  const list = await fs.readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  const root = dirname(native);
  for (const { source, target } of JSON.parse(list) as Link[]) {
    const made = await fs.lstat(join(root, target)).catch(() => undefined);
    if (made) continue;
    try {
      // All links in the list lead to a file in their own directory.
      await fs.symlink(source.slice(source.lastIndexOf('/') + 1), join(root, target));
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== 'EEXIST') return false;
    }
  }
  return true;
}

async function copyTo(target: string, native: string, log: PostgresLog): Promise<string> {
  const exists = await fs.stat(target).catch(() => undefined);
  if (exists) return target;
  const draft = `${target}.${process.pid}`;
  try {
    await fs.mkdir(dirname(target), { recursive: true, mode: 0o755 });
    const draftNative = join(draft, 'native');
    await fs.cp(native, draftNative, { recursive: true, verbatimSymlinks: true });
    await restoreLinks(draftNative);
    await openToAll(draftNative);
    // The list of links names files below `native`; with the links there, the folder can be renamed.
    await fs.rename(draftNative, target);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST') {
      throw new UserUnsuitable(
        `PostgreSQL can't run as root, the user nobody can't reach ${native}, and a copy at ${target} failed (${message}). ` +
          'Start as an ordinary user, or install outside of private directories.',
        { cause: error },
      );
    }
  } finally {
    await fs.rm(draft, { recursive: true, force: true });
  }
  log.info({ from: native, to: target }, 'copied the PostgreSQL binaries to where they can run');
  return target;
}

/** Gives the account access to the copy, even if the umask of the installation was strict. */
async function openToAll(directory: string): Promise<void> {
  await fs.chmod(directory, 0o755);
  for (const entry of await fs.readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) await openToAll(path);
    else if (entry.isFile()) await fs.chmod(path, 0o755);
  }
}
