// What statements do to tables, as PostgreSQL counts it while they run: rows read, updated, and updated without a change of an index.
import sql from 'sql-template-tag';
import type { Db, Tx } from '../../src/db/db.ts';

export interface TableUse {
  /**
   * Rows read in the table or by an index of it, including those that a condition then removed. Deleted rows do not count: how long
   * PostgreSQL keeps them depends on the oldest transaction of the whole server, and so on other tests.
   */
  read: number;
  updated: number;
  /** Updated without a new entry in any index. */
  hot: number;
}

/** The same database. `uses` gets an entry for each call: what its statements did to each of these tables. */
export function countingUse<Table extends string>(
  db: Db,
  tables: readonly Table[],
): Db & { readonly uses: Record<Table, TableUse>[] } {
  // A sequential scan counts its rows as returned by the table, a bitmap scan as fetched from it, and an index scan as fetched by the index.
  const count = sql`
    select t.name, pg_stat_get_xact_tuples_updated(t.id)::int as updated, pg_stat_get_xact_tuples_hot_updated(t.id)::int as hot,
      (pg_stat_get_xact_tuples_returned(t.id) + pg_stat_get_xact_tuples_fetched(t.id)
        + (select sum(pg_stat_get_xact_tuples_fetched(i.indexrelid)) from pg_index i where i.indrelid = t.id))::int as read
    from (select name, name::regclass as id from unnest(${[...tables]}::text[]) name) t`;
  const uses: Record<Table, TableUse>[] = [];
  async function counted<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    return db.transaction(async (tx) => {
      const before = await tx.query<TableUse & { name: Table }>(count);
      const result = await work(tx);
      const after = await tx.query<TableUse & { name: Table }>(count);
      const use = after.map(({ name, read, updated, hot }, n): [Table, TableUse] => {
        const old = before[n]!;
        return [name, { read: read - old.read, updated: updated - old.updated, hot: hot - old.hot }];
      });
      uses.push(Object.fromEntries(use) as Record<Table, TableUse>);
      return result;
    });
  }
  return {
    ...db,
    uses,
    query: <Row>(statement: Parameters<Db['query']>[0]) => counted((tx) => tx.query<Row>(statement)),
    execute: (statement) => counted((tx) => tx.execute(statement)),
    /** In a transaction of its own, whatever the options. */
    batch: <Row>(statements: Parameters<Db['batch']>[0]) =>
      counted((tx) => Promise.all(statements.map((statement) => tx.query<Row>(statement)))),
    transaction: (work) => counted(work),
  };
}
