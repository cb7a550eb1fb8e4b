// Due schedules: each occurrence runs once despite several nodes, crashes and lost responses, and missed ones are recorded.
import type { Event, Input, Schedule, ScheduleRun } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { archiveAgent, createAgent } from '../../src/agents/agents.ts';
import { DatabaseUnavailable, type Db, type Tx } from '../../src/db/db.ts';
import { listEvents } from '../../src/events/events.ts';
import type { PoolContext } from '../../src/lib/context.ts';
import { uuidOf } from '../../src/lib/ids.ts';
import type { Platform } from '../../src/platform.ts';
import { MAX_MISSED } from '../../src/schedules/occurrences.ts';
import { type DueSchedule, runDue } from '../../src/schedules/run.ts';
import { listScheduleRuns } from '../../src/schedules/runs.ts';
import { createScheduler, type Scheduler } from '../../src/schedules/scheduler.ts';
import { createSchedule, deleteSchedule, getSchedule, updateSchedule } from '../../src/schedules/schedules.ts';
import { listMessages } from '../../src/sessions/messages.ts';
import { listSessions } from '../../src/sessions/reading/list.ts';
import { idle } from '../support/idle.ts';
import { createManualClock, type ManualClock } from '../support/manual-clock.ts';
import { createTestPlatform, type TestPlatform } from '../support/platform.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

let clock: ManualClock;
let node: TestPlatform;
let ctx: PoolContext;
let agentId: string;
let running: Scheduler[];
beforeEach(async () => {
  clock = createManualClock(new Date('2026-01-02T03:00:30.000Z'));
  node = await createTestPlatform({ clock });
  ctx = node.ctx;
  ({ agentId } = (await createAgent(ctx, { name: 'Agent', model: 'scripted/test' })).agent);
  running = [];
});
afterEach(async () => {
  await Promise.all(running.map((scheduler) => scheduler.stop()));
  await node.close();
});

/** Resolves after the scheduler's first poll. */
async function start(platform: Platform = node.platform): Promise<void> {
  const scheduler = createScheduler(platform);
  running.push(scheduler);
  scheduler.start();
  await idle();
}

/** Creates a schedule; hourly by default. */
async function schedule(more: Partial<Input<'createSchedule'>> = {}): Promise<Schedule> {
  const hourly = more.at ? {} : { cron: '0 * * * *' };
  return (await createSchedule(ctx, { agentId, environment: 'production', input: 'go', ...hourly, ...more })).schedule;
}

const read = async (scheduleId: string) => (await getSchedule(ctx, { scheduleId })).schedule;
const runsOf = async (scheduleId: string, limit = 100): Promise<ScheduleRun[]> =>
  (await listScheduleRuns(ctx, { scheduleId, limit })).data;
const sessions = async () => (await listSessions(ctx, { limit: 100 })).data;
const events = async (type: Event['type']) => (await listEvents(ctx, { type, order: 'asc', limit: 1000 })).data;

const dueScheduleOf = ({ scheduleId, nextAt }: Schedule): DueSchedule => ({
  organizationId: node.organizationId,
  scheduleId: uuidOf('sch', scheduleId),
  nextAt: new Date(nextAt!),
});

/** The same node, with transactions that end as `end` decides. */
function withTransactions(platform: Platform, end: Db['transaction']): Platform {
  return { ...platform, db: { ...platform.db, transaction: end } };
}

test('an occurrence opens the session that the schedule describes, and the next one is computed', async () => {
  const { scheduleId, nextAt } = await schedule({
    cron: '0 * * * *',
    input: 'Report.',
    metadata: { report: 'hourly' },
    budget: { maxSteps: 3 },
  });
  expect(nextAt).toBe('2026-01-02T04:00:00.000Z');
  await start();
  await clock.advance(HOUR_MS);
  const [run] = await runsOf(scheduleId);
  expect(run).toEqual({
    scheduledAt: '2026-01-02T04:00:00.000Z',
    manual: false,
    status: 'opened',
    sessionId: expect.stringMatching(/^ses_/),
    session: { status: 'running', stopReason: null, error: null },
    error: null,
    createdAt: '2026-01-02T04:00:30.000Z',
  });
  const [session] = await sessions();
  expect(session).toMatchObject({
    sessionId: run!.sessionId,
    agentId,
    environment: 'production',
    status: 'running',
    metadata: { report: 'hourly' },
    budget: { maxSteps: 3 },
  });
  const [message] = (await listMessages(ctx, { sessionId: run!.sessionId! })).data;
  expect(message?.content).toEqual([{ type: 'text', text: 'Report.' }]);
  const { sessionId, scheduledAt, status } = run!;
  expect(await read(scheduleId)).toMatchObject({
    nextAt: '2026-01-02T05:00:00.000Z',
    lastRun: { sessionId, scheduledAt, status },
  });
  await clock.advance(HOUR_MS);
  expect(await sessions()).toHaveLength(2);
});

test('the event log names the schedule as the actor that opened the session', async () => {
  const { scheduleId } = await schedule();
  await start();
  await clock.advance(HOUR_MS);
  const [run] = await runsOf(scheduleId);
  const actor = { type: 'system', id: scheduleId, name: 'Schedule' };
  expect(await events('schedule.opened')).toMatchObject([
    {
      outcome: 'success',
      actor,
      resource: { type: 'schedule', id: scheduleId },
      environment: 'production',
      sessionId: run!.sessionId,
      changes: { scheduledAt: [null, '2026-01-02T04:00:00.000Z'] },
    },
  ]);
  expect(await events('session.created')).toMatchObject([{ actor, sessionId: run!.sessionId }]);
});

test('a schedule that is due before the next poll is not late: the scheduler wakes for it', async () => {
  const { scheduleId } = await schedule({ at: '2026-01-02T03:00:30.300Z' });
  await start();
  await clock.advance(300);
  expect(await runsOf(scheduleId)).toMatchObject([{ status: 'opened', createdAt: '2026-01-02T03:00:30.300Z' }]);
});

test('without input the session is opened idle; closeOnIdle is on by default', async () => {
  const one = await schedule({ cron: '0 * * * *', input: null, closeOnIdle: false });
  const two = await schedule({ cron: '0 * * * *' });
  await start();
  await clock.advance(HOUR_MS);
  const [idle] = await runsOf(one.scheduleId);
  const [running] = await runsOf(two.scheduleId);
  const stored = await node.platform.db.query<{ closeOnIdle: boolean; status: string }>(sql`
    select s.close_on_idle as "closeOnIdle", s.status from sessions s
    join unnest(${[idle, running].map((run) => uuidOf('ses', run!.sessionId!))}::uuid[]) with ordinality as x(id, n)
      on s.session_id = x.id
    where s.organization_id = ${node.organizationId} order by x.n`);
  expect(stored).toEqual([
    { closeOnIdle: false, status: 'idle' },
    { closeOnIdle: true, status: 'running' },
  ]);
});

describe('each occurrence happens once', () => {
  test('if nodes poll at the same moment', async () => {
    const schedules = await Promise.all(Array.from({ length: 12 }, () => schedule()));
    const nodes = [node.platform, await node.anotherNode(), await node.anotherNode()];
    await clock.advance(HOUR_MS);
    await Promise.all(nodes.map(start));
    // A node that found a schedule locked by another has skipped it, and need not return to it.
    for (const { scheduleId } of schedules) expect(await runsOf(scheduleId)).toHaveLength(1);
    expect(await events('schedule.opened')).toHaveLength(12);
    expect(await sessions()).toHaveLength(12);
  });

  test('if both nodes found it due: one runs it, and the other sees that it has run', async () => {
    const due = dueScheduleOf(await schedule());
    const other = await node.anotherNode();
    await clock.advance(HOUR_MS);
    const results = await Promise.all([node.platform, other].map((platform) => runDue(platform, due)));
    expect(results.filter((result) => result !== undefined)).toHaveLength(1);
    expect(await runDue(other, due)).toBeUndefined();
    expect(await sessions()).toHaveLength(1);
  });

  test('if the response to its commit is lost with the connection', async () => {
    const { scheduleId } = await schedule();
    let lost = 0;
    const platform = await node.anotherNode();
    await start(
      withTransactions(platform, async (fn) => {
        await platform.db.transaction(fn);
        lost += 1;
        throw new DatabaseUnavailable(new Error('Connection terminated unexpectedly'), true);
      }),
    );
    await clock.advance(HOUR_MS);
    expect(lost).toBe(1);
    await start();
    await clock.advance(10 * SECOND_MS);
    expect(await runsOf(scheduleId)).toHaveLength(1);
    expect(await sessions()).toHaveLength(1);
  });

  test('if the connection is lost before its commit: nothing is stored, and it runs again', async () => {
    const { scheduleId } = await schedule();
    const platform = await node.anotherNode();
    let cuts = 0;
    await start(
      withTransactions(platform, (fn) =>
        platform.db.transaction(async (tx: Tx) => {
          const value = await fn(tx);
          cuts += 1;
          if (cuts > 1) return value;
          const [{ pid } = { pid: 0 }] = await tx.query<{ pid: number }>(sql`select pg_backend_pid() as pid`);
          await node.platform.db.query(sql`select pg_terminate_backend(${pid})`);
          return value;
        }),
      ),
    );
    await clock.advance(HOUR_MS);
    expect(await runsOf(scheduleId)).toEqual([]);
    expect(await sessions()).toEqual([]);
    expect(await events('session.created')).toEqual([]);
    await clock.advance(10 * SECOND_MS);
    expect(cuts).toBe(2);
    expect(await runsOf(scheduleId)).toHaveLength(1);
    expect(await sessions()).toHaveLength(1);
    expect(await events('session.created')).toHaveLength(1);
  });

  test('if a node whose clock is behind has made it due again', async () => {
    const before = await schedule();
    await clock.advance(HOUR_MS);
    const due = dueScheduleOf(before);
    await runDue(node.platform, due);
    await node.platform.db.execute(sql`
      update schedules set next_at = ${due.nextAt}
      where organization_id = ${node.organizationId} and schedule_id = ${due.scheduleId}`);
    expect(await runDue(node.platform, due)).toBeUndefined();
    expect(await sessions()).toHaveLength(1);
    expect((await read(before.scheduleId)).nextAt).toBe('2026-01-02T05:00:00.000Z');
  });

  test('if one that has run is due again among others: its run stays unchanged', async () => {
    const before = await schedule();
    const due = dueScheduleOf(before);
    await clock.advance(HOUR_MS);
    await runDue(node.platform, due);
    await node.platform.db.execute(sql`
      update schedules set next_at = ${due.nextAt}
      where organization_id = ${node.organizationId} and schedule_id = ${due.scheduleId}`);
    await clock.advance(2 * HOUR_MS);
    await runDue(node.platform, due);
    expect((await runsOf(before.scheduleId)).map(({ status }) => status)).toEqual(['opened', 'missed', 'opened']);
  });
});

describe('a clock that jumps', () => {
  test('back after the occurrence was found due: it has run, and does not run again at its time', async () => {
    const hourly = await schedule();
    const once = await schedule({ at: '2026-01-02T04:00:00.000Z' });
    await clock.advance(HOUR_MS);
    const dueSchedules = [hourly, once].map(dueScheduleOf);
    await clock.advance(-HOUR_MS / 2);
    for (const due of dueSchedules) expect(await runDue(node.platform, due)).toMatchObject({ missed: 0 });
    await start();
    await clock.advance(HOUR_MS / 2);
    for (const { scheduleId } of [hourly, once]) expect(await runsOf(scheduleId)).toHaveLength(1);
    expect(await sessions()).toHaveLength(2);
    expect((await read(hourly.scheduleId)).nextAt).toBe('2026-01-02T05:00:00.000Z');
    expect((await read(once.scheduleId)).nextAt).toBeNull();
  });

  test('ahead and back: what ran too early does not run again, and the schedule continues after it', async () => {
    const { scheduleId } = await schedule();
    await start();
    await clock.advance(3 * HOUR_MS);
    await clock.advance(-3 * HOUR_MS);
    await start(await node.anotherNode());
    await clock.advance(3 * HOUR_MS + SECOND_MS);
    expect((await runsOf(scheduleId)).map(({ status }) => status)).toEqual(['opened', 'missed', 'missed']);
    await clock.advance(HOUR_MS);
    expect(await sessions()).toHaveLength(2);
    expect((await read(scheduleId)).nextAt).toBe('2026-01-02T08:00:00.000Z');
  });

  test('a year ahead: each schedule opens one session, and the latest missed occurrences are recorded', async () => {
    const daily = await schedule({ cron: '0 9 * * *', timezone: 'Europe/Berlin' });
    const leap = await schedule({ cron: '0 0 29 2 *' });
    await start();
    await clock.advance(365 * DAY_MS);
    const runs = await runsOf(daily.scheduleId, 200);
    expect(runs).toHaveLength(MAX_MISSED + 1);
    expect(runs[0]).toMatchObject({ scheduledAt: '2027-01-01T08:00:00.000Z', status: 'opened' });
    expect(runs[1]).toMatchObject({ scheduledAt: '2026-12-31T08:00:00.000Z', status: 'missed' });
    expect(await runsOf(leap.scheduleId)).toEqual([]);
    expect((await read(leap.scheduleId)).nextAt).toBe('2028-02-29T00:00:00.000Z');
    expect(await sessions()).toHaveLength(1);
  });
});

describe('occurrences missed while the service was down', () => {
  test('the latest runs, the others are recorded as missed, with one event', async () => {
    const { scheduleId } = await schedule();
    await clock.advance(5 * HOUR_MS);
    await start();
    const runs = await runsOf(scheduleId);
    expect(runs.map(({ scheduledAt, status }) => [scheduledAt.slice(11, 16), status])).toEqual([
      ['08:00', 'opened'],
      ['07:00', 'missed'],
      ['06:00', 'missed'],
      ['05:00', 'missed'],
      ['04:00', 'missed'],
    ]);
    expect(await sessions()).toHaveLength(1);
    expect(await events('schedule.missed')).toMatchObject([
      {
        outcome: 'failure',
        resource: { type: 'schedule', id: scheduleId },
        changes: {
          missed: [
            null,
            { count: 4, more: false, first: '2026-01-02T04:00:00.000Z', last: '2026-01-02T07:00:00.000Z' },
          ],
        },
      },
    ]);
    expect(await read(scheduleId)).toMatchObject({
      nextAt: '2026-01-02T09:00:00.000Z',
      lastRun: { scheduledAt: '2026-01-02T08:00:00.000Z', status: 'opened' },
    });
  });

  test('a month of every minute causes one session, a limited number of rows and one event', async () => {
    await schedule({ cron: '* * * * *' });
    await clock.advance(30 * DAY_MS);
    await start();
    const [{ count } = { count: 0 }] = await node.platform.db.query<{ count: number }>(sql`
      select count(*) from schedule_runs where organization_id = ${node.organizationId}`);
    expect(count).toBe(MAX_MISSED + 1);
    expect(await sessions()).toHaveLength(1);
    expect(await events('schedule.missed')).toMatchObject([
      {
        changes: {
          missed: [
            null,
            { count: MAX_MISSED, more: true, first: '2026-01-02T03:01:00.000Z', last: '2026-02-01T02:59:00.000Z' },
          ],
        },
      },
    ]);
  });

  test('the only occurrence of a one-time schedule runs late, and there is no next', async () => {
    const { scheduleId } = await schedule({ at: '2026-01-02T12:00:00.000Z' });
    await clock.advance(3 * DAY_MS);
    await start();
    const [run] = await runsOf(scheduleId);
    expect(run).toMatchObject({ scheduledAt: '2026-01-02T12:00:00.000Z', status: 'opened' });
    expect(await read(scheduleId)).toMatchObject({ nextAt: null, status: 'enabled' });
    await clock.advance(DAY_MS);
    expect(await runsOf(scheduleId)).toHaveLength(1);
  });
});

describe('a schedule that changes', () => {
  test('opens nothing while it is paused, and does not catch up afterwards', async () => {
    const { scheduleId } = await schedule();
    await updateSchedule(ctx, { scheduleId, status: 'paused' });
    expect((await read(scheduleId)).nextAt).toBeNull();
    await start();
    await clock.advance(3 * HOUR_MS);
    await updateSchedule(ctx, { scheduleId, status: 'enabled' });
    expect((await read(scheduleId)).nextAt).toBe('2026-01-02T07:00:00.000Z');
    expect(await runsOf(scheduleId)).toEqual([]);
    await clock.advance(HOUR_MS);
    expect(await runsOf(scheduleId)).toMatchObject([{ scheduledAt: '2026-01-02T07:00:00.000Z', status: 'opened' }]);
  });

  test('that was paused past its time has nothing to run', async () => {
    const { scheduleId } = await schedule({ at: '2026-01-02T04:00:00.000Z' });
    await updateSchedule(ctx, { scheduleId, status: 'paused' });
    await clock.advance(2 * HOUR_MS);
    const { schedule: resumed } = await updateSchedule(ctx, { scheduleId, status: 'enabled' });
    expect(resumed.nextAt).toBeNull();
    const at = '2026-01-02T06:00:00.000Z';
    expect((await updateSchedule(ctx, { scheduleId, at })).schedule.nextAt).toBe(at);
  });

  test('in its timing drops due occurrences that have not run', async () => {
    const { scheduleId } = await schedule();
    await clock.advance(HOUR_MS);
    const { schedule: changed } = await updateSchedule(ctx, { scheduleId, timezone: 'Asia/Kolkata' });
    expect(changed.nextAt).toBe('2026-01-02T04:30:00.000Z');
    await start();
    expect(await runsOf(scheduleId)).toEqual([]);
  });

  test('in its timing or is paused after it was found due does not run', async () => {
    const changed = await schedule();
    const paused = await schedule();
    await clock.advance(HOUR_MS);
    await updateSchedule(ctx, { scheduleId: changed.scheduleId, cron: '30 * * * *' });
    await updateSchedule(ctx, { scheduleId: paused.scheduleId, status: 'paused' });
    for (const one of [changed, paused]) expect(await runDue(node.platform, dueScheduleOf(one))).toBeUndefined();
    expect((await read(changed.scheduleId)).nextAt).toBe('2026-01-02T04:30:00.000Z');
    expect(await sessions()).toEqual([]);
  });

  test('during a poll does not delay others, and runs with a later poll', async () => {
    const changing = await schedule();
    const other = await schedule({ cron: '1 4 * * *' });
    await clock.advance(HOUR_MS + MINUTE_MS);
    await node.platform.db.transaction(async (tx) => {
      await tx.query(sql`
        select 1 from schedules
        where organization_id = ${node.organizationId} and schedule_id = ${uuidOf('sch', changing.scheduleId)}
        for update`);
      await start(await node.anotherNode());
      expect(await runsOf(other.scheduleId)).toHaveLength(1);
      expect(await runsOf(changing.scheduleId)).toEqual([]);
    });
    await clock.advance(SECOND_MS);
    expect(await runsOf(changing.scheduleId)).toMatchObject([{ status: 'opened' }]);
  });

  test('in several fields at once has all the new values', async () => {
    const { scheduleId } = await schedule();
    const changes = [{ input: 'a' }, { metadata: { b: 1 } }, { budget: { maxSteps: 2 } }, { closeOnIdle: false }];
    await Promise.all(changes.map((change) => updateSchedule(ctx, { scheduleId, ...change })));
    expect(await read(scheduleId)).toMatchObject(Object.assign({}, ...changes));
  });

  test('in any other field runs what is due with the new values', async () => {
    const { scheduleId } = await schedule();
    await clock.advance(HOUR_MS);
    await updateSchedule(ctx, { scheduleId, input: 'changed', cron: '0 * * * *' });
    await start();
    const [run] = await runsOf(scheduleId);
    const [message] = (await listMessages(ctx, { sessionId: run!.sessionId! })).data;
    expect(message?.content).toEqual([{ type: 'text', text: 'changed' }]);
  });

  test('and is deleted while it is due opens nothing', async () => {
    const { scheduleId } = await schedule();
    await clock.advance(HOUR_MS);
    await deleteSchedule(ctx, { scheduleId });
    await start();
    expect(await sessions()).toEqual([]);
    expect(await events('schedule.opened')).toEqual([]);
  });

  test('and is deleted while it runs has run or has not, and nothing hangs or is left behind', async () => {
    const schedules = await Promise.all(Array.from({ length: 10 }, () => schedule()));
    await clock.advance(HOUR_MS);
    const results = await Promise.all(
      schedules.map(async (one) => {
        const [result] = await Promise.all([
          runDue(node.platform, dueScheduleOf(one)),
          deleteSchedule(ctx, { scheduleId: one.scheduleId }),
        ]);
        return result;
      }),
    );
    expect(await sessions()).toHaveLength(results.filter((result) => result !== undefined).length);
    const [{ count } = { count: -1 }] = await node.platform.db.query<{ count: number }>(sql`
      select count(*) from schedule_runs where organization_id = ${node.organizationId}`);
    expect(count).toBe(0);
  });
});

describe('an occurrence that is refused', () => {
  test('because the agent is archived has failed with the reason, and pauses the schedule', async () => {
    const { scheduleId } = await schedule();
    await archiveAgent(ctx, { agentId });
    await start();
    await clock.advance(HOUR_MS);
    const [run] = await runsOf(scheduleId);
    const error = { code: 'agent_archived', message: expect.stringContaining('archived') };
    expect(run).toMatchObject({ status: 'failed', sessionId: null, error });
    expect(await events('schedule.failed')).toMatchObject([
      {
        outcome: 'failure',
        resource: { type: 'schedule', id: scheduleId },
        changes: {
          scheduledAt: [null, '2026-01-02T04:00:00.000Z'],
          error: [null, error],
          status: ['enabled', 'paused'],
        },
      },
    ]);
    await clock.advance(2 * HOUR_MS);
    expect(await runsOf(scheduleId)).toHaveLength(1);
    expect(await sessions()).toEqual([]);
    expect((await getSchedule(ctx, { scheduleId })).schedule).toMatchObject({ status: 'paused', nextAt: null });

    const other = (await createAgent(ctx, { name: 'Another', model: 'scripted/test' })).agent;
    await updateSchedule(ctx, { scheduleId, agentId: other.agentId, status: 'enabled' });
    await clock.advance(HOUR_MS);
    expect((await runsOf(scheduleId))[0]).toMatchObject({ status: 'opened' });
  });

  test('because its budget has no price has failed', async () => {
    const { scheduleId } = await schedule();
    await node.platform.db.execute(sql`
      update schedules set budget = '{"maxCostUsd":1}'
      where organization_id = ${node.organizationId} and schedule_id = ${uuidOf('sch', scheduleId)}`);
    await start();
    await clock.advance(HOUR_MS);
    expect(await runsOf(scheduleId)).toMatchObject([{ status: 'failed', error: { code: 'budget_invalid' } }]);
  });
});

/** Inserts this many copies with other ids. */
async function copies(of: Schedule, count: number): Promise<void> {
  await node.platform.db.execute(sql`
    insert into schedules (organization_id, schedule_id, agent_id, environment, metadata, cron, timezone, status,
      close_on_idle, next_at, created_at, updated_at)
    select s.organization_id, ('018f0000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, s.agent_id, s.environment,
      s.metadata, s.cron, s.timezone, s.status, s.close_on_idle, s.next_at, s.created_at, s.updated_at
    from schedules s cross join generate_series(1, ${count}::int) n
    where s.organization_id = ${node.organizationId} and s.schedule_id = ${uuidOf('sch', of.scheduleId)}`);
}

test('schedules that always fail do not delay others, are retried after a pause, and run once they can', async () => {
  const bad = await schedule();
  const good = await schedule({ cron: '1 4 * * *' });
  const setCron = (cron: string) =>
    node.platform.db.execute(sql`
      update schedules set cron = ${cron} where organization_id = ${node.organizationId} and cron <> ${'1 4 * * *'}`);
  await setCron('not cron');
  // More than one page.
  await copies(bad, 230);
  await clock.advance(HOUR_MS + MINUTE_MS);
  let attempts = 0;
  await start(
    withTransactions(node.platform, (fn) => {
      attempts += 1;
      return node.platform.db.transaction(fn);
    }),
  );
  expect(attempts).toBe(232);
  expect(await runsOf(good.scheduleId)).toHaveLength(1);
  expect(await runsOf(bad.scheduleId)).toEqual([]);
  await setCron('0 * * * *');
  await clock.advance(SECOND_MS);
  expect(attempts).toBe(232);
  await clock.advance(4 * SECOND_MS);
  expect(attempts).toBe(232 + 231);
  expect(await runsOf(bad.scheduleId)).toMatchObject([{ status: 'opened' }]);
});

test('any number of schedules that are due at once run, on whichever nodes', async () => {
  await copies(await schedule({ input: null }), 449);
  await clock.advance(HOUR_MS);
  await Promise.all([start(), start(await node.anotherNode())]);
  const [counted] = await node.platform.db.query<{ runs: number; opened: number }>(sql`
    select (select count(*) from schedule_runs where organization_id = ${node.organizationId}) as runs,
      (select count(*) from sessions where organization_id = ${node.organizationId}) as opened`);
  expect(counted).toEqual({ runs: 450, opened: 450 });
});

test('runs are stored for 90 days, and the latest one as long as the schedule', async () => {
  const { scheduleId } = await schedule({ cron: '0 0 1 * *' });
  await start();
  await clock.advance(31 * DAY_MS);
  await updateSchedule(ctx, { scheduleId, status: 'paused' });
  await clock.advance(200 * DAY_MS);
  expect((await read(scheduleId)).lastRun?.scheduledAt).toBe('2026-02-01T00:00:00.000Z');
  await updateSchedule(ctx, { scheduleId, status: 'enabled' });
  await clock.advance(31 * DAY_MS);
  const [newest] = await runsOf(scheduleId);
  expect(newest?.scheduledAt).toBe('2026-09-01T00:00:00.000Z');
  expect(await runsOf(scheduleId)).toHaveLength(1);
});
