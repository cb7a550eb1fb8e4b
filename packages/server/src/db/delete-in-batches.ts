// Deleting what is too old, however much of it there is.
//
// One DELETE of all of it would run into the statement time-out after a pause of some days, and then never succeed again. So
// a statement deletes a thousand rows at most, which it finds by an index; each is a transaction of its own.
import sql, { type Sql } from 'sql-template-tag';
import type { Queryable } from './db.ts';
import type { Shards, Within } from './shards.ts';

// Some ten milliseconds of a statement.
const BATCH = 1_000;
// A number rather than a parameter: a plan for any limit expects a tenth of the table, and reads all of it.
const LIMIT = sql`limit 1000`;

/** Runs the statement, in which `limit` stands, until it finds fewer rows or `signal` is aborted. */
export async function deleteInBatches(
  db: Queryable,
  signal: AbortSignal,
  statementOf: (limit: Sql) => Sql,
): Promise<void> {
  while (!signal.aborted && (await db.execute(statementOf(LIMIT))) === BATCH);
}

/** As `deleteInBatches`, of whatever organizations; `within` stands in the statement beside `limit`. */
export async function deleteAcross(
  { execute }: Pick<Shards, 'execute'>,
  what: string,
  signal: AbortSignal,
  statementOf: (limit: Sql, within: Within) => Sql,
): Promise<void> {
  while (!signal.aborted && (await execute(what, (within) => statementOf(LIMIT, within))) === BATCH);
}
