// The PostgreSQL of an installation without DATABASE_URL: in `postgres/` of the data directory, started and stopped with the node.
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { findPostgres, type Postgres, type PostgresLog, startPostgres } from '@signalbox/embedded-postgres';
import { requireNoStartMark } from './start-mark.ts';

const optionsFor = (dataDir: string) => ({
  directory: embeddedDirectory(dataDir),
  user: 'signalbox',
  database: 'signalbox',
});

export const embeddedDirectory = (dataDir: string): string => join(dataDir, 'postgres');

/** Rejects with a `PostgresError` or `MarkedNotToStart`; `explainStart` says what to do. */
export async function startEmbeddedPostgres(dataDir: string, log?: PostgresLog): Promise<Postgres> {
  await requireNoStartMark(dataDir);
  return startPostgres({ ...optionsFor(dataDir), log });
}

/** The same, even if it is marked: for the command that wrote the mark. */
export function startMarkedPostgres(dataDir: string): Promise<Postgres> {
  return startPostgres(optionsFor(dataDir));
}

/** A new one in another directory, which is renamed to the embedded one's once it is filled. It has few checkpoints. */
export function startDraftPostgres(directory: string): Promise<Postgres> {
  const settings = { max_wal_size: '4GB' };
  return startPostgres({ user: 'signalbox', database: 'signalbox', directory, settings });
}

/** The URL of the running server, for commands that run next to the service; undefined if none is running. */
export function findEmbeddedPostgres(dataDir: string): Promise<string | undefined> {
  return findPostgres(optionsFor(dataDir));
}

/** Whether there is one, running or not. True if that can't be determined: starting it then reports why. */
export async function hasEmbeddedPostgres(dataDir: string): Promise<boolean> {
  const { code } = await stat(join(optionsFor(dataDir).directory, 'cluster')).then(
    () => ({ code: undefined }),
    (error: NodeJS.ErrnoException) => error,
  );
  return code === undefined || code === 'EACCES';
}
