// Migrates a database to the schema of this release, or refuses it with the reason.
//
// Migrations (migration-files.ts) run forward only, in order, one node at a time: it holds a lock that belongs to its connection, and
// the others wait for it. If the node dies, another one continues (run-migration.ts).
//
// signalbox_migrations records the SHA-256 of each file that was run, and the release that ran it. A database that was created by
// different files is refused. A newer database is refused as well, unless each newer migration declares on a line of its own
// (WORKS_WITH) that this release still works with it. The declaration is recorded in the table, because an older release does not
// have the newer file.
import type { Client } from 'pg';
import sql from 'sql-template-tag';
import { type Clock, systemClock } from '../../lib/clock.ts';
import { version as release } from '../../lib/version.ts';
import { createDb, type Db, type Queryable } from '../db.ts';
import { type Migration, padded, readMigrations } from './migration-files.ts';
import { type MigrateLog, type MigrationRun, reportIndexes, runMigration } from './run-migration.ts';

/** What a database says of a migration that was run on it. */
export type AppliedMigration = Pick<Migration, 'version' | 'name' | 'sha256' | 'worksWith'> & { appliedBy: string };

/** The schema of the database is not one that this release can use; the message says why and what to do. */
export class SchemaRefused extends Error {
  override readonly name = 'SchemaRefused';
}

// duplicate_table, duplicate_schema, duplicate_object, unique_violation (of the catalog, when two create at once).
const ALREADY_THERE = ['42P07', '42P06', '42710', '23505'];
const POLL_MS = 200;

/** Runs the missing migrations, up to the version `through` if given. Several nodes may call it at once. Throws SchemaRefused. */
export async function migrate(
  target: string | Db,
  log: MigrateLog,
  { directory, through, clock = systemClock }: { directory?: string; through?: number; clock?: Clock } = {},
): Promise<void> {
  const migrations = (await readMigrations(directory)).slice(0, through);
  const db = typeof target === 'string' ? createDb({ url: target, max: 1 }) : target;
  try {
    // A migration is a script of many statements, which only pg's own query function takes, outside the pool.
    const client = await db.connect();
    client.on('error', () => {}); // The running statement fails with the same error.
    try {
      await client.query('set statement_timeout = 0');
      await requireOwnSchema(client);
      await createVersionTable(client);
      const usable = async () => requireUsable(await readApplied(db), migrations);
      if ((await usable()).length < migrations.length) {
        const run = { client, log, clock };
        await reportIndexes({ db, log, clock }, async () => {
          await lockMigrations(run);
          const missing = migrations.slice((await usable()).length);
          if (missing.length === migrations.length) await create(run, missing);
          else for (const migration of missing) await apply(run, migration);
        });
      }
      // Another node may have run some, of another release.
      const now = await usable();
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

/** Another program's tables must not get ours next to them, also if no name is the same. Tables of extensions are no program's. */
async function requireOwnSchema(client: Client): Promise<void> {
  const { rows } = await client.query<{ name: string }>(`
    select c.relname as name from pg_class c
    where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f')
      and to_regclass('signalbox_migrations') is null
      and not exists (
        select 1 from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
    order by 1 limit 1`);
  if (rows[0]) throw notEmpty(`it has a table "${rows[0].name}", and no signalbox_migrations`);
}

function notEmpty(why: string, options?: ErrorOptions): SchemaRefused {
  return new SchemaRefused(
    `The database is not empty (${why}): it belongs to another program, or to an unreleased state of Signalbox. ` +
      'Use an empty database (without DATABASE_URL, another data directory).',
    options,
  );
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

/**
 * Until the connection ends, no other node of a release that knows this lock runs migrations. A statement that waited for the lock
 * would be a transaction that the other node's index waits for.
 */
async function lockMigrations({ client, log, clock }: MigrationRun): Promise<void> {
  for (let isFirst = true; ; isFirst = false) {
    const { rows } = await client.query<{ isOurs: boolean }>(
      `select pg_try_advisory_lock(hashtextextended('signalbox_migrations', 0)) as "isOurs"`,
    );
    if (rows[0]!.isOurs) return;
    if (isFirst) log.info({}, 'waiting for another node that migrates the database');
    await clock.sleep(POLL_MS);
  }
}

/** On an empty database no migration takes long, so one line is enough. */
async function create(run: MigrationRun, migrations: readonly Migration[]): Promise<void> {
  const { log, clock } = run;
  const startedMs = clock.elapsedMs();
  const quiet = { info() {}, warn: log.warn.bind(log) };
  for (const migration of migrations) await apply({ ...run, log: quiet }, migration);
  const durationMs = Math.round(clock.elapsedMs() - startedMs);
  log.info({ migrations: migrations.length, durationMs }, 'created the tables of the database');
}

async function apply(run: MigrationRun, migration: Migration): Promise<void> {
  const { version, name } = migration;
  try {
    if (await runMigration(run, migration)) run.log.info({ version, name }, 'migrated the database');
  } catch (error) {
    const { code = '', message } = error as Error & { code?: string };
    if (version === 1 && ALREADY_THERE.includes(code)) {
      throw notEmpty(message, { cause: error });
    }
    throw new Error(`Migration ${padded(version)}_${name} failed: ${message}`, { cause: error });
  }
}
