// Shards a database by organization with Citus. Every table with `organization_id` is distributed by it and colocated with
// `organizations`, so all rows of an organization are on one server. Tables without an organization (nodes, installation, master keys,
// sign-ins) stay on the coordinator.
//
// `signalbox database distribute` does this once. From then on each migration distributes the tables that it creates.
import sql, { type Sql } from 'sql-template-tag';

/** Sends a statement in a transaction. */
export type Ask = <Row>(statement: Sql) => Promise<Row[]>;

const ROOT = 'organizations';

export async function hasCitus(ask: Ask): Promise<boolean> {
  const [row] = await ask<{ isThere: boolean }>(sql`select to_regclass('pg_dist_partition') is not null as "isThere"`);
  return row!.isThere;
}

/** Whether the database was distributed before. */
export async function isDistributed(ask: Ask): Promise<boolean> {
  if (!(await hasCitus(ask))) return false;
  return (await ask(sql`select 1 from pg_dist_partition where logicalrelid = to_regclass(${ROOT})`)).length > 0;
}

/**
 * Distributes the tables that are not distributed yet, in the caller's transaction, and returns their names. Throws if a table with
 * `organization_id` remains.
 */
export async function distribute(ask: Ask): Promise<string[]> {
  const missing = parentsFirst(await undistributed(ask));
  if (missing.length > 0) {
    // In parallel, Citus would use several connections, which do not see what the transaction has done to tables that it references.
    await ask(sql`select set_config('citus.multi_shard_modify_mode', 'sequential', true)`);
  }
  for (const table of missing) {
    const place = table === ROOT ? 'none' : ROOT;
    await ask(
      sql`select create_distributed_table(${table}::text::regclass, 'organization_id', colocate_with => ${place})`,
    );
  }
  // Their rows were copied to the shards. Without this, the originals stay on the coordinator, where nothing reads or erases them.
  for (const table of missing)
    await ask(sql`select truncate_local_data_after_distributing_table(${table}::text::regclass)`);
  const left = await undistributed(ask);
  if (left.length > 0) throw new Error(`Not distributed: ${left.map(({ name }) => name).join(', ')}`);
  return missing;
}

interface Table {
  name: string;
  /** Tables that it references. */
  parents: string[];
}

/** The tables with `organization_id` that are whole on the coordinator. */
function undistributed(ask: Ask): Promise<Table[]> {
  return ask<Table>(sql`
    select c.relname as name, array(
      select p.relname::text from pg_constraint k join pg_class p on p.oid = k.confrelid
      where k.conrelid = c.oid and k.contype = 'f' and p.oid <> c.oid) as parents
    from pg_class c join pg_attribute a on a.attrelid = c.oid
    where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
      and a.attname = 'organization_id' and not a.attisdropped
      and not exists (select 1 from pg_dist_partition d where d.logicalrelid = c.oid and d.partmethod = 'h')
    order by c.relname`);
}

/** A table can only be beside `organizations`, and reference a table, once that is distributed. */
function parentsFirst(tables: readonly Table[]): string[] {
  const ordered: string[] = [];
  const add = ({ name, parents }: Table): void => {
    if (ordered.includes(name)) return;
    for (const parent of tables) if (parents.includes(parent.name)) add(parent);
    ordered.push(name);
  };
  for (const table of [...tables.filter(({ name }) => name === ROOT), ...tables]) add(table);
  return ordered;
}
