// Finds the sessions that no single index has in the order of the list, newest or oldest first: with some words, or with filters of
// several indexes. Words take at most a few thousand look-ups, however many sessions there are and however many have the words.
//
// First the first sessions in the order of the list are checked one by one, which finds a page of what many sessions have. If that is
// not enough, the indexes find all that match: those of filters as list-query.ts says, and that of words if not many have them.
// Otherwise the words are so frequent that further sessions are checked one by one. Whatever was not checked is for the next page, which
// begins after the last one that was.
import sql, { empty, join, type Sql } from 'sql-template-tag';
import { CANCELLED, type Db } from '../../db/db.ts';
import { type SessionRow, sessionColumns } from '../../session-rows/session.ts';
import { type SessionQuery, withValuesPlanned } from './list-query.ts';

// Takes some milliseconds.
const CHECKED_FIRST = 1_000;
const CHECKED = 5_000;
// Sessions that have the words: all of them are then compared with the other filters and sorted.
const MAX_FOUND = 10_000;
// Hundreds of thousands of sessions with several words, or thousands of words with the same beginning.
const MAX_INDEX_MS = 250;

interface Search extends SessionQuery {
  organizationId: string;
  /** The text of a tsquery. */
  words?: string | undefined;
}
type WordSearch = Search & { words: string };

export interface Found {
  rows: SessionRow[];
  /** The last session that was checked, if there may be more after it. */
  checkedUntil?: string | undefined;
}

/** At most `limit` sessions. */
export async function findSessions(db: Db, search: Search, limit: number): Promise<Found> {
  const first = await checkOneByOne(db, search, limit, CHECKED_FIRST);
  if (first.rows.length === limit || first.checkedUntil === undefined) return { rows: first.rows };
  const { words } = search;
  if (words === undefined) return { rows: await withValuesPlanned(db, search.list(limit)) };
  const found = await findByIndex(db, { ...search, words }, limit);
  if (found) return { rows: found };
  const { rows, checkedUntil } = await checkOneByOne(db, search, limit, CHECKED);
  return rows.length === limit ? { rows } : { rows, checkedUntil };
}

async function checkOneByOne(db: Db, search: Search, limit: number, checked: number): Promise<Found> {
  const { organizationId, words, filters, order } = search;
  const document = sql`
    cross join lateral (
      select x.document from session_search x
      where x.organization_id = ${organizationId} and x.session_id = c.session_id offset 0) x`;
  const hasWords = sql`and x.document @@ ${words}::tsquery`;
  // `offset 0` keeps each step a look-up by key.
  const rows = await db.query<SessionRow>(sql`
    select ${sessionColumns} from (${search.candidates(checked)}) c ${words === undefined ? empty : document}
    cross join lateral (
      select * from sessions s where s.organization_id = ${organizationId} and s.session_id = c.session_id offset 0) s
    where true ${words === undefined ? empty : hasWords} ${join([empty, ...filters], ' ')}
    ${order(sql`c.session_id`)} limit ${limit}`);
  if (rows.length === limit) return { rows };
  const [last] = await db.query<{ sessionId: string }>(sql`
    select c.session_id as "sessionId" from (${search.candidates(checked)}) c offset ${checked - 1} limit 1`);
  return { rows, checkedUntil: last?.sessionId };
}

/** Rows of session_search with the words, in no order. */
function withWords({ organizationId, words }: Pick<WordSearch, 'organizationId' | 'words'>): Sql {
  return sql`
    select x.session_id from session_search x
    where x.organization_id = ${organizationId} and x.document @@ ${words}::tsquery limit ${MAX_FOUND + 1}`;
}

/** Undefined if the words are too frequent. */
async function findByIndex(db: Db, search: WordSearch, limit: number): Promise<SessionRow[] | undefined> {
  const { organizationId, within, notInWords, order } = search;
  // Without further filters, only the sessions of the page are looked up.
  const first = notInWords.length > 0 ? empty : sql`${order(sql`f.session_id`)} limit ${limit}`;
  const rows = await inTime<SessionRow & { found: number }>(
    db,
    sql`
    with found as materialized (${withWords(search)}),
      total as (select count(*)::int as found from found),
      page as (
        select ${sessionColumns} from (
          select f.session_id from found f
          where (select total.found from total) <= ${MAX_FOUND} ${within(sql`f.session_id`)} ${first}) f
        cross join lateral (
          select * from sessions s where s.organization_id = ${organizationId} and s.session_id = f.session_id offset 0) s
        where true ${join([empty, ...notInWords], ' ')}
        ${order(sql`s.session_id`)} limit ${limit})
    select page.*, total.found from total left join page on true ${order(sql`page."sessionId"`)}`,
  );
  if (!rows || rows[0]!.found > MAX_FOUND) return undefined;
  return rows.filter(({ sessionId }) => sessionId !== null);
}

/** Undefined if it takes too long. */
async function inTime<Row>(db: Db, statement: Sql): Promise<Row[] | undefined> {
  try {
    return await db.transaction((tx) => {
      tx.write(sql`select set_config('statement_timeout', ${String(MAX_INDEX_MS)}, true)`);
      return tx.query<Row>(statement);
    });
  } catch (error) {
    if ((error as { code?: unknown }).code === CANCELLED) return undefined;
    throw error;
  }
}

/** How many there are, up to `max`; not exact if the words are so frequent that not all that have them are compared. */
export async function countFound(
  db: Db,
  search: WordSearch,
  max: number,
): Promise<{ count: number; isExact: boolean }> {
  const { organizationId, within, notInWords } = search;
  const rows = await inTime<{ found: number; count: number }>(
    db,
    sql`
    with found as materialized (${withWords(search)})
    select (select count(*)::int from found) as found, count(*)::int as count from (
      select 1 from found f
      cross join lateral (
        select * from sessions s where s.organization_id = ${organizationId} and s.session_id = f.session_id offset 0) s
      where true ${within(sql`f.session_id`)} ${join([empty, ...notInWords], ' ')} limit ${max}) m`,
  );
  if (rows) return { count: rows[0]!.count, isExact: rows[0]!.found <= MAX_FOUND && rows[0]!.count < max };
  const { rows: checked } = await checkOneByOne(db, search, CHECKED, CHECKED);
  return { count: checked.length, isExact: false };
}
