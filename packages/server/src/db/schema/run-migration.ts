// Runs one migration on a database that others use.
//
// **Locks.** A statement that waits for the lock of a table stops everyone who needs the table after it. A migration therefore waits
// at most LOCK_TIMEOUT_MS for a lock; then it is rolled back, lets the others through, and starts again.
//
// **Crashes.** A script and its row in signalbox_migrations are one transaction. The other kinds get their row at the end, and start
// again without it: rows that were changed stay changed, and an index that was not finished is dropped. It is not one that another
// node is building, because one node at a time runs migrations (migrate.ts). If a node is killed, PostgreSQL continues to build its
// index, and the connection that makes other nodes wait lasts as long.
import type { Client } from 'pg';
import sql from 'sql-template-tag';
import { OVER } from '../../lib/aborted.ts';
import type { Clock } from '../../lib/clock.ts';
import { version as release } from '../../lib/version.ts';
import type { Queryable } from '../db.ts';
import { type Ask, distribute, isDistributed } from './distribute.ts';
import type { Migration } from './migration-files.ts';
import { commandsOf } from './sql-commands.ts';

export interface MigrateLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

export interface MigrationRun {
  client: Client;
  log: MigrateLog;
  clock: Clock;
}

// Shorter than PostgreSQL's deadlock_timeout, so that a migration gives way before a node's transaction is chosen as the victim.
const LOCK_TIMEOUT_MS = 500;
const RETRY_MS = 500;
const MAX_RETRY_MS = 10_000;
const PROGRESS_MS = 10_000;
const LOCK_NOT_AVAILABLE = '55P03';
const DEADLOCK_DETECTED = '40P01';

/** False if another node had run it. */
export function runMigration(run: MigrationRun, migration: Migration): Promise<boolean> {
  if (migration.buildsIndex) return buildIndex(run, migration, migration.buildsIndex);
  if (migration.inBatches) return changeInBatches(run, migration);
  return withLocks(run, migration, () => runScript(run.client, migration));
}

async function runScript(client: Client, migration: Migration): Promise<boolean> {
  await client.query('begin');
  try {
    // A node of a release that does not know our lock may run it too, and then this waits for its commit.
    if (!(await record(client, migration))) {
      await client.query('rollback');
      return false;
    }
    const ask: Ask = async (statement) => (await client.query(statement.text, [...statement.values])).rows;
    if (await isDistributed(ask)) {
      for (const command of commandsOf(migration.text)) await client.query(command);
      // The new tables are sharded too.
      await distribute(ask);
    } else {
      await client.query(migration.text);
    }
    await client.query('commit');
    return true;
  } catch (error) {
    await client.query('rollback').catch(() => {});
    throw error;
  }
}

async function buildIndex(run: MigrationRun, migration: Migration, index: string): Promise<boolean> {
  const { client, log } = run;
  await withLocks(run, migration, async () => {
    // Others can read and write the table while this waits for its locks, and it has to wait for long transactions.
    await client.query('set lock_timeout = 0');
    const { rows } = await client.query<{ isValid: boolean }>(
      'select indisvalid as "isValid" from pg_index where indexrelid = to_regclass($1)',
      [index],
    );
    if (rows[0]?.isValid) return;
    if (rows[0]) {
      log.info({ ...nameOf(migration), index }, 'dropping an index that was not finished');
      await client.query(`drop index concurrently ${index}`);
    }
    log.info({ ...nameOf(migration), index }, 'building an index');
    await client.query(migration.text);
  });
  return record(client, migration);
}

async function changeInBatches(run: MigrationRun, migration: Migration): Promise<boolean> {
  const { client, clock, log } = run;
  let changed = 0;
  let reportAt = clock.now().getTime() + PROGRESS_MS;
  for (let rows = 1; rows > 0; changed += rows) {
    rows = (await withLocks(run, migration, () => client.query(migration.text))).rowCount ?? 0;
    const now = clock.now().getTime();
    if (now < reportAt) continue;
    reportAt = now + PROGRESS_MS;
    log.info({ ...nameOf(migration), rows: changed + rows }, 'changing rows');
  }
  return record(client, migration);
}

/** False if it was recorded before. */
async function record(client: Client, { version, name, sha256, worksWith }: Migration): Promise<boolean> {
  const { rowCount } = await client.query(
    `insert into signalbox_migrations (version, name, sha256, works_with, applied_by) values ($1, $2, $3, $4, $5)
    on conflict do nothing`,
    [version, name, sha256, worksWith, release],
  );
  return rowCount === 1;
}

/** Repeats `work` until it gets its locks. Without a limit: a node that gave up would be started again to do the same. */
async function withLocks<T>(
  { client, clock, log }: MigrationRun,
  migration: Migration,
  work: () => Promise<T>,
): Promise<T> {
  for (let waitMs = RETRY_MS; ; waitMs = Math.min(2 * waitMs, MAX_RETRY_MS)) {
    await client.query(`set lock_timeout = ${LOCK_TIMEOUT_MS}`);
    try {
      return await work();
    } catch (error) {
      const { code = '' } = error as { code?: string };
      if (code !== LOCK_NOT_AVAILABLE && code !== DEADLOCK_DETECTED) throw error;
      log.warn(
        { ...nameOf(migration), retryInMs: waitMs, openTransactions: await openTransactions(client) },
        'a migration waits for transactions that use its table',
      );
    }
    await clock.sleep(waitMs);
  }
}

/** The longest ones, to show what a migration waits for. */
async function openTransactions(client: Client): Promise<object[]> {
  const { rows } = await client.query(`
    select pid, application_name as application, extract(epoch from clock_timestamp() - xact_start)::integer as seconds
    from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null
    order by xact_start limit 3`);
  return rows;
}

/** Logs the progress of indexes until `work` is over, also of those that another node builds. */
export async function reportIndexes<T>(
  { db, log, clock }: { db: Queryable; log: MigrateLog; clock: Clock },
  work: () => Promise<T>,
): Promise<T> {
  const over = new AbortController();
  const report = async () => {
    for (;;) {
      await clock.sleep(PROGRESS_MS, over.signal);
      const progress = await db.query<object>(sql`
        select index_relid::regclass::text as index, phase, blocks_done::float8 as "blocksDone", blocks_total::float8 as "blocksTotal"
        from pg_stat_progress_create_index where datname = current_database()`);
      for (const fields of progress) log.info(fields, 'building an index');
    }
  };
  // Ends with its sleep. If the database is unavailable, `work` reports that.
  report().catch(() => {});
  try {
    return await work();
  } finally {
    over.abort(OVER);
  }
}

const nameOf = ({ version, name }: Migration) => ({ version, name });
