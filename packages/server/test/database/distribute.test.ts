// `signalbox database distribute`, and migrations of a sharded database. The test's database simulates Citus.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ask } from '../../../embedded-postgres/test/support/ask.ts';
import { readConfig } from '../../src/config/config.ts';
import { migrate } from '../../src/db/schema/migrate.ts';
import { readMigrations } from '../../src/db/schema/migration-files.ts';
import { distributeOnHost, OperatorError } from '../../src/main.ts';
import { distributedIn, installFakeCitus, withLocalRows } from '../support/fake-citus.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { startTestService } from '../support/service.ts';

let database: TestDatabase;
beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(() => database.drop());

const distribute = () => distributeOnHost(readConfig({}, { DATABASE_URL: database.url }));
const tablesWith = async (column: string) =>
  (
    await ask<{ name: string }>(
      database.url,
      `select table_name::text as name from information_schema.columns
       where table_schema = 'public' and column_name = '${column}' order by 1`,
    )
  ).map(({ name }) => name);

test('distributes every table with an organization, colocated with `organizations`, parents first, and leaves the others', async () => {
  await installFakeCitus(database.url);
  const tables = await distribute();
  expect(tables.toSorted()).toEqual(await tablesWith('organization_id'));
  expect(tables.length).toBeGreaterThan(25);
  const [root, ...others] = await distributedIn(database.url);
  expect(root).toEqual({ name: 'organizations', colocatedWith: 'none' });
  expect(others.map(({ name }) => name)).toEqual(tables.slice(1));
  expect(new Set(others.map(({ colocatedWith }) => colocatedWith))).toEqual(new Set(['organizations']));
  expect(await withLocalRows(database.url)).toEqual([]);
  // Run again, it does nothing.
  expect(await distribute()).toEqual([]);
});

test('distributes all tables or none', async () => {
  await installFakeCitus(database.url);
  await ask(
    database.url,
    `create function refuse() returns trigger language plpgsql as $$ begin raise exception 'a worker is away'; end $$`,
  );
  await ask(
    database.url,
    `create trigger refuse before insert on pg_dist_partition for each row
     when (new.logicalrelid = 'segments'::regclass) execute function refuse()`,
  );
  await expect(distribute()).rejects.toThrow('a worker is away');
  expect(await distributedIn(database.url)).toEqual([]);
});

test('refuses without Citus, without DATABASE_URL, and while a node runs', async () => {
  await expect(distribute()).rejects.toThrow(/does not have the Citus extension/);
  await expect(distributeOnHost(readConfig({}, {}))).rejects.toThrow(OperatorError);
  await installFakeCitus(database.url);
  for (const roles of [new Set(['api'] as const), new Set(['runtime'] as const)]) {
    const service = await startTestService({ database, config: { roles } });
    await expect(distribute()).rejects.toThrow(/Stop all of them/);
    await service.stop();
  }
  expect(await distributedIn(database.url)).toEqual([]);
  await distribute();
});

test('a migration of a sharded database is sent a command at a time, and distributes the tables that it creates, in its transaction', async () => {
  await installFakeCitus(database.url);
  const directory = await mkdtemp(join(tmpdir(), 'signalbox-migrations-'));
  const known = await readMigrations();
  for (const { version, name, text } of known) {
    await writeFile(join(directory, `${String(version).padStart(4, '0')}_${name}.sql`), text);
  }
  const next = String(known.length + 1).padStart(4, '0');
  const log = { info() {}, warn() {} };
  await distribute();
  await writeFile(
    join(directory, `${next}_more.sql`),
    `create table parts (organization_id uuid, part_id uuid, thing_id uuid, primary key (organization_id, part_id));
     create table things (organization_id uuid references organizations, thing_id uuid, primary key (organization_id, thing_id));
     alter table parts add foreign key (organization_id, thing_id) references things;
     create table of_the_coordinator (id int primary key);`,
  );
  await migrate(database.url, log, { directory });
  const names = (await distributedIn(database.url)).map(({ name }) => name);
  expect(names.slice(-2)).toEqual(['things', 'parts']);
  expect(await withLocalRows(database.url)).toEqual([]);
  await rm(directory, { recursive: true });
});
