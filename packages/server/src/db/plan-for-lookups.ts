import sql from 'sql-template-tag';

// Where Citus is loaded, plans are made for the values: it needs them to find the shard, and refuses a modification without them.
const settings = sql`
  set_config('plan_cache_mode',
    case when current_setting('citus.shard_count', true) is null then 'force_generic_plan' else 'auto' end, true),
  set_config('enable_seqscan', 'off', true)`;

/**
 * The first statement of a transaction whose statements look up rows by their keys. It makes PostgreSQL plan them once, for any values,
 * and without sequential and bitmap scans.
 *
 * Otherwise the first five executions on each connection are planned for their values: that takes time, and without statistics such a
 * plan reads all rows of the organization. And a plan that was made while a table was empty would read all of it for each row when it
 * no longer is, until PostgreSQL has analyzed it.
 */
export const planForLookups = sql`select ${settings}, set_config('enable_bitmapscan', 'off', true)`;

/**
 * As `planForLookups`, for a modification of rows that are joined by their keys, so that it looks up each of them: without statistics,
 * any other join would seem as cheap.
 */
export const planForKeys = sql`
  select ${settings}, set_config('enable_bitmapscan', 'off', true), set_config('enable_hashjoin', 'off', true),
    set_config('enable_mergejoin', 'off', true), set_config('enable_material', 'off', true)`;
