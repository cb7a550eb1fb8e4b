// A change whose statements and result are known before anything is read, because what they rely on is checked by the statements
// themselves. It takes one round trip, in a transaction that it may share with others.
import sql, { join, raw, type Sql } from 'sql-template-tag';
import type { Db } from './db.ts';
import type { Shards } from './shards.ts';

export interface PlannedChange<T> {
  /** What it relies on: selects, each of which has to find a row. They run first, as one statement. */
  readonly requires: readonly Sql[];
  readonly statements: readonly Sql[];
  readonly result: T;
  /** Runs after the commit. */
  done(): void;
}

/** Fails, and with it the transaction, if the statement finds or changes no row. */
export function requireRow(statement: Sql): Sql {
  return sql`with found as (${statement}) select 1 / count(*) from found`;
}

/** `requireRow` for several selects at once. */
function requireRows(selects: readonly Sql[]): Sql {
  const found = selects.map((select, index) => sql`(${select}) ${nameOf(index)}`);
  return sql`select 1 / count(*) from ${join(found)}`;
}

const nameOf = (index: number) => raw(`found${index}`);

const DIVISION_BY_ZERO = '22012';
const LOCK_NOT_AVAILABLE = '55P03';

/** Whether it failed because of `requireRow`. */
export function foundNoRow(error: unknown): boolean {
  return (error as { code?: string }).code === DIVISION_BY_ZERO;
}

/** False, and nothing is changed, if something differs from what the plan relies on, or is locked. */
export async function commitPlanned(
  { db, shards }: { db: Db; shards: Shards },
  organizationId: string,
  { requires, statements, done }: PlannedChange<unknown>,
): Promise<boolean> {
  try {
    await db.batch([requireRows(requires), ...statements], { group: shards.of(organizationId), limitsLocks: true });
  } catch (error) {
    if (foundNoRow(error) || (error as { code?: string }).code === LOCK_NOT_AVAILABLE) return false;
    throw error;
  }
  done();
  return true;
}
