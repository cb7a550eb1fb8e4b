// Compaction: the calls of days that are over become sums, so that a year's report reads some rows a day rather than every call.
//
// A batch is one transaction: lock some calls, add them to their sums, delete them. A call is in one batch, for others skip what
// is locked; so any number of nodes may do it at once, and a call that was written late is added to its day by the next pass.
import sql from 'sql-template-tag';
import type { Db } from '../db/db.ts';

// Bounds what one transaction locks and deletes.
const BATCH_CALLS = 1_000;

/** The begin of the UTC day that `now` is in: calls before it are of days that are over. */
export function startOfDay(now: Date): Date {
  return new Date(now.getTime() - (now.getTime() % 86_400_000));
}

/** Organizations with calls from before the instant. */
export async function organizationsToCompact(db: Db, before: Date): Promise<string[]> {
  // An index look-up for each organization; without the `lateral` it would be a reading of every call there is.
  const rows = await db.query<{ organizationId: string }>(sql`
    select o.organization_id as "organizationId" from organizations o
    cross join lateral (
      select 1 from model_usage c where c.organization_id = o.organization_id and c.occurred_at < ${before} limit 1
    ) old`);
  return rows.map(({ organizationId }) => organizationId);
}

/** Moves some calls from before the instant, the start of a UTC day, into their sums. Returns whether there may be more. */
export function compactUsage(
  db: Db,
  organizationId: string,
  before: Date,
  batchCalls: number = BATCH_CALLS,
): Promise<boolean> {
  return db.transaction(async (tx) => {
    const calls = await tx.query<{ usageId: string }>(sql`
      select usage_id as "usageId" from model_usage
      where organization_id = ${organizationId} and occurred_at < ${before}
      order by occurred_at limit ${batchCalls} for update skip locked`);
    if (calls.length === 0) return false;
    const ids = calls.map(({ usageId }) => usageId);
    await Promise.all([
      // In the order of the key: two nodes that add to the same sums then can't deadlock.
      tx.execute(sql`
        insert into model_usage_days as d (organization_id, day, agent_id, environment, model, steps, unpriced_steps,
          input_tokens, output_tokens, cached_tokens, cost_usd)
        select c.organization_id, (c.occurred_at at time zone 'UTC')::date, c.agent_id, c.environment, c.model, count(*),
          count(*) filter (where c.cost_usd is null), sum(c.input_tokens), sum(c.output_tokens), sum(c.cached_tokens),
          coalesce(sum(c.cost_usd), 0)
        from model_usage c
        where c.organization_id = ${organizationId} and c.usage_id = any(${ids}::uuid[])
        group by 1, 2, 3, 4, 5 order by 2, 3, 4, 5
        on conflict (organization_id, day, agent_id, environment, model) do update set
          steps = d.steps + excluded.steps, unpriced_steps = d.unpriced_steps + excluded.unpriced_steps,
          input_tokens = d.input_tokens + excluded.input_tokens, output_tokens = d.output_tokens + excluded.output_tokens,
          cached_tokens = d.cached_tokens + excluded.cached_tokens, cost_usd = d.cost_usd + excluded.cost_usd`),
      tx.execute(sql`
        delete from model_usage where organization_id = ${organizationId} and usage_id = any(${ids}::uuid[])`),
    ]);
    return calls.length === batchCalls;
  });
}
