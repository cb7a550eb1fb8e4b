import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import sql from 'sql-template-tag';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDb, type Db } from '../../src/db/db.ts';
import { runInThread } from '../../src/schemas/threads.ts';
import { ignoreConnections, until } from './idle.ts';
import { createManualClock } from './manual-clock.ts';
import { createTestDatabase, type TestDatabase } from './postgres.ts';

let database: TestDatabase;
let db: Db;
beforeAll(async () => {
  database = await createTestDatabase({ empty: true });
  db = createDb({ url: database.url });
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

const tick = () => new Promise<void>((resolve) => setImmediate(resolve));
const slow = sql`select pg_sleep(0.02)`;

test.each<[string, () => Promise<unknown>]>([
  ['a statement runs', () => db.query(slow)],
  ['a transaction runs', () => db.transaction(async (tx) => [await tx.query(slow), await tx.query(slow)])],
  ['a connection is opened', async () => (await db.connect()).end()],
  ['text is collected for a few milliseconds', () => new Promise<void>((resolve) => setTimeout(resolve, 20))],
  [
    'work continues in later turns of the event loop',
    async () => {
      for (let n = 0; n < 50; n += 1) await tick();
    },
  ],
  [
    'names are looked up',
    async () => {
      for (let n = 0; n < 20; n += 1) await lookup('localhost');
    },
  ],
  ['a thread evaluates a schema', () => runInThread('org', [{ ask: 'value', schema: '{}', value: '1' }])],
  [
    'a client and a server in this process send each other messages',
    async () => {
      const server = createServer((socket) => socket.on('data', (data) => socket.write(data)));
      await once(server.listen(0, '127.0.0.1'), 'listening');
      const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
      for (let n = 0; n < 50; n += 1) {
        client.write('x');
        await once(client, 'data');
      }
      client.destroy();
      server.close();
    },
  ],
])('no time passes while %s', async (_, work) => {
  const clock = createManualClock();
  const done = work().then(() => 'done');
  const late = clock.passWhile(clock.sleep(86_400_000)).then(() => 'late');
  expect(await Promise.race([done, late])).toBe('done');
  await late;
});

test('time does not pass beyond the moment in which a condition is true, or a promise of the test settles', async () => {
  const clock = createManualClock();
  const woken: number[] = [];
  for (const seconds of [1, 2, 3]) void clock.sleep(1_000 * seconds).then(() => woken.push(seconds));
  await clock.passUntil(async () => (await db.query<{ n: number }>(sql`select 2 as n`))[0]!.n === woken.length);
  expect(woken).toEqual([1, 2]);
  const seen = until(() => woken.length === 3).then(() => clock.now());
  await clock.passWhile(seen);
  expect(clock.now()).toEqual(await seen);
});

test('time passes while a statement waits for a lock of the test, if its connection is ignored', async () => {
  const holder = await db.connect();
  await holder.query('select pg_advisory_lock(1)');
  const waiting = db.query(sql`select pg_advisory_xact_lock(1)`);
  ignoreConnections(({ url, state }) => url === database.url && state === 'open');
  const clock = createManualClock();
  await clock.passWhile(clock.sleep(1_000));
  await holder.query('select pg_advisory_unlock(1)');
  await waiting;
  await holder.end();
});
