// Budgets of an organization: what sessions should cost in a day or a month of UTC.
//
// Nothing is counted for them: what was spent is the sum of the usage of the period, exactly, on all nodes (usage/usage.ts). alerts.ts
// looks for thresholds that were reached, and stops.ts refuses turns of budgets that say so.
import { defaultThresholds, type Input, type OrganizationBudget, type Result } from '@signalbox/contract';
import sql, { empty, type Sql } from 'sql-template-tag';
import type { Queryable, Tx } from '../db/db.ts';
import { changesBetween, recordEvent } from '../events/record.ts';
import { ApiError, notFound, type OnlyCreate, requireNewName } from '../lib/api-error.ts';
import { type Context, inTransaction } from '../lib/context.ts';
import { draftsOfColumn } from '../lib/draft-version.ts';
import { formatId, uuidOf } from '../lib/ids.ts';

const MAX_BUDGETS = 100;

/** What a budget is for; null: all. */
export interface Reach {
  environment: string | null;
  agentId: string | null;
  keyId: string | null;
}

export interface BudgetRow extends Reach {
  name: string;
  period: OrganizationBudget['period'];
  limitUsd: number;
  thresholds: number[];
  stop: boolean;
  createdAt: Date;
  updatedAt: Date;
  spentUsd: number;
  /** The alerts of the period, which is the current one unless another was read. */
  alerts: { threshold: number; alertedAt: string }[];
}

/** By name. */
export async function listBudgets(ctx: Context, input: Input<'listBudgets'>): Promise<Result<'listBudgets'>> {
  const agentId = input.agentId === undefined ? undefined : uuidOf('agt', input.agentId);
  const now = ctx.clock.now();
  const rows = await readBudgets(
    ctx.db,
    ctx.organizationId,
    now,
    sql`
      ${input.environment === undefined ? empty : sql`and b.environment = ${input.environment}`}
      ${agentId === undefined ? empty : sql`and b.agent_id = ${agentId}`}`,
  );
  return { data: rows.map((row) => viewBudget(ctx, row, now)) };
}

/**
 * Creates or replaces it. 404 for an unknown environment, agent or key; 409 if the name is taken by a budget of something else; 412 if it
 * should only create.
 */
export async function setBudget(ctx: Context, input: Input<'setBudget'> & OnlyCreate): Promise<Result<'setBudget'>> {
  const { organizationId } = ctx;
  const { budgetName: name, period, limitUsd, stop = false } = input;
  const thresholds = [...(input.thresholds ?? defaultThresholds)].sort((a, b) => a - b);
  const reach: Reach = {
    environment: input.environment ?? null,
    agentId: input.agentId === undefined ? null : uuidOf('agt', input.agentId),
    keyId: input.keyId === undefined ? null : uuidOf('key', input.keyId),
  };
  return inTransaction(ctx, async (tx, ctx) => {
    // Serialized, so that there are never more than the maximum, and the log has the previous state of each change.
    await tx.query(sql`
      select 1 as one from organizations where organization_id = ${organizationId} for no key update`);
    const now = ctx.clock.now();
    const [before] = await readBudgets(tx, organizationId, now, sql`and b.name = ${name}`);
    requireNewName(input, before !== undefined, 'budgetName', 'budget');
    if (!before) await requireNew(tx, organizationId, reach);
    const isSame = (['period', 'environment', 'agentId', 'keyId'] as const).every(
      (field) => !before || before[field] === { period, ...reach }[field],
    );
    if (!isSame) throw new ApiError('conflict', `The budget "${name}" is for something else. Choose another name.`);
    await tx.query(sql`
      insert into budgets (organization_id, name, period, limit_usd, environment, agent_id, key_id, thresholds, stop, created_at,
        updated_at)
      values (${organizationId}, ${name}, ${period}, ${limitUsd}, ${reach.environment}, ${reach.agentId}, ${reach.keyId},
        ${thresholds}, ${stop}, ${now}, ${now})
      on conflict (organization_id, name) do update set limit_usd = excluded.limit_usd, thresholds = excluded.thresholds,
        stop = excluded.stop, updated_at = excluded.updated_at`);
    // A threshold that is no longer reached alerts again.
    const reached = thresholds.filter((threshold) => isReached(before?.spentUsd ?? 0, limitUsd, threshold));
    await tx.query(sql`
      delete from budget_alerts a
      where a.organization_id = ${organizationId} and a.name = ${name} and not (a.threshold = any(${reached}::int[]))`);
    const [after] = await readBudgets(tx, organizationId, now, sql`and b.name = ${name}`);
    const budget = viewBudget(ctx, after!, now);
    const fields = before
      ? (['limitUsd', 'thresholds', 'stop'] as const)
      : (['limitUsd', 'period', 'environment', 'agentId', 'keyId', 'thresholds', 'stop'] as const);
    const changes = changesBetween<Partial<OrganizationBudget>>(
      before ? viewBudget(ctx, before, now) : {},
      budget,
      fields,
    );
    if (changes) {
      await tx.query(
        recordEvent(ctx, now, { type: before ? 'budget.updated' : 'budget.created', ...budgetEvent(after!), changes }),
      );
    }
    tx.afterCommit(() => ctx.budgetStops.forget(organizationId));
    return { budget };
  });
}

export async function deleteBudget(
  ctx: Context,
  { budgetName: name }: Input<'deleteBudget'>,
): Promise<Result<'deleteBudget'>> {
  const { organizationId } = ctx;
  return inTransaction(ctx, async (tx, ctx) => {
    const [deleted] = await tx.query<{ environment: string | null; agentId: string | null }>(sql`
      delete from budgets b where b.organization_id = ${organizationId} and b.name = ${name}
      returning b.environment, b.agent_id as "agentId"`);
    if (!deleted) throw notFound('budget');
    await tx.query(recordEvent(ctx, ctx.clock.now(), { type: 'budget.deleted', ...budgetEvent({ name, ...deleted }) }));
    tx.afterCommit(() => ctx.budgetStops.forget(organizationId));
    return { name, deleted: true };
  });
}

async function requireNew(tx: Tx, organizationId: string, { environment, agentId, keyId }: Reach): Promise<void> {
  const [found] = await tx.query<{ count: number; environment: boolean; agent: boolean; key: boolean }>(sql`
    select (select count(*)::int from budgets b where b.organization_id = ${organizationId}) as count,
      exists (select 1 from environments e where e.organization_id = ${organizationId} and e.name = ${environment}) as environment,
      exists (select 1 from agents a where a.organization_id = ${organizationId} and a.agent_id = ${agentId}) as agent,
      exists (select 1 from api_keys k where k.organization_id = ${organizationId} and k.key_id = ${keyId}) as key`);
  if (environment !== null && !found!.environment) throw notFound('environment');
  if (agentId !== null && !found!.agent) throw notFound('agent');
  if (keyId !== null && !found!.key) throw notFound('API key');
  if (found!.count >= MAX_BUDGETS) {
    throw new ApiError(
      'conflict',
      `The organization has ${MAX_BUDGETS} budgets, which is the limit. Delete one first.`,
    );
  }
}

/** Budgets with what was spent in the period of `now`: calls that are in the sums of a day, and those that are not yet. */
export function readBudgets(
  db: Queryable,
  organizationId: string,
  now: Date,
  condition: Sql = empty,
): Promise<BudgetRow[]> {
  const byPeriod = (of: typeof startOf) => {
    const [day, month] = [of('day', now), of('month', now)];
    return {
      instant: sql`(case b.period when 'day' then ${day}::timestamptz else ${month}::timestamptz end)`,
      day: sql`(case b.period when 'day' then ${dayOf(day)}::date else ${dayOf(month)}::date end)`,
    };
  };
  const [start, end] = [byPeriod(startOf), byPeriod(endOf)];
  const reached = (row: Sql) => sql`
    (b.environment is null or ${row}.environment = b.environment)
    and (b.agent_id is null or ${row}.agent_id in (b.agent_id, t.drafts))`;
  return db.query<BudgetRow>(sql`
    select b.name, b.period, b.limit_usd::float8 as "limitUsd", b.environment, b.agent_id as "agentId", b.key_id as "keyId",
      b.thresholds, b.stop, b.created_at as "createdAt", b.updated_at as "updatedAt",
      (coalesce((select sum(c.cost_usd) from model_usage c
        where c.organization_id = ${organizationId} and c.occurred_at >= ${start.instant} and c.occurred_at < ${end.instant}
          and ${reached(sql`c`)}
          and (b.key_id is null or c.key_id = b.key_id)), 0)
      + case when b.key_id is null
        then coalesce((select sum(d.cost_usd) from model_usage_days d
          where d.organization_id = ${organizationId} and d.day >= ${start.day} and d.day < ${end.day}
            and ${reached(sql`d`)}), 0)
        else coalesce((select sum(k.cost_usd) from model_usage_key_days k
          where k.organization_id = ${organizationId} and k.key_id = b.key_id and k.day >= ${start.day} and k.day < ${end.day}
            and ${reached(sql`k`)}), 0)
        end)::float8 as "spentUsd",
      coalesce((select json_agg(json_build_object('threshold', a.threshold, 'alertedAt', a.alerted_at) order by a.threshold)
        from budget_alerts a
        where a.organization_id = ${organizationId} and a.name = b.name and a.period_starts_at = ${start.instant}), '[]'::json) as alerts
    from budgets b
    cross join lateral (select ${draftsOfColumn(sql`b.agent_id`)} as drafts offset 0) t
    where b.organization_id = ${organizationId} ${condition} order by b.name`);
}

/** The first instant of the UTC day or month. */
export function startOf(period: OrganizationBudget['period'], now: Date): Date {
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), period === 'day' ? now.getUTCDate() : 1));
}

export function endOf(period: OrganizationBudget['period'], now: Date): Date {
  const [years, months, days] = [now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate()];
  return new Date(period === 'day' ? Date.UTC(years, months, days + 1) : Date.UTC(years, months + 1, 1));
}

/** To a billionth of a dollar, because the sum of binary fractions may be a little less. */
export function isReached(spentUsd: number, limitUsd: number, threshold = 100): boolean {
  return Math.round(spentUsd * 1e9) >= Math.round(limitUsd * threshold * 1e7);
}

export function budgetEvent({ name, environment, agentId }: Pick<BudgetRow, 'name' | 'environment' | 'agentId'>) {
  return { resource: { type: 'budget', id: name }, environment, agentId: agentId && formatId('agt', agentId) };
}

function dayOf(instant: Date): string {
  return instant.toISOString().slice(0, 10);
}

function viewBudget({ prices }: Pick<Context, 'prices'>, row: BudgetRow, now: Date): OrganizationBudget {
  const { agentId, keyId, period } = row;
  return {
    name: row.name,
    limitUsd: row.limitUsd,
    period,
    stop: row.stop,
    environment: row.environment,
    agentId: agentId && formatId('agt', agentId),
    keyId: keyId && formatId('key', keyId),
    thresholds: row.thresholds,
    spentUsd: row.spentUsd,
    pricesDate: prices.builtInDate,
    periodStartsAt: startOf(period, now).toISOString(),
    periodEndsAt: endOf(period, now).toISOString(),
    alerts: row.alerts.map(({ threshold, alertedAt }) => ({ threshold, alertedAt: new Date(alertedAt).toISOString() })),
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
  };
}
