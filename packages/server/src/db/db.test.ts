import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import sql, { raw, type Sql } from 'sql-template-tag';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../test/support/postgres.ts';
import { startPostgresProxy } from '../../test/support/postgres-proxy.ts';
import { CheckedOutConnection } from './checkout.ts';
import { createDb, DatabaseUnavailable, type Db, type Tx } from './db.ts';
import { DatabaseUnsuitable, requireDurableCommits, requireSupportedServer } from './requirements.ts';
import { textArray } from './values.ts';

let database: TestDatabase;
let db: Db;

beforeAll(async () => {
  database = await createTestDatabase({ empty: true });
  db = createDb({ url: database.url });
  await db.execute(sql`create table notes (id int primary key, text text)`);
});

beforeEach(async () => {
  await db.execute(sql`delete from notes`);
});

afterAll(async () => {
  await db.close();
  await database.drop();
});

const ids = async () => (await db.query<{ id: number }>(sql`select id from notes order by id`)).map((row) => row.id);

describe('values', () => {
  test('are read as they were written', async () => {
    const given = {
      big: 2 ** 53 - 1,
      at: new Date('2026-01-02T03:04:05.678Z'),
      json: { a: [1, null, 'ü"\\'] },
      bytes: Buffer.from([0, 1, 255]),
      uuid: '0190d8a5-0000-7000-8000-000000000000',
      day: '2026-02-28',
      yes: true,
      nothing: null,
    };
    const [row] = await db.query(sql`
      select ${given.big}::int8 as big, ${given.at}::timestamptz as at, ${given.json}::jsonb as json,
        ${given.bytes}::bytea as bytes, ${given.uuid}::uuid as uuid, ${given.day}::date as day,
        ${given.yes}::bool as yes, ${undefined}::text as nothing`);
    expect(row).toEqual(given);
  });

  test('in arrays are read as they were written, whatever characters they contain', async () => {
    const texts = ['', 'NULL', 'a,b', '{}', '"', '\\', "'", ' x ', 'ü😀', null, '\n'];
    const given = {
      texts,
      numbers: [1, null, 2 ** 53 - 1],
      dates: [new Date(0)],
      bytes: [Buffer.from([0, 255])],
      json: [{ a: '"\\' }],
      nested: [
        ['a', 'b"'],
        ['c', 'd'],
      ],
      none: [],
    };
    const [row] = await db.query(sql`
      select ${given.texts}::text[] as texts, ${given.numbers}::int8[] as numbers, ${given.dates}::timestamptz[] as dates,
        ${given.bytes}::bytea[] as bytes, ${given.json}::jsonb[] as json, ${given.nested}::text[] as nested,
        ${given.none}::uuid[] as none`);
    expect(row).toEqual(given);
  });

  test('arrive as a binary array of texts, whatever they contain', async () => {
    for (const given of [['a', '', '"quoted" \\ {braces}, NULL', 'größe 🚀', 'x'.repeat(10_000)], []]) {
      const [row] = await db.query<{ texts: string[] }>(sql`select ${textArray(given)}::text[] as texts`);
      expect(row!.texts).toEqual(given);
    }
  });

  test('too large for a number are an error, and the connection still works afterwards', async () => {
    await expect(db.query(sql`select ${'9007199254740993'}::int8`)).rejects.toThrow(RangeError);
    await expect(db.query(sql`select ${() => 1}`)).rejects.toThrow(TypeError);
    expect(await db.query(sql`select 1 as one`)).toEqual([{ one: 1 }]);
  });
});

describe('a transaction', () => {
  test('commits when its function resolves, and only then runs afterCommit, in order', async () => {
    const order: string[] = [];
    await db.transaction(async (tx) => {
      tx.afterCommit(() => order.push('first'));
      tx.afterCommit(() => order.push('second'));
      expect(await tx.execute(sql`insert into notes values (1), (2)`)).toBe(2);
      expect(await ids()).toEqual([]);
      expect(order).toEqual([]);
    });
    expect(order).toEqual(['first', 'second']);
    expect(await ids()).toEqual([1, 2]);
  });

  test('is committed, and runs every afterCommit, also if one of them throws', async () => {
    const order: string[] = [];
    const value = await db.transaction(async (tx) => {
      tx.afterCommit(() => {
        throw new Error('no');
      });
      tx.afterCommit(() => order.push('second'));
      await tx.execute(sql`insert into notes values (1)`);
      return 'committed';
    });
    expect(value).toBe('committed');
    expect(order).toEqual(['second']);
    expect(await ids()).toEqual([1]);
  });

  test('rolls back when its function throws, and runs no afterCommit', async () => {
    let ran = false;
    const failing = db.transaction(async (tx) => {
      tx.afterCommit(() => {
        ran = true;
      });
      await tx.execute(sql`insert into notes values (1)`);
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    expect(ran).toBe(false);
    expect(await ids()).toEqual([]);
  });

  test('in which an error was swallowed is not reported as committed', async () => {
    let ran = false;
    const failing = db.transaction(async (tx) => {
      tx.afterCommit(() => {
        ran = true;
      });
      await tx.execute(sql`insert into notes values (1)`);
      await tx.execute(sql`insert into notes values (1)`).catch(() => {});
    });
    await expect(failing).rejects.toMatchObject({ message: /rolled back/, cause: { code: '23505' } });
    expect(ran).toBe(false);
    expect(await ids()).toEqual([]);
  });

  test('with a value that can’t be sent is not committed, even if no one waited for its statement', async () => {
    const failing = db.transaction(async (tx) => {
      await tx.execute(sql`insert into notes values (1)`);
      void tx.execute(sql`insert into notes values (2, ${new Date(Number.NaN)})`);
    });
    await expect(failing).rejects.toMatchObject({ message: /rolled back/, cause: { name: 'RangeError' } });
    expect(await ids()).toEqual([]);
    await db.transaction(async (tx) => {
      const unsent = tx.savepoint(() => tx.execute(sql`insert into notes values (3, ${new Date(Number.NaN)})`));
      await expect(unsent).rejects.toBeInstanceOf(RangeError);
      await tx.execute(sql`insert into notes values (4)`);
    });
    expect(await ids()).toEqual([4]);
  });

  test('fails with what its function throws, and not with a statement that failed beside it', async () => {
    const boom = (): Promise<unknown> => {
      throw new Error('boom');
    };
    const startedBeside = (statement: Sql) =>
      db.transaction((tx) => Promise.all([tx.query(statement), tx.execute(statement), boom()]));
    // A rejection that nothing handles would fail this test file, and ends the service.
    await expect(startedBeside(sql`select ${new Date(Number.NaN)}::timestamptz`)).rejects.toThrow('boom');
    await expect(startedBeside(sql`select 1 / 0`)).rejects.toThrow('boom');
    await db.transaction(async (tx) => {
      const begun = tx.savepoint(() => Promise.all([tx.query(sql`select 1 / 0`), boom()]));
      await expect(begun).rejects.toThrow('boom');
      await tx.execute(sql`insert into notes values (1)`);
    });
    // The connections are in use again, and in no transaction.
    expect(await Promise.all([ids(), ids()])).toEqual([[1], [1]]);
  });

  test('sends nothing of a savepoint that outlasts it, whose connection is in use again', async () => {
    const one = createDb({ url: database.url, max: 1 });
    const slow = Promise.withResolvers<void>();
    let late: Promise<unknown> | undefined;
    const failing = one.transaction(async (tx) => {
      late = tx.savepoint(async () => {
        await tx.execute(sql`insert into notes values (1)`);
        await slow.promise;
      });
      await tx.query(sql`select 1`);
      throw new Error('boom');
    });
    await expect(failing).rejects.toThrow('boom');
    await one.transaction((tx) =>
      tx.savepoint(async () => {
        await tx.execute(sql`insert into notes values (2)`);
        slow.resolve();
        await expect(late).rejects.toThrow('The transaction is over');
        await tx.execute(sql`insert into notes values (3)`);
      }),
    );
    await one.close();
    expect(await ids()).toEqual([2, 3]);
  });

  test('and its savepoint fail without ending the process if no one waits for the savepoint', async () => {
    const boom = (): Promise<unknown> => {
      throw new Error('boom');
    };
    // A rejection that nothing handles would fail this test file, and ends the service.
    const failing = db.transaction((tx) => Promise.all([tx.savepoint(() => tx.query(sql`select 1 / 0`)), boom()]));
    await expect(failing).rejects.toThrow('boom');
    expect(await Promise.all([ids(), ids()])).toEqual([[], []]);
  });

  test('runs none of the statements that were sent after one that failed', async () => {
    const failing = db.transaction(async (tx) => {
      const outcomes = await Promise.allSettled([
        tx.execute(sql`insert into notes values (1)`),
        tx.execute(sql`insert into notes values (1)`),
        tx.execute(sql`insert into notes values (2)`),
      ]);
      expect(outcomes.map((outcome) => outcome.status)).toEqual(['fulfilled', 'rejected', 'rejected']);
      throw new Error('done');
    });
    await expect(failing).rejects.toThrow('done');
    expect(await ids()).toEqual([]);
  });

  test('commits statements that its function did not wait for, and accepts none afterwards', async () => {
    let late: (() => Promise<unknown>) | undefined;
    await db.transaction(async (tx) => {
      void tx.execute(sql`insert into notes values (1)`);
      late = () => tx.execute(sql`insert into notes values (2)`);
    });
    await expect(late?.()).rejects.toThrow('The transaction is over');
    expect(await ids()).toEqual([1]);
  });

  test('that only writes takes one round trip; writes between reads are sent in order', async () => {
    const trips = vi.spyOn(CheckedOutConnection.prototype, 'run');
    try {
      await db.transaction(async (tx) => {
        tx.write(sql`insert into notes values (1)`);
        tx.write(sql`insert into notes values (2)`);
      });
      expect(trips).toHaveBeenCalledTimes(1);
      trips.mockClear();
      await db.transaction(async (tx) => {
        tx.write(sql`insert into notes values (3)`);
        expect(await tx.execute(sql`update notes set text = 'seen' where id = 3`)).toBe(1);
        tx.write(sql`insert into notes values (4)`);
      });
      expect(trips).toHaveBeenCalledTimes(2);
    } finally {
      trips.mockRestore();
    }
    expect(await ids()).toEqual([1, 2, 3, 4]);
  });

  test('fails with its writes, is rolled back completely, and its connection still works afterwards', async () => {
    const one = createDb({ url: database.url, max: 1 });
    const pid = async () => (await one.query<{ pid: number }>(sql`select pg_backend_pid() as pid`))[0]?.pid;
    const before = await pid();
    let ran = false;
    const twice = one.transaction(async (tx) => {
      tx.afterCommit(() => {
        ran = true;
      });
      tx.write(sql`insert into notes values (1)`);
      tx.write(sql`insert into notes values (1)`);
    });
    await expect(twice).rejects.toMatchObject({ code: '23505' });
    const thrown = one.transaction(async (tx) => {
      tx.write(sql`insert into notes values (2), (2)`);
      throw new Error('no');
    });
    await expect(thrown).rejects.toThrow('no');
    await one.transaction(async (tx) => {
      const inner = tx.savepoint(async () => {
        tx.write(sql`insert into notes values (3)`);
        tx.write(sql`insert into notes values (3)`);
      });
      await expect(inner).rejects.toMatchObject({ code: '23505' });
      const thrownInside = tx.savepoint(async () => {
        tx.write(sql`insert into notes values (4), (4)`);
        throw new Error('no');
      });
      await expect(thrownInside).rejects.toThrow('no');
      tx.write(sql`insert into notes values (5)`);
    });
    expect(ran).toBe(false);
    expect(await ids()).toEqual([5]);
    expect(await pid()).toBe(before);
    await one.close();
  });

  test('fails when its commit fails', async () => {
    await db.execute(sql`create table if not exists later (id int unique deferrable initially deferred)`);
    const failing = db.transaction(async (tx) => {
      await tx.execute(sql`insert into later values (1)`);
      await tx.execute(sql`insert into later values (1)`);
    });
    await expect(failing).rejects.toMatchObject({ code: '23505' });
    await expect(db.execute(sql`insert into later values (2), (2)`)).rejects.toMatchObject({ code: '23505' });
    expect(await db.query(sql`select * from later`)).toEqual([]);
  });

  test('keeps writes outside a savepoint that failed', async () => {
    const ran: string[] = [];
    await db.transaction(async (tx) => {
      tx.afterCommit(() => ran.push('outer'));
      await tx.execute(sql`insert into notes values (1)`);
      const inner = tx.savepoint(async () => {
        tx.afterCommit(() => ran.push('inner'));
        await tx.execute(sql`insert into notes values (2)`);
        await tx.savepoint(() => tx.execute(sql`insert into notes values (4)`));
        await tx.execute(sql`insert into notes values (1)`);
      });
      await expect(inner).rejects.toMatchObject({ code: '23505' });
      await tx.savepoint(() => tx.execute(sql`insert into notes values (3)`));
    });
    expect(await ids()).toEqual([1, 3]);
    expect(ran).toEqual(['outer']);
  });

  test('returns its connection clean, whatever happened in it', async () => {
    const one = createDb({ url: database.url, max: 1 });
    const pid = async () => (await one.query<{ pid: number }>(sql`select pg_backend_pid() as pid`))[0]?.pid;
    const before = await pid();
    await one.transaction((tx) => tx.query(sql`select 1 / 0`)).catch(() => {});
    await one.transaction(async (tx) => tx.query(sql`not sql`)).catch(() => {});
    await one.batch([sql`select 1 / 0`]).catch(() => {});
    expect(await pid()).toBe(before);
    await one.execute(sql`insert into notes values (1)`);
    expect(await ids()).toEqual([1]);
    await one.close();
  });
});

test.each<[string, (db: Db, statement: Sql) => Promise<unknown>]>([
  ['a query', (on, statement) => on.query(statement)],
  ['an execute', (on, statement) => on.execute(statement)],
  ['a batch', (on, statement) => on.batch([statement, statement])],
  ['a transaction', (on, statement) => on.transaction((tx) => tx.query(statement))],
])('%s that fails when no one waits for it any more does not end the process', async (_, start) => {
  const boom = (): Promise<unknown> => {
    throw new Error('boom');
  };
  const one = createDb({ url: database.url, max: 1 });
  const startedBeside = async (statement: Sql) => Promise.all([start(one, statement), boom()]);
  // A rejection that nothing handles would fail this test file, and ends the service.
  await expect(startedBeside(sql`select ${new Date(Number.NaN)}::timestamptz`)).rejects.toThrow('boom');
  await expect(startedBeside(sql`select 1 / 0`)).rejects.toThrow('boom');
  // It has the only connection until it has failed. A caller that waits gets the failure.
  await expect(start(one, sql`select 2 / 0`)).rejects.toThrow('division by zero');
  await one.close();
});

describe('a batch', () => {
  test('returns the rows of each statement', async () => {
    const statements = [sql`insert into notes values (1) returning id`, sql`select count(*) as n from notes`];
    expect(await db.batch(statements)).toEqual([[{ id: 1 }], [{ n: 1 }]]);
    expect(await db.batch([])).toEqual([]);
  });

  test('runs completely or not at all', async () => {
    const failing = db.batch([sql`insert into notes values (1)`, sql`insert into notes values (1)`, sql`select 1`]);
    await expect(failing).rejects.toMatchObject({ code: '23505' });
    expect(await ids()).toEqual([]);
    await db.batch([sql`insert into notes values (1)`, sql`insert into notes values (2)`]);
    expect(await ids()).toEqual([1, 2]);
  });
});

describe('prepared statements', () => {
  test('are prepared once on a connection, even if their first use fails', async () => {
    const one = createDb({ url: database.url, max: 1 });
    const insert = (id: unknown) => one.execute(sql`insert into notes (id) values (${id})`);
    await expect(insert('not a number')).rejects.toMatchObject({ code: '22P02' });
    await insert(1);
    await expect(insert(1)).rejects.toMatchObject({ code: '23505' });
    await expect(one.query(sql`select nonsense`)).rejects.toMatchObject({ code: '42703' });
    await expect(one.query(sql`select nonsense`)).rejects.toMatchObject({ code: '42703' });
    await insert(2);
    const rows = await one.query(sql`select 1 from pg_prepared_statements where statement like 'insert into notes%'`);
    expect(rows).toHaveLength(1);
    await one.close();
  });

  test('that were skipped after one that failed can be used later', async () => {
    const one = createDb({ url: database.url, max: 1 });
    const skipped = sql`insert into notes values (77)`;
    await one.batch([sql`select 1 / 0`, skipped]).catch(() => {});
    await one.batch([skipped]);
    expect(await ids()).toEqual([77]);
    await one.close();
  });

  test('work again at once after a change of their table', async () => {
    const one = createDb({ url: database.url, max: 1 });
    await one.execute(sql`create table growing (a int)`);
    await one.query(sql`select * from growing`);
    await db.execute(sql`alter table growing add b int`);
    await expect(one.query(sql`select * from growing`)).rejects.toMatchObject({ code: '0A000' });
    expect(await one.query(sql`select * from growing`)).toEqual([]);
    await one.close();
  });

  test('are not used behind a transaction pooler', async () => {
    const one = createDb({ url: database.url, max: 1, isPooled: true });
    await one.transaction((tx) => tx.query(sql`select ${1}::int`));
    expect(await one.query(sql`select name from pg_prepared_statements`)).toEqual([]);
    await one.close();
  });

  /** Statements with this many texts, each used once. */
  const many = (one: Db, count: number) =>
    one.batch(
      Array.from({ length: count }, (_, index) => raw(`select ${index} as "${randomBytes(4).toString('hex')}"`)),
    );

  test('with texts created at run time do not accumulate on the server', async () => {
    const one = createDb({ url: database.url, max: 1 });
    for (let times = 0; times < 8; times += 1) {
      await many(one, 400);
      const [row] = await one.query<{ n: number }>(sql`select count(*) as n from pg_prepared_statements`);
      expect(row?.n).toBeLessThan(2_000);
    }
    await one.close();
  });

  test('in use are not evicted by texts created at run time', async () => {
    const one = createDb({ url: database.url, max: 1 });
    const isPrepared = async () => {
      const rows = await one.query(sql`select 1 from pg_prepared_statements where statement = 'select 1 as late'`);
      return rows.length === 1;
    };
    for (let times = 0; times < 3; times += 1) await many(one, 400);
    await one.query(sql`select 1 as late`);
    expect(await isPrepared()).toBe(true);
    await many(one, 400);
    const before = vi.spyOn(CheckedOutConnection.prototype, 'run');
    await one.query(sql`select 1 as late`);
    const [statement] = before.mock.calls[0]![0];
    before.mockRestore();
    expect(statement!.name).toBeDefined();
    await one.close();
  });
});

describe('a database that cannot be reached', () => {
  test('is DatabaseUnavailable if nothing listens', async () => {
    const gone = createDb({ url: 'postgres://user:secret@127.0.0.1:1/none' });
    for (const attempt of [gone.query(sql`select 1`), gone.transaction(async () => 1), gone.connect()]) {
      const error = await attempt.catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(DatabaseUnavailable);
      expect(error).toMatchObject({ outcomeUnknown: false, cause: { code: 'ECONNREFUSED' } });
      expect(String(error)).not.toContain('secret');
    }
    await gone.close();
  });

  test('is DatabaseUnavailable, with the reason of the server, if it refuses the connection', async () => {
    const url = new URL(database.url);
    url.pathname = '/no_such_database';
    const wrong = createDb({ url: url.href });
    const attempt = wrong.query(sql`select 1`);
    await expect(attempt).rejects.toMatchObject({ name: 'DatabaseUnavailable', cause: { code: '3D000' } });
    await wrong.close();
  });

  test('is DatabaseUnavailable if a connection ends while in use; the next one works', async () => {
    const other = createDb({ url: database.url });
    const failing = other.transaction(async (tx) => {
      const [row] = await tx.query<{ pid: number }>(sql`select pg_backend_pid() as pid`);
      await db.query(sql`select pg_terminate_backend(${row?.pid}, 5000)`);
      await tx.query(sql`select 1`);
    });
    await expect(failing).rejects.toMatchObject({ name: 'DatabaseUnavailable', outcomeUnknown: false });
    expect(await other.query(sql`select 1 as one`)).toEqual([{ one: 1 }]);
    await other.close();
  });

  test('does not end the process if it becomes unavailable while connections are idle', async () => {
    const warned = Promise.withResolvers<void>();
    const other = createDb({ url: database.url, log: { warn: () => warned.resolve() } });
    const [row] = await other.query<{ pid: number }>(sql`select pg_backend_pid() as pid`);
    await db.query(sql`select pg_terminate_backend(${row?.pid})`);
    await warned.promise;
    expect(await other.query(sql`select 1 as one`)).toEqual([{ one: 1 }]);
    await other.close();
  });
});

test('a lost acknowledgement of a commit is reported as such, and the commit is stored', async () => {
  const proxy = await startPostgresProxy(database.url);
  proxy.losesResponse = (tags) => tags.includes('COMMIT');
  const far = createDb({ url: proxy.url });
  const failing = far.transaction((tx) => tx.execute(sql`insert into notes values (5)`));
  await expect(failing).rejects.toMatchObject({ name: 'DatabaseUnavailable', outcomeUnknown: true });
  // It was committed before its response was lost.
  expect(await ids()).toEqual([5]);
  await far.close();
  await proxy.close();
});

test('a time-out ends the statement and drops its connection', async () => {
  const one = createDb({ url: database.url, max: 1, statementTimeoutMs: 50 });
  const [before] = await one.query(sql`select pg_backend_pid() as pid`);
  await expect(one.query(sql`select pg_sleep(30)`)).rejects.toMatchObject({ code: '57014' });
  const [after] = await one.query(sql`select pg_backend_pid() as pid`);
  expect(after).not.toEqual(before);
  await one.close();
});

test('an idle transaction is ended by the server, which releases its rows', async () => {
  await db.execute(sql`insert into notes values (7)`);
  const one = createDb({ url: database.url, max: 1, idleInTransactionMs: 50 });
  const locked = Promise.withResolvers<void>();
  const others = Promise.withResolvers<void>();
  const still = one.transaction(async (tx) => {
    await tx.query(sql`select from notes where id = 7 for update`);
    locked.resolve();
    await others.promise;
    await tx.execute(sql`update notes set id = 8 where id = 7`);
  });
  await locked.promise;
  await db.execute(sql`update notes set id = 9 where id = 7`);
  others.resolve();
  await expect(still).rejects.toBeInstanceOf(DatabaseUnavailable);
  expect(await one.query(sql`select id from notes where id = 9`)).toHaveLength(1);
  await one.close();
});

test('a dedicated connection receives notifications', async () => {
  const client = await db.connect();
  await client.query('listen news');
  const heard = once(client, 'notification');
  await db.query(sql`select pg_notify('news', 'hello')`);
  expect((await heard)[0]).toMatchObject({ channel: 'news', payload: 'hello' });
  await client.end();
});

test('commits that would not be durable are refused', async () => {
  await requireDurableCommits(db);
  const url = new URL(database.url);
  url.searchParams.set('options', '-c synchronous_commit=off');
  const lax = createDb({ url: url.href });
  await expect(requireDurableCommits(lax)).rejects.toThrow(DatabaseUnsuitable);
  await lax.close();
});

test('a server that is too old is refused', async () => {
  await requireSupportedServer(db);
  const old = { query: async <Row>() => [{ server_version: '14.13 (Debian)' } as Row], execute: async () => 1 };
  await expect(requireSupportedServer(old)).rejects.toThrow('needs 15 or later');
});

describe('organizations that wait for connections', () => {
  test('take turns, and the service has its own', async () => {
    const db = createDb({ url: database.url, max: 1 });
    const order: string[] = [];
    const ask = (name: string, of: Db) => of.query(sql`select 1`).then(() => void order.push(name));
    const held = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const holding = db.transaction(async () => {
      begun.resolve();
      await held.promise;
    });
    await begun.promise;
    const waiting = [
      ...Array.from({ length: 4 }, (_, index) => ask(`one ${index}`, db.of('one'))),
      ask('two', db.of('two')),
      ask('service', db),
    ];
    held.resolve();
    await Promise.all([...waiting, holding]);
    // The transaction had a turn of the service.
    expect(order).toEqual(['one 0', 'service', 'two', 'one 1', 'one 2', 'one 3']);
    await db.close();
  });

  test('have a part of them each, so that transactions of one that wait for each other leave room', async () => {
    const db = createDb({ url: database.url, max: 5 });
    const held = Promise.withResolvers<void>();
    const hold = (tx: Tx) => tx.query(sql`select 1`).then(() => held.promise);
    const holding = Array.from({ length: 8 }, () => db.of('one').transaction(hold));
    await db.of('two').query(sql`select 1`);
    await db.query(sql`select 1`);
    // Some connections may still be opening.
    await expect.poll(() => db.pool()).toMatchObject({ total: 5, awaited: 4 });
    held.resolve();
    await Promise.all(holding);
    await db.close();
  });
});
