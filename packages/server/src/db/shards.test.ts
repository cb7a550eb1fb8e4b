// Work for many organizations, grouped by the shard that each is on. Citus's own functions are played by the test's database.
import { channel } from 'node:diagnostics_channel';
import sql from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../test/support/postgres.ts';
import { newUuid } from '../lib/ids.ts';
import { createDb, type Db } from './db.ts';
import { createShards } from './shards.ts';

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

/** The last digit of an organization's id is its shard, by the rule of the moment. */
async function shard(rule = sql`ascii(right($2::text, 1))`): Promise<void> {
  await db.query(sql`create table if not exists pg_dist_partition (logicalrelid regclass)`);
  await db.query(sql`insert into pg_dist_partition values ('sessions')`);
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

test('on a database that is not sharded all organizations are in one lane, which is found out once', async () => {
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

test('with Citus installed and nothing distributed all organizations are in one lane', async () => {
  await db.query(sql`create table pg_dist_partition (logicalrelid regclass)`);
  const shards = createShards(db);
  await shards.find([newUuid()]);
  expect(shards.of(newUuid())).toBe(0);
});

test('no group has organizations of two shards, and one query places all that are unknown', async () => {
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

test('a shard that fails or hangs stops no other', async () => {
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

test('an organization that moved is placed anew after the statement that was refused', async () => {
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

test('while organizations cannot be placed only those that are unknown fail, and the next call asks again', async () => {
  await shard();
  let isDown = false;
  const shards = createShards({
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
