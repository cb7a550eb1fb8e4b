// Migrations run while nodes of the previous release read and write the same tables.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sql from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { type Clock, systemClock } from '../../lib/clock.ts';
import { createDb, type Db } from '../db.ts';
import { migrate } from './migrate.ts';
import { readMigrations } from './migration-files.ts';

let database: TestDatabase;
let db: Db;
let directory: string;
let lines: { message: string; fields: Record<string, unknown> }[];
const log = { info: add, warn: add };
function add(fields: object, message: string) {
  lines.push({ message, fields: { ...fields } });
}

beforeEach(async () => {
  database = await createTestDatabase({ empty: true });
  db = createDb({ url: database.url });
  directory = await mkdtemp(join(tmpdir(), 'signalbox-migrations-'));
  lines = [];
  await write('0001_first.sql', 'create table a (id int, n int); insert into a select generate_series(1, 2500);');
  await migrate(db, log, { directory });
});

afterEach(async () => {
  await db.close();
  await database.drop();
  await rm(directory, { recursive: true });
});

const write = (file: string, text: string) => writeFile(join(directory, file), text);
const run = (clock: Clock = systemClock) => migrate(database.url, log, { directory, clock });
const logged = (message: string) => lines.filter((line) => line.message === message).map(({ fields }) => fields);
const buildIndex = () => write('0002_index.sql', 'create index concurrently a_by_id\n  on a (id);');
const valid = () => db.query(sql`select indisvalid as valid from pg_index where indexrelid = 'a_by_id'::regclass`);
const versions = async () =>
  (await db.query<{ version: number }>(sql`select version from signalbox_migrations order by version`)).map(
    ({ version }) => version,
  );
/** Resolves when a statement that begins like this waits for a lock. */
const waitsForLock = (statement: string) =>
  expect
    .poll(() =>
      db.query(sql`
        select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like ${`${statement}%`}
        and datname = current_database()`),
    )
    .toHaveLength(1);

/** Another user of the database, in a transaction that stays open until `end`. */
async function openTransaction(statement: string): Promise<{ pid: number; end(): Promise<void> }> {
  const client = await db.connect();
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  await client.query('begin');
  await client.query(statement);
  return {
    pid: rows[0]!.pid,
    async end() {
      await client.query('commit');
      await client.end();
    },
  };
}

test('writers get through while a long read keeps a migration from its lock, and it runs when the read ends', async () => {
  await write('0002_column.sql', 'alter table a add column more int;');
  const read = await openTransaction('select count(*) from a');
  const migrating = run();
  // It waits behind the read, and the insert behind it.
  await waitsForLock('alter table a');
  await db.execute(sql`insert into a (id) values (0)`);
  await expect.poll(() => logged('a migration waits for transactions that use its table').length).toBeGreaterThan(1);
  expect(await versions()).toEqual([1]);
  const [first] = logged('a migration waits for transactions that use its table');
  // The oldest is first.
  expect(first).toMatchObject({ version: 2, name: 'column', openTransactions: { 0: { pid: read.pid } } });
  await read.end();
  await migrating;
  expect(await db.query(sql`select more from a where id = 0`)).toEqual([{ more: null }]);
  expect(await versions()).toEqual([1, 2]);
});

test('others write while an index is built, its progress is logged, and other nodes wait for the one that builds it', async () => {
  await buildIndex();
  const writer = await openTransaction('insert into a (id) values (0)');
  const progressDue = Promise.withResolvers<void>();
  let reports = 0;
  const clock: Clock = {
    ...systemClock,
    sleep: (ms, signal) => {
      if (!signal) return systemClock.sleep(ms);
      reports += 1;
      return reports === 1 ? progressDue.promise : systemClock.sleep(ms, signal);
    },
  };
  const first = run(clock);
  await waitsForLock('create index concurrently');
  await db.execute(sql`insert into a (id) values (-1)`);
  progressDue.resolve();
  await expect
    .poll(() => logged('building an index').filter(({ phase }) => phase))
    .toMatchObject([{ index: 'a_by_id', phase: 'waiting for writers before build' }]);
  const second = run();
  await expect.poll(() => logged('waiting for another node that migrates the database')).toHaveLength(1);
  await writer.end();
  await Promise.all([first, second]);
  expect(await valid()).toEqual([{ valid: true }]);
  expect(await versions()).toEqual([1, 2]);
  expect(logged('building an index').filter(({ version }) => version)).toHaveLength(1);
});

test('an index whose node lost its connection is dropped and built again, and one that was finished is kept', async () => {
  await buildIndex();
  const writer = await openTransaction('insert into a (id) values (0)');
  const lost = run();
  lost.catch(() => {});
  await waitsForLock('create index concurrently');
  await db.execute(sql`
    select pg_terminate_backend(pid) from pg_stat_activity
    where query like 'create index concurrently%' and pid <> pg_backend_pid() and datname = current_database()`);
  await expect(lost).rejects.toThrow('Migration 0002_index failed');
  await writer.end();
  expect(await valid()).toEqual([{ valid: false }]);
  await run();
  expect(await valid()).toEqual([{ valid: true }]);
  expect(logged('dropping an index that was not finished')).toHaveLength(1);

  // As if the node had ended between the index and its row.
  const { oid } = (await db.query<{ oid: number }>(sql`select 'a_by_id'::regclass::oid::integer as oid`))[0]!;
  await db.execute(sql`delete from signalbox_migrations where version = 2`);
  await run();
  expect(await versions()).toEqual([1, 2]);
  expect(await db.query(sql`select 'a_by_id'::regclass::oid::integer as oid`)).toEqual([{ oid }]);
});

const backfill = `-- Works with code of schema version 1 and later.
-- Repeated until it changes no row.

update a set n = id where id in (select id from a where n is null order by id limit 1000);`;
const filled = () => db.query(sql`select count(n)::integer as filled from a`);

test('a backfill runs in batches, each in a transaction of its own, and continues where it failed', async () => {
  await write('0002_backfill.sql', backfill);
  await db.execute(sql`alter table a add constraint fails check (n <> 1500) not valid`);
  await expect(run()).rejects.toThrow('Migration 0002_backfill failed: new row for relation "a" violates');
  expect(await filled()).toEqual([{ filled: 1000 }]);
  expect(await versions()).toEqual([1]);
  await db.execute(sql`alter table a drop constraint fails`);
  await run();
  expect(await filled()).toEqual([{ filled: 2500 }]);
  expect(await versions()).toEqual([1, 2]);
});

test('a batch that meets a locked row lets others through, and is repeated until it gets the row', async () => {
  await write('0002_backfill.sql', backfill);
  const writer = await openTransaction('update a set id = id where id = 1999');
  const migrating = run();
  await expect.poll(() => logged('a migration waits for transactions that use its table').length).toBeGreaterThan(0);
  expect(await filled()).toEqual([{ filled: 1000 }]);
  // Row 1001 is in the same batch.
  await db.execute(sql`update a set id = id where id = 1001`);
  await writer.end();
  await migrating;
  expect(await filled()).toEqual([{ filled: 2500 }]);
});

test('a long backfill logs how far it is', async () => {
  await write('0002_backfill.sql', backfill);
  let now = 0;
  const later = () => {
    now += 10_000;
    return new Date(now);
  };
  await run({ ...systemClock, now: later });
  // The last batch finds nothing.
  expect(logged('changing rows').map(({ rows }) => rows)).toEqual([1000, 2000, 2500, 2500]);
});

test.each([
  ['another statement next to a concurrent index', 'create index concurrently i on a (id); select 1;'],
  ['a concurrent index without a name', 'create index concurrently on a (id);'],
  ['a definition in batches', '-- Repeated until it changes no row.\nalter table a add column m int;'],
  ['two statements in batches', '-- Repeated until it changes no row.\nupdate a set n = 1; update a set n = 2;'],
])('%s is refused', async (_, text) => {
  await write('0002_wrong.sql', text);
  await expect(readMigrations(directory)).rejects.toThrow('Migration 0002_wrong.sql: ');
});
