// `signalbox backup`: a consistent copy of the whole database in one file, while the service runs or is stopped.
import { createWriteStream } from 'node:fs';
import { link, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Config } from '../config/config.ts';
import { type BulkConnection, openBulkConnection } from '../db/bulk-connection.ts';
import { snapshotOf } from '../db/tables.ts';
import { systemClock } from '../lib/clock.ts';
import { syncDirectory } from '../lib/sync-directory.ts';
import { masterKeyFile, readMasterKeys } from '../vault/master-key.ts';
import { type BackupHeader, writeBackup } from './backup-file.ts';
import { OperatorError, withDatabase } from './operator.ts';
import { type SealedText, sealUnderPassphrase } from './passphrase.ts';
import type { Progress } from './progress.ts';
import { explainStart } from './start-error.ts';

export interface BackupSummary {
  tables: number;
  rows: number;
  bytes: number;
  sessions: number;
  /** Where the master key is that the secrets in the backup need; null if the file contains it. */
  masterKeyIn: string | null;
  /** Files whose bytes are not in the backup, by the name of their store. */
  otherStores: NonNullable<BackupHeader['otherStores']>;
}

export interface BackupWish {
  /** A new file, or a stream that the caller closes. */
  into: string | Writable;
  /** If given, the file contains the master key, encrypted under it. */
  passphrase?: string | undefined;
}

/** Throws `OperatorError` or `StartError`. */
export async function backupOnHost(config: Config, wish: BackupWish, progress: Progress): Promise<BackupSummary> {
  try {
    return await withDatabase(config, async (url) => {
      const connection = await openBulkConnection(url);
      try {
        return await save(connection, config, wish, progress);
      } finally {
        connection.close();
      }
    });
  } catch (error) {
    throw explainStart(error, config);
  }
}

async function save(
  connection: BulkConnection,
  config: Config,
  { into, passphrase }: BackupWish,
  progress: Progress,
): Promise<BackupSummary> {
  await requireWhole(connection);
  const contents = await snapshotOf(connection);
  const masterKeys: SealedText | undefined =
    passphrase === undefined ? undefined : sealUnderPassphrase(passphrase, await masterKeysOf(config));
  const otherStores = await readOtherStores(connection);
  const createdAt = systemClock.now().toISOString();
  const header = { createdAt, ...(masterKeys && { masterKeys }), otherStores };
  const summary = { tables: 0, rows: 0, bytes: 0, sessions: 0 };
  const data = writeBackup(
    contents,
    header,
    (state) => {
      if (state.table === 'sessions') summary.sessions = state.rows ?? 0;
      progress(state);
    },
    (total) => Object.assign(summary, total),
  );
  async function* counted(): AsyncGenerator<Buffer> {
    for await (const chunk of data) {
      summary.bytes += chunk.length;
      yield chunk;
    }
  }
  if (typeof into === 'string') await writeNewFile(into, (file) => pipeline(counted(), file));
  else await pipeline(counted(), into, { end: false });
  const masterKeyIn = masterKeys ? null : config.masterKeys ? 'SIGNALBOX_MASTER_KEY' : masterKeyFile(config.dataDir);
  return { ...summary, masterKeyIn, otherStores };
}

/** The rows of a sharded database are on several servers, which have no common snapshot. */
async function requireWhole(connection: BulkConnection): Promise<void> {
  const [row] = await connection.query<{ sharded: boolean; migrated: boolean }>(
    `select to_regclass('pg_dist_partition') is not null as sharded,
       to_regclass('signalbox_migrations') is not null as migrated`,
  );
  if (!row?.migrated) {
    throw new OperatorError('The database is empty: there is nothing to copy. Is DATABASE_URL or --data-dir correct?');
  }
  if (row.sharded) {
    throw new OperatorError(
      'The database is sharded with Citus. Back up each of its servers, with the tools of your PostgreSQL.',
    );
  }
}

async function masterKeysOf({ masterKeys, dataDir }: Config): Promise<string> {
  const keys = masterKeys ?? (await readMasterKeys(dataDir));
  if (!keys) {
    throw new OperatorError(
      `There is no master key in ${dataDir}. Set SIGNALBOX_MASTER_KEY to the one of the service, or leave out the passphrase.`,
    );
  }
  return keys.map((key) => key.toString('base64')).join(',');
}

async function readOtherStores(connection: BulkConnection): Promise<BackupSummary['otherStores']> {
  // Databases of the first release have no files.
  const [there] = await connection.query<{ files: boolean }>(`select to_regclass('files') is not null as files`);
  if (!there?.files) return {};
  const rows = await connection.query<{ store: string; files: string; bytes: string }>(
    `select store, count(*) as files, coalesce(sum(bytes), 0) as bytes from files
     where store <> 'database' and purge_after is null group by store order by store`,
  );
  return Object.fromEntries(
    rows.map(({ store, files, bytes }) => [store, { files: Number(files), bytes: Number(bytes) }]),
  );
}

/**
 * Writes it under another name first: the file is complete or not there. Only its owner can read it, because it contains password
 * hashes and conversations.
 */
async function writeNewFile(path: string, write: (file: Writable) => Promise<void>): Promise<void> {
  const target = resolve(path);
  const directory = dirname(target);
  const draft = `${target}.${process.pid}.part`;
  try {
    const isTaken = await stat(target).catch(() => undefined);
    if (isTaken) throw Object.assign(new Error('taken'), { code: 'EEXIST' });
    await removeDrafts(directory, basename(target));
    // Of an earlier process with this id. In a directory of many users it could also be someone else's, or a link.
    await rm(draft, { force: true });
    const file = await open(draft, 'wx', 0o600);
    await write(createWriteStream(draft, { fd: file, flush: true, autoClose: true }));
    await giveName(draft, target);
  } catch (error) {
    throw explainFile(error, target);
  } finally {
    await rm(draft, { force: true });
  }
  await syncDirectory(directory);
}

/** Fails if the name is taken, unlike a rename. */
async function giveName(draft: string, target: string): Promise<void> {
  try {
    await link(draft, target);
  } catch (error) {
    if (!WITHOUT_LINKS.has((error as NodeJS.ErrnoException).code ?? '')) throw error;
    // Takes the name first. If this is killed here, the file is empty, which a restore refuses.
    await (await open(target, 'wx', 0o600)).close();
    await rename(draft, target);
  }
}

/** From file systems that have no hard links, such as those of USB disks and many network shares. */
const WITHOUT_LINKS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EINVAL']);

/** Of backups that were killed. */
async function removeDrafts(directory: string, name: string): Promise<void> {
  for (const entry of await readdir(directory)) {
    if (!entry.startsWith(`${name}.`) || !entry.endsWith('.part')) continue;
    const pid = Number(entry.slice(name.length + 1, -'.part'.length));
    if (Number.isInteger(pid) && pid > 0 && !isAlive(pid)) await rm(join(directory, entry), { force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

const reasons: Record<string, string> = {
  EEXIST: 'exists already. Choose another name, or move it away.',
  ENOENT: "can't be written: its directory does not exist.",
  ENOTDIR: "can't be written: its directory does not exist.",
  EACCES: "can't be written: this user has no permission.",
  EPERM: "can't be written: this user has no permission.",
  EROFS: "can't be written: its file system is read-only.",
  ENOSPC: "can't be written: the disk is full. Nothing was left there. Free some space, or choose another disk.",
  EDQUOT: "can't be written: the disk quota is used up. Nothing was left there.",
  EFBIG: "can't be written: the file is too large for its file system or a limit of this user. Nothing was left there.",
};

function explainFile(error: unknown, path: string): unknown {
  const reason = reasons[(error as NodeJS.ErrnoException).code ?? ''];
  return reason ? new OperatorError(`${path} ${reason}`, { cause: error }) : error;
}

/** Reads a file from its beginning; for messages that name it. Throws `OperatorError`. */
export async function openFile(path: string): Promise<Readable> {
  try {
    return (await open(path, 'r')).createReadStream();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new OperatorError(`${path} ${code === 'ENOENT' ? 'does not exist.' : `can't be read (${code}).`}`, {
      cause: error,
    });
  }
}
