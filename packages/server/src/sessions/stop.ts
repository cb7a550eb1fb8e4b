// Requests to stop a session: its turn is interrupted or steered, or its parent no longer needs it. Only the node runtime ends
// a turn, so there is one code path for it; a parked session is claimed at once to be stopped.
import sql, { type Sql } from 'sql-template-tag';
import type { Tx } from '../db/db.ts';
import type { SessionRow } from '../session-rows/session.ts';
import type { Wake } from '../wake/wake.ts';

/** The current turn will end as `interrupted`. The caller holds the row's lock and has checked that `stop` is not set. */
export async function interruptTurn(
  tx: Tx,
  row: Pick<SessionRow, 'organizationId' | 'sessionId'>,
  { wake, now }: { wake: Wake; now: Date },
): Promise<void> {
  // A worker can't be interrupted, so its claim is revoked.
  await tx.query(sql`
    update sessions set stop = 'interrupt', runnable_at = ${now},
      epoch = case when queue is null then epoch else epoch + 1 end,
      node_id = case when queue is null then node_id end
    where organization_id = ${row.organizationId} and session_id = ${row.sessionId}`);
  tx.afterCommit(() => publishStop(wake, row.organizationId, [row.sessionId]));
}

/** The statement that cancels the open children of a session, or only those of some of its calls. */
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
