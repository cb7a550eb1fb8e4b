// What a PostgreSQL server has to be for the service to keep its promises on it.
import sql from 'sql-template-tag';
import type { Queryable } from './db.ts';

/** The database is there and cannot be used as it is; the message says what to do. */
export class DatabaseUnsuitable extends Error {
  override readonly name = 'DatabaseUnsuitable';
}

// The oldest that the tests ran on.
const LEAST_MAJOR_VERSION = 15;

/** Throws `DatabaseUnsuitable` for a server that is too old. */
export async function requireSupportedServer(db: Queryable): Promise<void> {
  const [row] = await db.query<{ server_version: string }>(sql`show server_version`);
  if (Number.parseInt(row?.server_version ?? '', 10) < LEAST_MAJOR_VERSION) {
    throw new DatabaseUnsuitable(
      `The database is PostgreSQL ${row?.server_version}; Signalbox needs ${LEAST_MAJOR_VERSION} or later.`,
    );
  }
}

/**
 * Throws `DatabaseUnsuitable` when this server or its user is set to acknowledge commits that are not on disk yet, because
 * what the service has answered for must survive a power cut.
 */
export async function requireDurableCommits(db: Queryable): Promise<void> {
  const [row] = await db.query<{ synchronous_commit: string }>(sql`show synchronous_commit`);
  if (row?.synchronous_commit === 'off') {
    throw new DatabaseUnsuitable(
      'The database has synchronous_commit = off and would lose what was acknowledged in a power cut. Set it to on.',
    );
  }
}
