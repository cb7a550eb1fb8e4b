import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sql, { raw } from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../../test/support/postgres.ts';
import { version as release } from '../../lib/version.ts';
import { explainStart, StartError } from '../../operator/start-error.ts';
import { createDb, type Db } from '../db.ts';
import { isMigrated, migrate, SchemaRefused } from './migrate.ts';
import { readMigrations } from './migration-files.ts';

let database: TestDatabase;
let db: Db;
let directory: string;
/** What the log says: how many migrations created the tables, and the version of each one that changed them. */
let migrated: (number | string)[];
const log = {
  info: (fields: { version?: number; migrations?: number }, message: string) => {
    if (message === 'created the tables of the database') migrated.push(`created by ${fields.migrations}`);
    else if (fields.version !== undefined) migrated.push(fields.version);
  },
  warn() {},
};

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
  (await db.query<{ version: number }>(sql`select version from signalbox_migrations order by version`)).map(
    (row) => row.version,
  );

test('each migration runs once, in order; the log has one line about an empty database, then one for each', async () => {
  await write('0003_index.sql', 'create index concurrently b_by_id on b (id);');
  await migrate(database.url, log, { directory });
  await migrate(db, log, { directory });
  expect(migrated).toEqual(['created by 3']);
  expect(await db.query(sql`select * from b`)).toEqual([{ id: 1 }]);
  await write('0004_fourth.sql', 'drop table b');
  await write('0005_fifth.sql', 'drop table a');
  await migrate(db, log, { directory });
  expect(migrated).toEqual(['created by 3', 4, 5]);
});

test('if many nodes start at once, each migration is run by one of them, and all continue when it is done', async () => {
  // Slow enough that all other nodes arrive while the first one runs it.
  await write('0001_first.sql', 'select pg_sleep(0.2); create table a (id int); insert into a values (1);');
  await Promise.all(Array.from({ length: 8 }, () => migrate(database.url, log, { directory })));
  expect(migrated).toEqual(['created by 2']);
  expect(await versions()).toEqual([1, 2]);
  expect(await db.query(sql`select * from a`)).toEqual([{ id: 1 }]);
});

test('a migration that fails leaves nothing behind, and runs again once it is fixed', async () => {
  await write('0002_second.sql', 'create table b (id int); select 1 / 0;');
  await expect(migrate(db, log, { directory })).rejects.toThrow('Migration 0002_second failed: division by zero');
  expect(await versions()).toEqual([1]);
  expect(await db.query(sql`select to_regclass('b') as b`)).toEqual([{ b: null }]);
  await write('0002_second.sql', 'create table b (id int);');
  await migrate(db, log, { directory });
  expect(await versions()).toEqual([1, 2]);
});

test('an older release refuses a newer database, and names the release to start', async () => {
  await migrate(db, log, { directory });
  await rm(join(directory, '0002_second.sql'));
  await expect(migrate(db, log, { directory })).rejects.toThrow(
    `schema version 2 (migrated by Signalbox ${release}), and this release, ${release}, can't use it: it knows versions up to 1`,
  );
});

test('an older release uses a newer database if each newer migration allows it, and logs this', async () => {
  await write('0002_second.sql', '-- Works with code of schema version 1 and later.\ncreate table b (id int);');
  await write('0003_third.sql', '-- Works with code of schema version 2 and later.\nalter table b add n int;');
  await migrate(db, log, { directory });
  const lines: object[] = [];
  await rm(join(directory, '0003_third.sql'));
  await migrate(db, { ...log, info: (fields) => lines.push(fields) }, { directory });
  expect(lines).toEqual([{ schemaVersion: 3, knownVersion: 2, migratedBy: release }]);
  // What the third migration allows for the second's code does not apply to the first's.
  await rm(join(directory, '0002_second.sql'));
  await expect(migrate(db, log, { directory })).rejects.toThrow('knows versions up to 1');
});

test('a database that was created with other migrations is refused before anything is run on it', async () => {
  await migrate(db, log, { directory });
  await write('0001_first.sql', 'create table a (id bigint);');
  await write('0003_third.sql', 'create table c (id int);');
  const refusal = await migrate(db, log, { directory }).catch((error: Error) => error);
  expect(refusal).toBeInstanceOf(SchemaRefused);
  expect((refusal as Error).message).toContain('created with a different 0001_first.sql than the one in this release');
  expect(explainStart(refusal, { databaseUrl: undefined })).toBeInstanceOf(StartError);
  expect(await versions()).toEqual([1, 2]);
});

test('line endings of another system do not make it another migration', async () => {
  await write('0001_first.sql', 'create table a (id int);\ninsert into a values (1);\n');
  await migrate(db, log, { directory });
  await write('0001_first.sql', 'create table a (id int);\r\ninsert into a values (1);\r\n');
  await migrate(db, log, { directory });
});

test.each(['a', 'posts', 'schema_migrations'])(
  'a database with another program’s table "%s" is refused, and nothing is created in it',
  async (name) => {
    await db.execute(sql`create table ${raw(name)} (id int)`);
    await expect(migrate(db, log, { directory })).rejects.toThrow(
      `The database is not empty (it has a table "${name}", and no signalbox_migrations)`,
    );
    const tables = sql`select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'`;
    expect(await db.query(tables)).toEqual([{ name }]);
  },
);

test('tables of extensions do not make a database another program’s', async () => {
  await db.execute(sql`create extension pg_stat_statements`);
  await migrate(db, log, { directory });
  expect(await versions()).toEqual([1, 2]);
});

test('a command can tell whether a database is migrated without changing it', async () => {
  expect(await isMigrated(db)).toBe(false);
  expect(await db.query(sql`select to_regclass('signalbox_migrations') as found`)).toEqual([{ found: null }]);
  await migrate(db, log);
  expect(await isMigrated(db)).toBe(true);
});

test('a gap or a duplicate number among the files is refused', async () => {
  await write('0004_fourth.sql', '');
  await expect(readMigrations(directory)).rejects.toThrow('0003_name.sql');
  await write('0002_also.sql', '');
  await expect(readMigrations(directory)).rejects.toThrow(
    'Migration 0002_second.sql: the name has to be 0003_name.sql',
  );
});
