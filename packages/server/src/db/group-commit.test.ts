import sql, { type Sql } from 'sql-template-tag';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../test/support/postgres.ts';
import { startPostgresProxy } from '../../test/support/postgres-proxy.ts';
import { createDb, DatabaseUnavailable, type Db } from './db.ts';

let database: TestDatabase;
let db: Db;

beforeAll(async () => {
  database = await createTestDatabase({ empty: true });
  db = createDb({ url: database.url });
  await db.execute(sql`create table sessions_of_test (id int primary key, epoch int not null default 0)`);
  await db.execute(sql`create table notes (id int primary key, text text, at int generated always as identity)`);
  await db.execute(sql`create table commits (id int, xid bigint)`);
});

beforeEach(async () => {
  await db.execute(sql`truncate sessions_of_test, notes, commits`);
  await db.execute(sql`insert into sessions_of_test select generate_series(1, 40)`);
});

afterAll(async () => {
  await db.close();
  await database.drop();
});

/** As a transition of a session: fails by a division by zero if the epoch differs. */
const fence = (id: number, epoch = 0): Sql => sql`
  with updated as (update sessions_of_test set epoch = epoch + 1 where id = ${id} and epoch = ${epoch} returning id)
  select 1 / count(*) as n, min(id) as id from updated`;
const note = (id: number, text = `note ${id}`): Sql => sql`
  insert into notes (id, text) values (${id}, ${text})`;
const commit = (id: number): Sql => sql`insert into commits select ${id}, pg_current_xact_id()::text::bigint`;
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);
const notes = async () => (await db.query<{ id: number }>(sql`select id from notes order by id`)).map(({ id }) => id);

async function commitsOf(ids: readonly number[]): Promise<number> {
  const [row] = await db.query<{ n: number }>(
    sql`select count(distinct xid)::int as n from commits where id = any(${[...ids]}::int[])`,
  );
  return row!.n;
}

test('the first transaction starts at once, and those that arrive while it runs share commits of up to eight', async () => {
  const results = await Promise.all(
    range(1, 40).map((id) => db.batch([fence(id), note(id), commit(id)], { group: 1 })),
  );
  expect(results).toEqual(range(1, 40).map((id) => [[{ n: 1, id }], [], []]));
  expect(await notes()).toEqual(range(1, 40));
  expect(await commitsOf(range(1, 40))).toBe(1 + Math.ceil(39 / 8));
});

test('transactions of other groups, and those without one, have commits of their own', async () => {
  const groups = [1, 1, 2, 2, undefined, undefined];
  await Promise.all(groups.map((group, id) => db.batch([note(id), commit(id)], { group })));
  expect(await commitsOf(range(0, 5))).toBe(6);
});

test('the statements of each transaction keep their order, also when they are not the same as those of the others', async () => {
  const update = (id: number) => sql`update notes set text = text || ' changed' where id = ${id}`;
  const returning = (id: number) => sql`insert into notes (id, text) values (${id}, 'returned') returning id`;
  const [, ...shared] = await Promise.all([
    db.batch([note(1)], { group: 1 }),
    db.batch([note(2), update(2), note(3)], { group: 1 }),
    db.batch([note(4), note(5), update(5)], { group: 1 }),
    db.batch([returning(6), note(7), update(6)], { group: 1 }),
    db.batch([sql`select count(*)::int as n from notes where id = 8`, note(8)], { group: 1 }),
  ]);
  expect(shared).toEqual([
    [[], [], []],
    [[], [], []],
    [[{ id: 6 }], [], []],
    [[{ n: 0 }], []],
  ]);
  const rows = await db.query<{ text: string }>(sql`select text from notes order by id`);
  expect(rows.map(({ text }) => text)).toEqual([
    'note 1',
    'note 2 changed',
    'note 3',
    'note 4',
    'note 5 changed',
    'returned changed',
    'note 7',
    'note 8',
  ]);
});

test('one that fails gets its error, and the others are committed', async () => {
  await db.execute(note(5));
  const outcomes = await Promise.allSettled(
    range(1, 9).map((id) => db.batch([fence(id, id === 3 ? 7 : 0), note(id), commit(id)], { group: 1 })),
  );
  expect(outcomes.map(({ status }) => status)).toEqual(
    range(1, 9).map((id) => (id === 3 || id === 5 ? 'rejected' : 'fulfilled')),
  );
  expect(outcomes[2]).toMatchObject({ reason: { code: '22012' } });
  expect(outcomes[4]).toMatchObject({ reason: { code: '23505' } });
  expect(await notes()).toEqual([1, 2, 4, 5, 6, 7, 8, 9]);
  const epochs = await db.query(sql`select id from sessions_of_test where epoch = 0 and id < 10 order by id`);
  expect(epochs).toEqual([{ id: 3 }, { id: 5 }]);
});

test('one that meets a lock waits for it alone', async () => {
  let late: Promise<unknown> | undefined;
  await db.transaction(async (tx) => {
    await tx.query(sql`select 1 from sessions_of_test where id = 2 for update`);
    const all = range(1, 5).map((id) => db.batch([fence(id), note(id)], { group: 1 }));
    late = all[1];
    await Promise.all(all.filter((one) => one !== late));
    expect(await notes()).toEqual([1, 3, 4, 5]);
  });
  await late;
  expect(await notes()).toEqual([1, 2, 3, 4, 5]);
});

test('groups are committed while an earlier one still waits', async () => {
  let first: Promise<unknown> | undefined;
  await db.transaction(async (tx) => {
    await tx.query(sql`select 1 from sessions_of_test where id = 1 for update`);
    first = db.batch([fence(1)], { group: 1 });
    await Promise.all([db.batch([fence(2)], { group: 1 }), db.batch([fence(3)], { group: 1 })]);
    await db.batch([fence(4)], { group: 1 });
  });
  await first;
});

test('one that limits its locks fails instead of waiting, alone and in a group', async () => {
  await db.transaction(async (tx) => {
    await tx.query(sql`select 1 from sessions_of_test where id = 1 for update`);
    const limited = () => db.batch([fence(1)], { group: 1, limitsLocks: true });
    await expect(limited()).rejects.toMatchObject({ code: '55P03' });
    const [other, ...failed] = await Promise.allSettled([
      db.batch([fence(2), note(2)], { group: 1, limitsLocks: true }),
      limited(),
      limited(),
    ]);
    expect(other).toMatchObject({ status: 'fulfilled', value: [[{ n: 1, id: 2 }], []] });
    for (const outcome of failed) expect(outcome).toMatchObject({ reason: { code: '55P03' } });
  });
  expect(await notes()).toEqual([2]);
});

test('if the response to a commit is lost, each of a group learns that its outcome is unknown, and none is repeated', async () => {
  const proxy = await startPostgresProxy(database.url);
  const behind = createDb({ url: proxy.url });
  try {
    proxy.losesResponse = (tags) => tags.includes('INSERT 0 3');
    const [first, ...shared] = await Promise.allSettled(
      range(1, 4).map((id) => behind.batch([note(id)], { group: 1 })),
    );
    expect(first).toMatchObject({ status: 'fulfilled' });
    for (const outcome of shared) {
      const { reason } = outcome as PromiseRejectedResult;
      expect(reason).toBeInstanceOf(DatabaseUnavailable);
      expect(reason).toMatchObject({ outcomeUnknown: true });
    }
    expect(await notes()).toEqual([1, 2, 3, 4]);
  } finally {
    await behind.close();
    await proxy.close();
  }
});

test('without a connection each of them rejects', async () => {
  const nowhere = createDb({ url: 'postgres://postgres@127.0.0.1:9/postgres' });
  const outcomes = await Promise.allSettled(range(1, 3).map((id) => nowhere.batch([note(id)], { group: 1 })));
  expect(outcomes.map((outcome) => (outcome as PromiseRejectedResult).reason.name)).toEqual(
    Array(3).fill('DatabaseUnavailable'),
  );
  await nowhere.close();
});
