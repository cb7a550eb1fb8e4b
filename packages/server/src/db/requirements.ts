// What the service requires of its database to keep its guarantees. Checked before anything is written.
import sql from 'sql-template-tag';
import { pinnedSettings } from './connection.ts';
import type { Queryable } from './db.ts';
import { serverVersion } from './server-version.ts';

/** The database is reachable but can't be used as it is; the message says what to do. */
export class DatabaseUnsuitable extends Error {
  override readonly name = 'DatabaseUnsuitable';
}

// The oldest version that the tests run on.
const LEAST_MAJOR_VERSION = 15;

/** The pinned settings without which results are wrong. Behind a pooler they can't be set for a connection. */
const NEEDED_BEHIND_A_POOLER = [
  'array_nulls',
  'bytea_output',
  'DateStyle',
  'default_transaction_isolation',
  'standard_conforming_strings',
  'transform_null_equals',
] as const;

/** Throws `DatabaseUnsuitable`. `isPooled`: settings can't be pinned, because connections go through a transaction pooler. */
export async function requireSuitable(db: Queryable, { isPooled = false } = {}): Promise<void> {
  await requireSupportedServer(db);
  await requireDurableCommits(db);
  await requireUnicode(db);
  await requireSchema(db);
  if (isPooled) await requireSettings(db);
}

/** Throws `DatabaseUnsuitable` for a server that is too old. */
export async function requireSupportedServer(db: Queryable): Promise<void> {
  const { major, stated } = await serverVersion(db);
  if (major < LEAST_MAJOR_VERSION) {
    throw new DatabaseUnsuitable(
      `The database is PostgreSQL ${stated}; Signalbox needs ${LEAST_MAJOR_VERSION} or later.`,
    );
  }
}

/**
 * Throws `DatabaseUnsuitable` if this server or its user is set to acknowledge commits before they are on disk: what the service has
 * acknowledged must survive a power failure.
 */
export async function requireDurableCommits(db: Queryable): Promise<void> {
  const [row] = await db.query<{ synchronous_commit: string }>(sql`show synchronous_commit`);
  if (row?.synchronous_commit === 'off') {
    throw new DatabaseUnsuitable(
      'The database has synchronous_commit = off, so a power failure would lose acknowledged data. Set it to on.',
    );
  }
}

async function requireUnicode(db: Queryable): Promise<void> {
  const [row] = await db.query<{ server_encoding: string }>(sql`show server_encoding`);
  if (row?.server_encoding !== 'UTF8') {
    throw new DatabaseUnsuitable(
      `The database has the encoding ${row?.server_encoding}, which can't store all text. Create another one: ` +
        `create database signalbox encoding 'UTF8' template template0.`,
    );
  }
}

async function requireSchema(db: Queryable): Promise<void> {
  const [row] = await db.query<{ schema: string | null; path: string }>(
    sql`select current_schema() as schema, current_setting('search_path') as path`,
  );
  if (!row?.schema) {
    throw new DatabaseUnsuitable(
      `The search_path of the database's user, ${row?.path}, contains no existing schema to create tables in. ` +
        'Create the schema, or set search_path to one that exists (alter role … set search_path to …).',
    );
  }
}

async function requireSettings(db: Queryable): Promise<void> {
  for (const name of NEEDED_BEHIND_A_POOLER) {
    const [row] = await db.query<{ value: string }>(sql`select current_setting(${name}) as value`);
    const [found = '', wanted = ''] = [row?.value, pinnedSettings[name]];
    // With the style ISO, the order of day and month doesn't matter.
    const isRight = name === 'DateStyle' ? found.startsWith('ISO') : found === wanted;
    if (!isRight) {
      throw new DatabaseUnsuitable(
        `The database has ${name} = ${found}, which can't be changed through a pooler. ` +
          `Set it for the service's user: alter role … set ${name} = '${wanted}'.`,
      );
    }
  }
}
