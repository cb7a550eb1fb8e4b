// Lists of sessions, and how many there are.
import { type Input, type ListedSession, type MessagePart, maxCount, type Result } from '@signalbox/contract';
import sql from 'sql-template-tag';
import type { PoolContext } from '../../lib/context.ts';
import { idRange, uuidOf } from '../../lib/ids.ts';
import { type PageRequest, pageOf, pageRequest } from '../../lib/page.ts';
import { type SessionRow, viewSession } from '../../session-rows/session.ts';
import { countFound, type Found, findSessions } from '../search/find.ts';
import { type SessionFilters, sessionQuery, withValuesPlanned } from '../search/list-query.ts';
import { previewOf } from '../search/texts.ts';
import { searchFor } from '../search/words.ts';

/** Newest first by default. */
export async function listSessions(ctx: PoolContext, input: Input<'listSessions'>): Promise<Result<'listSessions'>> {
  const { order } = input;
  const request = pageRequest(`sessions:${order === 'asc' ? 'asc:' : ''}${ctx.organizationId}`, input);
  const { rows, checkedUntil } = await findPage(ctx, input, { ...request, order });
  const details = await readDetails(ctx, rows.slice(0, request.limit));
  const view = (row: SessionRow): ListedSession => ({ ...viewSession(row), ...details.get(row.sessionId)! });
  return pageOf(request, rows, (row) => row.sessionId, view, checkedUntil, checkedUntil !== undefined);
}

/** One more row than the page has, if there are more. */
export async function findPage(
  { db, organizationId }: PoolContext,
  filters: SessionFilters,
  { order, after, limit }: Pick<PageRequest, 'after' | 'limit'> & { order?: 'asc' | 'desc' | undefined },
): Promise<Found> {
  const query = sessionQuery(filters, { organizationId, order, after });
  const words = wordsIn(organizationId, filters);
  if (words === 'none') return { rows: [] };
  if (words === undefined && !query.hasSeveralIndexes)
    return { rows: await db.query<SessionRow>(query.list(limit + 1)) };
  return findSessions(db, { organizationId, words, ...query }, limit + 1);
}

/** Undefined if the search is not for words. `none`: nothing can be found. */
function wordsIn(
  organizationId: string,
  { q, environment, agentId, endUserId }: SessionFilters,
): string | undefined | 'none' {
  if (q === undefined || idRange('ses', q.trim())) return undefined;
  const agent = agentId === undefined ? undefined : uuidOf('agt', agentId);
  return searchFor(q, { organizationId, environment, agentId: agent, endUserId }) ?? 'none';
}

export async function countSessions(ctx: PoolContext, input: Input<'countSessions'>): Promise<Result<'countSessions'>> {
  const { db, organizationId } = ctx;
  const query = sessionQuery(input, { organizationId });
  const words = wordsIn(organizationId, input);
  if (words === 'none') return { count: 0, isExact: true };
  if (words !== undefined) return countFound(db, { organizationId, words, ...query }, maxCount);
  const statement = sql`select count(*)::int as count from (${query.list(maxCount + 1)}) c`;
  const [row] = query.hasSeveralIndexes
    ? await withValuesPlanned<{ count: number }>(db, statement)
    : await db.query<{ count: number }>(statement);
  return { count: Math.min(row!.count, maxCount), isExact: row!.count <= maxCount };
}

type Details = Pick<ListedSession, 'preview' | 'workingMs'>;

/** The preview of a session that is not searchable yet is read from its first message. */
async function readDetails(
  { db, organizationId }: PoolContext,
  sessions: readonly SessionRow[],
): Promise<Map<string, Details>> {
  if (sessions.length === 0) return new Map();
  const ids = sessions.map(({ sessionId }) => sessionId);
  const turns = sessions.map(({ forkedAtTurn }) => forkedAtTurn ?? 0);
  const rows = await db.query<Details & { sessionId: string; content: MessagePart[] | null }>(sql`
    select k.session_id as "sessionId", x.preview, x.working_ms as "workingMs", f.content
    from unnest(${ids}::uuid[], ${turns}::int[]) k(session_id, turn)
    left join lateral (
      select x.preview, x.working_ms from session_search x
      where x.organization_id = ${organizationId} and x.session_id = k.session_id) x on true
    left join lateral (
      select m.content from messages m
      where m.organization_id = ${organizationId} and m.session_id = k.session_id and m.turn > k.turn and x.preview is null
      order by m.turn, m.position limit 1) f on true`);
  return new Map(
    rows.map(({ sessionId, preview, workingMs, content }) => [
      sessionId,
      { preview: preview ?? (content && previewOf(content)), workingMs },
    ]),
  );
}
