// One schedule whose time has come. In one transaction, under the row's lock and only while next_at is what was read: the
// Session is opened, the occurrence recorded, and next_at moved on. So it happens once, whichever nodes try, whenever one of
// them dies, and also where the answer to the commit was lost.
//
// Of several occurrences that are due, because the service was down or late, the last one runs now; those before it are
// recorded as missed.
import type { SessionError } from '@signalbox/contract';
import sql from 'sql-template-tag';
import type { Tx } from '../db/db.ts';
import { recordEvent } from '../events/record.ts';
import { ApiError } from '../lib/api-error.ts';
import type { Context } from '../lib/context.ts';
import { formatId, uuidOf } from '../lib/ids.ts';
import type { Platform } from '../platform.ts';
import { openSession } from '../sessions/sessions.ts';
import { type DueOccurrences, dueOccurrences, nextOccurrence } from './occurrences.ts';
import { type ScheduleRow, scheduleColumns, scheduleEvent } from './schedules.ts';

/** A schedule that was seen to be due. */
export interface DueSchedule {
  organizationId: string;
  scheduleId: string;
  nextAt: Date;
}

/** What was done, for the log. */
export interface RunResult {
  scheduledAt: Date;
  outcome: RunOutcome;
  missed: number;
}

type RunOutcome = { status: 'opened'; sessionId: string } | { status: 'failed'; error: SessionError };

// A year of a schedule that runs once a day is some hundred rows, of one that runs every minute half a million.
const RETENTION_MS = 90 * 24 * 3_600_000;
// Of one schedule with each run, so that those of a long pause are no burden on one.
const MAX_DROPPED = 100;

/** Undefined where there is nothing to do any more: another node did it or does, or somebody changed the schedule. */
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
      permission: 'write',
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
    // It comes a second time where somebody changed the schedule on a node whose clock is behind.
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

/** A refusal is this occurrence's end; any other failure is thrown, and all of it tried again. */
async function open(ctx: Context, tx: Tx, row: ScheduleRow): Promise<RunOutcome> {
  try {
    const { session } = await tx.savepoint(() =>
      openSession(ctx, {
        agentId: formatId('agt', row.agentId),
        environment: row.environment,
        ...(row.input !== null && { input: row.input }),
        metadata: row.metadata,
        budget: row.budget,
        closeOnIdle: row.closeOnIdle,
      }),
    );
    return { status: 'opened', sessionId: session.sessionId };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { status: 'failed', error: { code: error.code, message: error.message } };
  }
}

/** Whether every later occurrence would end like this one: an archived Agent stays so. */
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

/** A row for each, and one record for all of them. */
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
