// Finds the sessions with some words, newest or oldest first, with at most a few thousand look-ups however many sessions there are and
// however many have the words.
//
// First the first sessions in the order of the list are checked one by one, which finds a page of words that many sessions have. If that
// is not enough, the index of words finds all that have them: few, or the words are so frequent that further sessions are checked
// one by one. Whatever was not checked is for the next page, which begins after the last one that was.
import sql, { join, type Sql } from 'sql-template-tag';
import type { Db, Tx } from '../../db/db.ts';
import { type SessionRow, sessionColumns } from '../state/session.ts';

// Takes some milliseconds.
const CHECKED_FIRST = 1_000;
const CHECKED = 5_000;
// Sessions that have the words: all of them are then compared with the other filters and sorted.
const MAX_FOUND = 10_000;

export interface Search {
  organizationId: string;
  /** The text of a tsquery. */
  words: string;
  /** Sessions in the order of the list, after the cursor. The statement has one column, `session_id`. */
  candidates(limit: number): Sql;
  /** `and …` on `s`, a row of sessions, with everything but the words. */
  filters: readonly Sql[];
  /** `order by …` on `s`. */
  order: Sql;
}

export interface Found {
  rows: SessionRow[];
  /** The last session that was checked, if there may be more after it. */
  checkedUntil?: string | undefined;
}

/** At most `limit` sessions. */
export async function findSessions(db: Db | Tx, search: Search, limit: number): Promise<Found> {
  const first = await checkOneByOne(db, search, limit, CHECKED_FIRST);
  if (first.rows.length === limit || first.checkedUntil === undefined) return { rows: first.rows };
  if (!(await areFrequent(db, search))) return { rows: await findByIndex(db, search, limit) };
  const { rows, checkedUntil } = await checkOneByOne(db, search, limit, CHECKED);
  return rows.length === limit ? { rows } : { rows, checkedUntil };
}

async function checkOneByOne(db: Db | Tx, search: Search, limit: number, checked: number): Promise<Found> {
  const { organizationId, words, filters, order } = search;
  // `offset 0` keeps each step a look-up by key.
  const rows = await db.query<SessionRow>(sql`
    select ${sessionColumns} from (${search.candidates(checked)}) c
    cross join lateral (
      select x.document from session_search x
      where x.organization_id = ${organizationId} and x.session_id = c.session_id offset 0) x
    cross join lateral (
      select * from sessions s where s.organization_id = ${organizationId} and s.session_id = c.session_id offset 0) s
    where x.document @@ ${words}::tsquery ${join([sql``, ...filters], ' ')}
    ${order} limit ${limit}`);
  if (rows.length === limit) return { rows };
  const [last] = await db.query<{ sessionId: string }>(sql`
    select c.session_id as "sessionId" from (${search.candidates(checked)}) c offset ${checked - 1} limit 1`);
  return { rows, checkedUntil: last?.sessionId };
}

/** Rows of session_search with the words, in no order. */
function withWords({ organizationId, words }: Search, limit: number): Sql {
  return sql`
    select x.session_id from session_search x
    where x.organization_id = ${organizationId} and x.document @@ ${words}::tsquery limit ${limit}`;
}

async function areFrequent(db: Db | Tx, search: Search): Promise<boolean> {
  const [row] = await db.query<{ count: number }>(sql`
    select count(*)::int as count from (${withWords(search, MAX_FOUND + 1)}) f`);
  return row!.count > MAX_FOUND;
}

function findByIndex(db: Db | Tx, search: Search, limit: number): Promise<SessionRow[]> {
  const { organizationId, filters, order } = search;
  return db.query<SessionRow>(sql`
    with found as materialized (${withWords(search, MAX_FOUND)})
    select ${sessionColumns} from found f
    cross join lateral (
      select * from sessions s where s.organization_id = ${organizationId} and s.session_id = f.session_id offset 0) s
    where true ${join([sql``, ...filters], ' ')}
    ${order} limit ${limit}`);
}

/** How many there are, up to `max`; not exact if the words are so frequent that not all that have them are compared. */
export async function countFound(
  db: Db | Tx,
  search: Omit<Search, 'candidates' | 'order'>,
  max: number,
): Promise<{ count: number; isExact: boolean }> {
  const { organizationId, filters } = search;
  const [row] = await db.query<{ found: number; count: number }>(sql`
    with found as materialized (${withWords(search as Search, MAX_FOUND + 1)})
    select (select count(*)::int from found) as found, count(*)::int as count from (
      select 1 from found f
      cross join lateral (
        select * from sessions s where s.organization_id = ${organizationId} and s.session_id = f.session_id offset 0) s
      where true ${join([sql``, ...filters], ' ')} limit ${max}) m`);
  return { count: row!.count, isExact: row!.found <= MAX_FOUND && row!.count < max };
}
