// Compaction: adds calls to daily sums, so that a report reads a few rows per day instead of every call.
//
// Each model call inserts a row of its own: if it updated the sum, all calls of an agent would queue for one row. A batch is one
// transaction: lock some calls, add them to their sums, delete them. Other nodes skip locked calls, so any number of nodes can
// compact at once.
import sql from 'sql-template-tag';
import { MINUTE } from '../analytics/intervals.ts';
import { ALL_AGENTS, NO_ID } from '../analytics/rows.ts';
import type { Db, Tx } from '../db/db.ts';
import type { Shards } from '../db/shards.ts';
import { isOfDrafts } from '../lib/draft-version.ts';

// Bounds what one transaction locks and deletes.
const BATCH_CALLS = 1_000;

/** Organizations with calls that are not in their sums yet. */
export async function organizationsToCompact({ shards }: { shards: Shards }): Promise<string[]> {
  const { rows } = await shards.query<{ organizationId: string }>(
    'looking for usage to compact',
    (within) => sql`
    select distinct organization_id as "organizationId" from model_usage where true ${within()} limit 1000`,
  );
  return rows.map(({ organizationId }) => organizationId);
}

/** Moves some calls into their sums, and calls `after` in the same transaction. Returns whether there may be more. */
export function compactUsage(
  db: Db,
  organizationId: string,
  batchCalls: number = BATCH_CALLS,
  after: (tx: Tx) => Promise<unknown> = async () => {},
): Promise<boolean> {
  return db.transaction(async (tx) => {
    const calls = await tx.query<{ usageId: string }>(sql`
      select usage_id as "usageId" from model_usage where organization_id = ${organizationId}
      order by usage_id limit ${batchCalls} for update skip locked`);
    if (calls.length === 0) return false;
    const ids = calls.map(({ usageId }) => usageId);
    await Promise.all([
      // In the order of the key: two nodes that add to the same sums then can't deadlock.
      tx.execute(sql`
        insert into model_usage_days as d (organization_id, day, agent_id, environment, model, steps, unpriced_steps,
          input_tokens, output_tokens, cached_tokens, cache_write_tokens, web_searches, cost_usd)
        select c.organization_id, (c.occurred_at at time zone 'UTC')::date, c.agent_id, c.environment, c.model, count(*),
          count(*) filter (where c.cost_usd is null), sum(c.input_tokens), sum(c.output_tokens), sum(c.cached_tokens),
          sum(c.cache_write_tokens), sum(c.web_searches),
          coalesce(sum(c.cost_usd), 0)
        from model_usage c
        where c.organization_id = ${organizationId} and c.usage_id = any(${ids}::uuid[])
        group by 1, 2, 3, 4, 5 order by 2, 3, 4, 5
        on conflict (organization_id, day, agent_id, environment, model) do update set
          steps = d.steps + excluded.steps, unpriced_steps = d.unpriced_steps + excluded.unpriced_steps,
          input_tokens = d.input_tokens + excluded.input_tokens, output_tokens = d.output_tokens + excluded.output_tokens,
          cached_tokens = d.cached_tokens + excluded.cached_tokens,
          cache_write_tokens = d.cache_write_tokens + excluded.cache_write_tokens,
          web_searches = d.web_searches + excluded.web_searches, cost_usd = d.cost_usd + excluded.cost_usd`),
      tx.execute(sql`
        insert into model_usage_end_user_days as d (organization_id, day, environment, end_user_id, steps, unpriced_steps,
          input_tokens, output_tokens, cached_tokens, cache_write_tokens, web_searches, cost_usd)
        select c.organization_id, (c.occurred_at at time zone 'UTC')::date, c.environment, c.end_user_id, count(*),
          count(*) filter (where c.cost_usd is null), sum(c.input_tokens), sum(c.output_tokens), sum(c.cached_tokens),
          sum(c.cache_write_tokens), sum(c.web_searches),
          coalesce(sum(c.cost_usd), 0)
        from model_usage c
        where c.organization_id = ${organizationId} and c.usage_id = any(${ids}::uuid[]) and c.end_user_id is not null
        group by 1, 2, 3, 4 order by 2, 3, 4
        on conflict (organization_id, day, environment, end_user_id) do update set
          steps = d.steps + excluded.steps, unpriced_steps = d.unpriced_steps + excluded.unpriced_steps,
          input_tokens = d.input_tokens + excluded.input_tokens, output_tokens = d.output_tokens + excluded.output_tokens,
          cached_tokens = d.cached_tokens + excluded.cached_tokens,
          cache_write_tokens = d.cache_write_tokens + excluded.cache_write_tokens,
          web_searches = d.web_searches + excluded.web_searches, cost_usd = d.cost_usd + excluded.cost_usd`),
      tx.execute(sql`
        insert into model_usage_key_days as d (organization_id, key_id, day, agent_id, environment, key_name, steps, unpriced_steps,
          input_tokens, output_tokens, cached_tokens, cache_write_tokens, web_searches, cost_usd)
        select c.organization_id, c.key_id, (c.occurred_at at time zone 'UTC')::date, c.agent_id, c.environment, min(k.name), count(*),
          count(*) filter (where c.cost_usd is null), sum(c.input_tokens), sum(c.output_tokens), sum(c.cached_tokens),
          sum(c.cache_write_tokens), sum(c.web_searches),
          coalesce(sum(c.cost_usd), 0)
        from model_usage c left join api_keys k on k.organization_id = c.organization_id and k.key_id = c.key_id
        where c.organization_id = ${organizationId} and c.usage_id = any(${ids}::uuid[]) and c.key_id is not null
        group by 1, 2, 3, 4, 5 order by 2, 3, 4, 5
        on conflict (organization_id, key_id, day, agent_id, environment) do update set
          key_name = coalesce(excluded.key_name, d.key_name),
          steps = d.steps + excluded.steps, unpriced_steps = d.unpriced_steps + excluded.unpriced_steps,
          input_tokens = d.input_tokens + excluded.input_tokens, output_tokens = d.output_tokens + excluded.output_tokens,
          cached_tokens = d.cached_tokens + excluded.cached_tokens,
          cache_write_tokens = d.cache_write_tokens + excluded.cache_write_tokens,
          web_searches = d.web_searches + excluded.web_searches, cost_usd = d.cost_usd + excluded.cost_usd`),
      // In minutes of no node, beside what the nodes counted themselves (analytics/), which is nothing of drafts.
      tx.execute(sql`
        insert into analytics as a (organization_id, interval_seconds, starts_at, environment, agent_id, model, error_code, counted_by,
          model_calls, tokens, web_searches, cost_usd)
        select c.organization_id, ${MINUTE}::int, date_trunc('minute', c.occurred_at), c.environment, k.agent_id, k.model, '',
          ${NO_ID}::uuid, count(*), sum(c.input_tokens + c.output_tokens), sum(c.web_searches), coalesce(sum(c.cost_usd), 0)
        from model_usage c
        cross join lateral (values (c.agent_id, c.model), (${ALL_AGENTS}::uuid, '')) k(agent_id, model)
        where c.organization_id = ${organizationId} and c.usage_id = any(${ids}::uuid[]) and not ${isOfDrafts(sql`c.agent_id`)}
        group by 1, 3, 4, 5, 6 order by 3, 4, 5, 6
        on conflict (organization_id, interval_seconds, starts_at, environment, agent_id, model, error_code, counted_by)
        do update set model_calls = a.model_calls + excluded.model_calls, tokens = a.tokens + excluded.tokens,
          web_searches = a.web_searches + excluded.web_searches,
          cost_usd = a.cost_usd + excluded.cost_usd`),
      tx.execute(sql`
        delete from model_usage where organization_id = ${organizationId} and usage_id = any(${ids}::uuid[])`),
    ]);
    await after(tx);
    return calls.length === batchCalls;
  });
}
