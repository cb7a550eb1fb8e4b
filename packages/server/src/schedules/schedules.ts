// The API of schedules. run.ts opens the sessions, and runs.ts has the runs.
import type { Content, Input, Result, Schedule } from '@signalbox/contract';
import sql, { empty, type Sql } from 'sql-template-tag';
import { currentVersion } from '../agents/agents.ts';
import type { Queryable, Tx } from '../db/db.ts';
import { lockEnvironment } from '../environments/environments.ts';
import { changesBetween, recordEvent, withoutValues } from '../events/record.ts';
import { messageParts } from '../files/message-files.ts';
import { forgetHolders } from '../files/retention.ts';
import { invalidField, notFound } from '../lib/api-error.ts';
import { type Context, inTransaction } from '../lib/context.ts';
import { identitiesOf } from '../lib/identities.ts';
import { formatId, newUuid, uuidOf } from '../lib/ids.ts';
import { instantOf } from '../lib/instant.ts';
import { firstBytes, pageOf, pageRequest } from '../lib/page.ts';
import { requirePrice } from '../sessions/budget.ts';
import { requireNotErasing } from '../sessions/end-users.ts';
import { requireSupportedFiles } from '../sessions/taken-files.ts';
import { checkTiming, nextOccurrence, type Timing } from './occurrences.ts';
import { type Reader, viewLastRun, withRuns } from './runs.ts';

/** A schedule as stored. */
export interface ScheduleRow extends Timing {
  scheduleId: string;
  name: string | null;
  agentId: string;
  environment: string;
  input: Content | null;
  metadata: Schedule['metadata'];
  /** The key that created it, which its sessions count for. */
  keyId: string | null;
  endUser: Schedule['endUser'];
  budget: Schedule['budget'];
  status: Schedule['status'];
  closeOnIdle: boolean;
  nextAt: Date | null;
  /** Who created and changed it (lib/identities.ts). */
  requesters: string[];
  createdAt: Date;
  updatedAt: Date;
}

/** A schedule with what its newest runs say (runs.ts). */
interface ShownRow extends ScheduleRow {
  lastRun: Parameters<typeof viewLastRun>[0] | null;
  failedRuns: number;
}

/** The columns of a ScheduleRow; the alias of the table must be s. */
export const scheduleColumns: Sql = sql`
  s.schedule_id as "scheduleId", s.name, s.agent_id as "agentId", s.environment, s.input, s.metadata, s.end_user as "endUser", s.key_id as "keyId", s.budget, s.cron,
  s.timezone, s.at, s.status, s.close_on_idle as "closeOnIdle", s.next_at as "nextAt", s.requesters, s.created_at as "createdAt",
  s.updated_at as "updatedAt"`;

/**
 * 400 if `cron`, `timezone` or `at` is invalid, 404 for an unknown agent or environment, 409 `agent_archived`, 422
 * `budget_invalid` or `file_invalid`.
 */
export async function createSchedule(ctx: Context, input: Input<'createSchedule'>): Promise<Result<'createSchedule'>> {
  const now = ctx.clock.now();
  const timing = changedTiming({ cron: null, timezone: null, at: null }, input, now);
  const status = input.status ?? 'enabled';
  const row: ScheduleRow = {
    ...timing,
    scheduleId: newUuid(),
    name: input.name ?? null,
    agentId: uuidOf('agt', input.agentId),
    environment: input.environment,
    input: input.input ?? null,
    metadata: input.metadata ?? {},
    endUser: input.endUser ?? null,
    keyId: ctx.keyId,
    budget: input.budget ?? null,
    status,
    closeOnIdle: input.closeOnIdle ?? true,
    nextAt: status === 'enabled' ? nextOccurrence(timing, now) : null,
    requesters: identitiesOf(ctx),
    createdAt: now,
    updatedAt: now,
  };
  const schedule = viewSchedule({ ...row, lastRun: null, failedRuns: 0 });
  return inTransaction(ctx, async (tx, ctx) => {
    await Promise.all([
      checkAgent(ctx, tx, row),
      lockEnvironment(tx, ctx.organizationId, row.environment),
      row.endUser && requireNotErasing(tx, ctx.organizationId, row.endUser.id),
      useFiles(tx, ctx, row, now),
    ]);
    await Promise.all([
      tx.query(sql`
        insert into schedules (organization_id, schedule_id, name, agent_id, environment, input, metadata, end_user, key_id, budget, cron,
          timezone, at, status, close_on_idle, next_at, requesters, created_at, updated_at)
        values (${ctx.organizationId}, ${row.scheduleId}, ${row.name}, ${row.agentId}, ${row.environment}, ${jsonOf(row.input)},
          ${jsonOf(row.metadata)}, ${jsonOf(row.endUser)}, ${row.keyId}, ${jsonOf(row.budget)}, ${row.cron}, ${row.timezone}, ${row.at},
          ${row.status}, ${row.closeOnIdle}, ${row.nextAt}, ${row.requesters}, ${now}, ${now})`),
      tx.query(
        recordEvent(ctx, now, {
          type: 'schedule.created',
          ...scheduleEvent(row),
          changes: changesBetween<Partial<Schedule>>({}, schedule, ['name', 'agentId', ...timingFields, 'status']),
        }),
      ),
    ]);
    return { schedule };
  });
}

/** Newest first. */
export async function listSchedules(ctx: Context, input: Input<'listSchedules'>): Promise<Result<'listSchedules'>> {
  const request = pageRequest(`schedules:${ctx.organizationId}`, input);
  const page = sql`
    ${selectSchedules(ctx)} where s.organization_id = ${ctx.organizationId}
      ${request.after === undefined ? empty : sql`and s.schedule_id < ${request.after}`}
      ${input.agentId === undefined ? empty : sql`and s.agent_id = ${uuidOf('agt', input.agentId)}`}
      ${input.environment === undefined ? empty : sql`and s.environment = ${input.environment}`}
      ${input.status === undefined ? empty : sql`and s.status = ${input.status}`}
    order by s.schedule_id desc limit ${request.limit + 1}`;
  const rows = await ctx.db.query<ShownRow>(
    firstBytes(page, { order: sql`"scheduleId" desc`, bytes: sql`octet_length(concat(input, metadata))` }),
  );
  return pageOf(request, rows, (row) => row.scheduleId, viewSchedule);
}

export async function getSchedule(ctx: Context, input: Input<'getSchedule'>): Promise<Result<'getSchedule'>> {
  return { schedule: viewSchedule(await readSchedule(ctx.db, ctx, uuidOf('sch', input.scheduleId))) };
}

/**
 * If `cron`, `timezone`, `at` or `status` changes, the next occurrence is the first one after now; one that is due already does not
 * run. Has the errors of `createSchedule`, but only for fields that change: a schedule whose agent was archived can still be paused.
 */
export async function updateSchedule(ctx: Context, input: Input<'updateSchedule'>): Promise<Result<'updateSchedule'>> {
  const { organizationId } = ctx;
  return inTransaction(ctx, async (tx, ctx) => {
    const before = await lockSchedule(tx, ctx, uuidOf('sch', input.scheduleId));
    const now = ctx.clock.now();
    const timing = changedTiming(before, input, now);
    const status = input.status ?? before.status;
    const isNew = !sameTiming(before, timing) || status !== before.status;
    const after: ShownRow = {
      ...before,
      ...timing,
      name: input.name === undefined ? before.name : input.name,
      agentId: input.agentId === undefined ? before.agentId : uuidOf('agt', input.agentId),
      environment: input.environment ?? before.environment,
      input: input.input === undefined ? before.input : input.input,
      metadata: input.metadata ?? before.metadata,
      endUser: input.endUser === undefined ? before.endUser : input.endUser,
      budget: input.budget === undefined ? before.budget : input.budget,
      status,
      closeOnIdle: input.closeOnIdle ?? before.closeOnIdle,
      nextAt: isNew ? (status === 'enabled' ? nextOccurrence(timing, now) : null) : before.nextAt,
      requesters: [...new Set([...before.requesters, ...identitiesOf(ctx)])],
      updatedAt: now,
    };
    const changes = changesBetween(viewSchedule(before), viewSchedule(after), changingFields);
    if (!changes) return { schedule: viewSchedule(before) };
    await Promise.all([
      (changes.agentId || changes.budget || (changes.status && status === 'enabled')) && checkAgent(ctx, tx, after),
      (changes.environment || changes.endUser) && lockEnvironment(tx, organizationId, after.environment),
      changes.endUser && after.endUser && requireNotErasing(tx, organizationId, after.endUser.id),
    ]);
    if (changes.input || changes.environment) {
      await forgetHolders(tx, organizationId, [after.scheduleId], now);
      await useFiles(tx, ctx, after, now);
    }
    await Promise.all([
      tx.query(sql`
        update schedules set name = ${after.name}, agent_id = ${after.agentId}, environment = ${after.environment},
          input = ${jsonOf(after.input)}, metadata = ${jsonOf(after.metadata)},
          end_user = ${jsonOf(after.endUser)}, budget = ${jsonOf(after.budget)},
          cron = ${after.cron}, timezone = ${after.timezone}, at = ${after.at}, status = ${after.status},
          close_on_idle = ${after.closeOnIdle}, next_at = ${after.nextAt}, requesters = ${after.requesters}, updated_at = ${now}
        where organization_id = ${organizationId} and schedule_id = ${after.scheduleId}`),
      tx.query(
        recordEvent(ctx, now, {
          type: 'schedule.updated',
          ...scheduleEvent(after),
          changes: withoutValues(changes, before.endUser || after.endUser ? ['endUser', 'input', 'metadata'] : []),
        }),
      ),
    ]);
    return { schedule: viewSchedule(after) };
  });
}

/** Deletes its runs too; the sessions that it opened stay. */
export async function deleteSchedule(ctx: Context, input: Input<'deleteSchedule'>): Promise<Result<'deleteSchedule'>> {
  const { organizationId } = ctx;
  return inTransaction(ctx, async (tx, ctx) => {
    const row = await lockSchedule(tx, ctx, uuidOf('sch', input.scheduleId));
    await forgetHolders(tx, organizationId, [row.scheduleId], ctx.clock.now());
    await Promise.all([
      tx.query(sql`
        delete from schedules where organization_id = ${organizationId} and schedule_id = ${row.scheduleId}`),
      tx.query(recordEvent(ctx, ctx.clock.now(), { type: 'schedule.deleted', ...scheduleEvent(row) })),
    ]);
    return { scheduleId: input.scheduleId, deleted: true };
  });
}

/**
 * Keeps the files that its input names from being deleted as unused. 422 `file_invalid` if there is none, `file_not_taken` if the agent's
 * model does not take one.
 */
async function useFiles(tx: Tx, ctx: Context, row: ScheduleRow, now: Date): Promise<void> {
  const { organizationId } = ctx;
  const { environment, scheduleId, agentId, input } = row;
  if (input === null || typeof input === 'string') return;
  const holder = { organizationId, environment, holderId: scheduleId, field: 'input', caller: ctx };
  const content = await messageParts(tx, holder, input, now);
  const version = await currentVersion(tx, organizationId, agentId);
  await requireSupportedFiles(tx, { organizationId, agentId, version }, holder.field, content);
}

/** How events refer to a schedule. */
export function scheduleEvent(row: { scheduleId: string; environment: string; agentId: string }) {
  return {
    resource: { type: 'schedule', id: formatId('sch', row.scheduleId) },
    environment: row.environment,
    agentId: formatId('agt', row.agentId),
  };
}

const timingFields = ['cron', 'timezone', 'at'] as const;
const changingFields = [
  'name',
  'agentId',
  'environment',
  'input',
  'metadata',
  'endUser',
  'budget',
  ...timingFields,
  'status',
  'closeOnIdle',
] as const;

/** The timing after a request. Checked only if it differs, because an unchanged `at` may be in the past. */
function changedTiming(
  before: Timing,
  input: { cron?: string | null; timezone?: string | null; at?: string | null },
  now: Date,
): Timing {
  const cron = input.cron === undefined ? before.cron : tidied(input.cron);
  const at = input.at === undefined ? before.at : input.at === null ? null : instantOf(input.at, 'at');
  // Without cron there is no time zone, unless the request has one, which is refused.
  const timezone = input.timezone === undefined ? cron && before.timezone : tidied(input.timezone);
  const timing: Timing = { cron, at, timezone: cron === null ? timezone : (timezone ?? 'UTC') };
  if (sameTiming(before, timing) && (cron !== null || at !== null)) return timing;
  checkTiming(timing, now);
  if (at && at <= now) throw invalidField('at', 'must be in the future');
  return timing;
}

/** Without the white space that comes with a copied expression or name. */
function tidied<T extends string | null>(text: T): T {
  return (text === null ? text : text.trim().replace(/\s+/g, ' ')) as T;
}

function sameTiming(a: Timing, b: Timing): boolean {
  return a.cron === b.cron && a.timezone === b.timezone && a.at?.getTime() === b.at?.getTime();
}

/** Checks whether the agent accepts sessions with this budget now; checked again when the schedule runs. */
async function checkAgent(ctx: Context, tx: Tx, { agentId, budget }: ScheduleRow): Promise<void> {
  const { organizationId } = ctx;
  const version = await currentVersion(tx, organizationId, agentId);
  await requirePrice(ctx, tx, { organizationId, agentId, version }, budget);
}

/** The next times of a cron expression. 400 if it is invalid. */
export async function previewSchedule(
  ctx: Context,
  { cron, timezone = 'UTC', count = 5 }: Input<'previewSchedule'>,
): Promise<Result<'previewSchedule'>> {
  const timing: Timing = { cron: tidied(cron), timezone: tidied(timezone), at: null };
  const now = ctx.clock.now();
  checkTiming(timing, now);
  const times: string[] = [];
  for (let at = nextOccurrence(timing, now); at && times.length < count; at = nextOccurrence(timing, at)) {
    times.push(at.toISOString());
  }
  return { preview: { times } };
}

export async function lockSchedule(tx: Tx, reader: Reader, scheduleId: string): Promise<ShownRow> {
  // Locked first and read afterwards: a single statement that waits for the lock would still see the previous run.
  await tx.query(sql`
    select 1 from schedules where organization_id = ${reader.organizationId} and schedule_id = ${scheduleId}
    for no key update`);
  return readSchedule(tx, reader, scheduleId);
}

async function readSchedule(db: Queryable, reader: Reader, scheduleId: string): Promise<ShownRow> {
  const [row] = await db.query<ShownRow>(sql`
    ${selectSchedules(reader)} where s.organization_id = ${reader.organizationId} and s.schedule_id = ${scheduleId}`);
  if (!row) throw notFound('schedule');
  return row;
}

function selectSchedules(reader: Reader): Sql {
  return sql`select ${scheduleColumns}, l."lastRun", l."failedRuns" from schedules s ${withRuns(reader)}`;
}

/** A value for a json column, in which SQL's null means no value. */
function jsonOf(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value);
}

function viewSchedule(row: ShownRow): Schedule {
  return {
    scheduleId: formatId('sch', row.scheduleId),
    name: row.name,
    agentId: formatId('agt', row.agentId),
    environment: row.environment,
    input: row.input,
    metadata: row.metadata,
    // In this order, whatever that of the request was: idempotency/erase-responses.ts looks for the id.
    endUser: row.endUser && { id: row.endUser.id, ...(row.endUser.name !== undefined && { name: row.endUser.name }) },
    budget: row.budget,
    cron: row.cron,
    timezone: row.timezone,
    at: row.at?.toISOString() ?? null,
    status: row.status,
    closeOnIdle: row.closeOnIdle,
    nextAt: row.nextAt?.toISOString() ?? null,
    lastRun: row.lastRun && viewLastRun(row.lastRun),
    failedRuns: row.failedRuns,
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
  };
}
