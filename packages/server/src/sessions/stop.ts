// Asking whoever has a Session to stop what it does: a turn that is interrupted or steered, a child whose parent goes on
// without it. Only the service's own worker ends a turn, so that there is one way of ending it; a parked Session is claimed
// for it at once.
import sql, { type Sql } from 'sql-template-tag';
import type { Tx } from '../db/db.ts';
import type { Wake } from '../wake/wake.ts';
import type { SessionRow } from './state/session.ts';

/** The caller holds the row's lock, and has seen that nothing is to stop yet. The turn under way ends as `interrupted`. */
export async function interruptTurn(
  tx: Tx,
  row: Pick<SessionRow, 'organizationId' | 'sessionId'>,
  { wake, now }: { wake: Wake; now: Date },
): Promise<void> {
  // The integrator's own program can't be told: the service takes the turn back from it.
  await tx.query(sql`
    update sessions set stop = 'interrupt', runnable_at = ${now},
      epoch = case when queue is null then epoch else epoch + 1 end,
      node_id = case when queue is null then node_id end
    where organization_id = ${row.organizationId} and session_id = ${row.sessionId}`);
  tx.afterCommit(() => publishStop(wake, row.organizationId, [row.sessionId]));
}

/** The statement after which the open children of a Session, or of one of its calls, are cancelled. */
export function cancelChildren(
  owner: Pick<SessionRow, 'organizationId' | 'sessionId'>,
  now: Date,
  operationIds?: readonly string[],
): Sql {
  const ofCalls = operationIds ? sql`and s.parent_operation_id = any(${[...operationIds]}::uuid[])` : sql``;
  return sql`
    update sessions s set stop = 'cancel', runnable_at = ${now},
      epoch = case when s.queue is null then s.epoch else s.epoch + 1 end,
      node_id = case when s.queue is null then s.node_id end
    where s.organization_id = ${owner.organizationId} and s.parent_session_id = ${owner.sessionId}
      and s.ended_at is null ${ofCalls}
    returning s.session_id as "sessionId"`;
}

export function publishStop(wake: Wake, organizationId: string, sessionIds: readonly string[]): void {
  for (const sessionId of sessionIds) {
    wake.publish('inbox', { organizationId, sessionId });
    wake.publish('runnable', { organizationId, sessionId });
  }
}
