// Checks of this machine: the data directory and the master key.
import { access, constants, stat, statfs } from 'node:fs/promises';
import type { Config } from '../../config/config.ts';
import { embeddedDirectory, hasEmbeddedPostgres } from '../../db/embedded.ts';
import { readStartMark, requireNoStartMark } from '../../db/start-mark.ts';
import { nearestDirectory } from '../../lib/files/nearest-directory.ts';
import { connectionsWithin, OPEN_FILES_FIX, openFileLimit } from '../../lib/files/open-files.ts';
import { aboutSharing, masterKeyFile, readMasterKeys } from '../../vault/master-key.ts';
import { failed, ok, type Report, run, warning } from './check.ts';

const MEGABYTE = 1024 * 1024;
// PostgreSQL stops when its disk is full; its write-ahead log alone takes a gigabyte.
const LITTLE_MB = 2_048;
const TOO_LITTLE_MB = 200;

export async function checkHost(config: Config, report: Report): Promise<void> {
  const { dataDir, databaseUrl } = config;
  if (databaseUrl === undefined) {
    await run(report, 'data_directory', () => checkDataDirectory(dataDir));
    await run(report, 'data_directory.disk', () => checkDisk(dataDir));
  }
  await run(report, 'master_key', () => checkKey(config));
  await run(report, 'open_files', () => checkOpenFiles(config));
}

async function checkDataDirectory(dataDir: string) {
  const found = await stat(dataDir).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
  });
  if (!found) {
    const parent = await nearestDirectory(dataDir);
    const isWritable = await access(parent, constants.W_OK | constants.X_OK).then(
      () => true,
      () => false,
    );
    return isWritable
      ? ok(`${dataDir} does not exist yet; the first start creates it`)
      : failed(`${dataDir} can't be created: ${parent} can't be written`, 'Choose another one with --data-dir.');
  }
  if (!found.isDirectory()) return failed(`${dataDir} is not a directory`, 'Choose another one with --data-dir.');
  await readStartMark(dataDir);
  try {
    await requireNoStartMark(dataDir);
  } catch (error) {
    return failed('the database in it must not be started', (error as Error).message);
  }
  try {
    await access(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch {
    return failed(`this user can't write to ${dataDir}`, 'Start as the user that owns it, or change its owner.');
  }
  if (process.platform !== 'win32' && (found.mode & 0o077) !== 0) {
    return warning(
      `${dataDir} can be entered by other users of this machine`,
      `Restrict it: chmod 700 ${dataDir}. The database and the key in it are protected by themselves.`,
    );
  }
  const isThere = await hasEmbeddedPostgres(dataDir);
  return ok(isThere ? `${dataDir} has a database` : `${dataDir} has no database yet; the first start creates it`);
}

async function checkDisk(dataDir: string) {
  const disk = await statfs(await nearestDirectory(embeddedDirectory(dataDir)));
  const freeMb = Math.floor((disk.bavail * disk.bsize) / MEGABYTE);
  const text = `${(freeMb / 1024).toFixed(1)} GiB are free`;
  const fix =
    'Free some space, or move the data directory to a larger disk. The service stops writing when the disk is full.';
  return freeMb < TOO_LITTLE_MB ? failed(text, fix) : freeMb < LITTLE_MB ? warning(text, fix) : ok(text);
}

/** By the limit of the doctor itself, which is that of the service if both are started alike. */
async function checkOpenFiles({ maxConnections, roles }: Config) {
  const limit = await openFileLimit();
  if (limit === undefined) return ok('this system does not say how many files a process can open');
  const text = `a process started here can open ${limit} files`;
  if (!roles.has('api') || limit >= maxConnections) return ok(text);
  return warning(
    `${text}, so a node accepts ${connectionsWithin(limit, maxConnections)} connections instead of SIGNALBOX_MAX_CONNECTIONS (${maxConnections})`,
    OPEN_FILES_FIX,
  );
}

async function checkKey({ masterKeys, dataDir, databaseUrl }: Config) {
  if (masterKeys) {
    const [, ...older] = masterKeys;
    return ok(`SIGNALBOX_MASTER_KEY is set${older.length > 0 ? `, with ${older.length} older key(s)` : ''}`);
  }
  const keys = await readMasterKeys(dataDir);
  const file = masterKeyFile(dataDir);
  if (databaseUrl !== undefined) {
    if (!keys)
      return warning(
        'SIGNALBOX_MASTER_KEY is not set',
        'With several nodes, set it to the same value on each of them.',
      );
    const { message, fix } = aboutSharing(dataDir);
    return warning(message, fix);
  }
  if (keys) return ok(`${file} has the master key; keep a copy of it in another place`);
  if (await hasEmbeddedPostgres(dataDir)) {
    return failed(
      `${file} is missing`,
      'Restore it from where you keep a copy, or set SIGNALBOX_MASTER_KEY. If it is lost: signalbox keys unreadable --help.',
    );
  }
  return ok(`the first start creates ${file}`);
}
