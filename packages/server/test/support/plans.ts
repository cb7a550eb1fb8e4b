// The cost of a statement with its generic plan: the rows and pages that it reads and the indexes that it uses.
import type { Client } from 'pg';
import type { Sql } from 'sql-template-tag';
import type { Db } from '../../src/db/db.ts';

export interface Cost {
  /** Rows read from tables and indexes, including those that a filter then removed. */
  rows: number;
  /** Pairs of rows that a join compared and that did not match. */
  compared: number;
  /** Pages of 8 kB, cached or not. */
  pages: number;
  indexes: string[];
  /** Tables with a sequential scan. */
  wholeTables: string[];
}

interface Node {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Name'?: string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  'Rows Removed by Index Recheck'?: number;
  'Rows Removed by Join Filter'?: number;
  'Shared Hit Blocks': number;
  'Shared Read Blocks': number;
  Plans?: Node[];
}

/** The same database, and every statement and batch that runs on it outside transactions. */
export function listenTo(db: Db): { db: Db; statements: Sql[]; batches: (readonly Sql[])[] } {
  const statements: Sql[] = [];
  const batches: (readonly Sql[])[] = [];
  const heard =
    <T>(run: (sql: Sql) => Promise<T>) =>
    (sql: Sql) => {
      statements.push(sql);
      return run(sql);
    };
  return {
    statements,
    batches,
    db: {
      ...db,
      query: heard(db.query) as Db['query'],
      execute: heard(db.execute),
      batch(batch, options) {
        batches.push(batch);
        return db.batch(batch, options);
      },
    },
  };
}

/**
 * Runs the statement and rolls it back. `asIfLarge`: with the plan for a table that is too large for a sequential scan, if it has
 * the indexes for one. `forValues`: with the plan for its values instead of one for any.
 */
export async function costOf(db: Db, statement: Sql, { asIfLarge = false, forValues = false } = {}): Promise<Cost> {
  const client = await db.connect();
  try {
    await client.query(`set plan_cache_mode = force_${forValues ? 'custom' : 'generic'}_plan`);
    if (asIfLarge) {
      await client.query('set enable_seqscan = off; set enable_hashjoin = off; set enable_mergejoin = off');
    }
    await client.query('begin');
    return await measure(client, statement);
  } finally {
    await client.end();
  }
}

/** Runs the statements in one transaction, as a batch does, and rolls it back. */
export async function costOfBatch(db: Db, statements: readonly Sql[]): Promise<Cost[]> {
  const client = await db.connect();
  try {
    await client.query('set plan_cache_mode = force_generic_plan');
    await client.query('begin');
    const costs: Cost[] = [];
    for (const statement of statements) costs.push(await measure(client, statement));
    return costs;
  } finally {
    await client.end();
  }
}

async function measure(client: Client, { text, values }: Sql): Promise<Cost> {
  await client.query(`prepare measured as ${text}`);
  const given = values.map((value) => (value === null ? 'null' : client.escapeLiteral(literalOf(value)))).join(', ');
  const call = values.length > 0 ? `measured(${given})` : 'measured';
  const { rows } = await client.query(`explain (analyze, buffers, format json) execute ${call}`);
  await client.query('deallocate measured');
  const [{ Plan: plan }] = rows[0]['QUERY PLAN'] as [{ Plan: Node }];
  return summed(plan);
}

function literalOf(value: unknown): string {
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value))
    return `{${value.map((one) => (one === null ? 'null' : JSON.stringify(literalOf(one)))).join(',')}}`;
  return String(value);
}

function summed(top: Node): Cost {
  const cost: Cost = {
    rows: 0,
    compared: 0,
    pages: top['Shared Hit Blocks'] + top['Shared Read Blocks'],
    indexes: [],
    wholeTables: [],
  };
  const visit = (node: Node): void => {
    const { 'Index Name': index, 'Relation Name': table, 'Actual Loops': loops } = node;
    cost.compared += (node['Rows Removed by Join Filter'] ?? 0) * loops;
    if (index !== undefined || table !== undefined) {
      const removed = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0);
      cost.rows += (node['Actual Rows'] + removed) * loops;
    }
    if (index !== undefined) cost.indexes.push(index);
    if (node['Node Type'] === 'Seq Scan') cost.wholeTables.push(table!);
    for (const inner of node.Plans ?? []) visit(inner);
  };
  visit(top);
  return cost;
}
