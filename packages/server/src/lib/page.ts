// Lists: pages of a stable order with opaque, versioned cursors.
import sql, { type Sql } from 'sql-template-tag';
import { ApiError } from './api-error.ts';

/** The input of a list function: how many rows, and after which one. */
export interface PageRequest {
  limit: number;
  /** The key of the last row that the caller has; undefined for the first page. */
  after: string | undefined;
  /** The cursor as sent. */
  cursor: string | undefined;
  list: string;
}

export interface PageResult<T> {
  data: T[];
  page: { hasMore: boolean; nextCursor: string };
}

const DEFAULT_LIMIT = 20;
const VERSION = '1';

/** Whether a text has the form of a key. Clients can send any cursor, and the database refuses to compare with other texts. */
export type IsKey = (text: string) => boolean;

const uuidKey: IsKey = (text) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text);
/** A count, which PostgreSQL keeps as an integer. */
export const integerKey: IsKey = (text) => /^\d{1,9}$/.test(text);
export const instantKey: IsKey = (text) =>
  /^\d{4}-/.test(text) && !Number.isNaN(Date.parse(text)) && new Date(text).toISOString() === text;

/**
 * `list` names the list, its organization and its order: a cursor of another list is refused. `isKey` is for lists whose key is
 * not a UUID. Throws `invalid_cursor`.
 */
export function pageRequest(
  list: string,
  query: { limit?: number; cursor?: string },
  { isKey = uuidKey, defaultLimit = DEFAULT_LIMIT }: { isKey?: IsKey; defaultLimit?: number } = {},
): PageRequest {
  const { limit = defaultLimit, cursor } = query;
  const after = cursor === undefined || cursor === '' ? undefined : decode(list, cursor, isKey);
  return { limit, cursor, list, after };
}

// An agent or a message may be 1 MiB. Larger pages would block the event loop while they are read and written as JSON, and a few such
// responses at once would use up the node's memory.
const MAX_PAGE_BYTES = 4 * 1024 * 1024;

/**
 * The rows of `page` up to 4 MiB, but at least one: for lists whose rows may be large. `order` is the order of the page and `bytes`
 * the size of a row, both in terms of the page's columns. Each row has the number of rows before the cut as `found`.
 */
export function firstBytes(page: Sql, { order, bytes }: { order: Sql; bytes: Sql }): Sql {
  return sql`
    select * from (
      select p.*, count(*) over ()::integer as found,
        sum(${bytes}) over (order by ${order} rows between unbounded preceding and 1 preceding) as bytes_before
      from (${page}) p) cut
    where bytes_before is null or bytes_before < ${MAX_PAGE_BYTES}
    order by ${order}`;
}

/** Whether `firstBytes` left out rows of the page. */
function isCut(rows: readonly unknown[]): boolean {
  const [first] = rows as readonly { found?: number }[];
  return (first?.found ?? 0) > rows.length;
}

/**
 * Builds the page from up to `limit + 1` rows: the extra row only shows that there are more. `end`: the key up to which the list was
 * read, if that may be after the last row of the page. `continues`: there may be more after `end`.
 */
export function pageOf<Row, T>(
  request: PageRequest,
  rows: readonly Row[],
  keyOf: (row: Row) => string,
  view: (row: Row) => T,
  end?: string,
  continues = false,
): PageResult<T> {
  const shown = rows.slice(0, request.limit);
  const isFull = rows.length > request.limit || isCut(rows);
  const last = shown.at(-1);
  const key = isFull || end === undefined ? last && keyOf(last) : end;
  return {
    data: shown.map(view),
    page: {
      hasMore: isFull || continues,
      nextCursor: key === undefined ? (request.cursor ?? '') : encode(request.list, key),
    },
  };
}

function encode(list: string, key: string): string {
  return Buffer.from(JSON.stringify([VERSION, list, key])).toString('base64url');
}

function decode(list: string, cursor: string, isKey: IsKey): string {
  const wrong = new ApiError('invalid_cursor', 'cursor: send the `page.nextCursor` of an earlier page of this list.');
  let parsed: unknown;
  try {
    parsed = JSON.parse(Buffer.from(cursor, 'base64url').toString());
  } catch {
    throw wrong;
  }
  if (!Array.isArray(parsed) || parsed.length !== 3) throw wrong;
  const [version, of, key] = parsed as unknown[];
  // Base64 has several spellings of one value. Only the one that we write is accepted.
  if (version !== VERSION || of !== list || typeof key !== 'string' || encode(list, key) !== cursor) throw wrong;
  if (!isKey(key)) throw wrong;
  return key;
}
