import sql from 'sql-template-tag';

/**
 * The first statement of a transaction whose statements look up rows by their keys. It makes PostgreSQL plan them once, for any values,
 * and without sequential and bitmap scans.
 *
 * Otherwise the first five executions on each connection are planned for their values: that takes time, and without statistics such a
 * plan reads all rows of the organization. And a plan that was made while a table was empty would read all of it for each row when it
 * no longer is, until PostgreSQL has analyzed it.
 */
export const planForLookups = sql`
  select set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true),
    set_config('enable_bitmapscan', 'off', true)`;
