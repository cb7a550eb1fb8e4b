// Environments: named scopes for sessions, secrets and webhook subscriptions.
import type { Environment, Input, ModelLimit, Result } from '@signalbox/contract';
import sql, { empty, type Sql } from 'sql-template-tag';
import type { Tx } from '../db/db.ts';
import { changesBetween, recordEvent } from '../events/record.ts';
import { ApiError, notFound } from '../lib/api-error.ts';
import { type Context, inTransaction } from '../lib/context.ts';
import { formatId, newUuid } from '../lib/ids.ts';
import { pageOf, pageRequest } from '../lib/page.ts';
import {
  checkedLimits,
  limitFromRow,
  modelLimitsColumn,
  replaceLimits,
  requireKnownModels,
  type StoredLimit,
  storedLimit,
} from './model-limits.ts';

interface Row {
  environmentId: string;
  name: string;
  keepSessionsDays: number | null;
  modelLimits: ModelLimit[];
  /** Null: the caller may not know. */
  secretCount: number | null;
  createdAt: Date;
}

const columnsFor = ({ organizationId, scopes }: Context): Sql => sql`
  e.environment_id as "environmentId", e.name, e.keep_sessions_days as "keepSessionsDays", e.created_at as "createdAt",
  ${modelLimitsColumn(organizationId)} as "modelLimits",
  ${
    scopes.has('secrets:manage')
      ? sql`(select count(*)::int from environment_secrets as s
          where s.organization_id = ${organizationId} and s.environment = e.name)`
      : sql`null`
  } as "secretCount"`;

/** Newest first. */
export async function listEnvironments(
  ctx: Context,
  input: Input<'listEnvironments'>,
): Promise<Result<'listEnvironments'>> {
  const request = pageRequest(`environments:${ctx.organizationId}`, input);
  const rows = await ctx.db.query<Row>(sql`
    select ${columnsFor(ctx)} from environments as e
    where e.organization_id = ${ctx.organizationId}
      ${request.after === undefined ? empty : sql`and e.environment_id < ${request.after}`}
    order by e.environment_id desc limit ${request.limit + 1}`);
  return pageOf(request, rows, (row) => row.environmentId, environmentFromRow);
}

/** 409 `environment_exists` if the name is taken. */
export async function createEnvironment(
  ctx: Context,
  input: Input<'createEnvironment'>,
): Promise<Result<'createEnvironment'>> {
  return inTransaction(ctx, async (tx, ctx) => {
    const limits = checkedLimits(input.modelLimits ?? []);
    const row: Row = {
      environmentId: newUuid(),
      name: input.name,
      keepSessionsDays: input.keepSessionsDays ?? null,
      modelLimits: limits.map((limit) => ({ ...limit, waiting: 0, waitingSince: null })),
      secretCount: ctx.scopes.has('secrets:manage') ? 0 : null,
      createdAt: ctx.clock.now(),
    };
    const inserted = await tx.execute(sql`
      insert into environments (organization_id, name, environment_id, keep_sessions_days, created_at)
      values (${ctx.organizationId}, ${row.name}, ${row.environmentId}, ${row.keepSessionsDays}, ${row.createdAt})
      on conflict do nothing`);
    if (inserted === 0)
      throw new ApiError('environment_exists', `name: the environment "${input.name}" already exists.`);
    if (limits.length > 0) await setLimits(ctx, tx, row.name, limits);
    const chosen = {
      ...(row.keepSessionsDays !== null && { keepSessionsDays: row.keepSessionsDays }),
      ...(limits.length > 0 && { modelLimits: limits }),
    };
    const changes = changesBetween({}, chosen, ['keepSessionsDays', 'modelLimits']);
    await tx.query(
      recordEvent(ctx, row.createdAt, {
        type: 'environment.created',
        resource: { type: 'environment', id: formatId('env', row.environmentId) },
        environment: row.name,
        ...(changes && { changes }),
      }),
    );
    return { environment: environmentFromRow(row) };
  });
}

export async function updateEnvironment(
  ctx: Context,
  input: Input<'updateEnvironment'>,
): Promise<Result<'updateEnvironment'>> {
  const { organizationId } = ctx;
  const limits = input.modelLimits && checkedLimits(input.modelLimits);
  // Before the transaction, because a provider may be asked for its models.
  if (limits) await requireKnownModels(ctx, input.env, input.modelLimits!);
  return inTransaction(ctx, async (tx, ctx) => {
    const [row] = await tx.query<Row>(sql`
      select ${columnsFor(ctx)} from environments as e
      where e.organization_id = ${organizationId} and e.name = ${input.env} for no key update`);
    if (!row) throw notFound('environment');
    const before = { keepSessionsDays: row.keepSessionsDays, modelLimits: row.modelLimits.map(storedLimit) };
    const { keepSessionsDays = row.keepSessionsDays } = input;
    const changed = { keepSessionsDays, modelLimits: limits ?? before.modelLimits };
    const changes = changesBetween(before, changed, ['keepSessionsDays', 'modelLimits']);
    if (!changes) return { environment: environmentFromRow(row) };
    if (changes.modelLimits) await setLimits(ctx, tx, row.name, changed.modelLimits);
    await Promise.all([
      tx.query(sql`
        update environments set keep_sessions_days = ${keepSessionsDays}
        where organization_id = ${organizationId} and name = ${row.name}`),
      tx.query(
        recordEvent(ctx, ctx.clock.now(), {
          type: 'environment.updated',
          resource: { type: 'environment', id: formatId('env', row.environmentId) },
          environment: row.name,
          changes,
        }),
      ),
    ]);
    const modelLimits = changed.modelLimits.map((limit) => ({
      ...(row.modelLimits.find(({ model }) => model === limit.model) ?? { waiting: 0, waitingSince: null }),
      ...limit,
    }));
    return { environment: environmentFromRow({ ...row, keepSessionsDays, modelLimits }) };
  });
}

/** The nodes apply them once the transaction is committed. */
async function setLimits(
  { organizationId, wake }: Context,
  tx: Tx,
  environment: string,
  limits: readonly StoredLimit[],
): Promise<void> {
  await replaceLimits(tx, { organizationId, environment }, limits);
  tx.afterCommit(() => wake.publish('limits', { organizationId }));
}

/** 409 `conflict` while it has open sessions, a subscription, destinations or schedules. Its secrets are deleted with it. */
export async function deleteEnvironment(
  ctx: Context,
  input: Input<'deleteEnvironment'>,
): Promise<Result<'deleteEnvironment'>> {
  const { organizationId } = ctx;
  return inTransaction(ctx, async (tx, ctx) => {
    // Opening a session, subscribing and creating a schedule or destination lock the row for share, so none can happen between the check and the
    // commit.
    const [row] = await tx.query<Row>(sql`
      select ${columnsFor(ctx)} from environments as e
      where e.organization_id = ${organizationId} and e.name = ${input.env} for update`);
    if (!row) throw notFound('environment');
    const [used] = await tx.query<{
      sessions: boolean;
      subscription: boolean;
      destinations: boolean;
      schedules: boolean;
    }>(sql`
      select
        exists (select 1 from sessions where organization_id = ${organizationId} and environment = ${row.name}
          and status in ('idle', 'running', 'waiting') and ended_at is null) as sessions,
        exists (select 1 from webhook_subscriptions where organization_id = ${organizationId}
          and environment = ${row.name}) as subscription,
        exists (select 1 from destinations where organization_id = ${organizationId}
          and environment = ${row.name}) as destinations,
        exists (select 1 from schedules where organization_id = ${organizationId} and environment = ${row.name})
          as schedules`);
    if (used!.sessions)
      throw new ApiError('conflict', 'The environment has open sessions. Close or cancel them first.');
    if (used!.subscription)
      throw new ApiError('conflict', 'The environment has a webhook subscription. Delete it first.');
    if (used!.destinations) throw new ApiError('conflict', 'Destinations name the environment. Delete them first.');
    if (used!.schedules) throw new ApiError('conflict', 'The environment has schedules. Delete or move them first.');
    await Promise.all([
      tx.query(sql`delete from environments where organization_id = ${organizationId} and name = ${row.name}`),
      tx.query(
        recordEvent(ctx, ctx.clock.now(), {
          type: 'environment.deleted',
          resource: { type: 'environment', id: formatId('env', row.environmentId) },
          environment: row.name,
        }),
      ),
    ]);
    return { environmentId: formatId('env', row.environmentId), deleted: true };
  });
}

/** Locks the environment, so that it exists until the transaction ends; 404 if it does not. `lock`: a stronger row lock. */
export async function lockEnvironment(
  tx: Tx,
  organizationId: string,
  name: string,
  lock: Sql = sql`for key share`,
): Promise<void> {
  const found = await tx.execute(sql`
    select 1 from environments where organization_id = ${organizationId} and name = ${name} ${lock}`);
  if (found === 0) throw new ApiError('not_found', `There is no environment "${name}".`);
}

function environmentFromRow(row: Row): Environment {
  return {
    environmentId: formatId('env', row.environmentId),
    name: row.name,
    keepSessionsDays: row.keepSessionsDays,
    modelLimits: row.modelLimits.map(limitFromRow),
    secretCount: row.secretCount,
    createdAt: row.createdAt.toISOString(),
  };
}
