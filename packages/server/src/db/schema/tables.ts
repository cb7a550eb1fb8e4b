// The tables of an installation as a whole: in a snapshot that does not change while the service runs, or as the target of a copy.
import type { BulkConnection } from '../bulk-connection.ts';
import type { AppliedMigration } from './migrate.ts';
import { type TableSum, TableSummer } from './table-sum.ts';

export interface Table {
  name: string;
  columns: string[];
}

/** A table with its rows, in the text format of `copy`. `sum` is complete once the rows were read. */
export interface TableRows extends Table {
  rows: AsyncIterable<Buffer>;
  sum(): TableSum;
}

/** Everything that is in a database: what a backup contains, and what is copied to another database. */
export interface Contents {
  /** Migrations that made its tables. The table of migrations is not among `tables`. */
  migrations: readonly AppliedMigration[];
  /** One after the other: the rows of a table are read before the next one is requested. */
  tables(): AsyncIterable<TableRows>;
}

const MIGRATIONS = 'signalbox_migrations';

/** All tables of the installation by name, except that of the migrations. */
export function listTables(connection: BulkConnection): Promise<Table[]> {
  return connection.query<Table>(
    `select c.relname as name, array(
       select a.attname::text from pg_attribute a
       where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped order by a.attnum) as columns
     from pg_class c
     where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
       and c.relname <> $1
       -- Of an extension, such as Citus.
       and not exists (select from pg_depend d where d.objid = c.oid and d.deptype = 'e')
     order by c.relname`,
    [MIGRATIONS],
  );
}

/** The database as it is at this moment, until the connection is closed. The service may continue to write. */
export async function snapshotOf(connection: BulkConnection): Promise<Contents> {
  const tables = await lockTables(connection);
  const migrations = await connection.query<AppliedMigration>(
    `select version, name, sha256, works_with as "worksWith", applied_by as "appliedBy" from ${MIGRATIONS} order by version`,
  );
  return {
    migrations,
    async *tables() {
      for (const table of tables) yield readTable(connection, table);
    },
  };
}

/**
 * Begins the snapshot's transaction. The tables are locked before its first query, which makes the snapshot: a migration that rewrites a
 * table leaves it empty for snapshots from before its commit.
 */
async function lockTables(connection: BulkConnection): Promise<Table[]> {
  for (;;) {
    const names = await listNames(connection);
    await connection.query('begin isolation level repeatable read read only');
    await connection.query(`lock table ${[...names, MIGRATIONS].map(name).join(', ')} in access share mode`);
    const tables = await listTables(connection);
    if (tables.every((table) => names.includes(table.name))) return tables;
    // A migration has added one meanwhile.
    await connection.query('rollback');
  }
}

const listNames = async (connection: BulkConnection) => (await listTables(connection)).map((table) => table.name);

/** All rows of a table. */
export function readTable(connection: BulkConnection, table: Table): TableRows {
  const summer = new TableSummer();
  return {
    ...table,
    rows: summed(connection.copyOut(`copy ${nameOf(table)} (${columnsOf(table)}) to stdout`), summer),
    sum: () => summer.sum,
  };
}

/** The same chunks; `summer` has seen each of them. */
export async function* summed(chunks: AsyncIterable<Buffer>, summer: TableSummer): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    summer.add(chunk);
    yield chunk;
  }
}

export const nameOf = (table: Pick<Table, 'name'>): string => name(table.name);
export const columnsOf = ({ columns }: Table): string => columns.map(name).join(', ');

function name(text: string): string {
  return `"${text.replaceAll('"', '""')}"`;
}
