// Lists: pages of a stable order with opaque, versioned cursors.
import { ApiError } from './api-error.ts';

/** What a list function works with: how many rows, and after which. */
export interface PageRequest {
  limit: number;
  /** The key of the last row that the caller has; undefined at the beginning. */
  after: string | undefined;
  /** The cursor as it came. */
  cursor: string | undefined;
  list: string;
}

export interface PageResult<T> {
  data: T[];
  page: { hasMore: boolean; nextCursor: string };
}

const DEFAULT_LIMIT = 20;
const VERSION = '1';

/**
 * `list` names the list, its organization and its order: a cursor of another one is refused.
 * Throws `invalid_cursor`.
 */
export function pageRequest(
  list: string,
  query: { limit?: number; cursor?: string },
  defaultLimit = DEFAULT_LIMIT,
): PageRequest {
  const { limit = defaultLimit, cursor } = query;
  return { limit, cursor, list, after: cursor === undefined || cursor === '' ? undefined : decode(list, cursor) };
}

/** Makes the page from up to `limit + 1` rows: the one too many only says that there are more. */
export function pageOf<Row, T>(
  request: PageRequest,
  rows: readonly Row[],
  keyOf: (row: Row) => string,
  view: (row: Row) => T,
): PageResult<T> {
  const shown = rows.slice(0, request.limit);
  const last = shown.at(-1);
  return {
    data: shown.map(view),
    page: {
      hasMore: rows.length > request.limit,
      nextCursor: last === undefined ? (request.cursor ?? '') : encode(request.list, keyOf(last)),
    },
  };
}

function encode(list: string, key: string): string {
  return Buffer.from(JSON.stringify([VERSION, list, key])).toString('base64url');
}

function decode(list: string, cursor: string): string {
  const wrong = new ApiError('invalid_cursor', 'cursor: send the `page.nextCursor` of an earlier page of this list.');
  let parsed: unknown;
  try {
    parsed = JSON.parse(Buffer.from(cursor, 'base64url').toString());
  } catch {
    throw wrong;
  }
  if (!Array.isArray(parsed) || parsed.length !== 3) throw wrong;
  const [version, of, key] = parsed as unknown[];
  // Written anew, it must be the same text: base64 has several spellings of one value, and ours has one.
  if (version !== VERSION || of !== list || typeof key !== 'string' || encode(list, key) !== cursor) throw wrong;
  return key;
}
