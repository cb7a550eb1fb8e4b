// What each migration locks, read from PostgreSQL rather than measured: a script must not scan, rewrite or change a table under a lock
// that stops writers, nor lock more than two tables, because it may wait half a second for each. The tables have rows.
import type { Client } from 'pg';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { lastRelease } from '../../../../test/releases/last-release.ts';
import { createDb, type Db } from '../../src/db/db.ts';
import { readMigrations } from '../../src/db/schema/migration-files.ts';
import { loadFixture, readFixture } from '../support/fixture.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';

const MOST_LOCKED = 2;
/** The schema version of 0.1.0. */
const FIRST_RELEASE = 14;

/** What is wrong with a script; leaves its transaction open. */
async function problemsOf(client: Client, script: string): Promise<string[]> {
  // What earlier transactions did would be counted until it is reported.
  await client.query('select pg_stat_force_next_flush()');
  await client.query('begin');
  await client.query(`
    create temporary table before on commit drop as
    select c.oid, c.relfilenode from pg_class c where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace`);
  await client.query(script);
  const { rows } = await client.query<{ name: string; isScanned: boolean; isChanged: boolean; isRewritten: boolean }>(`
    select b.oid::regclass::text as name, s.seq_tup_read > 0 as "isScanned",
      s.n_tup_ins + s.n_tup_upd + s.n_tup_del > 0 as "isChanged", c.relfilenode <> b.relfilenode as "isRewritten"
    from before b join pg_class c using (oid) join pg_stat_xact_user_tables s on s.relid = b.oid
    where b.oid in (
      select relation from pg_locks where pid = pg_backend_pid() and locktype = 'relation'
      and mode in ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'))
      or s.n_tup_ins + s.n_tup_upd + s.n_tup_del > 0
    order by 1`);
  return [
    ...rows.flatMap(({ name, isScanned, isChanged, isRewritten }) => [
      ...(isScanned ? [`scans ${name}`] : []),
      ...(isChanged ? [`changes ${name}`] : []),
      ...(isRewritten ? [`rewrites ${name}`] : []),
    ]),
    ...(rows.length > MOST_LOCKED ? [`locks ${rows.map(({ name }) => name).join(', ')}`] : []),
  ];
}

let database: TestDatabase;
let db: Db;
let client: Client;
beforeAll(async () => {
  database = await createTestDatabase({ empty: true });
  db = createDb({ url: database.url });
  client = await db.connect();
});
afterEach(() => client.query('rollback'));
afterAll(async () => {
  await client.end();
  await db.close();
  await database.drop();
});

test('no migration after 0.1.0 stops writers while it reads or writes rows, and the last release works with each', async () => {
  const fixture = await readFixture(new URL('../fixtures/database-0001.json.gz', import.meta.url));
  const migrations = await readMigrations();
  const problems = new Map<number, string[]>();
  for (const { version, text, buildsIndex, inBatches } of migrations) {
    if (version === 1 || buildsIndex || inBatches) await client.query(text);
    else problems.set(version, await problemsOf(client, text));
    await client.query('commit');
    if (version === 1) await loadFixture(fixture, database.url);
  }
  // Some from before the first release have problems, which shows that they are found.
  expect(problems.get(11)).toContain('scans model_usage');
  expect(problems.get(13)).toEqual(['locks api_keys, approvals, schedules, sessions']);
  expect([...problems].filter(([version, found]) => version > FIRST_RELEASE && found.length > 0)).toEqual([]);
  const { schemaVersion } = lastRelease;
  const incompatible = migrations.filter(
    ({ version, worksWith }) => version > schemaVersion && worksWith > schemaVersion,
  );
  expect(incompatible.map(({ name }) => name)).toEqual([]);
});

test.each([
  ['add a column', 'alter table sessions add column more int not null default 7'],
  ['add a constraint that is not checked yet', 'alter table sessions add constraint c check (turn >= 0) not valid'],
  ['remove a constraint', 'alter table api_keys alter column name drop not null'],
  [
    'create a table with an index that refers to another',
    `create table t (organization_id uuid, session_id uuid, foreign key (organization_id, session_id) references sessions);
    create index t_i on t (session_id); insert into t select null, null`,
  ],
])('a migration may %s', async (_, script) => {
  expect(await problemsOf(client, script)).toEqual([]);
});

test.each([
  ['build an index', 'create index i on sessions (created_at)', ['scans sessions']],
  [
    'add a column with a computed default',
    'alter table sessions add column u uuid default gen_random_uuid()',
    ['scans sessions', 'rewrites sessions'],
  ],
  ['change a type', 'alter table sessions alter column metadata type text', ['scans sessions', 'rewrites sessions']],
  ['add a constraint that is checked', 'alter table sessions add constraint c check (turn >= 0)', ['scans sessions']],
  ['require values', 'alter table api_keys alter column permission set not null', ['scans api_keys']],
  ['change rows', `update sessions set metadata = '{}'`, ['scans sessions', 'changes sessions']],
  [
    'lock three tables',
    'alter table sessions add column a int; alter table agents add column a int; alter table schedules add column a int',
    ['locks agents, schedules, sessions'],
  ],
])('a migration must not %s', async (_, script, problems) => {
  expect(await problemsOf(client, script)).toEqual(problems);
});
