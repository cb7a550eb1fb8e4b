// Files at paths that users name. A file is written under another name next to it, its draft, and renamed when it is complete: it is
// whole or as it was before. What is not a regular file, such as a pipe or a device, is written to and never replaced. Nothing is removed
// that this module did not create.
//
// A process that writes a file removes the drafts that killed processes left of it.
import { createWriteStream } from 'node:fs';
import { access, constants, link, lstat, open, readdir, readlink, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import type { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { syncDirectory } from './sync-directory.ts';

/** The file could not be written; the message names it and says what to do. */
export class FileError extends Error {
  override readonly name = 'FileError';
  readonly code: string;
  constructor(message: string, code: string, cause: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

export interface OutputOptions {
  /** Refuses anything that is there already, a link included. Otherwise a regular file is replaced and a link is followed. */
  isNew?: boolean;
  /** Default: that of the file that is replaced, or the usual one. */
  mode?: number | undefined;
}

/** What is at the path. */
interface Place {
  target: string;
  kind: 'absent' | 'regular' | 'other';
  mode?: number;
  owner?: { uid: number; gid: number };
}

/**
 * Resolves to the result of `write`, after everything that it wrote is on disk. `write` runs once the file is known to be writable.
 * Throws `FileError`; an error of `write` that is not about files is passed on.
 */
export async function writeOutputFile<T>(
  path: string,
  write: (file: Writable) => Promise<T>,
  { isNew = false, mode }: OutputOptions = {},
): Promise<T> {
  let place: Place = { target: path, kind: 'absent' };
  try {
    place = await findPlace(path, isNew);
    if (place.kind === 'other') return await fill(createWriteStream(place.target), write);
    return await writeBeside(place, write, { isNew, mode });
  } catch (error) {
    throw explain(error, path, place);
  }
}

async function findPlace(path: string, isNew: boolean): Promise<Place> {
  if (isNew) {
    const isTaken = await orUndefined(lstat(path));
    if (isTaken) throw Object.assign(new Error('taken'), { code: 'EEXIST', syscall: 'open' });
    return { target: resolve(path), kind: 'absent' };
  }
  const found = await orUndefined(stat(path));
  if (!found) return { target: await followLinks(resolve(path)), kind: 'absent' };
  if (!found.isFile()) return { target: path, kind: 'other' };
  // A rename would replace a file that its owner has protected.
  await access(path, constants.W_OK);
  return { target: await realpath(path), kind: 'regular', mode: found.mode & 0o777, owner: found };
}

/** The file that opening the path would create: the target of a link whose target does not exist, or else the path. */
async function followLinks(path: string): Promise<string> {
  const to = await readlink(path).catch(() => undefined);
  return to === undefined ? path : followLinks(resolve(await realpath(dirname(path)), to));
}

async function orUndefined<T>(found: Promise<T>): Promise<T | undefined> {
  try {
    return await found;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

async function writeBeside<T>(
  { target, mode: previousMode, owner }: Place,
  write: (file: Writable) => Promise<T>,
  { isNew, mode = previousMode }: OutputOptions,
): Promise<T> {
  const directory = dirname(target);
  const { draft, file } = await openDraft(target, mode);
  try {
    await removeAbandonedDrafts(target, (await file.stat()).mtimeMs);
    if (mode !== undefined) await file.chmod(mode);
    // Only the superuser can keep the owner; for others the new file is their own.
    if (owner && process.getuid?.() === 0) await file.chown(owner.uid, owner.gid);
    const result = await fill(createWriteStream(draft, { fd: file, flush: true }), write);
    await (isNew ? giveNewName(draft, target) : rename(draft, target));
    await syncDirectory(directory);
    return result;
  } finally {
    await file.close().catch(() => undefined);
    await rm(draft, { force: true });
  }
}

/** Ends the stream, and waits until it is closed. */
async function fill<T>(stream: Writable, write: (file: Writable) => Promise<T>): Promise<T> {
  const closed = finished(stream);
  // If `write` fails, it has the reason.
  closed.catch(() => undefined);
  try {
    const result = await write(stream);
    if (!stream.writableEnded) stream.end();
    await closed;
    return result;
  } catch (error) {
    stream.destroy();
    throw error;
  }
}

/** In a directory of many users the name could be a link or a file of someone else, which is left alone. */
async function openDraft(target: string, mode = 0o666) {
  for (let n = 1; ; n += 1) {
    const draft = `${target}.${process.pid}${n === 1 ? '' : `-${n}`}.part`;
    try {
      return { draft, file: await open(draft, 'wx', mode) };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}

/** Fails if the name is taken, unlike a rename. */
async function giveNewName(draft: string, target: string): Promise<void> {
  try {
    await link(draft, target);
  } catch (error) {
    if (!WITHOUT_LINKS.has((error as NodeJS.ErrnoException).code ?? '')) throw error;
    // Takes the name first. A process that is killed here leaves an empty file.
    await (await open(target, 'wx', 0o600)).close();
    await rename(draft, target);
  }
}

/** From file systems that have no hard links, such as on USB disks and many network shares. */
const WITHOUT_LINKS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EINVAL']);

// A process in another container has an id that this one can't look up, but it writes all the time.
const ABANDONED_AFTER_MS = 60_000;

/** `nowMs` is by the clock of the file system. Does what it can: a directory may let this user create files without listing them. */
async function removeAbandonedDrafts(target: string, nowMs: number): Promise<void> {
  const [directory, name] = [dirname(target), basename(target)];
  for (const entry of await readdir(directory).catch(() => [])) {
    if (!entry.startsWith(`${name}.`)) continue;
    const pid = /^(\d{1,9})(?:-\d+)?\.part$/.exec(entry.slice(name.length + 1))?.[1];
    if (pid === undefined || isAlive(Number(pid))) continue;
    const draft = join(directory, entry);
    const found = await lstat(draft).catch(() => undefined);
    if (found?.isFile() && nowMs - found.mtimeMs > ABANDONED_AFTER_MS) await rm(draft, { force: true });
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
  EISDIR: 'is a directory. Name a file in it.',
  ENOENT: "can't be written: its directory does not exist.",
  ENOTDIR: "can't be written: its directory does not exist.",
  ELOOP: "can't be written: it is a link that leads to itself.",
  EACCES: "can't be written: this user has no permission, or none to create a file next to it.",
  EPERM: "can't be written: this user has no permission, or none to create a file next to it.",
  EROFS: "can't be written: its file system is read-only.",
  EBUSY: "can't be replaced, because it is a mount point. Choose another name.",
  EPIPE: "can't be written: the reader of the pipe has left.",
  ENXIO: "can't be written: it is a socket, or a device that does not exist.",
  ENAMETOOLONG: "can't be written: the name is too long. Choose a shorter one.",
  ENOSPC: "can't be written: the disk is full. Free some space, or choose another disk.",
  EDQUOT: "can't be written: the disk quota is used up. Free some space, or choose another disk.",
  EFBIG: "can't be written: the file is too large for its file system or a limit of this user.",
};
const IS_HALF_WRITTEN = new Set(['ENOSPC', 'EDQUOT', 'EFBIG', 'EIO']);
const outcomes = { absent: ' Nothing was left there.', regular: ' It is as it was before.', other: '' };

function explain(error: unknown, path: string, { kind }: Place): unknown {
  const { code = '', syscall } = error as NodeJS.ErrnoException;
  // Errors of connections have a system call too.
  if (
    !/^(open|read(dir|link)|l?stat|access|realpath|write|f(data)?sync|fch(mod|own)|link|rename|close)$/.test(
      syscall ?? '',
    )
  )
    return error;
  const reason = reasons[code] ?? `can't be written (${code}).`;
  return new FileError(`${path} ${reason}${IS_HALF_WRITTEN.has(code) ? outcomes[kind] : ''}`, code, error);
}
