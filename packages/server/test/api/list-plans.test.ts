// The cost of a page of a list depends on what it shows, whatever the filter and however much it excludes.

import type { Input } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { beforeAll, describe, expect, test } from 'vitest';
import { listApprovals } from '../../src/approvals/list.ts';
import { listEvents } from '../../src/events/events.ts';
import type { PoolContext } from '../../src/lib/context.ts';
import { formatId, newUuid, parseId } from '../../src/lib/ids.ts';
import { listMessages } from '../../src/sessions/messages.ts';
import { countSessions, listSessions } from '../../src/sessions/reading/list.ts';
import { sessionQuery } from '../../src/sessions/search/list-query.ts';
import { pairOf } from '../../src/sessions/search/metadata.ts';
import { fixedWords } from '../../src/sessions/search/words.ts';
import { costOf, listenTo } from '../support/plans.ts';
import { createTestPlatform, type TestPlatform } from '../support/platform.ts';

// Enough that a page must not read a tenth of it.
const MANY = 20_000;
const FEW = 7;
// More than a search compares.
const EARLY = 12_000;
// Rows of a tenant: too few for a page among the newest thousand.
const FIRST = 5_000;
// 20 rows of a page in some environments and statuses, and the index look-ups that find them.
const ROWS = 600;

let test_: TestPlatform;
let ctx: PoolContext;
const agents = [newUuid(), newUuid()] as const;
const START = Date.parse('2026-01-01T00:00:00.000Z');
const at = (n: number) => new Date(START + n * 1000);

beforeAll(async () => {
  test_ = await createTestPlatform();
  ctx = test_.ctx as PoolContext;
  const { db, organizationId } = ctx;
  for (const agentId of agents) {
    await db.execute(sql`
      insert into agents (organization_id, agent_id, version, created_at, updated_at)
      values (${organizationId}, ${agentId}, 1, now(), now())`);
  }
  // Ids in order of time, on every version of PostgreSQL.
  const id = sql`(lpad(to_hex(n), 12, '0') || '7000' || '8' || lpad(to_hex(n), 15, '0'))::uuid`;
  await db.execute(sql`
    insert into sessions (organization_id, session_id, agent_id, environment, status, close_on_idle, metadata, created_at,
      updated_at, ended_at)
    select ${organizationId}::uuid, ${id}, case when n % 2 = 0 then ${agents[0]}::uuid else ${agents[1]}::uuid end,
      case when n <= ${FEW} then 'rare' when n % 3 = 0 then 'staging' else 'production' end,
      case when n between 8 and 14 then 'failed' when n % 2 = 0 then 'idle' else 'completed' end, false,
      json_build_object('tenant', n % 10, 'order', n, 'era', case when n <= ${FIRST}::int then 'first' end), now(), now(), case when n % 2 = 1 or n between 8 and 14 then now() end
    from generate_series(1, ${MANY}::int) n`);
  await db.execute(sql`
    insert into session_metadata (organization_id, pair, session_id)
    select ${organizationId}::uuid, ${pairOf('tenant', '3')}::bigint, ${id} from generate_series(3, ${MANY}::int, 10) n`);
  await db.execute(sql`
    insert into session_metadata (organization_id, pair, session_id)
    select ${organizationId}::uuid, n, ${id} from generate_series(1, ${MANY}::int) n`);
  await db.execute(sql`
    insert into session_metadata (organization_id, pair, session_id)
    select ${organizationId}::uuid, ${pairOf('order', '77')}::bigint, ${id} from generate_series(77, 77) n`);
  await db.execute(sql`
    insert into session_metadata (organization_id, pair, session_id)
    select ${organizationId}::uuid, ${pairOf('era', 'first')}::bigint, ${id} from generate_series(1, ${FIRST}::int) n`);
  // Every tenth session is for one end user; each of the others is for a user of its own.
  await db.execute(sql`
    update sessions set end_user_id = case when s.n % 10 = 4 then 'many' else 'user_' || s.n end
    from (select session_id, row_number() over (order by session_id) as n from sessions) s
    where sessions.organization_id = ${organizationId} and sessions.session_id = s.session_id`);
  await db.execute(sql`
    insert into session_end_users (organization_id, session_id, end_user_id)
    select organization_id, session_id, end_user_id from sessions where organization_id = ${organizationId}`);
  // Every session has one word, the older ones another, and one in 3,000 a third.
  const [organization] = fixedWords({ organizationId });
  await db.execute(sql`
    insert into session_search (organization_id, session_id, document, turn, position, working_ms, worked_turn, worked_before_ms)
    select ${organizationId}::uuid, ${id}, array_to_tsvector(array[${organization}::text, 'everywhere',
        'e:' || case when n <= ${FEW} then 'rare' when n % 3 = 0 then 'staging' else 'production' end,
        case when n <= ${EARLY}::int then 'early' else 'late' end, case when n % 3000 = 2 then 'seldom' else 'often' end]),
      1, 1, 0, 1, 0
    from generate_series(1, ${MANY}::int) n`);
  await db.execute(sql`
    insert into approvals (organization_id, operation_id, session_id, agent_id, environment, name, input_schema, once, status,
      requested_at, resolved_at, resolved_by)
    select s.organization_id, s.session_id, s.session_id, s.agent_id, s.environment, 'pay', '{}', false,
      case s.status when 'failed' then 'pending' when 'idle' then 'approved' else 'denied' end, now(),
      case when s.status <> 'failed' then now() end, case when s.status <> 'failed' then '{}'::json end
    from sessions s where s.organization_id = ${organizationId}`);
  // Every fifth record occurred two minutes before the one before it.
  await db.execute(sql`
    insert into events (organization_id, sequence, event_id, body, occurred_at, hash)
    select ${organizationId}::uuid, n, ${id}, json_build_object('type',
        case when n <= ${FEW} then 'api_key.created' when n <= ${2 * FEW} then 'agent.created'
          when n % 4 = 1 then 'session.completed' else 'session.created' end,
        'environment', case when n <= ${FEW} then 'rare' when n % 4 = 3 then 'staging' else 'production' end, 'actor', json_build_object('id', null),
        'resource', json_build_object('id', n::text), 'sessionId', null, 'context', json_build_object())::jsonb,
      ${at(0)}::timestamptz + (n - case when n % 5 = 0 then 120 else 0 end) * interval '1 second', '\\x00'
    from generate_series(1, ${MANY}::int) n`);
  await db.execute(sql`
    update event_heads set sequence = ${MANY}, late_ms = 121000, latest_at = ${at(MANY)}
    where organization_id = ${organizationId}`);
  // One turn of the first session has as many messages as all others together.
  await db.execute(sql`
    insert into messages (organization_id, session_id, turn, position, message_id, role, content, created_at)
    select ${organizationId}::uuid, ${id}, t, p, gen_random_uuid(),
      case when p = 0 then 'user' when p % 2 = 1 then 'assistant' else 'tool' end, '[]', now()
    from (
      select n, 1 as t, p from generate_series(1, ${MANY / 10}::int) n, generate_series(0, 4) p
      union all select 1, 2, p from generate_series(0, ${MANY / 2}::int) p) one`);
  // Indexes alone are enough for what a vacuum has seen.
  await db.execute(sql`vacuum (analyze)`);
  return () => test_.close();
});

/** The total cost of its statements. */
async function costOfList(list: (ctx: PoolContext) => Promise<{ data: unknown[] }>) {
  const { db, statements } = listenTo(ctx.db);
  const { data } = await list({ ...ctx, db } as PoolContext);
  let rows = 0;
  for (const statement of statements) rows += (await costOf(ctx.db, statement)).rows;
  return { shown: data.length, rows };
}

describe('sessions', () => {
  test.each<[string, Input<'listSessions'>, number]>([
    ['all', {}, 20],
    ['of a rare environment', { environment: 'rare' }, FEW],
    ['of an environment that has none', { environment: 'none' }, 0],
    ['of a common environment', { environment: 'production' }, 20],
    ['of a rare status', { status: 'failed' }, 7],
    ['of a status that none has', { status: 'cancelled' }, 0],
    ['of an agent', { agentId: formatId('agt', agents[0]) }, 20],
    ['of an agent, in a rare status', { agentId: formatId('agt', agents[0]), status: 'failed' }, 4],
    ['of an agent, in a status that none has', { agentId: formatId('agt', agents[1]), status: 'running' }, 0],
    ['of an agent, in a rare environment', { agentId: formatId('agt', agents[0]), environment: 'rare' }, 3],
    ['in an environment and a status that do not meet', { environment: 'rare', status: 'failed' }, 0],
    ['by a pair of metadata that one has', { metadata: { order: '77' } }, 1],
    ['by a pair that many have', { metadata: { tenant: '3' } }, 20],
    ['by a pair that none has', { metadata: { order: 'none' } }, 0],
    ['of an end user with one session', { endUserId: 'user_77' }, 1],
    ['of an end user with many', { endUserId: 'many' }, 20],
    ['of an end user with many, in a common status', { endUserId: 'many', status: 'idle' }, 20],
    ['of an end user with none', { endUserId: 'USER_77' }, 0],
  ])('%s', async (_, filters, shown) => {
    const first = await costOfList((ctx) => listSessions(ctx, { ...filters }));
    expect(first.shown).toBe(shown);
    expect(first.rows).toBeLessThan(ROWS);
  });

  test('the next pages have the rest, each session once and newest first', async () => {
    for (const filters of [
      { environment: 'staging' },
      { status: 'idle' },
      { metadata: { tenant: '3' } },
      { endUserId: 'many' },
    ] as const) {
      const seen: string[] = [];
      for (let cursor: string | undefined; ; ) {
        const { data, page } = await listSessions(ctx, { ...filters, limit: 100, ...(cursor && { cursor }) });
        seen.push(...data.map(({ sessionId }) => sessionId));
        if (!page.hasMore || seen.length >= 400) break;
        cursor = page.nextCursor;
      }
      expect(seen).toHaveLength(400);
      expect(seen).toEqual([...new Set(seen)].toSorted().reverse());
    }
  });
});

describe('sessions by filters of several indexes', () => {
  const numberOf = (sessionId: string) => Number.parseInt(parseId('ses', sessionId)!.slice(-12), 16);
  const ofTenant = (n: number) => n % 10 === 3;
  const pairs: [string, Input<'listSessions'>, (n: number) => boolean][] = [
    ['none matches both', { metadata: { tenant: '3' }, agentId: formatId('agt', agents[0]) }, () => false],
    ['none has both pairs', { metadata: { tenant: '3', order: '77' } }, () => false],
    ['only the oldest have both pairs', { metadata: { tenant: '3', era: 'first' } }, (n) => ofTenant(n) && n <= FIRST],
    ['one is in the status', { metadata: { tenant: '3' }, status: 'failed' }, (n) => n === 13],
    ['one is in the environment', { metadata: { tenant: '3' }, environment: 'rare' }, (n) => n === 3],
    [
      'a third are in the environment',
      { metadata: { tenant: '3' }, environment: 'staging' },
      (n) => n % 30 === 3 && n > FEW,
    ],
    ['none is of the end user', { metadata: { tenant: '3' }, endUserId: 'many' }, () => false],
    ['one of the end user is in the status', { endUserId: 'many', status: 'failed' }, (n) => n === 14],
    [
      'only the oldest are of the end user',
      { endUserId: 'many', metadata: { era: 'first' } },
      (n) => n % 10 === 4 && n <= FIRST,
    ],
  ];

  test.each(pairs)('%s: all pages together have those, and the count is exact', async (_, filters, matches) => {
    const expected = Array.from({ length: MANY }, (_, index) => index + 1).filter(matches);
    for (const order of ['asc', 'desc'] as const) {
      const found: string[] = [];
      for (let cursor = '', hasMore = true; hasMore; ) {
        const { data, page } = await listSessions(ctx, { ...filters, order, limit: 100, cursor });
        found.push(...data.map(({ sessionId }) => sessionId));
        // A page is only short if it is the last.
        expect(data.length === 100 || !page.hasMore).toBe(true);
        ({ hasMore, nextCursor: cursor } = page);
      }
      expect(found.map(numberOf)).toEqual(order === 'asc' ? expected : expected.toReversed());
    }
    expect(await countSessions(ctx, filters)).toEqual({ count: expected.length, isExact: true });
  });

  test('only a thousand are read one by one; what the indexes have in common is found without the sessions', async () => {
    const filters = { metadata: { tenant: '3' }, agentId: formatId('agt', agents[0]) };
    const first = await costOfList((ctx) => listSessions(ctx, filters));
    expect(first.rows).toBeLessThan(3 * 1_000 + ROWS);
    const { list } = sessionQuery(filters, { organizationId: ctx.organizationId });
    const all = await costOf(ctx.db, list(20), { forValues: true });
    expect(all.indexes).toContain('sessions_by_agent');
    // One for each of the 2,000 sessions of the tenant would be several thousand.
    expect(all.pages).toBeLessThan(500);
  });
});

test('the sessions of an environment until a moment are found, although others were opened within a minute after it', async () => {
  const { db, organizationId } = ctx;
  const id = sql`(lpad(to_hex(${START}::bigint + n * 1000), 12, '0') || '7000' || '8' || lpad(to_hex(n), 15, '0'))::uuid`;
  await db.execute(sql`
    insert into sessions (organization_id, session_id, agent_id, environment, status, close_on_idle, metadata, created_at, updated_at)
    select ${organizationId}::uuid, ${id}, ${agents[0]}::uuid, 'timed', 'idle', false, '{}',
      ${at(0)}::timestamptz + n * interval '1 second', now() from generate_series(1, 60) n`);
  const { data, page } = await listSessions(ctx, { environment: 'timed', until: at(30).toISOString(), limit: 20 });
  expect(data.map(({ createdAt }) => createdAt)).toEqual(
    Array.from({ length: 20 }, (_, index) => at(29 - index).toISOString()),
  );
  expect(page.hasMore).toBe(true);
  await db.execute(sql`delete from sessions where organization_id = ${organizationId} and environment = 'timed'`);
});

describe('sessions found by words', () => {
  test.each<[string, Input<'listSessions'>, number, boolean, object]>([
    ['that all have', { q: 'everywhere' }, 20, true, { count: 10_000, isExact: false }],
    ['that all have, oldest first', { q: 'everywhere', order: 'asc' }, 20, true, { count: 10_000, isExact: false }],
    ['that none has', { q: 'nowhere' }, 0, false, { count: 0, isExact: true }],
    ['that few have', { q: 'seldom' }, 7, false, { count: 7, isExact: true }],
    ['that few have, by a beginning', { q: 'everywhere seld' }, 7, false, { count: 7, isExact: true }],
    ['and by status', { q: 'seldom', status: 'idle' }, 7, false, { count: 7, isExact: true }],
    ['and by environment', { q: 'seldom', environment: 'production' }, 6, false, { count: 6, isExact: true }],
    ['and by a filter that excludes them', { q: 'seldom', status: 'failed' }, 0, false, { count: 0, isExact: true }],
  ])('%s', async (_, filters, shown, hasMore, counted) => {
    const { data, page } = await listSessions(ctx, { ...filters });
    expect([data.length, page.hasMore]).toEqual([shown, hasMore]);
    const ids = data.map(({ sessionId }) => sessionId);
    expect(ids).toEqual(filters.order === 'asc' ? ids.toSorted() : ids.toSorted().reverse());
    const { order, ...counting } = filters;
    expect(await countSessions(ctx, counting)).toEqual(counted);
  });

  test('that many have, but none of the newest, are all found: after a page that is empty', async () => {
    const pages: string[][] = [];
    for (let cursor = ''; pages.length < 10; ) {
      const { data, page } = await listSessions(ctx, { q: 'early', limit: 100, cursor });
      pages.push(data.map(({ sessionId }) => sessionId));
      expect(page.hasMore).toBe(true);
      cursor = page.nextCursor;
    }
    const ids = pages.flat();
    expect(pages[0]).toEqual([]);
    expect(ids.length).toBeGreaterThan(500);
    expect(ids).toEqual([...new Set(ids)].toSorted().reverse());
    const [newest] = await ctx.db.query<{ sessionId: string }>(sql`
      select session_id as "sessionId" from sessions where organization_id = ${ctx.organizationId}
      order by session_id offset ${EARLY - 1} limit 1`);
    expect(ids[0]).toBe(formatId('ses', newest!.sessionId));
  });
});

test.each<[string, Omit<Input<'listMessages'>, 'sessionId'>]>([
  ['oldest first', {}],
  ['newest first', { order: 'desc' }],
])('a page of messages, %s, reads them and for each of them whether it was rejected', async (_, filters) => {
  const [{ sessionId: first }] = (await ctx.db.query<{ sessionId: string }>(sql`
    select session_id as "sessionId" from messages where organization_id = ${ctx.organizationId} and turn = 2 limit 1`)) as [
    { sessionId: string },
  ];
  const of = { sessionId: formatId('ses', first), limit: 20, ...filters };
  const { page } = await listMessages(ctx, of);
  for (const cursor of [undefined, page.nextCursor!]) {
    const cost = await costOfList((ctx) => listMessages(ctx, { ...of, ...(cursor && { cursor }) }));
    expect(cost.shown).toBe(20);
    expect(cost.rows).toBeLessThan(60);
  }
});

describe('approvals', () => {
  test.each<[string, Input<'listApprovals'>, number]>([
    ['that are pending', { status: 'pending' }, 7],
    ['that were decided', { status: 'denied' }, 20],
    ['that have expired, as none has', { status: 'expired' }, 0],
    ['of a rare environment', { environment: 'rare' }, FEW],
    ['of a rare environment, newest first', { environment: 'rare', order: 'desc' }, FEW],
    [
      'of an agent, decided as only those of the other were',
      { agentId: formatId('agt', agents[0]), status: 'denied' },
      0,
    ],
    ['of an agent that has none', { agentId: formatId('agt', newUuid()) }, 0],
    ['of a rare environment, decided so', { environment: 'rare', status: 'approved' }, 3],
  ])('%s', async (_, filters, shown) => {
    const cost = await costOfList((ctx) => listApprovals(ctx, filters));
    expect(cost.shown).toBe(shown);
    expect(cost.rows).toBeLessThan(ROWS);
  });
});

describe('records of the event log', () => {
  const middle = { since: at(10_000).toISOString(), until: at(10_010).toISOString() };
  // Events of the seconds 10,000 to 10,009, with two that arrived two minutes late, without the two late ones of that time.
  const inMiddle = 10;
  test.each<[string, Input<'listEvents'>, number]>([
    ['of a rare environment', { environment: 'rare' }, FEW],
    ['of an environment that has none', { environment: 'none', order: 'asc' }, 0],
    [
      'of an environment and of a type that many have, but none both',
      { environment: 'staging', type: 'session.completed' },
      0,
    ],
    ['of several types, all rare', { type: 'api_key.created,agent.created' }, 2 * FEW],
    ['of several types that none has', { type: 'agent.archived,api_key.deleted' }, 0],
    ['of a rare type and a common one', { type: 'api_key.created,session.created', limit: 20 }, 20],
    ['of a short time long ago', middle, inMiddle],
    ['of a short time long ago, oldest first', { ...middle, order: 'asc' }, inMiddle],
    ['since a time long ago, oldest first', { since: at(15_000).toISOString(), order: 'asc', limit: 20 }, 20],
    ['until a time long ago, newest first', { until: at(5_000).toISOString(), limit: 20 }, 20],
    ['of a type until a time long ago', { type: 'session.created', until: at(5_000).toISOString(), limit: 20 }, 20],
    ['since a time to come', { since: at(MANY + 500).toISOString() }, 0],
  ])('%s', async (_, filters, shown) => {
    const cost = await costOfList((ctx) => listEvents(ctx, filters));
    expect(cost.shown).toBe(shown);
    expect(cost.rows).toBeLessThan(ROWS + 500);
  });

  test('a filter by time returns the same records as a check of each one', async () => {
    const all = await ctx.db.query<{ sequence: number; occurredAt: Date }>(sql`
      select sequence, occurred_at as "occurredAt" from events where organization_id = ${ctx.organizationId}`);
    for (const [from, to] of [
      [-10, 3],
      [4_879, 4_881],
      [4_885, 4_885],
      [9_995, 10_130],
      [19_870, 20_000],
      [19_995, 30_000],
    ] as const) {
      const expected = all
        .filter(({ occurredAt }) => occurredAt >= at(from) && occurredAt < at(to))
        .map(({ sequence }) => sequence);
      const { data } = await listEvents(ctx, {
        since: at(from).toISOString(),
        until: at(to).toISOString(),
        order: 'asc',
        limit: 500,
      });
      expect(data.map(({ sequence }) => sequence)).toEqual(expected.toSorted((a, b) => a - b));
    }
  });
});
