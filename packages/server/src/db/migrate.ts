// Brings a database to the state that the code expects.
//
// Migrations are files `NNNN_name.sql`, numbered from 0001 without gaps, forward only. Each runs in a transaction whose
// first statement inserts its version: of several nodes that start at once one inserts, the others wait for its commit
// on the primary key, find the row there and go on. A node that dies in the middle leaves nothing, and the next one does it.
import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Client } from 'pg';
import { createDb, type Db } from './db.ts';

export interface MigrateLog {
  info(fields: object, message: string): void;
}

export interface Migration {
  version: number;
  name: string;
  text: string;
}

/** The database was migrated by a newer release of Signalbox than this one. */
export class DatabaseTooNew extends Error {
  constructor(found: number, known: number) {
    super(
      `The database is at schema version ${found}, but this release knows versions up to ${known}. ` +
        'Start a release that is at least as new as the one that migrated it, or restore a backup made before.',
    );
    this.name = 'DatabaseTooNew';
  }
}

const MIGRATIONS = fileURLToPath(new URL('./migrations/', import.meta.url));

/** The migrations in a directory, in order. */
export async function readMigrations(directory: string = MIGRATIONS): Promise<Migration[]> {
  const files = (await readdir(directory)).filter((file) => file.endsWith('.sql')).sort();
  return Promise.all(
    files.map(async (file, index) => {
      const [, digits, name] = /^(\d{4})_([a-z0-9_]+)\.sql$/.exec(file) ?? [];
      if (!digits || !name || Number(digits) !== index + 1) {
        const expected = String(index + 1).padStart(4, '0');
        throw new Error(`Migration ${file}: the name has to be ${expected}_name.sql, numbered without gaps`);
      }
      return { version: index + 1, name, text: await readFile(`${directory}/${file}`, 'utf8') };
    }),
  );
}

/** Runs what is missing. Safe to call on several nodes at once. Throws DatabaseTooNew. */
export async function migrate(target: string | Db, log: MigrateLog, directory?: string): Promise<void> {
  const migrations = await readMigrations(directory);
  const db = typeof target === 'string' ? createDb({ url: target, max: 1 }) : target;
  try {
    // A migration is a script of many statements, which only pg's own query function takes, outside the pool.
    const client = await db.connect();
    client.on('error', () => {}); // The running statement fails with the same error.
    try {
      await client.query('set statement_timeout = 0');
      await createVersionTable(client);
      const { rows } = await client.query('select coalesce(max(version), 0) as version from schema_migrations');
      const current: number = rows[0].version;
      if (current > migrations.length) throw new DatabaseTooNew(current, migrations.length);
      for (const migration of migrations.slice(current)) {
        const applied = await apply(client, migration);
        if (applied) log.info({ version: migration.version, name: migration.name }, 'migrated the database');
      }
    } finally {
      await client.end();
    }
  } finally {
    if (db !== target) await db.close();
  }
}

async function createVersionTable(client: Client): Promise<void> {
  try {
    await client.query(`
      create table if not exists schema_migrations (
        version int primary key, name text not null, applied_at timestamptz not null default now()
      )`);
  } catch (error) {
    // `if not exists` looks before it takes the name, so of several nodes at once the later ones fail on a key of the
    // catalog (unique_violation, duplicate_table, duplicate_object). Then the table is there.
    if (!['23505', '42P07', '42710'].includes((error as { code?: string }).code ?? '')) throw error;
  }
}

/** False when another node had done it. */
async function apply(client: Client, { version, name, text }: Migration): Promise<boolean> {
  await client.query('begin');
  try {
    const { rowCount } = await client.query(
      'insert into schema_migrations (version, name) values ($1, $2) on conflict do nothing',
      [version, name],
    );
    if (rowCount === 0) {
      await client.query('rollback');
      return false;
    }
    await client.query(text);
    await client.query('commit');
    return true;
  } catch (error) {
    await client.query('rollback').catch(() => {});
    throw new Error(`Migration ${String(version).padStart(4, '0')}_${name} failed: ${(error as Error).message}`, {
      cause: error,
    });
  }
}
