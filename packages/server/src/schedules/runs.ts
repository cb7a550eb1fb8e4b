// The runs of schedules, as the API shows them: each with how the session that it opened is now. That is read with the run, from the
// session's row. Nothing is copied when a session ends, because most sessions are of no schedule, and one can be retried or deleted.
import { type Input, maxFailedRuns, type Result, type ScheduleRun } from '@signalbox/contract';
import sql, { empty, type Sql } from 'sql-template-tag';
import { notFound } from '../lib/api-error.ts';
import type { Context } from '../lib/context.ts';
import { formatId, uuidOf } from '../lib/ids.ts';
import { instantKey, pageOf, pageRequest } from '../lib/page.ts';

interface RunRow {
  scheduledAt: Date;
  isManual: boolean;
  status: ScheduleRun['status'];
  sessionId: string | null;
  /** Null if the session was deleted, or the caller can't read it. */
  session: ScheduleRun['session'];
  error: ScheduleRun['error'];
  createdAt: Date;
}

/**
 * Who reads runs, and therefore whose sessions they show: a schedule may have had another agent or environment when it opened one. The
 * service itself reads all.
 */
export type Reader = Pick<Context, 'organizationId'> & Partial<Pick<Context, 'scopes' | 'agents' | 'environments'>>;

// The runs that are checked for a page with a filter that only the sessions can answer. It takes some milliseconds.
const CHECKED = 1_000;

/** Newest first. */
export async function listScheduleRuns(
  ctx: Context,
  input: Input<'listScheduleRuns'>,
): Promise<Result<'listScheduleRuns'>> {
  const { organizationId } = ctx;
  const request = pageRequest(`schedule_runs:${organizationId}:${input.scheduleId}`, input, { isKey: instantKey });
  const scheduleId = uuidOf('sch', input.scheduleId);
  const [schedule] = await ctx.db.query(sql`
    select 1 as one from schedules s where s.organization_id = ${organizationId} and s.schedule_id = ${scheduleId}`);
  if (!schedule) throw notFound('schedule');
  const page = (count: number) => sql`
    select * from schedule_runs p where p.organization_id = ${organizationId} and p.schedule_id = ${scheduleId}
      ${request.after === undefined ? empty : sql`and p.scheduled_at < ${new Date(request.after)}`}
      ${input.status === undefined ? empty : sql`and p.status = ${input.status}`}
    order by p.scheduled_at desc limit ${count}`;
  const more = request.limit + 1;
  const keyOf = ({ scheduledAt }: Pick<RunRow, 'scheduledAt'>) => scheduledAt.toISOString();
  const rows = await ctx.db.query<RunRow>(sql`
    select ${runColumns} from (${page(input.hasError ? CHECKED : more)}) r ${withSession(ctx)}
    ${input.hasError ? sql`where ${hasFailed}` : empty}
    order by r.scheduled_at desc limit ${more}`);
  if (!input.hasError || rows.length === more) return pageOf(request, rows, keyOf, viewRun);
  const [last] = await ctx.db.query<Pick<RunRow, 'scheduledAt'>>(sql`
    select r.scheduled_at as "scheduledAt" from (${page(CHECKED)}) r order by r.scheduled_at desc offset ${CHECKED - 1} limit 1`);
  return pageOf(request, rows, keyOf, viewRun, last && keyOf(last), last !== undefined);
}

/** The columns of a RunRow, from a run `r` and its session `x`. */
const runColumns: Sql = sql`
  r.scheduled_at as "scheduledAt", r.is_manual as "isManual", r.status, r.session_id as "sessionId", r.error, r.created_at as "createdAt",
  case when x.status is not null
    then json_build_object('status', x.status, 'stopReason', x.stop_reason, 'error', x.error) end as session`;

/** Joins the session of a run `r` as `x`. `limit 1` makes it a look-up by the key, however many sessions there are. */
function withSession({ organizationId, scopes, environments, ...reader }: Reader): Sql {
  const agents = scopes?.has('sessions:read') === false ? [] : reader.agents;
  return sql`
    left join lateral (
      select s.status, s.stop_reason, s.error from sessions s
      where s.organization_id = ${organizationId} and s.session_id = r.session_id
        ${agents === undefined ? empty : sql`and s.agent_id = any(${[...agents]}::uuid[])`}
        ${environments === undefined ? empty : sql`and s.environment = any(${[...environments]}::text[])`}
      limit 1) x on true`;
}

/** Whether a run `r` with its session `x` has failed; null if that is not known, or neither. */
const hasFailed: Sql = sql`
  case when r.status = 'failed' or x.status = 'failed' or x.error is not null then true
    when x.status in ('idle', 'completed') then false end`;

/** The newest runs of the schedule `s`, as `r` with the session as `x`. */
function newestRuns(reader: Reader): Sql {
  return sql`
    (select * from schedule_runs p
    where p.organization_id = ${reader.organizationId} and p.schedule_id = s.schedule_id
    order by p.scheduled_at desc limit ${maxFailedRuns}) r ${withSession(reader)}`;
}

/** For a schedule `s`: `l."lastRun"`, a RunRow as JSON, and `l."failedRuns"`. Reads the newest few runs alone. */
export function withRuns(reader: Reader): Sql {
  return sql`
    cross join lateral (
      select count(*) filter (where n.failed and n."scheduledAt" > coalesce(n.succeeded_at, '-infinity'))::int as "failedRuns",
        (array_agg(to_json(n) order by n."scheduledAt" desc))[1] as "lastRun"
      from (
        select ${runColumns}, ${hasFailed} as failed, max(r.scheduled_at) filter (where not ${hasFailed}) over () as succeeded_at
        from ${newestRuns(reader)}) n) l`;
}

// Limits the work of a request: a look-up of a run and of its session takes some microseconds.
const MAX_COUNTED = 1_000;

/** Counts those of the newest schedules that will run again, and of which the last run whose outcome is known has failed. */
export function countFailing(organizationId: string, environment: string | undefined): Sql {
  return sql`
    select count(*)::int as count
    from (
      select * from schedules c where c.organization_id = ${organizationId}
        ${environment === undefined ? empty : sql`and c.environment = ${environment}`}
      order by c.schedule_id desc limit ${MAX_COUNTED}) s
    cross join lateral (
      select ${hasFailed} as failed from ${newestRuns({ organizationId })}
      where ${hasFailed} is not null order by r.scheduled_at desc limit 1) l
    where s.next_at is not null and l.failed`;
}

export function viewRun(row: RunRow): ScheduleRun {
  return { ...viewLastRun(row), createdAt: row.createdAt.toISOString() };
}

/** `row` may come from JSON, which has times as text. */
export function viewLastRun(row: Omit<RunRow, 'createdAt' | 'scheduledAt'> & { scheduledAt: Date | string }) {
  return {
    scheduledAt: new Date(row.scheduledAt).toISOString(),
    manual: row.isManual,
    status: row.status,
    sessionId: row.sessionId && formatId('ses', row.sessionId),
    session: row.session,
    error: row.error,
  };
}
