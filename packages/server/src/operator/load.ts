// Loads the contents of an installation into an empty database: for a restore, and for a move to another PostgreSQL.
//
// The tables exist already, made by the same migrations. Everything else is one transaction, so after a crash or a failure the database
// is as empty as before, and the command can be repeated. What would be checked or maintained row by row is dropped first and
// created again once all rows are there: foreign keys, constraints that earlier rows need not satisfy, and indexes that are not of
// a key. That needs no superuser, only the owner of the tables. Before the commit, every table is read again and compared, and the
// chain of every event log is verified.
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type BulkConnection, isDiskFull, isLocked } from '../db/bulk-connection.ts';
import { isServerError } from '../db/pipeline.ts';
import { isSameSum, type TableSum } from '../db/schema/table-sum.ts';
import { type Contents, columnsOf, listTables, nameOf, readTable, type Table } from '../db/schema/tables.ts';
import { type ChainReport, verifyChains } from '../events/chains.ts';
import { OperatorError } from './operator.ts';
import type { Progress } from './progress.ts';

export interface Loaded {
  tables: number;
  rows: number;
  /** The event chain of each organization. */
  chains: ChainReport[];
}

/** `beforeCommit` runs in the same transaction, after everything is verified. Throws `OperatorError`. */
export async function loadContents(
  connection: BulkConnection,
  contents: Contents,
  progress: Progress,
  beforeCommit: () => Promise<unknown> = async () => {},
): Promise<Loaded> {
  try {
    await connection.query('begin');
    const tables = await listTables(connection);
    await takeEmpty(connection, tables);
    const dropped = await dropWhatIsCheckedByRow(connection);
    const copied = await copyAll(connection, tables, contents, progress);
    for (const [index, statement] of dropped.entries()) {
      progress({ step: 'creating indexes and constraints', done: index, of: dropped.length });
      await connection.query(statement);
    }
    await verifyTables(connection, copied, progress);
    progress({ step: 'verifying the event log' });
    const chains = await verifyChains(connection);
    await connection.query('analyze');
    await beforeCommit();
    await connection.query('commit');
    return { tables: copied.length, rows: copied.reduce((rows, { sum }) => rows + sum.rows, 0), chains };
  } catch (error) {
    if (isDiskFull(error)) {
      throw new OperatorError(
        'The disk of the database is full. Nothing was changed. Free some space and run the command again.',
        { cause: error },
      );
    }
    // The server's own message quotes the row.
    if (isServerError(error) && REFUSED_DATA.test(error.code)) {
      throw new OperatorError(
        `What is copied is damaged: the database refuses a row (${error.code}). Nothing was changed. Use another backup.`,
        { cause: error },
      );
    }
    throw error;
  }
}

// Values that their type does not allow, rows that a key or constraint does not, and bytes that are not text.
const REFUSED_DATA = /^2[23]/;

/** Locks all tables for this transaction, and refuses a database that something is in. */
async function takeEmpty(connection: BulkConnection, tables: readonly Table[]): Promise<void> {
  const all = tables.map(nameOf).join(', ');
  await connection.query(`set local lock_timeout = '10s'`);
  await connection.query(`lock table ${all} in access exclusive mode`).catch((error) => {
    if (!isLocked(error)) throw error;
    throw new OperatorError(
      'Something else uses the database. Stop every node that uses it, and run the command again.',
    );
  });
  const firsts = tables.map((table) => `case when exists (select from ${nameOf(table)}) then '${table.name}' end`);
  const [row] = await connection.query<{ found: string | null }>(`select coalesce(${firsts.join(', ')}) as found`);
  if (row?.found) {
    throw new OperatorError(
      `The database is not empty: there are rows in ${row.found}. Use an empty database, such as one that was just created.`,
    );
  }
  // Rows can then be stored as frozen, which spares a vacuum that would write all of them again.
  await connection.query(`truncate ${all}`);
}

/** Returns the statements that create it again. */
async function dropWhatIsCheckedByRow(connection: BulkConnection): Promise<string[]> {
  const constraints = await connection.query<{ drop: string; create: string }>(`
    select format('alter table %s drop constraint %I', conrelid::regclass, conname) as drop,
      format('alter table %s add constraint %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) as create
    from pg_constraint
    where connamespace = current_schema()::regnamespace and (contype = 'f' or contype = 'c' and not convalidated)
    order by conrelid::regclass::text, conname`);
  const indexes = await connection.query<{ drop: string; create: string }>(`
    select format('drop index %s', i.indexrelid::regclass) as drop, pg_get_indexdef(i.indexrelid) as create
    from pg_index i join pg_class c on c.oid = i.indrelid
    where c.relnamespace = current_schema()::regnamespace
      and not exists (select from pg_constraint k where k.conindid = i.indexrelid)
    order by i.indexrelid::regclass::text`);
  for (const { drop } of [...constraints, ...indexes]) await connection.query(drop);
  return [...indexes, ...constraints].map(({ create }) => create);
}

interface Copied {
  table: Table;
  sum: TableSum;
}

async function copyAll(
  connection: BulkConnection,
  tables: readonly Table[],
  contents: Contents,
  progress: Progress,
): Promise<Copied[]> {
  const copied: Copied[] = [];
  const has = (name: string) => copied.some(({ table }) => table.name === name);
  for await (const source of contents.tables()) {
    const table = tables.find(({ name }) => name === source.name);
    const isSame = table && table.columns.toSorted().join() === source.columns.toSorted().join();
    if (!isSame || has(source.name)) {
      throw new OperatorError(`The table ${source.name} is not one that this release knows in this form.`);
    }
    const into = connection.copyIn(`copy ${nameOf(source)} (${columnsOf(source)}) from stdin with (freeze)`);
    await pipeline(
      Readable.from(
        counted(source.rows, () =>
          progress({
            step: 'copying',
            table: source.name,
            rows: source.sum().rows,
            done: copied.length,
            of: tables.length,
          }),
        ),
        { objectMode: false },
      ),
      into,
    );
    copied.push({ table: { name: source.name, columns: source.columns }, sum: source.sum() });
  }
  const missing = tables.find(({ name }) => !has(name));
  if (missing) throw new OperatorError(`The table ${missing.name} is missing in what is copied.`);
  return copied;
}

async function* counted(chunks: AsyncIterable<Buffer>, count: () => void): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    yield chunk;
    count();
  }
}

/** What the database has now is what was read from the source. */
async function verifyTables(connection: BulkConnection, copied: readonly Copied[], progress: Progress): Promise<void> {
  for (const [done, { table, sum: expected }] of copied.entries()) {
    const found = await sumOf(connection, table, (rows) =>
      progress({ step: 'verifying', table: table.name, rows, done, of: copied.length }),
    );
    if (isSameSum(found, expected)) continue;
    throw new OperatorError(
      `The copy of the table ${table.name} differs: ${found.rows} rows with the checksum ${found.checksum}, ` +
        `instead of ${expected.rows} with ${expected.checksum}. Nothing was changed.`,
    );
  }
}

async function sumOf(connection: BulkConnection, table: Table, count: (rows: number) => void): Promise<TableSum> {
  const { rows, sum } = readTable(connection, table);
  for await (const _ of rows) count(sum().rows);
  return sum();
}
