// The cost of a page of schedules or of their runs depends on the page, however many runs and sessions there are.
import sql from 'sql-template-tag';
import { beforeAll, expect, test } from 'vitest';
import type { PoolContext } from '../../src/lib/context.ts';
import { formatId, newUuid } from '../../src/lib/ids.ts';
import { countFailing, listScheduleRuns } from '../../src/schedules/runs.ts';
import { listSchedules } from '../../src/schedules/schedules.ts';
import { costOf, listenTo } from '../support/plans.ts';
import { createTestPlatform, type TestPlatform } from '../support/platform.ts';

// Each with as many runs, each of which has a session.
const SCHEDULES = 1_500;
const RUNS = 15;
// More runs of the first schedule.
const MANY_RUNS = 5_000;

let test_: TestPlatform;
let ctx: PoolContext;
const agentId = newUuid();

beforeAll(async () => {
  test_ = await createTestPlatform();
  ctx = test_.ctx as PoolContext;
  const { db, organizationId } = ctx;
  await db.execute(sql`
    insert into agents (organization_id, agent_id, version, created_at, updated_at)
    values (${organizationId}, ${agentId}, 1, now(), now())`);
  const schedule = sql`(lpad(to_hex(n), 12, '0') || '7000' || '8' || lpad(to_hex(n), 15, '0'))::uuid`;
  const session = sql`(lpad(to_hex(n), 12, '0') || '7000' || '9' || lpad(to_hex(r), 15, '0'))::uuid`;
  await db.execute(sql`
    insert into schedules (organization_id, schedule_id, agent_id, environment, metadata, cron, timezone, status, close_on_idle, next_at,
      created_at, updated_at)
    select ${organizationId}::uuid, ${schedule}, ${agentId}::uuid, 'production', '{}', '0 9 * * *', 'UTC', 'enabled', true,
      now(), now(), now()
    from generate_series(1, ${SCHEDULES}::int) n`);
  const runs = sql`generate_series(1, ${SCHEDULES}::int) n
    cross join lateral generate_series(1, case n when 1 then ${MANY_RUNS}::int else ${RUNS}::int end) r`;
  await db.execute(sql`
    insert into schedule_runs (organization_id, schedule_id, scheduled_at, status, session_id, created_at)
    select ${organizationId}::uuid, ${schedule}, '2026-01-01'::timestamptz + r * interval '1 minute', 'opened', ${session}, now()
    from ${runs}`);
  // The newest session of every second schedule runs, and all before it failed.
  await db.execute(sql`
    insert into sessions (organization_id, session_id, agent_id, environment, status, close_on_idle, metadata, error, created_at,
      updated_at)
    select ${organizationId}::uuid, ${session}, ${agentId}::uuid, 'production',
      case when r = ${RUNS}::int then 'running' when n % 2 = 0 then 'failed' else 'completed' end, false, '{}',
      case when n % 2 = 0 and r <> ${RUNS}::int then '{"code":"model_rejected","message":"No."}'::json end, now(), now()
    from ${runs}`);
  await db.execute(sql`vacuum (analyze)`);
  return () => test_.close();
});

test('a page of schedules reads the newest runs of each, in one statement', async () => {
  const { db, statements } = listenTo(ctx.db);
  const { data } = await listSchedules({ ...ctx, db }, { limit: 50 });
  expect(data).toHaveLength(50);
  expect(data.map(({ failedRuns }) => failedRuns)).toEqual(
    Array.from({ length: 50 }, (_, index) => (index % 2 === 0 ? 9 : 0)),
  );
  expect(statements).toHaveLength(1);
  const cost = await costOf(ctx.db, statements[0]!);
  // 51 rows, each with its ten newest runs and their sessions.
  expect(cost.rows).toBeLessThanOrEqual(51 * 21);
  expect(cost.wholeTables).toEqual([]);
});

test('a page of runs looks up the sessions of these runs, in one statement', async () => {
  const { db, statements } = listenTo(ctx.db);
  const scheduleId = formatId('sch', '00000000-0001-7000-8000-000000000001');
  const { data, page } = await listScheduleRuns({ ...ctx, db }, { scheduleId, limit: 50 });
  expect([data.length, page.hasMore]).toEqual([50, true]);
  expect(data.every(({ session }) => session?.status === 'completed')).toBe(true);
  const next = await listScheduleRuns({ ...ctx, db }, { scheduleId, limit: 50, cursor: page.nextCursor });
  expect(next.data[0]!.scheduledAt < data.at(-1)!.scheduledAt).toBe(true);
  // Each page also checks that the schedule exists.
  expect(statements).toHaveLength(4);
  for (const statement of statements) {
    const cost = await costOf(ctx.db, statement);
    expect(cost.rows).toBeLessThanOrEqual(51 * 2);
    expect(cost.wholeTables.filter((table) => table !== 'schedules')).toEqual([]);
  }
});

test('a page of failed runs checks a thousand of them, and the pages together have each once', async () => {
  const { db, statements } = listenTo(ctx.db);
  const scheduleId = formatId('sch', '00000000-0001-7000-8000-000000000001');
  // The oldest two of 5,000 failed, and none of the others.
  await ctx.db.execute(sql`
    update sessions set error = '{"code":"model_rejected","message":"No."}'
    where organization_id = ${ctx.organizationId}
      and session_id in ('00000000-0001-7000-9000-000000000001', '00000000-0001-7000-9000-000000000002')`);
  const lengths: number[] = [];
  for (let cursor = '', hasMore = true; hasMore; ) {
    const { data, page } = await listScheduleRuns({ ...ctx, db }, { scheduleId, hasError: true, cursor });
    lengths.push(data.length);
    ({ hasMore, nextCursor: cursor } = page);
  }
  expect(lengths).toEqual([0, 0, 0, 0, 2, 0]);
  for (const statement of statements) {
    const cost = await costOf(ctx.db, statement);
    expect(cost.rows).toBeLessThanOrEqual(2 * 1_000);
    expect(cost.wholeTables.filter((table) => table !== 'schedules')).toEqual([]);
  }
});

test('the overview reads the newest thousand schedules, and of each the runs until one whose outcome is known', async () => {
  const statement = countFailing(ctx.organizationId, undefined);
  expect(await ctx.db.query(statement)).toEqual([{ count: 500 }]);
  const cost = await costOf(ctx.db, statement);
  // The newest run is in progress: two runs and two sessions for each schedule.
  expect(cost.rows).toBeLessThanOrEqual(1_000 * 5 + 1_000);
  expect(cost.wholeTables.filter((table) => table !== 'schedules')).toEqual([]);
});
