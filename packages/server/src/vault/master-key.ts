// Where the master key comes from: SIGNALBOX_MASTER_KEY, or else the file `master.key` in the data directory, generated at the first
// start. Without it, the secrets sealed under it are lost. The file is therefore on disk before anything is sealed, and never overwritten.
import { randomBytes } from 'node:crypto';
import { access, constants, type FileHandle, mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { nearestDirectory } from '../lib/files/nearest-directory.ts';
import { FileError, writeOutputFile } from '../lib/files/output-file.ts';

const KEY_BYTES = 32;
const FILE = 'master.key';

/** The key file can't be used as it is; the message says what to do. */
export class MasterKeyFileError extends Error {
  override readonly name = 'MasterKeyFileError';
}

/** One key or several, separated by commas or line ends: 32 bytes each, as base64 or hex. The message shows none of them. */
export function parseMasterKeys(text: string): Buffer[] {
  const parts = text.split(/[\s,]+/).filter((part) => part !== '');
  const keys = parts.map(parseKey);
  const wrong = keys.indexOf(undefined);
  if (parts.length === 0 || wrong >= 0) {
    throw new Error(
      `${parts.length > 1 ? `key ${wrong + 1} of ${parts.length}` : 'the value'} is not a key; ` +
        'use 32 bytes as base64 or hex (`openssl rand -base64 32`)',
    );
  }
  return keys as Buffer[];
}

function parseKey(text: string): Buffer | undefined {
  if (/^[0-9a-f]{64}$/i.test(text)) return Buffer.from(text, 'hex');
  if (!/^[A-Za-z0-9+/_-]{43}=?$/.test(text)) return undefined;
  const key = Buffer.from(text, 'base64');
  return key.length === KEY_BYTES ? key : undefined;
}

/** The keys in the file, which is generated if there is none. Throws `MasterKeyFileError`. */
export async function loadMasterKeys(dataDir: string): Promise<Buffer[]> {
  const path = masterKeyFile(dataDir);
  try {
    await createDirectory(dataDir);
    return (await readKeys(path)) ?? (await makeKey(dataDir));
  } catch (error) {
    if (error instanceof MasterKeyFileError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'EACCES' || code === 'EPERM') {
      throw new MasterKeyFileError(
        `${path} can't be read or created by this user. Start Signalbox as the user that created it, or change its owner.`,
        { cause: error },
      );
    }
    if (code === 'EROFS') {
      throw new MasterKeyFileError(
        `The data directory ${dataDir} can't be written: its file system is read-only. Choose another one with --data-dir.`,
        { cause: error },
      );
    }
    if (code === 'EEXIST' || code === 'ENOTDIR') {
      throw new MasterKeyFileError(`The data directory ${dataDir} is not a directory. Choose another one.`, {
        cause: error,
      });
    }
    if (error instanceof FileError) throw new MasterKeyFileError(message, { cause: error });
    throw new MasterKeyFileError(`${path} can't be read or created (${code ?? message}).`, { cause: error });
  }
}

async function createDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    // With `recursive`, Node reports ENOENT whatever the reason. This fails with the reason.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') await access(await nearestDirectory(path), constants.W_OK);
    throw error;
  }
}

/** The keys in the file; undefined if there is none. Throws `MasterKeyFileError`. */
export function readMasterKeys(dataDir: string): Promise<Buffer[] | undefined> {
  return readKeys(masterKeyFile(dataDir));
}

export const masterKeyFile = (dataDir: string): string => join(dataDir, FILE);

/** What to know about the file if its database can have other nodes. */
export function aboutSharing(dataDir: string): { message: string; fix: string } {
  const file = masterKeyFile(dataDir);
  return {
    message: `the master key is in ${file}: every other node needs the same key, and does not start with another`,
    fix: "Set SIGNALBOX_MASTER_KEY on every node to the content of this file, and keep a copy in another place. If it is lost, stored secrets can't be read.",
  };
}

/** Throws `FileError`, with EEXIST if there is one. */
export function writeMasterKeys(dataDir: string, keys: readonly Buffer[]): Promise<void> {
  const text = keys.map((key) => `${key.toString('base64')}\n`).join('');
  return writeOutputFile(masterKeyFile(dataDir), (file) => pipeline([text], file), { isNew: true, mode: 0o600 });
}

async function readKeys(path: string): Promise<Buffer[] | undefined> {
  let file: FileHandle;
  try {
    file = await open(path, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    const { mode } = await file.stat();
    if (process.platform !== 'win32' && (mode & 0o077) !== 0) {
      throw new MasterKeyFileError(
        `${path} can be accessed by other users of this machine. Restrict it: chmod 600 ${path}`,
      );
    }
    const text = await file.readFile('utf8');
    try {
      return parseMasterKeys(text);
    } catch {
      throw new MasterKeyFileError(
        `${path} does not contain a key of 32 bytes in base64 or hex. Restore it from a backup: without it, stored secrets ` +
          "can't be read. If there are no secrets to keep, remove the file, and a new key is generated.",
      );
    }
  } finally {
    await file.close();
  }
}

/** If two nodes start at once, one of them creates it. */
async function makeKey(dataDir: string): Promise<Buffer[]> {
  try {
    await writeMasterKeys(dataDir, [randomBytes(KEY_BYTES)]);
  } catch (error) {
    if (!(error instanceof FileError && error.code === 'EEXIST')) throw error;
  }
  return (await readMasterKeys(dataDir))!;
}
