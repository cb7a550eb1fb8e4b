import sql, { Sql } from 'sql-template-tag';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createTestPlatform, type TestPlatform } from '../../test/support/platform.ts';
import { countingUse } from '../../test/support/table-use.ts';
import { createAgent } from '../agents/agents.ts';
import type { Db } from '../db/db.ts';
import type { Shards } from '../db/shards.ts';
import { uuidOf } from '../lib/ids.ts';
import { createOrganization } from '../organizations/organizations.ts';
import { openSession } from '../sessions/sessions.ts';
import { createWebhookSubscription, deleteWebhookSubscription } from '../webhooks/subscriptions.ts';
import { Fenced, writeTransition } from './append.ts';
import { createAppender, type TextHead } from './appender.ts';
import { beginning } from './cursor.ts';
import type { Live } from './live.ts';
import { readSegments } from './read.ts';
import { chunksOf } from './segment.ts';

let node: TestPlatform;
let agentId: string;

beforeAll(async () => {
  node = await createTestPlatform();
  agentId = (await createAgent(node.ctx, { name: 'A', model: 'scripted/x' })).agent.agentId;
});
afterAll(() => node.close());

async function newHead(ctx = node.ctx): Promise<TextHead & { fenced: Promise<void> }> {
  const agent = ctx === node.ctx ? agentId : (await createAgent(ctx, { name: 'A', model: 'scripted/x' })).agent.agentId;
  const { session } = await openSession(ctx, { agentId: agent, environment: 'production', input: 'x' });
  const fenced = Promise.withResolvers<void>();
  return {
    organizationId: ctx.organizationId,
    environment: 'production',
    sessionId: uuidOf('ses', session.sessionId),
    epoch: 0,
    turn: 1,
    nextSeq: 2,
    pending: [],
    carry: '',
    first: true,
    writing: undefined,
    onFenced: fenced.resolve,
    fenced: fenced.promise,
  };
}

async function textOf({ organizationId, sessionId }: TextHead): Promise<string[]> {
  const segments = await readSegments(node.platform.db, organizationId, sessionId, beginning, 100_000);
  return segments
    .flatMap((segment) => chunksOf(segment, beginning))
    .flatMap((c) => (c.type === 'message.chunk' ? [c.delta] : []));
}

/** Every seq from 1 to the head exactly once. */
async function expectGapFree({ sessionId }: TextHead): Promise<void> {
  const segments = await readSegments(node.platform.db, node.organizationId, sessionId, beginning, 100_000);
  const seqs = segments.flatMap((segment) => chunksOf(segment, beginning)).map(({ seq }) => seq);
  expect(seqs).toEqual(seqs.map((_, index) => index + 1));
}

/** Waits until everything accepted is written. */
async function settled(appender: ReturnType<typeof createAppender>): Promise<void> {
  await appender.close();
}

async function moveEpoch({ sessionId }: TextHead): Promise<void> {
  await node.platform.db.execute(sql`
    update sessions set epoch = epoch + 1
    where organization_id = ${node.organizationId} and session_id = ${sessionId}`);
}

test('deltas of many sessions are written in order, without gaps, each once', async () => {
  const appender = createAppender(node.platform);
  const heads = await Promise.all(Array.from({ length: 20 }, () => newHead()));
  for (let n = 0; n < 200; n += 1) for (const head of heads) await appender.append(head, `${n} `);
  await settled(appender);
  for (const head of heads) {
    expect((await textOf(head)).join('')).toBe(Array.from({ length: 200 }, (_, n) => `${n} `).join(''));
    await expectGapFree(head);
  }
});

test('a writer whose epoch has moved on writes nothing and hears of it; its neighbours are not held up', async () => {
  const appender = createAppender(node.platform);
  const [stale, healthy] = [await newHead(), await newHead()];
  await moveEpoch(stale);
  await appender.append(stale, 'lost');
  await appender.append(healthy, 'kept');
  await stale.fenced;
  await settled(appender);
  expect(await textOf(stale)).toEqual([]);
  expect(await textOf(healthy)).toEqual(['kept']);
});

test('a writer whose row went back is fenced and writes nothing more', async () => {
  const appender = createAppender(node.platform);
  const head = await newHead();
  for (const delta of ['one', 'two']) {
    await appender.append(head, delta);
    await until(async () => head.pending.length === 0 && !head.writing);
  }
  await goBack(head, 3);
  for (const delta of ['three', 'four', 'five', 'six', 'seven']) await appender.append(head, delta);
  await head.fenced;
  await settled(appender);
  expect(await textOf(head)).toEqual(['one']);
  // The deltas are neither in the journal nor waiting, also if the row is put forward again.
  await setNextSeq(head, 4);
  await settled(appender);
  expect(await textOf(head)).toEqual(['one']);
});

/** As after the promotion of a standby that had not received the last commits. */
async function goBack(head: TextHead, nextSeq: number): Promise<void> {
  await node.platform.db.execute(sql`
    delete from segments
    where organization_id = ${node.organizationId} and session_id = ${head.sessionId} and seq_to >= ${nextSeq}`);
  await setNextSeq(head, nextSeq);
}

async function setNextSeq({ sessionId }: TextHead, nextSeq: number): Promise<void> {
  await node.platform.db.execute(sql`
    update sessions set next_seq = ${nextSeq}
    where organization_id = ${node.organizationId} and session_id = ${sessionId}`);
}

test('of two heads of one session in one flush only the text of the writer is shown, and the other hears of it', async () => {
  const shown: string[] = [];
  const live = {
    ...node.platform.live,
    committed: (...[, , segments]: Parameters<Live['committed']>) => {
      for (const segment of segments) shown.push(segment.body);
    },
  };
  const appender = createAppender({ ...node.platform, live });
  const stale = await newHead();
  await moveEpoch(stale);
  const writer = { ...stale, epoch: stale.epoch + 1, pending: [] };
  for (const heads of [[stale, writer], [writer]]) {
    for (const head of heads) await appender.append(head, head === writer ? 'said' : 'never said');
    await settled(appender);
  }
  await stale.fenced;
  expect(shown).toEqual(['["said"]', '["said"]']);
  expect(await textOf(writer)).toEqual(['said', 'said']);
});

test('a shard that hangs and one that fails hold up no text of another', async () => {
  const { db } = node.platform;
  const organizations = await Promise.all(
    ['Hangs', 'Fails', 'Works'].map((name) => db.transaction((tx) => createOrganization(tx, name, new Date()))),
  );
  const [hangs, fails, works] = organizations.map(({ organizationId }) => organizationId);
  const shards: Shards = {
    ...node.platform.shards,
    of: (id) => organizations.findIndex((one) => one.organizationId === id),
  };
  const proceed = Promise.withResolvers<void>();
  let isUp = false;
  const batch: typeof db.batch = async (statements) => {
    const names = (id: string | undefined) => statements.some(({ values }) => values.flat().includes(id));
    expect([hangs, fails, works].filter(names)).toHaveLength(1);
    if (names(hangs)) await proceed.promise;
    if (names(fails) && !isUp) throw new Error('connection refused');
    return db.batch(statements);
  };
  const appender = createAppender({ ...node.platform, shards, db: { ...db, batch } });
  const heads = await Promise.all(
    [hangs, fails, works].map((organizationId) => newHead({ ...node.ctx, organizationId: organizationId! })),
  );
  // Time for as many commits as may be under way, and more.
  for (let n = 0; n < 5; n += 1) {
    for (const head of heads) await appender.append(head, `${n}`);
    await expect.poll(async () => (await textOf(heads[2]!)).length).toBe(n + 1);
  }
  expect(await Promise.all(heads.map(textOf))).toEqual([[], [], ['0', '1', '2', '3', '4']]);
  isUp = true;
  proceed.resolve();
  await settled(appender);
  await settled(appender);
  for (const head of heads) expect((await textOf(head)).join('')).toBe('01234');
});

test('a transition of a stale writer is refused whole', async () => {
  const stale = await newHead();
  await moveEpoch(stale);
  const write = node.platform.db.transaction((tx) =>
    writeTransition(node.platform, tx, stale, {
      runs: [{ turn: 1, items: ['x'] }],
      patch: [sql`status = 'failed'`],
      now: new Date(),
    }),
  );
  await expect(write).rejects.toThrow(Fenced);
  expect(await textOf(stale)).toEqual([]);
  expect(stale.nextSeq).toBe(2);
});

test('text that is appended to a session that is due changes no index', async () => {
  const db = countingUse(node.platform.db, ['sessions']);
  await createWebhookSubscription(node.ctx, { environment: 'production', url: 'https://example.com/' });
  // Its page has room for these versions, also if another snapshot still needs the old ones.
  const head = await newHead();
  for (let round = 0; round < 3; round += 1) {
    const appender = createAppender({ ...node.platform, db });
    await appender.append(head, 'x');
    await settled(appender);
  }
  await deleteWebhookSubscription(node.ctx, { env: 'production' });
  expect(db.uses.reduce((sum, { sessions }) => sum + sessions.updated, 0)).toBe(3);
  expect(db.uses.reduce((sum, { sessions }) => sum + sessions.hot, 0)).toBe(3);
});

test('an append reads no other sessions of the organization, also if the database has no statistics', async () => {
  const idle = 5_000;
  const heads = await Promise.all(Array.from({ length: 64 }, () => newHead()));
  await node.platform.db.execute(sql`
    insert into sessions (organization_id, session_id, agent_id, environment, status, close_on_idle, metadata, created_at, updated_at)
    select s.organization_id, gen_random_uuid(), s.agent_id, s.environment, 'idle', false, '{}', s.created_at, s.updated_at
    from sessions s, generate_series(1, ${idle})
    where s.organization_id = ${node.organizationId} and s.session_id = ${heads[0]!.sessionId}`);
  // On one connection, PostgreSQL plans the first five executions for their values, and may then plan once for all.
  for (let round = 0; round < 8; round += 1) {
    const db = countingUse(node.platform.db, ['sessions']);
    const appender = createAppender({ ...node.platform, db });
    for (const head of heads) await appender.append(head, 'x');
    await until(async () => heads.every(({ pending, writing }) => pending.length === 0 && !writing));
    expect(db.uses.reduce((sum, { sessions }) => sum + sessions.updated, 0)).toBe(heads.length);
    expect(db.uses.reduce((sum, { sessions }) => sum + sessions.read, 0)).toBeLessThan(idle / 5);
  }
});

/** A database that loses the responses of the next `writes` batches, after the commit, and of the next `reads` queries. */
function losingAnswers(db: Db): Db & { writes: number; reads: number } {
  const lossy = {
    ...db,
    writes: 0,
    reads: 0,
    async batch<Row>(statements: Parameters<Db['batch']>[0]): Promise<Row[][]> {
      const rows = await db.batch<Row>(statements);
      if (lossy.writes-- > 0) throw new Error('the connection broke after COMMIT');
      return rows;
    },
    async query<Row>(statement: Parameters<Db['query']>[0]): Promise<Row[]> {
      const rows = await db.query<Row>(statement);
      if (lossy.reads-- > 0) throw new Error('the connection broke');
      return rows;
    },
  };
  return lossy;
}

test.each([
  { writes: 1, reads: 0 },
  { writes: 1, reads: 1 },
  { writes: 3, reads: 2 },
])('an append whose acknowledgement was lost is not written twice (%o)', async (losses) => {
  const db = losingAnswers(node.platform.db);
  const appender = createAppender({ ...node.platform, db });
  const head = await newHead();
  Object.assign(db, losses);
  await appender.append(head, 'a');
  await appender.append(head, 'b');
  await until(async () => head.pending.length === 0 && !head.writing);
  await appender.append(head, 'c');
  await settled(appender);
  expect(await textOf(head)).toEqual(['a', 'b', 'c']);
  await expectGapFree(head);
});

test('a locked row waits for the next flush and delays no other', async () => {
  const appender = createAppender(node.platform);
  const [locked, free] = [await newHead(), await newHead()];
  await node.platform.db.transaction(async (tx) => {
    await tx.query(sql`
      select 1 from sessions
      where organization_id = ${node.organizationId} and session_id = ${locked.sessionId} for no key update`);
    await appender.append(locked, 'later');
    await appender.append(free, 'now');
    await until(async () => (await textOf(free)).length === 1);
    expect(await textOf(locked)).toEqual([]);
  });
  await until(async () => (await textOf(locked)).length === 1);
  await settled(appender);
});

test('text of many sessions is written in small commits, and what has waited longest comes first', async () => {
  const commits: string[][] = [];
  const recording: Db = {
    ...node.platform.db,
    batch(statements) {
      commits.push(statements.flatMap(({ values }) => (values[1] ?? []) as string[]));
      return node.platform.db.batch(statements);
    },
  };
  const appender = createAppender({ ...node.platform, db: recording });
  const heads = await Promise.all(Array.from({ length: 300 }, () => newHead()));
  for (const head of heads) await appender.append(head, 'x');
  await until(async () => heads.every(({ pending, writing }) => pending.length === 0 && !writing));
  expect(commits.flat()).toEqual(heads.map(({ sessionId }) => sessionId));
  expect(commits.length).toBeGreaterThanOrEqual(2);
  for (const commit of commits) expect(commit.length).toBeLessThanOrEqual(256);
  for (const head of heads) expect(await textOf(head)).toEqual(['x']);
});

test('the first delta of a response and a head with much text are written at once, and other text waits to be gathered', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const appender = createAppender(node.platform);
  const [old, fresh, full] = [await newHead(), await newHead(), await newHead()];
  const written = (head: TextHead) => until(async () => head.pending.length === 0 && !head.writing);
  for (const head of [old, full]) {
    await appender.append(head, 'first ');
    await written(head);
  }
  await appender.append(old, 'more');
  await appender.append(fresh, 'first ');
  await written(fresh);
  for (let n = 0; n < 32; n += 1) await appender.append(full, `${n} `);
  await written(full);
  expect(old.pending).toEqual(['more']);
  await vi.advanceTimersByTimeAsync(40);
  await written(old);
  vi.useRealTimers();
  await settled(appender);
  expect(await textOf(old)).toEqual(['first ', 'more']);
});

test('closing writes the text of however many sessions', async () => {
  const appender = createAppender(node.platform);
  const heads = await Promise.all(Array.from({ length: 300 }, () => newHead()));
  for (const head of heads) void appender.append(head, 'x');
  await appender.close();
  const left = heads.filter(({ pending, writing }) => pending.length > 0 || writing);
  expect(left.map(({ sessionId }) => sessionId)).toEqual([]);
  for (const head of heads) expect(await textOf(head)).toEqual(['x']);
});

test('a transition takes the text on its way along, before its own chunks', async () => {
  const appender = createAppender(node.platform);
  const head = await newHead();
  await appender.append(head, 'text ');
  const text = await appender.take(head);
  await node.platform.db.transaction((tx) =>
    writeTransition(node.platform, tx, head, {
      runs: [
        { turn: 1, items: [...text, { type: 'session.status', status: 'idle', waitingFor: null }] },
        { turn: 2, items: [{ type: 'session.status', status: 'running', waitingFor: null }] },
      ],
      patch: [],
      now: new Date(),
    }),
  );
  expect(head).toMatchObject({ turn: 2, nextSeq: 2 });
  const segments = await readSegments(node.platform.db, node.organizationId, head.sessionId, beginning, 10);
  const chunks = segments.flatMap((segment) => chunksOf(segment, beginning));
  expect(chunks.map(({ type, turn, seq }) => `${type} ${turn}:${seq}`)).toEqual([
    'session.status 1:1',
    'message.chunk 1:2',
    'session.status 1:3',
    'session.status 2:1',
  ]);
});

test('a surrogate pair is never split over two deltas, and NUL is dropped', async () => {
  const appender = createAppender(node.platform);
  const head = await newHead();
  const [high, low] = ['\ud83d', '\ude80'];
  for (const delta of ['a\0b', `c${high}`, `${low}d`, high!]) await appender.append(head, delta);
  head.pending.push(...(await appender.take(head)));
  await appender.append(head, '.');
  await settled(appender);
  expect((await textOf(head)).join('')).toBe('abc🚀d\ufffd.');
});

test('an append that meets a claim under way does not slip in behind it', async () => {
  const { db } = node.platform;
  let attempts = 0;
  const counting: Db = {
    ...db,
    batch(statements) {
      attempts += 1;
      return db.batch(statements);
    },
  };
  const appender = createAppender({ ...node.platform, db: counting });
  const stale = await newHead();
  await db.transaction(async (claim) => {
    await claim.query(sql`
      update sessions set epoch = epoch + 1
      where organization_id = ${node.organizationId} and session_id = ${stale.sessionId}`);
    await appender.append(stale, 'lost');
    // The append has come to the row: it passed over it and tries again, or it waits for the claim to end.
    await until(async () => attempts > 1 || (await waitingForLocks()) > 0);
  });
  await stale.fenced;
  await settled(appender);
  expect(await textOf(stale)).toEqual([]);

  async function waitingForLocks(): Promise<number> {
    return db.execute(
      sql`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
  }
});

test('a row that changes after an append began, and before it locks the row, gets the text once, by that append', async () => {
  const { db } = node.platform;
  let held = 0;
  // Waits after its snapshot is taken, and before it looks for rows.
  const holding: Db = {
    ...db,
    batch: (statements, options) =>
      db.batch(
        statements.map(({ strings, values }) => {
          const texts = strings.map((text) =>
            text.replace(/skip locked\) x(?=\))/, '$& where (select pg_advisory_xact_lock_shared(4711)) is not null'),
          );
          if (texts.join() !== strings.join()) held += 1;
          return new Sql(texts, values);
        }),
        options,
      ),
  };
  const appender = createAppender({ ...node.platform, db: holding });
  const [moved, still] = [await newHead(), await newHead()];
  await db.transaction(async (tx) => {
    await tx.query(sql`select pg_advisory_xact_lock(4711)`);
    await appender.append(moved, 'moved');
    await appender.append(still, 'still');
    const waiting = sql`select 1 from pg_locks where locktype = 'advisory' and not granted`;
    await until(async () => (await db.execute(waiting)) > 0);
    await db.execute(sql`
      update sessions set metadata = '{"changed": true}'
      where organization_id = ${node.organizationId} and session_id = ${moved.sessionId}`);
  });
  await until(async () => [moved, still].every(({ pending, writing }) => pending.length === 0 && !writing));
  expect(held).toBe(1);
  for (const head of [moved, still]) {
    expect(await textOf(head)).toEqual([head === moved ? 'moved' : 'still']);
    await expectGapFree(head);
    expect(
      await db.query(sql`
        select next_seq as "nextSeq" from sessions
        where organization_id = ${node.organizationId} and session_id = ${head.sessionId}`),
    ).toEqual([{ nextSeq: 3 }]);
  }
});

test('fencing holds under claims that come at any moment', { timeout: 120_000 }, async () => {
  // Two writers believe at times that they hold the same session. Whatever one has acknowledged must never be overwritten or
  // doubled: each delta names its epoch, and the journal must read as whole runs of rising epochs.
  const other = await node.anotherNode();
  const heads = await Promise.all(Array.from({ length: 10 }, () => newHead()));
  await Promise.all(
    heads.map(async (head, which) => {
      let current = head;
      for (let claim = 0; claim < 60; claim += 1) {
        const platform = claim % 2 === 0 ? node.platform : other;
        const appender = createAppender(platform);
        const writer = { ...current, pending: [] as string[], carry: '', writing: undefined, onFenced: () => {} };
        const writing = (async () => {
          for (let n = 0; n < 30; n += 1) {
            await appender.append(writer, `${writer.epoch};`);
            if (n % (3 + which) === 0) await new Promise<void>((resolve) => setImmediate(resolve));
          }
          await appender.close();
        })();
        if (claim % 5 === 0) await writing;
        else if (claim % 5 < 3) await new Promise<void>((resolve) => setImmediate(resolve));
        const [row] = await other.db.query<{ epoch: number; nextSeq: number }>(sql`
          update sessions s set epoch = epoch + 1
          where s.organization_id = ${node.organizationId} and s.session_id = ${head.sessionId}
          returning s.epoch, s.next_seq as "nextSeq"`);
        current = { ...head, epoch: row!.epoch, nextSeq: row!.nextSeq };
        void writing.catch(() => {});
      }
    }),
  );
  for (const head of heads) {
    await expectGapFree(head);
    const epochs = (await textOf(head)).map((delta) => Number(delta.slice(0, -1)));
    expect(epochs).toEqual(epochs.toSorted((a, b) => a - b));
  }
});

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise<void>((resolve) => setImmediate(resolve));
}

test('a commit that comes through after its connection was given up is not written again, whatever was said since', async () => {
  const head = await newHead();
  let late: (() => Promise<unknown>) | undefined;
  const db: Db = {
    ...node.platform.db,
    async batch<Row>(statements: readonly Sql[]) {
      if (late) return late().then(() => node.platform.db.batch<Row>(statements));
      late = async () => {
        late = async () => {};
        await node.platform.db.batch(statements);
      };
      // Said while the outcome is not known.
      await appender.append(head, 'b');
      throw new Error('Connection terminated');
    },
  };
  const appender = createAppender({ ...node.platform, db });
  await appender.append(head, 'a');
  await expect.poll(() => head.nextSeq).toBe(4);
  await settled(appender);
  expect(await textOf(head)).toEqual(['a', 'b']);
  await expectGapFree(head);
});

test('text that is committed after its turn has ended is not written into the next turn', async () => {
  const head = await newHead();
  let late: (() => Promise<unknown>) | undefined;
  const db: Db = {
    ...node.platform.db,
    async batch<Row>(statements: readonly Sql[]) {
      if (late) return node.platform.db.batch<Row>(statements);
      late = () => node.platform.db.batch(statements);
      throw new Error('Connection terminated');
    },
  };
  const appender = createAppender({ ...node.platform, db });
  await appender.append(head, 'a');
  await expect.poll(() => head.nextSeq).toBe(3);
  await settled(appender);
  // As a queued message does: the next turn begins in the same epoch, and its text would have the same number.
  await node.platform.db.execute(sql`
    update sessions set turn = 2, next_seq = 2
    where organization_id = ${node.organizationId} and session_id = ${head.sessionId}`);
  await late?.();
  expect(await textOf(head)).toEqual(['a']);
});
