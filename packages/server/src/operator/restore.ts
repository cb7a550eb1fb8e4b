// `signalbox restore`: creates the database of a backup, in a data directory or in the empty database of DATABASE_URL.
//
// With a data directory, everything happens in a new cluster next to the directory's own. It is renamed once it is complete and
// verified. Until then `do-not-start.json` keeps nodes from starting (db/start-mark.ts). A command that was killed is run again, and
// starts from the beginning.
import { mkdir, rename, rm, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { DirectoryInUse, type Postgres } from '@signalbox/embedded-postgres';
import type { Config } from '../config/config.ts';
import type { BulkConnection } from '../db/bulk-connection.ts';
import { embeddedDirectory, findEmbeddedPostgres, hasEmbeddedPostgres, startDraftPostgres } from '../db/embedded.ts';
import { readStartMark, removeStartMark, writeStartMark } from '../db/start-mark.ts';
import { systemClock } from '../lib/clock.ts';
import { syncDirectory } from '../lib/files/sync-directory.ts';
import { masterKeyFile, parseMasterKeys, readMasterKeys, writeMasterKeys } from '../vault/master-key.ts';
import { createVault } from '../vault/vault.ts';
import { openFile } from './backup.ts';
import { type Backup, type BackupHeader, readBackup } from './backup-file.ts';
import type { Loaded } from './load.ts';
import { OperatorError } from './operator.ts';
import { openWithPassphrase } from './passphrase.ts';
import type { Progress } from './progress.ts';
import { explainStart } from './start-error.ts';
import { fillDatabase, requireKnownMigrations } from './target.ts';

export interface RestoreOptions {
  /** A file, or a stream with its bytes, which is closed. */
  from: string | Readable;
  /** Replaces the database of the data directory. The previous one is kept under another name. */
  replace?: boolean | undefined;
  /** Opens the master key in the backup. */
  passphrase?: string | undefined;
}

export interface Restored extends Loaded {
  createdAt: string;
  /** The release that wrote the backup. */
  release: string;
  /** Where the previous database is, if one was replaced. */
  keptIn: string | undefined;
  /** Where the master key of the backup was written to. */
  masterKeyIn: string | undefined;
  /** Whether the master key in the environment or the data directory is the one that the restored secrets need. */
  hasRightKey: boolean;
  /** Whether the backup contains the master key. */
  containsKey: boolean;
  otherStores: NonNullable<BackupHeader['otherStores']>;
}

/** Throws `OperatorError` or `StartError`. */
export async function restoreOnHost(config: Config, wish: RestoreOptions, progress: Progress): Promise<Restored> {
  try {
    return await withBackup(wish.from, (backup) => restore(config, wish, backup, progress));
  } catch (error) {
    throw explainStart(error, config);
  }
}

async function restore(config: Config, wish: RestoreOptions, backup: Backup, progress: Progress): Promise<Restored> {
  const keys = await keysFor(config, wish, backup);
  let newest: Buffer | undefined;
  const fill = (url: string) =>
    fillDatabase(url, backup, progress, async (connection) => {
      newest = await newestFingerprint(connection);
    });
  const { databaseUrl, listenUrl } = config;
  const place = databaseUrl
    ? { loaded: await fill(listenUrl ?? databaseUrl), keptIn: undefined }
    : await replaceCluster(config.dataDir, wish, fill);
  if (keys.write) await replaceKey(config.dataDir, keys.write);
  // Only now may a node start: it would create a key if there was none.
  if (!databaseUrl) await removeStartMark(config.dataDir);
  const { createdAt, release, otherStores = {}, masterKeys } = backup;
  return {
    ...place.loaded,
    ...{ createdAt, release, otherStores, keptIn: place.keptIn },
    masterKeyIn: keys.write && masterKeyFile(config.dataDir),
    hasRightKey: !newest || (keys.known?.some((fingerprint) => fingerprint.equals(newest!)) ?? false),
    containsKey: masterKeys !== undefined,
  };
}

/** Reads a whole backup and compares its checksums. Throws `OperatorError` if it can't be restored by this release. */
export async function checkBackup(
  from: RestoreOptions['from'],
  progress: Progress,
): Promise<Pick<Restored, 'createdAt' | 'release' | 'tables' | 'rows' | 'containsKey'>> {
  return withBackup(from, async ({ createdAt, release, masterKeys, tables }) => {
    let [done, rows] = [0, 0];
    for await (const table of tables()) {
      for await (const _ of table.rows) progress({ step: 'checking', table: table.name, rows: table.sum().rows, done });
      done += 1;
      rows += table.sum().rows;
    }
    return { createdAt, release, tables: done, rows, containsKey: masterKeys !== undefined };
  });
}

/** Closes the file, of which a refused backup has been read in part. */
async function withBackup<Result>(
  from: RestoreOptions['from'],
  use: (backup: Backup) => Promise<Result>,
): Promise<Result> {
  const [file, name] = typeof from === 'string' ? [await openFile(from), from] : [from, 'The input'];
  try {
    const backup = await readBackup(file, name);
    await requireKnownMigrations({ migrations: backup.migrations, writtenBy: backup.release }, name);
    return await use(backup);
  } finally {
    file.destroy();
    // An error of the file was thrown by what read it.
    await finished(file).catch(() => {});
  }
}

interface Keys {
  /** To be written to the data directory. */
  write: Buffer[] | undefined;
  /** Fingerprints of those that a node here is going to have. */
  known: readonly Buffer[] | undefined;
}

/** Checked before anything changes. */
async function keysFor(config: Config, { passphrase, replace }: RestoreOptions, backup: Backup): Promise<Keys> {
  const own = config.masterKeys ?? (await readMasterKeys(config.dataDir));
  const known = own && createVault(own).fingerprints;
  if (passphrase === undefined) return { write: undefined, known };
  if (!backup.masterKeys) {
    throw new OperatorError('The backup does not contain a master key. Leave out the passphrase.');
  }
  const saved = parseMasterKeys(openWithPassphrase(passphrase, backup.masterKeys));
  const fingerprints = createVault(saved).fingerprints;
  if (config.masterKeys || fingerprints.every((one) => known?.some((other) => other.equals(one)))) {
    return { write: undefined, known };
  }
  if (own && !replace) {
    throw new OperatorError(
      `${masterKeyFile(config.dataDir)} is another master key than the one in the backup. Move it away, or use another data directory.`,
    );
  }
  return { write: saved, known: fingerprints };
}

async function newestFingerprint(connection: BulkConnection): Promise<Buffer | undefined> {
  const [row] = await connection.query<{ fingerprint: Buffer }>(
    'select fingerprint from master_keys order by position desc limit 1',
  );
  return row?.fingerprint;
}

/** `fill` gets the URL of the new cluster. */
async function replaceCluster(
  dataDir: string,
  { from, replace = false }: RestoreOptions,
  fill: (url: string) => Promise<Loaded>,
): Promise<{ loaded: Loaded; keptIn: string | undefined }> {
  const place = embeddedDirectory(dataDir);
  const draft = `${place}.restoring`;
  const before = await readStartMark(dataDir);
  // A restore into an empty directory that was killed after its rename: what is there now is its result.
  const mayReplace = replace || (before?.because === 'restoring' && !before.replaces);
  await requireFree(dataDir, mayReplace);
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const at = systemClock.now().toISOString();
  await writeStartMark(dataDir, {
    because: 'restoring',
    from: typeof from === 'string' ? basename(from) : 'a backup',
    replaces: replace,
    at,
  });
  const unmark = () =>
    before && before.because !== 'restoring' ? writeStartMark(dataDir, before) : removeStartMark(dataDir);
  let server: Postgres | undefined;
  let loaded: Loaded;
  try {
    await removeDraft(draft);
    server = await startDraftPostgres(draft);
    loaded = await fill(server.url);
    await server.stop();
    // Another restore may have finished meanwhile, and a node may have started on its database.
    await requireFree(dataDir, mayReplace);
  } catch (error) {
    await server?.stop();
    // The draft belongs to another restore that is running.
    if (error instanceof DirectoryInUse) throw error;
    await rm(draft, { recursive: true, force: true });
    // Between two renames of an earlier restore, there may be no database to start.
    if (before?.because !== 'restoring') await unmark();
    throw error;
  }
  const keptIn = mayReplace ? await setAside(place) : undefined;
  await rename(draft, place);
  await syncDirectory(dataDir);
  return { loaded, keptIn };
}

/** Returns its new name; undefined if there is nothing. */
async function setAside(path: string): Promise<string | undefined> {
  if (!(await stat(path).catch(() => undefined))) return undefined;
  const at = systemClock
    .now()
    .toISOString()
    .replaceAll(/[-:]|\.\d+/g, '');
  let aside = `${path}.before-restore-${at}`;
  // Another restore in the same second may have used the name. A rename would replace its file.
  for (let n = 2; await stat(aside).catch(() => undefined); n += 1) aside = `${path}.before-restore-${at}-${n}`;
  await rename(path, aside);
  return aside;
}

/** The previous database needs the previous key, so that stays too. */
async function replaceKey(dataDir: string, keys: readonly Buffer[]): Promise<void> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  await setAside(masterKeyFile(dataDir));
  await writeMasterKeys(dataDir, keys);
}

async function requireFree(dataDir: string, replace: boolean): Promise<void> {
  if (!(await hasEmbeddedPostgres(dataDir))) return;
  if (!replace) {
    throw new OperatorError(
      `There is a database in ${dataDir} already. Restore into another directory (--data-dir), or replace the database ` +
        'with --force; the previous one is then kept next to it.',
    );
  }
  if ((await findEmbeddedPostgres(dataDir)) !== undefined) {
    throw new OperatorError(`Signalbox is running in ${dataDir}. Stop it and run the command again.`);
  }
}

/** Removes the draft of a restore that was killed, whose server may still run. Throws `DirectoryInUse` if one is working there. */
async function removeDraft(draft: string): Promise<void> {
  if (!(await stat(draft).catch(() => undefined))) return;
  try {
    await (await startDraftPostgres(draft)).stop();
  } catch (error) {
    if (error instanceof DirectoryInUse) throw error;
  }
  await rm(draft, { recursive: true, force: true });
}
