// What forks cost among many sessions, messages and forks: what they inherit, and nothing that grows with the rest.
import sql, { type Sql } from 'sql-template-tag';
import { beforeAll, expect, test } from 'vitest';
import type { Db, Tx } from '../../src/db/db.ts';
import type { PoolContext } from '../../src/lib/context.ts';
import { formatId, newUuid, uuidOf } from '../../src/lib/ids.ts';
import { loadTranscripts } from '../../src/session-rows/load-transcripts.ts';
import { readSession } from '../../src/session-rows/session.ts';
import { forkSession } from '../../src/sessions/forks.ts';
import { listMessages } from '../../src/sessions/messages.ts';
import { listSessions } from '../../src/sessions/reading/list.ts';
import { dropOldSessions } from '../../src/sessions/retention/retention.ts';
import { deleteSession } from '../../src/sessions/sessions.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { costOf, listenTo } from '../support/plans.ts';
import { createTestPlatform, type TestPlatform } from '../support/platform.ts';

const SESSIONS = 20_000;
const FORKS = 1_000;
const LONG_TURNS = 2_000;
const SOURCES = 100;
const LARGE = ['sessions', 'messages', 'session_forks', 'inherited_turns'];

const clock = createManualClock();
const never = new AbortController().signal;
const agentId = newUuid();
let test_: TestPlatform;
let ctx: PoolContext;
let db: Db;
let organizationId: string;
/** A session with many turns and 1,000 forks, and one with a single turn and no fork. */
let long: string;
let short: string;

beforeAll(async () => {
  test_ = await createTestPlatform({ clock });
  ctx = test_.ctx as PoolContext;
  ({ db } = test_.platform);
  ({ organizationId } = test_);
  await db.execute(sql`
    insert into agents (organization_id, agent_id, version, created_at, updated_at)
    values (${organizationId}, ${agentId}, 1, now(), now())`);
  await db.execute(sql`
    insert into sessions (organization_id, session_id, agent_id, environment, status, turn, next_seq, close_on_idle, metadata,
      created_at, updated_at)
    select ${organizationId}::uuid, gen_random_uuid(), ${agentId}::uuid, 'production', 'idle', 1, 2, false, '{}', now(), now()
    from generate_series(1, ${SESSIONS}::int)`);
  await db.execute(sql`
    insert into messages (organization_id, session_id, turn, position, message_id, role, content, created_at)
    select s.organization_id, s.session_id, 1, n, gen_random_uuid(), 'user', '[]', now()
    from sessions s cross join generate_series(0, 1) n where s.organization_id = ${organizationId}`);
  long = await session(LONG_TURNS);
  short = await session(1);
  await addForks(long, 1_000);
  await db.execute(sql`analyze`);
  return () => test_.close();
});

/** A session with this many finished turns of two messages each. */
async function session(turns: number, { from = 1, endedAt = null as Date | null } = {}): Promise<string> {
  const id = newUuid();
  await db.execute(sql`
    insert into sessions (organization_id, session_id, agent_id, environment, status, turn, next_seq, close_on_idle, metadata,
      created_at, updated_at, ended_at)
    values (${organizationId}, ${id}, ${agentId}, 'production', ${endedAt ? 'completed' : 'idle'}, ${turns}, 2, false, '{}',
      now(), now(), ${endedAt})`);
  await db.execute(sql`
    insert into messages (organization_id, session_id, turn, position, message_id, role, content, created_at)
    select ${organizationId}::uuid, ${id}::uuid, t, p, gen_random_uuid(), 'user', '[]', now()
    from generate_series(${from}::int, ${turns}::int) t cross join generate_series(0, 1) p`);
  return id;
}

/** Forks at turns up to `turns`, by SQL. */
async function addForks(origin: string, turns: number, endedAt: Date | null = null): Promise<void> {
  await db.execute(sql`
    insert into sessions (organization_id, session_id, agent_id, environment, status, turn, next_seq, close_on_idle, metadata,
      created_at, updated_at, ended_at, forked_from_session_id, forked_at_turn)
    select ${organizationId}::uuid, gen_random_uuid(), ${agentId}::uuid, 'production', ${endedAt ? 'completed' : 'idle'},
      1 + n % ${turns}::int, 1, false, '{}', now(), now(), ${endedAt}::timestamptz, ${origin}::uuid, 1 + n % ${turns}::int
    from generate_series(1, ${FORKS}::int) n`);
  await db.execute(sql`
    insert into session_forks (organization_id, session_id, origin_session_id)
    select s.organization_id, s.session_id, s.forked_from_session_id from sessions s
    where s.organization_id = ${organizationId} and s.forked_from_session_id = ${origin}`);
  await db.execute(sql`
    insert into inherited_turns (organization_id, session_id, from_turn, until_turn, until_position, source_session_id)
    select s.organization_id, s.session_id, 1, s.forked_at_turn, 1, s.forked_from_session_id from sessions s
    where s.organization_id = ${organizationId} and s.forked_from_session_id = ${origin}`);
}

/** The context of a request, and the statements of its transactions. */
function listening(): { ctx: PoolContext; statements: Sql[] } {
  const statements: Sql[] = [];
  const heard = (tx: Tx): Tx => ({
    ...tx,
    query(statement) {
      statements.push(statement);
      return tx.query(statement);
    },
    write(statement) {
      statements.push(statement);
      tx.write(statement);
    },
  });
  const transaction: Db['transaction'] = (fn) => db.transaction((tx) => fn(heard(tx)));
  return { ctx: { ...ctx, db: { ...db, transaction } }, statements };
}

async function rowsRead(statements: readonly Sql[]): Promise<number> {
  let rows = 0;
  for (const statement of statements) {
    const cost = await costOf(db, statement);
    expect(
      cost.wholeTables.filter((table) => LARGE.includes(table)),
      statement.text,
    ).toEqual([]);
    rows += cost.rows;
  }
  return rows;
}

const countOf = async (sessionId: string) =>
  (
    await db.query<{ n: number }>(sql`
      select count(*)::int as n from messages where organization_id = ${organizationId} and session_id = ${sessionId}`)
  )[0]!.n;

test('a fork costs the same for a long session with a thousand forks as for a short one without', async () => {
  const costs = [];
  for (const [origin, atTurn] of [
    [short, 1],
    [long, LONG_TURNS],
    [long, 700],
  ] as const) {
    const heard = listening();
    await forkSession(heard.ctx, { sessionId: formatId('ses', origin), atTurn });
    const reads = heard.statements.filter(({ text }) => /^\s*select/.test(text));
    costs.push({ statements: heard.statements.length, rows: await rowsRead(reads) });
  }
  expect(costs[0]!.rows).toBeLessThan(10);
  expect(costs[1]).toEqual(costs[0]);
  expect(costs[2]).toEqual(costs[0]);
});

test('a page of a fork’s messages, and of an origin’s forks, reads what it shows', async () => {
  const { session: fork } = await forkSession(ctx, { sessionId: formatId('ses', long), atTurn: 1_500 });
  for (const order of ['asc', 'desc'] as const) {
    const heard = listenTo(db);
    const first = await listMessages({ ...ctx, db: heard.db } as PoolContext, { sessionId: fork.sessionId, order });
    const { cursor } = { cursor: first.page.nextCursor };
    await listMessages({ ...ctx, db: heard.db } as PoolContext, { sessionId: fork.sessionId, order, cursor });
    expect(first.data).toHaveLength(20);
    // The rows of two pages.
    expect(await rowsRead(heard.statements)).toBeLessThan(100);
  }
  const heard = listenTo(db);
  const { data } = await listSessions({ ...ctx, db: heard.db } as PoolContext, {
    forkedFromSessionId: formatId('ses', long),
  });
  expect(data).toHaveLength(20);
  expect(await rowsRead(heard.statements)).toBeLessThan(100);
});

test('the transcript of a fork of a hundred forks is read by the messages that it has', async () => {
  let origin = await session(1);
  for (let turn = 2; turn <= SOURCES + 1; turn++) {
    const { session: fork } = await forkSession(ctx, { sessionId: formatId('ses', origin) });
    origin = uuidOf('ses', fork.sessionId);
    await db.batch([
      sql`update sessions set turn = ${turn}, next_seq = 2 where organization_id = ${organizationId} and session_id = ${origin}`,
      sql`
        insert into messages (organization_id, session_id, turn, position, message_id, role, content, created_at)
        select s.organization_id, s.session_id, ${turn}::int, p, gen_random_uuid(), 'user', '[]', now()
        from sessions s cross join generate_series(0, 1) p
        where s.organization_id = ${organizationId} and s.session_id = ${origin}`,
    ]);
  }
  const heard = listenTo(db);
  const [loaded] = await loadTranscripts(heard.db, [await readSession(db, organizationId, origin)]);
  expect(loaded!.transcript.map(({ turn, position }) => 2 * turn + position)).toEqual(
    Array.from({ length: 2 * (SOURCES + 1) }, (_, index) => index + 2),
  );
  expect(await rowsRead(heard.statements)).toBeLessThan(5 * SOURCES);
  const page = listenTo(db);
  await listMessages({ ...ctx, db: page.db } as PoolContext, { sessionId: formatId('ses', origin), order: 'desc' });
  expect(await rowsRead(page.statements)).toBeLessThan(5 * SOURCES);
});

test('an origin is deleted without writing to its thousand forks, and its messages go with the last of them', async () => {
  const endedAt = clock.now();
  const origin = await session(1_200, { endedAt });
  await addForks(origin, 1_000, endedAt);
  const heard = listening();
  await deleteSession(heard.ctx, { sessionId: formatId('ses', origin) });
  expect(heard.statements.length).toBeLessThan(40);
  // Up to the last turn that a fork inherits.
  expect(await countOf(origin)).toBe(2_000);

  await clock.advance(10 * 86_400_000);
  const counts: number[] = [];
  const counting: Db = {
    ...db,
    async query<Row>(statement: Sql) {
      const rows = await db.query<Row>(statement);
      const { found } = (rows[0] ?? {}) as { found?: number };
      if (found !== undefined) counts.push(found);
      return rows;
    },
  };
  await dropOldSessions({ ...test_.platform, db: counting }, organizationId, 5, never);
  expect(Math.max(...counts)).toBe(1_000);
  expect(await countOf(origin)).toBe(0);
  const left = await db.query<{ n: number }>(sql`
    select count(*)::int as n from kept_transcripts where organization_id = ${organizationId}`);
  expect(left).toEqual([{ n: 0 }]);
});
