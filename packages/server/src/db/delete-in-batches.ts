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

/** Runs the statement, which must contain `limit`, until it finds fewer rows or `signal` is aborted. */
export async function deleteInBatches(
  db: Queryable,
  signal: AbortSignal,
  statementOf: (limit: Sql) => Sql,
): Promise<void> {
  while (!signal.aborted && (await db.execute(statementOf(LIMIT))) === BATCH);
}

/** As `deleteInBatches`, across organizations. The statement must contain `within` as well. */
export async function deleteAcross(
  { execute }: Pick<Shards, 'execute'>,
  what: string,
  signal: AbortSignal,
  statementOf: (limit: Sql, within: Within) => Sql,
): Promise<void> {
  while (!signal.aborted && (await execute(what, (within) => statementOf(LIMIT, within))) === BATCH);
}
