// Migrates a database to the schema of this release, or refuses it with the reason.
//
// Migrations are files `NNNN_name.sql`, numbered from 0001 without gaps, forward only. Each runs in one transaction whose
// first statement inserts its version. If several nodes start at once, one inserts it; the others wait on the primary key for its
// commit, find the row and continue. If a node dies during a migration it is rolled back, and the next node starts it again.
//
// A migration never changes once it is in the repository: SHA256SUMS next to the files has the checksum of each, and a test compares
// them. `npm run schema` adds the line of a new file.
//
// signalbox_migrations records the SHA-256 of each file that was run, and the release that ran it. A database that was created by
// different files is refused. A newer database is refused as well, unless each newer migration declares on a line of its own
// (WORKS_WITH) that this release still works with it. The declaration is recorded in the table, because an older release does not
// have the newer file.
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Client } from 'pg';
import sql from 'sql-template-tag';
import { version as release } from '../lib/version.ts';
import { createDb, type Db, type Queryable } from './db.ts';
import { type Ask, distribute, isDistributed } from './distribute.ts';

export interface MigrateLog {
  info(fields: object, message: string): void;
}

export interface Migration {
  version: number;
  name: string;
  text: string;
  /** In hexadecimal, of the text with LF line ends. */
  sha256: string;
  /** The oldest schema version whose code works on a database that has this migration. */
  worksWith: number;
}

/** What a database says of a migration that was run on it. */
export type AppliedMigration = Omit<Migration, 'text'> & { appliedBy: string };

/** The schema of the database is not one that this release can use; the message says why and what to do. */
export class SchemaRefused extends Error {
  override readonly name = 'SchemaRefused';
}

const MIGRATIONS = fileURLToPath(new URL('./migrations/', import.meta.url));
const WORKS_WITH = /^-- Works with code of schema version (\d+) and later\.$/m;
// duplicate_table, duplicate_schema, duplicate_object, unique_violation (of the catalog, when two create at once).
const ALREADY_THERE = ['42P07', '42P06', '42710', '23505'];

/** The migrations in a directory, in order. */
export async function readMigrations(directory: string = MIGRATIONS): Promise<Migration[]> {
  const files = (await readdir(directory)).filter((file) => file.endsWith('.sql')).sort();
  return Promise.all(
    files.map(async (file, index) => {
      const version = index + 1;
      const [, digits, name] = /^(\d{4})_([a-z0-9_]+)\.sql$/.exec(file) ?? [];
      if (!digits || !name || Number(digits) !== version) {
        throw new Error(`Migration ${file}: the name has to be ${padded(version)}_name.sql, numbered without gaps`);
      }
      const text = (await readFile(`${directory}/${file}`, 'utf8')).replaceAll('\r\n', '\n');
      const sha256 = createHash('sha256').update(text).digest('hex');
      return { version, name, text, sha256, worksWith: Number(WORKS_WITH.exec(text)?.[1] ?? version) };
    }),
  );
}

/** The line of a migration in SHA256SUMS. */
export function checksumLine({ version, name, sha256 }: Migration): string {
  return `${sha256}  ${padded(version)}_${name}.sql\n`;
}

/** Runs the missing migrations. Several nodes may call it at once. Throws SchemaRefused. */
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
      const applied = requireUsable(await readApplied(db), migrations);
      for (const migration of migrations.slice(applied.length)) {
        if (!(await apply(client, migration))) continue;
        log.info({ version: migration.version, name: migration.name }, 'migrated the database');
      }
      // Another node may have run some, of another release.
      const now = requireUsable(await readApplied(db), migrations);
      if (now.length > migrations.length) {
        log.info(
          { schemaVersion: now.length, knownVersion: migrations.length, migratedBy: now.at(-1)?.appliedBy },
          'the database has the schema of a newer release, which this one can still use',
        );
      }
    } finally {
      await client.end();
    }
  } finally {
    if (db !== target) await db.close();
  }
}

/** Whether the database has every migration of this release. Runs none. Throws SchemaRefused. */
export async function isMigrated(db: Db): Promise<boolean> {
  const [found] = await db.query<{ there: boolean }>(
    sql`select to_regclass('signalbox_migrations') is not null as there`,
  );
  if (!found?.there) return false;
  const migrations = await readMigrations();
  return requireUsable(await readApplied(db), migrations).length >= migrations.length;
}

function readApplied(db: Queryable): Promise<AppliedMigration[]> {
  return db.query<AppliedMigration>(sql`
    select version, name, sha256, works_with as "worksWith", applied_by as "appliedBy"
    from signalbox_migrations order by version`);
}

/** The same list, if this release can use or migrate the database. Throws SchemaRefused if it can't. */
function requireUsable(applied: AppliedMigration[], migrations: readonly Migration[]): AppliedMigration[] {
  const known = migrations.length;
  const other = applied.find(({ version, sha256 }) => version <= known && sha256 !== migrations[version - 1]?.sha256);
  if (other) {
    throw new SchemaRefused(
      `The database was created with a different ${padded(other.version)}_${other.name}.sql than the one in this release ` +
        `(by Signalbox ${other.appliedBy}; this is ${release}): one of the two is an unreleased state. ` +
        'Create a new database, or start the release that created this one.',
    );
  }
  const newer = applied.slice(known);
  if (newer.some(({ worksWith }) => worksWith > known)) {
    const { version, appliedBy } = newer.at(-1)!;
    throw new SchemaRefused(
      `The database has schema version ${version} (migrated by Signalbox ${appliedBy}), and this release, ${release}, ` +
        `can't use it: it knows versions up to ${known}. Start Signalbox ${appliedBy} or later, or restore a backup ` +
        'from before the upgrade.',
    );
  }
  return applied;
}

async function createVersionTable(client: Client): Promise<void> {
  try {
    await client.query(`
      create table if not exists signalbox_migrations (
        version int primary key, name text not null, sha256 text not null, works_with int not null,
        applied_by text not null, applied_at timestamptz not null default now()
      )`);
  } catch (error) {
    // `if not exists` looks before it takes the name, so when several nodes start at once the later ones fail on a key of
    // the catalog. Then the table is there.
    if (!ALREADY_THERE.includes((error as { code?: string }).code ?? '')) throw error;
  }
}

/** False when another node had done it. */
async function apply(client: Client, { version, name, text, sha256, worksWith }: Migration): Promise<boolean> {
  await client.query('begin');
  try {
    const { rowCount } = await client.query(
      `insert into signalbox_migrations (version, name, sha256, works_with, applied_by) values ($1, $2, $3, $4, $5)
      on conflict do nothing`,
      [version, name, sha256, worksWith, release],
    );
    if (rowCount === 0) {
      await client.query('rollback');
      return false;
    }
    await client.query(text);
    // On a sharded database, the new tables are sharded too.
    const ask: Ask = async (statement) => (await client.query(statement.text, [...statement.values])).rows;
    if (await isDistributed(ask)) await distribute(ask);
    await client.query('commit');
    return true;
  } catch (error) {
    await client.query('rollback').catch(() => {});
    const { code = '', message } = error as Error & { code?: string };
    if (version === 1 && ALREADY_THERE.includes(code)) {
      throw new SchemaRefused(
        `The database is not empty (${message}): it belongs to another program, or to an unreleased state of Signalbox. ` +
          'Use an empty database (without DATABASE_URL, another data directory).',
        { cause: error },
      );
    }
    throw new Error(`Migration ${padded(version)}_${name} failed: ${message}`, { cause: error });
  }
}

const padded = (version: number) => String(version).padStart(4, '0');
