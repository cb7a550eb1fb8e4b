// Runs one due schedule. One transaction, under the row's lock and only if next_at has not changed, opens the session, records the
// occurrence and advances next_at. Therefore each occurrence runs once, even if several nodes try, a node dies, or the response to
// the commit is lost.
//
// If several occurrences are due, because the service was down or late, the latest one runs now and the others are recorded as
// missed.
import { type Input, type Result, type SessionError, scopesOfPermission } from '@signalbox/contract';
import sql from 'sql-template-tag';
import type { Tx } from '../db/db.ts';
import { recordEvent } from '../events/record.ts';
import { ApiError } from '../lib/api-error.ts';
import { type Context, inTransaction } from '../lib/context.ts';
import { identitiesOf } from '../lib/identities.ts';
import { formatId, uuidOf } from '../lib/ids.ts';
import type { Platform } from '../platform.ts';
import { openSession } from '../sessions/sessions.ts';
import { type DueOccurrences, dueOccurrences, nextOccurrence } from './occurrences.ts';
import { viewRun } from './runs.ts';
import { lockSchedule, type ScheduleRow, scheduleColumns, scheduleEvent } from './schedules.ts';

/** A schedule that was due when it was read. */
export interface DueSchedule {
  organizationId: string;
  scheduleId: string;
  nextAt: Date;
}

/** The result of a run, for the log. */
export interface RunResult {
  scheduledAt: Date;
  outcome: RunOutcome;
  missed: number;
}

type RunOutcome = { status: 'opened'; sessionId: string } | { status: 'failed'; error: SessionError };

// A schedule that runs every minute has half a million runs a year.
const RETENTION_MS = 90 * 24 * 3_600_000;
// The number of old runs that one run deletes, so that a run after a long pause is not slowed down by thousands.
const MAX_DROPPED = 100;

/** Undefined if nothing is left to do: another node ran or is running the schedule, or a caller changed it. */
export async function runDue(platform: Platform, schedule: DueSchedule): Promise<RunResult | undefined> {
  const { organizationId, scheduleId, nextAt } = schedule;
  return platform.db.transaction(async (tx) => {
    const [row] = await tx.query<ScheduleRow>(sql`
      select ${scheduleColumns} from schedules s
      where s.organization_id = ${organizationId} and s.schedule_id = ${scheduleId} and s.next_at = ${nextAt}
        and s.status = 'enabled'
      for no key update skip locked`);
    if (!row) return undefined;
    const now = platform.clock.now();
    const due = dueOccurrences(row, nextAt, now);
    const ctx: Context = {
      ...platform,
      db: tx,
      organizationId,
      actor: { type: 'system', id: formatId('sch', scheduleId), name: 'Schedule' },
      callerId: null,
      keyId: null,
      scopes: scopesOfPermission.write,
      requestId: null,
      ipAddress: null,
      userAgent: null,
    };
    const [, ran] = await Promise.all([
      tx.query(sql`
        update schedules set next_at = ${nextOccurrence(row, now)}
        where organization_id = ${organizationId} and schedule_id = ${scheduleId}`),
      tx.execute(sql`
        select 1 from schedule_runs
        where organization_id = ${organizationId} and schedule_id = ${scheduleId} and scheduled_at = ${due.last}`),
    ]);
    // An occurrence can be due twice if a caller changed the schedule on a node whose clock is behind.
    if (ran > 0) return undefined;
    const outcome = await open(ctx, tx, row);
    await Promise.all([
      ...(isPermanentFailure(outcome) ? [pause(tx, organizationId, row, now)] : []),
      ...recordRun(ctx, tx, row, due.last, outcome, now),
      ...recordMissed(ctx, tx, row, due, now),
    ]);
    return { scheduledAt: due.last, outcome, missed: due.missed.length };
  });
}

const MINUTE_MS = 60_000;

/**
 * Runs it for a caller, now. Its times do not change. The caller is a requester of the session as well. Has the errors of opening
 * a session, and then there is no run.
 */
export async function runSchedule(ctx: Context, input: Input<'runSchedule'>): Promise<Result<'runSchedule'>> {
  const { organizationId } = ctx;
  return inTransaction(ctx, async (tx, ctx) => {
    const row = await lockSchedule(tx, ctx, uuidOf('sch', input.scheduleId));
    const now = ctx.clock.now();
    const requesters = [...new Set([...row.requesters, ...identitiesOf(ctx)])];
    const { session } = await openSession(ctx, sessionOf(row), { keyId: row.keyId, requesters });
    const scheduledAt = await freeInstant(tx, organizationId, row, now);
    const { sessionId, status, stopReason, error } = session;
    const run = viewRun({
      scheduledAt,
      isManual: true,
      status: 'opened',
      sessionId: uuidOf('ses', sessionId),
      session: ctx.scopes.has('sessions:read') ? { status, stopReason, error } : null,
      error: null,
      createdAt: now,
    });
    await Promise.all([
      tx.query(sql`
        insert into schedule_runs (organization_id, schedule_id, scheduled_at, is_manual, status, session_id, created_at)
        values (${organizationId}, ${row.scheduleId}, ${scheduledAt}, true, 'opened', ${uuidOf('ses', sessionId)}, ${now})`),
      tx.query(
        recordEvent(ctx, now, {
          type: 'schedule.opened',
          ...scheduleEvent(row),
          sessionId,
          changes: { scheduledAt: [null, scheduledAt.toISOString()], manual: [null, true] },
        }),
      ),
    ]);
    return { run };
  });
}

/**
 * A time for a manual run that no other run has or can have: a run is identified by it, and one at the time of an occurrence would take
 * its place. Occurrences are at whole minutes, or `at`.
 */
async function freeInstant(tx: Tx, organizationId: string, row: ScheduleRow, now: Date): Promise<Date> {
  const [last] = await tx.query<{ at: Date }>(sql`
    select r.scheduled_at as at from schedule_runs r
    where r.organization_id = ${organizationId} and r.schedule_id = ${row.scheduleId} and r.scheduled_at >= ${now}
    order by r.scheduled_at desc limit 1`);
  let at = Math.max(now.getTime(), last ? last.at.getTime() + 1 : 0);
  while (at % MINUTE_MS === 0 || at === row.at?.getTime()) at += 1;
  return new Date(at);
}

/** If the API refuses the session, this occurrence has failed. Any other failure is thrown, and the whole run is retried. */
async function open(ctx: Context, tx: Tx, row: ScheduleRow): Promise<RunOutcome> {
  try {
    const { session } = await tx.savepoint(() => openSession(ctx, sessionOf(row), row));
    return { status: 'opened', sessionId: session.sessionId };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { status: 'failed', error: { code: error.code, message: error.message } };
  }
}

/** What its sessions are opened with. */
function sessionOf(row: ScheduleRow): Input<'openSession'> {
  return {
    agentId: formatId('agt', row.agentId),
    environment: row.environment,
    ...(row.input !== null && { input: row.input }),
    metadata: row.metadata,
    endUser: row.endUser,
    budget: row.budget,
    closeOnIdle: row.closeOnIdle,
  };
}

/** Whether every later occurrence would fail in the same way: an archived agent stays archived. */
function isPermanentFailure(outcome: RunOutcome): boolean {
  return outcome.status === 'failed' && outcome.error.code === 'agent_archived';
}

function pause(tx: Tx, organizationId: string, { scheduleId }: ScheduleRow, now: Date): Promise<unknown> {
  return tx.query(sql`
    update schedules set status = 'paused', next_at = null, updated_at = ${now}
    where organization_id = ${organizationId} and schedule_id = ${scheduleId}`);
}

function recordRun(
  ctx: Context,
  tx: Tx,
  row: ScheduleRow,
  at: Date,
  outcome: RunOutcome,
  now: Date,
): Promise<unknown>[] {
  const { organizationId } = ctx;
  const sessionId = outcome.status === 'opened' ? outcome.sessionId : null;
  const error = outcome.status === 'failed' ? outcome.error : null;
  return [
    tx.query(sql`
      insert into schedule_runs (organization_id, schedule_id, scheduled_at, status, session_id, error, created_at)
      values (${organizationId}, ${row.scheduleId}, ${at}, ${outcome.status}, ${sessionId && uuidOf('ses', sessionId)},
        ${error && JSON.stringify(error)}, ${now})`),
    tx.query(sql`
      delete from schedule_runs where organization_id = ${organizationId} and schedule_id = ${row.scheduleId}
        and scheduled_at in (
          select r.scheduled_at from schedule_runs r
          where r.organization_id = ${organizationId} and r.schedule_id = ${row.scheduleId}
            and r.scheduled_at < ${new Date(now.getTime() - RETENTION_MS)}
          order by r.scheduled_at limit ${MAX_DROPPED})`),
    tx.query(
      recordEvent(ctx, now, {
        type: `schedule.${outcome.status}`,
        outcome: error ? 'failure' : 'success',
        ...scheduleEvent(row),
        sessionId,
        changes: {
          scheduledAt: [null, at.toISOString()],
          ...(error && { error: [null, error] }),
          ...(isPermanentFailure(outcome) && { status: ['enabled', 'paused'] }),
        },
      }),
    ),
  ];
}

/** Inserts a row for each missed occurrence, and one event for all of them. */
function recordMissed(
  ctx: Context,
  tx: Tx,
  row: ScheduleRow,
  { missed, more }: DueOccurrences,
  now: Date,
): Promise<unknown>[] {
  const [last] = missed;
  if (!last) return [];
  const { organizationId } = ctx;
  return [
    tx.query(sql`
      insert into schedule_runs (organization_id, schedule_id, scheduled_at, status, created_at)
      select s.organization_id, s.schedule_id, m.scheduled_at, 'missed', ${now}::timestamptz
      from schedules s cross join unnest(${missed}::timestamptz[]) as m(scheduled_at)
      where s.organization_id = ${organizationId} and s.schedule_id = ${row.scheduleId}
      on conflict do nothing`),
    tx.query(
      recordEvent(ctx, now, {
        type: 'schedule.missed',
        outcome: 'failure',
        ...scheduleEvent(row),
        changes: {
          missed: [null, { count: missed.length, more, first: row.nextAt!.toISOString(), last: last.toISOString() }],
        },
      }),
    ),
  ];
}
