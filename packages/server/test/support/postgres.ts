// The databases of tests. To clone the template and to drop the clone takes 0.1 s of processor time, and the first statements of each
// new connection take as much again, so a database that a test is done with is emptied for the next one, unless it is no longer like a
// new one.
import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import { inject } from 'vitest';
import { ask } from '../../../embedded-postgres/test/support/ask.ts';
import { createDb, type Db, type DbOptions } from '../../src/db/db.ts';
import { atFileEnd } from './at-file-end.ts';

export interface TestDatabase {
  url: string;
  /** Closes all remaining connections. */
  drop(): Promise<void>;
}

export interface OpenDatabase extends TestDatabase {
  /** Its pool. `close` waits for the statements that run by this object; later ones fail. */
  lend(): Db;
}

/** The settings of a pool's connections. */
export type PoolLimits = Pick<DbOptions, 'statementTimeoutMs' | 'idleInTransactionMs'>;

/** A clone of the template, with the connection that empties it. */
interface Clone extends TestDatabase {
  janitor: Client;
  /** What `LIKENESS` returned when it was new. */
  whenNew: string;
  /** Stays open from test to test. */
  pool: Db;
}

const POOL = 'signalbox-tests';

/** By the settings of the pool. */
const free = new Map<string, Clone[]>();
let isOnlyNew = false;
/** The tables of the template. */
let tables: readonly string[] | undefined;

atFileEnd(() => {
  isOnlyNew = false;
});

/** For a test file that counts pages or plans: no test before it may have left dead rows in its database. */
export function useOnlyNewDatabases(): void {
  isOnlyNew = true;
}

/** A migrated database without rows; with `{ empty: true }`, one without tables. */
export async function createTestDatabase({ empty = false } = {}): Promise<TestDatabase> {
  const name = `${inject('databaseTemplate').replace('template', 'test')}_${randomBytes(6).toString('hex')}`;
  await onServer(`create database ${name} template ${empty ? 'template0' : inject('databaseTemplate')}`);
  const url = new URL(inject('databaseServerUrl'));
  url.pathname = `/${name}`;
  return { url: url.href, drop: async () => void (await onServer(`drop database if exists ${name} with (force)`)) };
}

/** A migrated database without rows, with a pool whose connections may be open, and know the schema, already. */
export async function openTestDatabase(limits: PoolLimits = {}): Promise<OpenDatabase> {
  const kind = JSON.stringify(limits);
  const clone = (!isOnlyNew && free.get(kind)?.pop()) || (await createClone(limits));
  const lent: Db[] = [];
  return {
    url: clone.url,
    lend() {
      const db = lend(clone.pool);
      lent.push(db);
      return db;
    },
    async drop() {
      await Promise.all(lent.map((db) => db.close()));
      await giveBack(clone, kind);
    },
  };
}

async function createClone(limits: PoolLimits): Promise<Clone> {
  const { url, drop } = await createTestDatabase();
  const janitor = new Client({ connectionString: url });
  janitor.on('error', () => {}); // A statement fails with the same error.
  await janitor.connect();
  tables ??= await tablesOf(janitor);
  const poolUrl = new URL(url);
  poolUrl.searchParams.set('application_name', POOL);
  return { url, drop, janitor, whenNew: await likenessOf(janitor), pool: createDb({ url: poolUrl.href, ...limits }) };
}

async function giveBack(clone: Clone, kind: string): Promise<void> {
  if (!isOnlyNew && (await isMadeLikeNew(clone).catch(() => false))) {
    free.set(kind, [...(free.get(kind) ?? []), clone]);
    return;
  }
  await clone.janitor.end().catch(() => {});
  await clone.drop();
  await clone.pool.close();
}

/** Deletes all rows, unless something is connected that might write others. */
async function isMadeLikeNew({ janitor, whenNew }: Clone): Promise<boolean> {
  const isAlone = async () => (await janitor.query<{ alone: boolean }>(IS_ALONE)).rows[0]!.alone;
  // A connection that was closed just now may still be there.
  for (let checks = 0; !(await isAlone()); checks += 1) {
    if (checks === 5) return false;
    await janitor.query('select pg_sleep(0.01)');
  }
  const deletions = tables!.map((table) => `delete from ${table}`).join(';');
  await janitor.query(
    `begin; set local lock_timeout = '5s'; set local session_replication_role = replica; ${deletions}; commit`,
  );
  return (await likenessOf(janitor)) === whenNew;
}

const IS_ALONE = `
  select not exists (
    select from pg_stat_activity
    where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()
      and (application_name <> '${POOL}' or state <> 'idle')) as alone`;

async function tablesOf(client: Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(`
    select oid::regclass::text as name from pg_class
    where relkind = 'r' and relnamespace = 'public'::regnamespace and relname <> 'signalbox_migrations'`);
  return rows.map(({ name }) => name);
}

// What a test may change beside rows: definitions and settings, and what vacuum and analyze found out. A table that had many rows is
// not like new either.
const LIKENESS = `
  select md5(concat_ws('|',
    (select string_agg(concat_ws(' ', oid, relname, relfilenode, relnatts, relchecks, relhastriggers, reloptions, relpages, reltuples,
        case when relkind in ('r', 't') then pg_relation_size(oid) > 500000 end), ',' order by oid)
      from pg_class where relnamespace in ('public'::regnamespace, 'pg_toast'::regnamespace)),
    (select count(*) from pg_constraint), (select count(*) from pg_trigger), (select count(*) from pg_proc),
    (select count(*) from pg_extension), (select count(*) from pg_namespace where nspname !~ '^pg_'),
    (select string_agg(setconfig::text, ',') from pg_db_role_setting s join pg_database d on d.oid = s.setdatabase
      where d.datname = current_database()),
    (select string_agg(version || sha256, ',' order by version) from signalbox_migrations)
  )) as likeness`;

async function likenessOf(client: Client): Promise<string> {
  return (await client.query<{ likeness: string }>(LIKENESS)).rows[0]!.likeness;
}

/** The same database until it is closed, so that nothing of one test changes the database of the next. */
function lend(pool: Db): Db {
  const running = new Set<Promise<unknown>>();
  let isClosed = false;

  function during<T>(act: () => Promise<T>): Promise<T> {
    if (isClosed) return Promise.reject(new Error('The pool of connections is closed'));
    const promise = act();
    running.add(promise);
    const end = () => running.delete(promise);
    promise.then(end, end);
    return promise;
  }

  async function close(): Promise<void> {
    while (running.size > 0) await Promise.allSettled(running);
    isClosed = true;
  }

  const lent = (of: Db): Db => ({
    query: (statement) => during(() => of.query(statement)),
    execute: (statement) => during(() => of.execute(statement)),
    transaction: (fn) => during(() => of.transaction(fn)),
    batch: (statements, options) => during(() => of.batch(statements, options)),
    of: (organizationId) => lent(of.of(organizationId)),
    connect: () => during(() => of.connect()),
    check: () => during(() => of.check()),
    pool: () => of.pool(),
    close,
  });
  return lent(pool);
}

const onServer = (text: string) => ask(inject('databaseServerUrl'), text);
