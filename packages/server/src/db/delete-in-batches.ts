// Deletes expired rows in batches, however many there are.
//
// After a pause of some days, a single DELETE of all of them would exceed the statement timeout, and then never succeed. Each statement
// therefore deletes at most a thousand rows, which it finds by an index, in a transaction of its own.
import sql, { type Sql } from 'sql-template-tag';
import type { Queryable } from './db.ts';
import type { Shards, Within } from './shards.ts';

// Takes about ten milliseconds.
const BATCH = 1_000;
// A literal, not a parameter: for an unknown limit PostgreSQL expects a tenth of the table, and plans a scan of all of it.
const LIMIT = sql`limit 1000`;

/** What is deleted: `drop` deletes the rows of `old`, a table with the keys that `find` selects with `limit`. */
export interface Batch {
  find(limit: Sql): Sql;
  drop: Sql;
}

/**
 * Deletes until `find` finds fewer rows than a batch, after `maxBatches`, or when `signal` is aborted. Rows that someone else deletes at the same time count as
 * found: nothing is left then, however many do it at once.
 */
export async function deleteInBatches(
  db: Queryable,
  signal: AbortSignal,
  { find, drop }: Batch,
  maxBatches = Number.POSITIVE_INFINITY,
): Promise<void> {
  let found = BATCH;
  for (let batch = 0; found === BATCH && batch < maxBatches && !signal.aborted; batch += 1) {
    const rows = await db.query<{ found: number }>(sql`
      with old as materialized (${find(LIMIT)}), dropped as (${drop}) select count(*)::int as found from old`);
    found = rows[0]!.found;
  }
}

/**
 * Across organizations: runs a statement that contains `limit` and `within` until it deletes nothing, or `signal` is aborted. If all that
 * it found was deleted by another node, that node continues.
 */
export async function deleteAcross(
  { execute }: Pick<Shards, 'execute'>,
  what: string,
  signal: AbortSignal,
  statementOf: (limit: Sql, within: Within) => Sql,
): Promise<void> {
  while (!signal.aborted && (await execute(what, (within) => statementOf(LIMIT, within))) > 0);
}
