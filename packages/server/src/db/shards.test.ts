// Work for many organizations, grouped by the shard of each. The test's database simulates Citus's functions.
import { channel } from 'node:diagnostics_channel';
import sql, { raw, type Sql } from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { shardedDb } from '../../test/support/lost-server.ts';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createTestDatabase, type TestDatabase } from '../../test/support/postgres.ts';
import { newUuid } from '../lib/ids.ts';
import { createDb, type Db } from './db.ts';
import { createShards, type Within } from './shards.ts';

let database: TestDatabase;
let db: Db;
let asked: string[];
const statements = channel('signalbox.statement');
const hear = (text: unknown) => void asked.push(String(text));

beforeEach(async () => {
  database = await createTestDatabase();
  db = createDb({ url: database.url });
  asked = [];
  statements.subscribe(hear);
});
afterEach(async () => {
  statements.unsubscribe(hear);
  await db.close();
  await database.drop();
});

/** The shard of an organization: the last digit of its id, unless a test changes the rule. */
async function shard(rule = sql`ascii(right($2::text, 1))`): Promise<void> {
  await db.query(sql`create table if not exists pg_dist_partition (logicalrelid regclass)`);
  await db.query(sql`insert into pg_dist_partition values ('sessions')`);
  await db.query(sql`create table if not exists pg_dist_placement (shardid bigint, groupid int)`);
  await db.query(sql`drop function if exists get_shard_id_for_distribution_column`);
  await db.query({
    ...rule,
    text: `create function get_shard_id_for_distribution_column(regclass, uuid) returns bigint
    language sql as 'select ${rule.text}::bigint'`,
  } as typeof rule);
  asked = [];
}

const organizationOn = (digit: string) => `${newUuid().slice(0, -1)}${digit}`;
const lookUps = () => asked.filter((text) => text.includes('get_shard_id')).length;
const same = (id: string) => id;

test('a database that is not sharded counts as one shard, which is determined once', async () => {
  const shards = createShards(db);
  const ids = Array.from({ length: 100 }, () => newUuid());
  const groups: (readonly string[])[] = [];
  for (let n = 0; n < 3; n += 1) {
    expect(
      await shards.each(ids, same, async (group) => {
        groups.push(group);
      }),
    ).toEqual([]);
  }
  expect(groups.map(({ length }) => length)).toEqual([32, 32, 32, 4, 32, 32, 32, 4, 32, 32, 32, 4]);
  expect(groups.slice(0, 4).flat()).toEqual(ids);
  expect(ids.map(shards.of)).toEqual(ids.map(() => 0));
  expect(asked).toHaveLength(1);
});

test('with Citus installed and nothing distributed, all organizations are on one shard', async () => {
  await db.query(sql`create table pg_dist_partition (logicalrelid regclass)`);
  const shards = createShards(db);
  await shards.find([newUuid()]);
  expect(shards.of(newUuid())).toBe(0);
});

test('no group spans two shards, and one query looks up all unknown organizations', async () => {
  await shard();
  const shards = createShards(db);
  const ids = Array.from({ length: 200 }, (_, n) => organizationOn(`${n % 4}`));
  const groups: (readonly string[])[] = [];
  const act = async (group: readonly string[]) => void groups.push(group);
  await shards.each(ids, same, act);
  expect(groups.flat().toSorted()).toEqual(ids.toSorted());
  for (const group of groups) {
    expect(new Set(group.map((id) => id.at(-1))).size).toBe(1);
    expect(group.length).toBeLessThanOrEqual(32);
  }
  await shards.each([...ids, organizationOn('7')], same, act);
  await shards.each(ids, same, act);
  expect(lookUps()).toBe(2);
});

test('a shard that fails or hangs does not affect the others', async () => {
  await shard();
  const shards = createShards(db);
  const [dead, hanging, ...alive] = ['0', '1', '2', '3'].map(organizationOn);
  const error = new Error('connection refused');
  const done: string[] = [];
  const hang = Promise.withResolvers<void>();
  const othersDone = Promise.withResolvers<void>();
  const whole = shards.each([dead!, hanging!, ...alive], same, async ([id]) => {
    if (id === dead) throw error;
    if (id === hanging) await hang.promise;
    done.push(id!);
    if (done.length === alive.length) othersDone.resolve();
  });
  await othersDone.promise;
  expect(done.toSorted()).toEqual(alive.toSorted());
  hang.resolve();
  expect(await whole).toEqual([{ items: [dead], error }]);
});

test('an organization that moved is looked up again after a refused statement', async () => {
  await shard(sql`1`);
  const shards = createShards(db);
  const ids = [organizationOn('0'), organizationOn('1')];
  const refuseMixed = async (group: readonly string[]) => {
    if (group.length > 1) throw Object.assign(new Error('cannot push down this subquery'), { code: '0A000' });
  };
  await shards.find(ids);
  await shard();
  expect(await shards.each(ids, same, refuseMixed)).toMatchObject([{ items: ids }]);
  expect(await shards.each(ids, same, refuseMixed)).toEqual([]);
});

test('if the placement fails, only unknown organizations fail, and the next call retries', async () => {
  await shard();
  let isDown = false;
  const shards = createShards({
    ...db,
    query: (statement) => (isDown ? Promise.reject(new Error('down')) : db.query(statement)),
  });
  const [known, unknown] = [organizationOn('0'), organizationOn('1')];
  isDown = true;
  expect(await shards.each([known], same, async () => {})).toHaveLength(1);
  isDown = false;
  await shards.find([known]);
  isDown = true;
  const done: string[] = [];
  const act = async (group: readonly string[]) => void done.push(...group);
  expect(await shards.each([known, unknown], same, act)).toMatchObject([{ items: [unknown] }]);
  expect(done).toEqual([known]);
  isDown = false;
  expect(await shards.each([known, unknown], same, act)).toEqual([]);
});

const ANYWHERE = (within: Within) => sql`select organization_id as id from organizations where true ${within()}`;

/** Organizations that exist, on shards 48, 49, … and as many servers. */
async function organizationsOn(...digits: string[]): Promise<string[]> {
  const ids = digits.map(organizationOn);
  await db.query(sql`
    insert into organizations (organization_id, name, created_at) select id, 'A', now() from unnest(${ids}::uuid[]) id`);
  await db.query(sql`insert into pg_dist_placement select n, n from generate_series(48, 57) n`);
  asked = [];
  return ids;
}

test('on a database that is not sharded a statement across organizations is a single one, without a condition', async () => {
  const shards = createShards(db);
  await shards.find([]);
  asked = [];
  for (let n = 0; n < 3; n += 1) await shards.query('look', ANYWHERE);
  expect(asked).toEqual(Array(3).fill('select organization_id as id from organizations where true '));
});

test('on a healthy sharded database it is a single one as well', async () => {
  await shard();
  const ids = await organizationsOn('0', '1');
  const shards = createShards(db);
  await shards.query('look', ANYWHERE);
  asked = [];
  const { rows, covers, isComplete } = await shards.query<{ id: string }>('look', ANYWHERE);
  expect(rows.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
  expect([covers(newUuid()), isComplete]).toEqual([true, true]);
  expect(asked).toHaveLength(1);
});

test('jobs with the same name that run at the same time do not stop each other, also when no server is known yet', async () => {
  await shard();
  const ids = await organizationsOn('0', '1');
  const shards = createShards(db);
  const jobs = ['organization_id', 'name', 'created_at'].map((column) =>
    shards.query('look', (within) => sql`select ${raw(column)} from organizations where true ${within()}`),
  );
  expect((await Promise.all(jobs)).map(({ rows }) => rows.length)).toEqual(jobs.map(() => ids.length));
});

test('while a server fails or hangs, the others return their rows, and it is retried less and less often', async () => {
  await shard();
  const ids = await organizationsOn('0', '1', '2');
  const [dead, hanging, alive] = ids;
  const clock = createManualClock();
  const sharded = await shardedDb(db);
  const shards = createShards(sharded, { clock });
  await shards.query('look', ANYWHERE);
  for (const [lost, how] of [
    [dead, 'fails'],
    [hanging, 'hangs'],
  ] as const) {
    sharded.lose([lost!], how);
    const look = () => clock.passWhile(shards.query<{ id: string }>('look', ANYWHERE));
    const { rows, covers, isComplete } = await look();
    expect(rows.map(({ id }) => id).toSorted()).toEqual(ids.filter((id) => id !== lost).toSorted());
    expect([covers(lost!), covers(alive!), isComplete]).toEqual([false, true, false]);
    const before = sharded.tries();
    for (let second = 0; second < 300; second += 1) {
      await look();
      await clock.advance(1_000);
    }
    const tries = sharded.tries() - before;
    // The one that hangs stays in progress; the other is tried after 1, 2, 4, … and then 30 s, and listed each minute.
    if (how === 'hangs') expect(tries).toBeLessThanOrEqual(1);
    else expect(tries).toSatisfy((count: number) => count >= 10 && count <= 25);
    sharded.find();
    const looking = async () => {
      while ((await shards.query('look', ANYWHERE)).rows.length < 3) await clock.sleep(30_000);
    };
    await clock.passWhile(looking());
  }
});

test('a slow server gets enough time after an attempt that succeeded', async () => {
  await shard();
  const [slow] = await organizationsOn('0', '1');
  const clock = createManualClock();
  const sharded = await shardedDb(db);
  const late: Db = {
    ...sharded,
    transaction: (fn) =>
      sharded.transaction((tx) =>
        fn({
          ...tx,
          async query<Row>(statement: Sql) {
            if (statement.values.flat().includes(slow)) await clock.sleep(2_500);
            return tx.query<Row>(statement);
          },
        }),
      ),
  };
  const shards = createShards(late, { clock });
  await shards.query('look', ANYWHERE);
  sharded.lose([organizationOn('5')], 'fails');
  const looking = async () => {
    while ((await shards.query('look', ANYWHERE)).rows.length < 2) await clock.sleep(1_000);
  };
  await clock.passWhile(looking());
});

test('a statement across organizations fails if no server responds', async () => {
  await shard();
  const ids = await organizationsOn('0', '1');
  const sharded = await shardedDb(db);
  const shards = createShards(sharded);
  await shards.query('look', ANYWHERE);
  sharded.lose(ids, 'fails');
  for (let n = 0; n < 2; n += 1) await expect(shards.query('look', ANYWHERE)).rejects.toThrow('not available');
});

test('deleting across organizations returns the maximum of any server', async () => {
  await shard();
  const ids = await organizationsOn('0', '0', '1', '2');
  const sharded = await shardedDb(db);
  const shards = createShards(sharded);
  await shards.query('look', ANYWHERE);
  sharded.lose([ids[3]!], 'fails');
  const drop = (within: Within) => sql`delete from organizations where name = 'A' ${within()}`;
  expect(await shards.execute('drop', drop)).toBe(2);
  expect(await db.query(sql`select 1 from organizations`)).toHaveLength(1);
});

test('a statement confined to a server is cancelled after 5 s', async () => {
  await shard();
  const [lost] = await organizationsOn('0', '1');
  const sharded = await shardedDb(db);
  const shards = createShards(sharded);
  await shards.query('look', ANYWHERE);
  sharded.lose([lost!], 'fails');
  const limit = await shards.query(
    'look',
    (within) => sql`
    select current_setting('statement_timeout') as "limit" from organizations where true ${within()}`,
  );
  expect(limit.rows).toEqual([{ limit: '5s' }]);
});

test('work for a hanging shard is not started again until it has ended', async () => {
  await shard();
  const [hanging, alive] = ['0', '1'].map(organizationOn);
  const clock = createManualClock();
  const shards = createShards(db, { clock });
  const hang = Promise.withResolvers<void>();
  const begun: string[] = [];
  const act = async ([id]: readonly string[]) => {
    begun.push(id!);
    if (id === hanging) await hang.promise;
  };
  const round = () => clock.passWhile(shards.forEachShardWithTimeout('work', [hanging!, alive!], same, act));
  for (let n = 0; n < 3; n += 1) expect(await round()).toMatchObject([{ items: [hanging] }]);
  expect(begun.filter((id) => id === alive)).toHaveLength(3);
  expect(begun.filter((id) => id === hanging)).toHaveLength(1);
  hang.resolve();
  await shards.ended('work');
  expect(await round()).toEqual([]);
  expect(begun.filter((id) => id === hanging)).toHaveLength(2);
});
