import { randomBytes } from 'node:crypto';
import type { Client } from 'pg';
import sql from 'sql-template-tag';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { ignoreConnections } from '../../test/support/idle.ts';
import { createManualClock, type ManualClock } from '../../test/support/manual-clock.ts';
import { createTestDatabase, type TestDatabase } from '../../test/support/postgres.ts';
import { type PostgresProxy, startPostgresProxy } from '../../test/support/postgres-proxy.ts';
import { createDb, DatabaseUnavailable, type Db, type DbOptions } from './db.ts';
import { createIdentityPool, type IdentityPool } from './identity-pool.ts';

let database: TestDatabase;
let admin: Db;

beforeAll(async () => {
  database = await createTestDatabase({ empty: true });
  admin = createDb({ url: database.url });
  await admin.execute(sql`create table notes (id int primary key, text text)`);
});

afterAll(async () => {
  await admin.close();
  await database.drop();
});

function dbWith(options: Partial<DbOptions> = {}): Db {
  const db = createDb({ url: database.url, ...options });
  onTestFinished(() => db.close());
  return db;
}

/** A database behind a proxy, with one idle connection, and the clock that measures its silence. */
async function behindProxy(
  options: Partial<DbOptions> = {},
): Promise<{ db: Db; proxy: PostgresProxy; clock: ManualClock }> {
  const proxy = await startPostgresProxy(database.url);
  onTestFinished(() => proxy.close());
  const clock = createManualClock();
  const db = createDb({ url: proxy.url, clock, ...options });
  await db.query(sql`select 1`);
  return { db, proxy, clock };
}

/** Lets time pass until the promise is settled; returns the number of seconds. */
async function secondsUntil(clock: ManualClock, awaited: Promise<unknown>): Promise<number> {
  const startedAt = clock.now().getTime();
  await clock.passWhile(Promise.allSettled([awaited]));
  return (clock.now().getTime() - startedAt) / 1000;
}

/** As better-auth does it. */
async function askIdentity(pool: IdentityPool): Promise<void> {
  const connection = await pool.connect();
  await connection.query('select 1').finally(() => connection.release());
}

/** A URL of the database at these hosts, each with its port. */
function urlOf(hosts: readonly string[]): string {
  const { username, password, pathname } = new URL(database.url);
  return `postgres://${username}${password && `:${password}`}@${hosts.join(',')}${pathname}?target_session_attrs=read-write`;
}

const outcomeOf = (attempt: Promise<unknown>) =>
  attempt.then(
    () => 'done',
    (error: unknown) => error,
  );

describe('a database that hangs', () => {
  test('fails every statement, commit and new connection within 10 s, and is used again as soon as it responds', async () => {
    const { db, proxy, clock } = await behindProxy({ statementTimeoutMs: 60_000 });
    const hung = Promise.withResolvers<() => void>();
    const transaction = db.transaction(async (tx) => {
      await tx.execute(sql`insert into notes values (1)`);
      hung.resolve(proxy.hang());
      await tx.query(sql`select 1`);
    });
    const proceed = await hung.promise;
    const attempts = [
      transaction,
      db.query(sql`select 1`),
      db.execute(sql`insert into notes values (2)`),
      db.connect(),
    ];
    const outcomes = Promise.all(attempts.map(outcomeOf));
    expect(await secondsUntil(clock, outcomes)).toBeLessThanOrEqual(10);
    for (const outcome of await outcomes) expect(outcome).toBeInstanceOf(DatabaseUnavailable);
    proceed();
    expect(await db.query(sql`select id from notes`)).toEqual([]);
    await db.close();
  });

  test('is detected by a check within 5 s, even if every connection of the pool is waiting', async () => {
    const { db, proxy, clock } = await behindProxy({ max: 1 });
    const proceed = proxy.hang();
    const waiting = outcomeOf(db.query(sql`select 1`));
    const checked = outcomeOf(db.check());
    expect(await secondsUntil(clock, checked)).toBeLessThanOrEqual(4);
    expect(await checked).toBeInstanceOf(DatabaseUnavailable);
    await secondsUntil(clock, waiting);
    proceed();
    await db.check();
    await db.close();
  });

  test('does not keep a node from stopping', async () => {
    const { db, proxy, clock } = await behindProxy();
    const listener = await db.connect();
    proxy.hang();
    const closed = Promise.all([db.close(), listener.end()]);
    expect(await secondsUntil(clock, closed)).toBeLessThanOrEqual(5);
  });

  test('is not assumed for a slow statement while new connections succeed', async () => {
    const { db, proxy, clock } = await behindProxy();
    await admin.execute(sql`insert into notes values (3)`);
    let waiting: Promise<unknown> | undefined;
    await admin.transaction(async (tx) => {
      await tx.query(sql`select from notes where id = 3 for update`);
      waiting = db.execute(sql`delete from notes where id = 3`);
      // It waits for the lock; the attempts to connect count.
      ignoreConnections(({ url, state }) => url === proxy.url && state === 'open');
      await clock.pass(30_000);
    });
    expect(await waiting).toBe(1);
    await db.close();
  });

  test('fails sign-in connections no longer than the others', async () => {
    const proxy = await startPostgresProxy(database.url);
    onTestFinished(() => proxy.close());
    const clock = createManualClock();
    const pool = createIdentityPool({ url: proxy.url, log: { warn() {} }, statementTimeoutMs: 60_000, clock });
    await askIdentity(pool);
    const proceed = proxy.hang();
    const asked = outcomeOf(askIdentity(pool));
    expect(await secondsUntil(clock, asked)).toBeLessThanOrEqual(10);
    expect(await asked).toMatchObject({ code: 'ETIMEDOUT' });
    proceed();
    await clock.passWhile(askIdentity(pool));
    await pool.end();
  });

  test('fails every caller within 10 s and a check within 5 s, however many hosts are silent, and is used again', async () => {
    const proxies = [await startPostgresProxy(database.url), await startPostgresProxy(database.url)];
    onTestFinished(async () => void (await Promise.all(proxies.map((proxy) => proxy.close()))));
    const proceeds = proxies.map((proxy) => proxy.hang());
    const clock = createManualClock();
    const db = createDb({ url: urlOf(proxies.map(({ url }) => new URL(url).host)), clock });
    for (let times = 0; times < 3; times += 1) {
      const asked = outcomeOf(db.query(sql`select 1`));
      expect(await secondsUntil(clock, asked)).toBeLessThanOrEqual(10);
      expect(await asked).toBeInstanceOf(DatabaseUnavailable);
    }
    const checked = outcomeOf(db.check());
    expect(await secondsUntil(clock, checked)).toBeLessThanOrEqual(5);
    expect(await checked).toBeInstanceOf(DatabaseUnavailable);
    for (const proceed of proceeds) proceed();
    expect(await clock.passWhile(db.query(sql`select 1 as one`))).toEqual([{ one: 1 }]);
    await db.close();
  });
});

test('a connection that the network silently dropped fails its statement after the statement timeout, and is replaced', async () => {
  const { db, proxy, clock } = await behindProxy({ statementTimeoutMs: 20_000 });
  proxy.hang('existing');
  const asked = outcomeOf(db.query(sql`select 1`));
  const seconds = await secondsUntil(clock, asked);
  expect(seconds).toBeGreaterThan(20);
  expect(seconds).toBeLessThanOrEqual(26);
  expect(await asked).toBeInstanceOf(DatabaseUnavailable);
  expect(await db.query(sql`select 1 as one`)).toEqual([{ one: 1 }]);
  await db.close();
});

describe('a read-only database', () => {
  test('is unavailable, and every earlier connection is replaced once it accepts writes', async () => {
    const db = dbWith();
    const setAll = (value: string) =>
      Promise.all(
        Array.from({ length: 4 }, () =>
          db.transaction(async (tx) => {
            await tx.query(sql`select set_config('default_transaction_read_only', ${value}, false)`);
            await tx.query(sql`select pg_sleep(0.05)`);
          }),
        ),
      );
    await setAll('on');
    expect(db.pool().total).toBe(4);
    const refused = await outcomeOf(db.execute(sql`insert into notes values (10)`));
    expect(refused).toBeInstanceOf(DatabaseUnavailable);
    expect(refused).toMatchObject({ outcomeUnknown: false, cause: { code: '25006' } });
    const writes = [11, 12, 13, 14].map((id) => db.execute(sql`insert into notes values (${id})`));
    expect(await Promise.all(writes)).toEqual([1, 1, 1, 1]);
  });

  test('provides no new connection, is detected by a check, and is used again without a restart', async () => {
    const [name] = await admin.query<{ name: string }>(sql`select current_database() as name`);
    const alter = async (text: string) => {
      const client = await admin.connect();
      await client.query(`set default_transaction_read_only = off; alter database ${name!.name} ${text}`);
      await client.end();
    };
    const db = dbWith();
    const identity = createIdentityPool({ url: database.url, log: { warn() {} }, statementTimeoutMs: 0 });
    const client = await admin.connect();
    await alter('set default_transaction_read_only = on');
    const attempts = [db.query(sql`select 1`), db.check(), db.connect(), askIdentity(identity)];
    for (const outcome of await Promise.all(attempts.map(outcomeOf))) {
      expect(outcome).toMatchObject({ message: expect.stringContaining('read-only') });
    }
    await client.query(`alter database ${name!.name} reset default_transaction_read_only`);
    await client.end();
    // The result of a check is kept for a moment.
    await vi.waitFor(() => db.check());
    expect(await db.query(sql`select 1 as one`)).toEqual([{ one: 1 }]);
    await askIdentity(identity);
    await identity.end();
  });
});

test('settings of a role or a database that change results or slow statements down do not reach the service', async () => {
  const [name] = await admin.query<{ name: string }>(sql`select current_database() as name`);
  const settings = [
    ['DateStyle', 'SQL, DMY'],
    ['IntervalStyle', 'sql_standard'],
    ['TimeZone', 'Asia/Kathmandu'],
    ['bytea_output', 'escape'],
    ['array_nulls', 'off'],
    ['default_transaction_isolation', 'serializable'],
    ['standard_conforming_strings', 'off'],
    ['lock_timeout', '1'],
    ['jit', 'on'],
  ] as const;
  const client = await admin.connect();
  for (const [key, value] of settings) await client.query(`alter database ${name!.name} set ${key} = '${value}'`);
  const given = {
    at: new Date('2026-01-02T03:04:05.678Z'),
    day: '2026-02-28',
    bytes: Buffer.from([0, 255]),
    texts: ['a\\b', null],
  };
  const [row] = await dbWith().query(sql`
    select ${given.at}::timestamptz as at, ${given.day}::date as day, ${given.bytes}::bytea as bytes,
      ${given.texts}::text[] as texts, extract(hour from ${given.at}::timestamptz)::int as hour,
      current_setting('transaction_isolation') as isolation, current_setting('jit') as jit, '1 day 2 hours'::interval::text as interval`);
  for (const [key] of settings) await client.query(`alter database ${name!.name} reset ${key}`);
  await client.end();
  expect(row).toEqual({ ...given, hour: 3, isolation: 'read committed', jit: 'off', interval: '1 day 02:00:00' });
});

describe('too few connections', () => {
  test('callers wait while the whole pool is in use', async () => {
    const db = dbWith({ max: 2 });
    const many = Array.from({ length: 50 }, (_, index) => db.query(sql`select ${index}::int as n`));
    expect(await Promise.all(many)).toHaveLength(50);
    expect(db.pool().total).toBe(2);
  });

  describe('because the server allows no more', () => {
    let role: string;
    let client: Client;
    const alter = (text: string) => client.query(`alter role ${role} ${text}`);
    const endAll = () =>
      client.query('select pg_terminate_backend(pid, 5000) from pg_stat_activity where usename = $1', [role]);

    beforeEach(async () => {
      role = `limited_${randomBytes(4).toString('hex')}`;
      client = await admin.connect();
      await client.query(`create role ${role} login password 'limited' connection limit 2`);
    });
    afterEach(async () => {
      await client.query(`drop role ${role}`);
      await client.end();
    });

    async function limited(): Promise<{ db: Db; proxy: PostgresProxy; clock: ManualClock; warnings: string[] }> {
      const proxy = await startPostgresProxy(database.url);
      onTestFinished(() => proxy.close());
      const url = new URL(proxy.url);
      url.username = role;
      url.password = 'limited';
      const clock = createManualClock();
      const warnings: string[] = [];
      const log = { warn: (_: object, message: string) => warnings.push(message) };
      const db = createDb({ url: url.href, max: 10, clock, log });
      return { db, proxy, clock, warnings };
    }

    test('callers wait for the connections that the node has, which does not ask for more each time', async () => {
      const { db, proxy, warnings } = await limited();
      for (let times = 0; times < 3; times += 1) {
        const many = Array.from({ length: 40 }, () => db.query(sql`select 1`));
        expect(await Promise.all(many)).toHaveLength(40);
      }
      expect(proxy.opened).toBe(10);
      expect(warnings).toEqual(['no further database connection; working with the open ones']);
      // The server responds, and the node has connections: it is ready.
      await db.check();
      await db.close();
    });

    test('and the node has none: callers fail, it is not ready, and it asks for one about once a second', async () => {
      const { db, proxy, clock } = await limited();
      await db.query(sql`select 1`);
      await alter('connection limit 0');
      await endAll();
      await vi.waitUntil(() => db.pool().total === 0, { interval: 1 });
      const before = proxy.opened;
      const startedAt = clock.now().getTime();
      const outcomes = [];
      for (let times = 0; times < 8; times += 1) {
        const many = Array.from({ length: 5 }, () => outcomeOf(db.query(sql`select 1`)));
        outcomes.push(...(await clock.passWhile(Promise.all(many))));
      }
      for (const outcome of outcomes)
        expect(outcome).toMatchObject({ name: 'DatabaseUnavailable', cause: { code: '53300' } });
      const seconds = (clock.now().getTime() - startedAt) / 1000;
      // The first five together, and those with shorter pauses.
      expect(proxy.opened - before).toBeLessThan(5 + 6 + seconds);
      expect(await outcomeOf(db.check())).toMatchObject({ cause: { code: '53300' } });
      await alter('connection limit 2');
      expect(await clock.passWhile(db.query(sql`select 1 as one`))).toEqual([{ one: 1 }]);
      await clock.advance(1_000);
      await db.check();
      await db.close();
    });

    test('or because its password was changed: the node works with what it has, then fails as unavailable', async () => {
      const { db, clock } = await limited();
      await db.query(sql`select 1`);
      await alter(`password 'changed'`);
      const many = Array.from({ length: 10 }, () => db.query(sql`select 1`));
      expect(await Promise.all(many)).toHaveLength(10);
      await db.check();
      await endAll();
      await vi.waitUntil(() => db.pool().total === 0, { interval: 1 });
      const asked = outcomeOf(db.query(sql`select 1`));
      expect(await clock.passWhile(asked)).toMatchObject({ name: 'DatabaseUnavailable', cause: { code: '28P01' } });
      await clock.advance(1_000);
      expect(await outcomeOf(db.check())).toMatchObject({ cause: { code: '28P01' } });
      await alter(`password 'limited'`);
      await clock.passWhile(db.query(sql`select 1`));
      await db.close();
    });
  });

  test('callers that wait for one fail after 10 s, also if one of its callers never returns it', async () => {
    const clock = createManualClock();
    const db = dbWith({ max: 1, clock });
    const { promise: over, resolve: end } = Promise.withResolvers<void>();
    const taken = Promise.withResolvers<void>();
    const keeping = db.transaction(async (tx) => {
      await tx.query(sql`select 1`);
      taken.resolve();
      await over;
    });
    await taken.promise;
    const waiting = outcomeOf(db.query(sql`select 1`));
    expect(await secondsUntil(clock, waiting)).toBe(10);
    expect(await waiting).toBeInstanceOf(DatabaseUnavailable);
    end();
    await keeping;
    expect(await db.query(sql`select 1 as one`)).toEqual([{ one: 1 }]);
  });
});

test('of several hosts the first that accepts connections is used, and the next one when it is unavailable', async () => {
  const [one, other] = await Promise.all([startPostgresProxy(database.url), startPostgresProxy(database.url)]);
  onTestFinished(() => other.close());
  const [first, second] = [new URL(one.url), new URL(other.url)];
  const db = dbWith({ url: urlOf(['127.0.0.1:1', first.host, second.host]) });
  await db.query(sql`select 1`);
  expect([one.connections, other.connections]).toEqual([1, 0]);
  await one.close();
  await vi.waitFor(async () => db.query(sql`select 1`));
  expect(other.connections).toBeGreaterThan(0);
});
