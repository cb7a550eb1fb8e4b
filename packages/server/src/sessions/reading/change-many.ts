// Cancels or closes many sessions: each in a transaction of its own, so that no lock is held for long and one failure stops no other.
import { type ChangedSession, type Input, type Result, type Session, sessionStatuses } from '@signalbox/contract';
import { ApiError, invalidField } from '../../lib/api-error.ts';
import type { PoolContext } from '../../lib/context.ts';
import { formatId, uuidOf } from '../../lib/ids.ts';
import { pageOf, pageRequest } from '../../lib/page.ts';
import { readSession } from '../../session-rows/session.ts';
import { cancelSession, closeSession } from '../end-session.ts';
import { findPage } from './list.ts';

// As many connections, at most.
const AT_ONCE = 4;

type Filters = Input<'cancelSessions'>;
type Change = (ctx: PoolContext, input: { sessionId: string }) => Promise<{ session: Session }>;

export function cancelSessions(ctx: PoolContext, filters: Filters): Promise<Result<'cancelSessions'>> {
  return changeSessions(ctx, filters, cancelSession);
}

export function closeSessions(ctx: PoolContext, filters: Filters): Promise<Result<'closeSessions'>> {
  return changeSessions(ctx, filters, closeSession);
}

const open = sessionStatuses.filter((status) => ['idle', 'running', 'waiting'].includes(status));

async function changeSessions(ctx: PoolContext, input: Filters, change: Change): Promise<Result<'cancelSessions'>> {
  const { limit = 100, cursor, sessionIds, ...filters } = input;
  if (sessionIds === undefined && Object.keys(filters).length === 0) {
    throw invalidField('', 'needs at least one filter, such as `environment` or `sessionIds`');
  }
  const request = pageRequest(`sessions:${ctx.organizationId}`, {
    limit: sessionIds?.length ?? limit,
    ...(cursor !== undefined && { cursor }),
  });
  // Sessions that have ended are left out of a search, and reported if they are named.
  const statuses = sessionIds === undefined && filters.status === undefined ? { statuses: open } : {};
  const named = sessionIds === undefined ? {} : { sessionIds };
  const { rows, checkedUntil } = await findPage(ctx, { ...filters, ...statuses, ...named }, request);
  const found = rows.slice(0, request.limit).map(({ sessionId }) => formatId('ses', sessionId));
  const changed = new Map<string, ChangedSession>();
  const left = found.values();
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const sessionId of left) {
        if (ctx.signal?.aborted) return;
        changed.set(sessionId, await changeOne(ctx, sessionId, change));
      }
    }),
  );
  ctx.signal?.throwIfAborted();
  const page = pageOf(
    request,
    rows,
    (row) => row.sessionId,
    (row) => changed.get(formatId('ses', row.sessionId))!,
    checkedUntil,
    checkedUntil !== undefined,
  );
  if (sessionIds === undefined) return page;
  const missing: ChangedSession['error'] = {
    code: 'not_found',
    message: 'There is no such session, or it does not match the filters.',
  };
  const data = [...new Set(sessionIds)].map(
    (sessionId) => changed.get(sessionId) ?? { sessionId, status: null, error: missing },
  );
  return { ...page, data };
}

async function changeOne(ctx: PoolContext, sessionId: string, change: Change): Promise<ChangedSession> {
  try {
    const { session } = await change(ctx, { sessionId });
    return { sessionId, status: session.status, error: null };
  } catch (error) {
    if (!(error instanceof ApiError) || error.status >= 500) throw error;
    const { code, message } = error;
    const row = await readSession(ctx.db, ctx.organizationId, uuidOf('ses', sessionId)).catch((error) => {
      // It was deleted a moment ago.
      if (error instanceof ApiError) return undefined;
      throw error;
    });
    return { sessionId, status: row?.status ?? null, error: { code, message } };
  }
}
