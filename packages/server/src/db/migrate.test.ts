import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sql from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../test/support/postgres.ts';
import { createDb, type Db } from './db.ts';
import { DatabaseTooNew, migrate, readMigrations } from './migrate.ts';

let database: TestDatabase;
let db: Db;
let directory: string;
let migrated: number[];
const log = { info: (fields: object) => migrated.push((fields as { version: number }).version) };

beforeEach(async () => {
  database = await createTestDatabase({ empty: true });
  db = createDb({ url: database.url });
  directory = await mkdtemp(join(tmpdir(), 'signalbox-migrations-'));
  migrated = [];
  await write('0001_first.sql', `create table a (id int); insert into a values (1); select 'a;b' -- ;\n;`);
  await write('0002_second.sql', 'create table b (id int); insert into b select id from a;');
});

afterEach(async () => {
  await db.close();
  await database.drop();
  await rm(directory, { recursive: true });
});

const write = (file: string, text: string) => writeFile(join(directory, file), text);
const versions = async () =>
  (await db.query<{ version: number }>(sql`select version from schema_migrations order by version`)).map(
    (row) => row.version,
  );

test('each migration runs once, in order', async () => {
  await migrate(database.url, log, directory);
  await migrate(db, log, directory);
  expect(migrated).toEqual([1, 2]);
  expect(await db.query(sql`select * from b`)).toEqual([{ id: 1 }]);
  await write('0003_third.sql', 'drop table b');
  await migrate(db, log, directory);
  expect(migrated).toEqual([1, 2, 3]);
});

test('of many nodes that start at once each migration is run by one, and all go on when it is done', async () => {
  // Slow enough that every other node arrives while the first is in it.
  await write('0001_first.sql', 'select pg_sleep(0.2); create table a (id int); insert into a values (1);');
  await Promise.all(Array.from({ length: 8 }, () => migrate(database.url, log, directory)));
  expect(migrated.sort()).toEqual([1, 2]);
  expect(await versions()).toEqual([1, 2]);
  expect(await db.query(sql`select * from a`)).toEqual([{ id: 1 }]);
});

test('a migration that fails leaves nothing, and is run again once it is mended', async () => {
  await write('0002_second.sql', 'create table b (id int); select 1 / 0;');
  await expect(migrate(db, log, directory)).rejects.toThrow('Migration 0002_second failed: division by zero');
  expect(await versions()).toEqual([1]);
  expect(await db.query(sql`select to_regclass('b') as b`)).toEqual([{ b: null }]);
  await write('0002_second.sql', 'create table b (id int);');
  await migrate(db, log, directory);
  expect(await versions()).toEqual([1, 2]);
});

test('a database that a newer release migrated is refused', async () => {
  await migrate(db, log, directory);
  await rm(join(directory, '0002_second.sql'));
  await expect(migrate(db, log, directory)).rejects.toThrow(DatabaseTooNew);
});

test('a gap or a doubled number among the files is refused', async () => {
  await write('0004_fourth.sql', '');
  await expect(readMigrations(directory)).rejects.toThrow('0003_name.sql');
  await write('0002_also.sql', '');
  await expect(readMigrations(directory)).rejects.toThrow(
    'Migration 0002_second.sql: the name has to be 0003_name.sql',
  );
});
