// The PostgreSQL of an installation without DATABASE_URL: in `postgres/` of the data directory, started and stopped with the node.
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { findPostgres, type Postgres, type PostgresLog, startPostgres } from '@signalbox/embedded-postgres';

const optionsFor = (dataDir: string) => ({
  directory: join(dataDir, 'postgres'),
  user: 'signalbox',
  database: 'signalbox',
});

/** Rejects with a `PostgresError`; `explainStart` says what to do. */
export function startEmbeddedPostgres(dataDir: string, log?: PostgresLog): Promise<Postgres> {
  return startPostgres({ ...optionsFor(dataDir), log });
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
