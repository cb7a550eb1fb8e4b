// Why the embedded database of a data directory must not be started, in `do-not-start.json` there.
//
// A command that replaces or leaves the database writes it before its first step. A node that started in between would create an
// empty installation, or continue in a database whose contents are used elsewhere.
import { open, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { syncDirectory } from '../lib/files/sync-directory.ts';

export type StartMark = { at: string } /** `replaces`: the directory had a database before. */ & (
  | { because: 'restoring'; from: string; replaces: boolean }
  /** `moveId` is in the other database as well, from the moment at which it has everything. */
  | { because: 'moving' | 'moved'; to: string; moveId: string }
);

/** The message says what to do. */
export class MarkedNotToStart extends Error {
  override readonly name = 'MarkedNotToStart';
}

const pathOf = (dataDir: string) => join(dataDir, 'do-not-start.json');

/** Throws `MarkedNotToStart`. */
export async function requireNoStartMark(dataDir: string): Promise<void> {
  const mark = await readStartMark(dataDir);
  if (mark) throw new MarkedNotToStart(messageOf(mark, dataDir));
}

function messageOf(mark: StartMark, dataDir: string): string {
  const anyway = `To use this database anyway, remove ${pathOf(dataDir)}.`;
  switch (mark.because) {
    case 'restoring':
      return (
        `A restore of ${mark.from} into ${dataDir} was interrupted (${mark.at}). Run signalbox restore again. ` +
        (mark.replaces
          ? `The database from before the restore is in postgres or, if that was replaced, in postgres.before-restore-…. ${anyway}`
          : '')
      );
    case 'moving':
      return `A move of the database in ${dataDir} to ${mark.to} was interrupted (${mark.at}). Run signalbox move again. ${anyway}`;
    case 'moved':
      return (
        `The database in ${dataDir} was moved to ${mark.to} (${mark.at}): set DATABASE_URL to it. ${anyway} ` +
        'Nothing that happened since the move is in it.'
      );
  }
}

export async function readStartMark(dataDir: string): Promise<StartMark | undefined> {
  const text = await readFile(pathOf(dataDir), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
    throw error;
  });
  return text === undefined ? undefined : (JSON.parse(text) as StartMark);
}

/** Complete on the disk when it resolves. */
export async function writeStartMark(dataDir: string, mark: StartMark): Promise<void> {
  const path = pathOf(dataDir);
  const file = await open(`${path}.new`, 'w', 0o600);
  try {
    await file.writeFile(`${JSON.stringify(mark)}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(`${path}.new`, path);
  await syncDirectory(dataDir);
}

export async function removeStartMark(dataDir: string): Promise<void> {
  await rm(pathOf(dataDir), { force: true });
}
