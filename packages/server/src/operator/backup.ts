// `signalbox backup`: a consistent copy of the whole database in one file, while the service runs or is stopped.
import { open } from 'node:fs/promises';
import type { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Config } from '../config/config.ts';
import { type BulkConnection, openBulkConnection } from '../db/bulk-connection.ts';
import { snapshotOf } from '../db/schema/tables.ts';
import { systemClock } from '../lib/clock.ts';
import { writeOutputFile } from '../lib/files/output-file.ts';
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

export interface BackupOptions {
  /** A new file, or a stream that the caller closes. */
  into: string | Writable;
  /** If given, the file contains the master key, encrypted under it. */
  passphrase?: string | undefined;
}

/** Throws `OperatorError`, `StartError` or `FileError`. */
export async function backupOnHost(config: Config, wish: BackupOptions, progress: Progress): Promise<BackupSummary> {
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
  { into, passphrase }: BackupOptions,
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
  // Only its owner can read it, because it contains password hashes and conversations.
  if (typeof into === 'string')
    await writeOutputFile(into, (file) => pipeline(counted(), file), { isNew: true, mode: 0o600 });
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
