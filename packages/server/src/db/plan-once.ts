import sql from 'sql-template-tag';

/**
 * The first statement of a transaction whose statements look up many rows by their keys. PostgreSQL plans the first five executions on
 * each connection for their values; such a plan takes time, and in a database without statistics it reads all rows of the organization
 * instead. With this they are planned once, for any values.
 */
export const planOnce = sql`set local plan_cache_mode = force_generic_plan`;
