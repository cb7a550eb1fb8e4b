// Deletes ended sessions and their children, with everything but messages that forks inherit (kept-transcripts.ts). Sessions that something
// else has locked are left, unless an end user is erased.
//
// Their segments, operations and deliveries go first, a thousand rows a statement, then the session rows. No statement is long, and
// the same call deletes what an interrupted one left.
import type { Session } from '@signalbox/contract';
import sql, { empty, type Sql } from 'sql-template-tag';
import type { Tx } from '../../db/db.ts';
import { deleteInBatches } from '../../db/delete-in-batches.ts';
import { forgetHolders } from '../../files/retention.ts';
import { deleteFromTail } from '../../journal/tail.ts';
import type { Platform } from '../../platform.ts';
import { deletePairs } from '../search/metadata.ts';
import { deleteUninherited, releaseTranscripts } from './kept-transcripts.ts';

/** For the erasure of an end user: the sessions' files go too, and the number of both is recorded in the transaction that deletes them. */
export interface ErasureOptions {
  readonly alsoUploaded: true;
  record(tx: Tx, deleted: { sessions: number; files: number }): Promise<unknown>;
}

/** `roots`: sessions without a parent. Returns how many sessions were deleted, including children. */
export async function deleteEndedSessions(
  { db, clock }: Pick<Platform, 'db' | 'clock'>,
  organizationId: string,
  roots: readonly string[],
  signal: AbortSignal,
  erasure?: ErasureOptions,
): Promise<number> {
  const children = await db.query<{ sessionId: string; rootId: string }>(sql`
    select s.session_id as "sessionId", s.root_session_id as "rootId" from sessions s
    where s.organization_id = ${organizationId} and s.root_session_id = any(${[...roots]}::uuid[])`);
  const rootOf = new Map(children.map(({ sessionId, rootId }) => [sessionId, rootId]));
  const ids = [...roots, ...rootOf.keys()];
  await deleteInBatches(db, signal, {
    find: (limit) => sql`
      select x.session_id, x.turn, x.seq_to from segments x
      where x.organization_id = ${organizationId} and x.session_id = any(${ids}::uuid[]) ${limit}`,
    drop: sql`
      delete from segments g using old
      where g.organization_id = ${organizationId} and g.session_id = any(${ids}::uuid[]) and g.session_id = old.session_id
        and g.turn = old.turn and g.seq_to = old.seq_to`,
  });
  await deleteInBatches(db, signal, {
    find: (limit) => sql`
      select x.operation_id from operations x
      where x.organization_id = ${organizationId} and x.session_id = any(${ids}::uuid[]) ${limit}`,
    drop: sql`
      delete from operations o using old
      where o.organization_id = ${organizationId} and o.operation_id = old.operation_id`,
  });
  await deleteInBatches(db, signal, {
    find: (limit) => sql`
      select x.webhook_subscription_id, x.delivery_id from webhook_deliveries x
      where x.organization_id = ${organizationId} and x.session_id = any(${ids}::uuid[]) ${limit}`,
    drop: sql`
      delete from webhook_deliveries d using old
      where d.organization_id = ${organizationId} and d.webhook_subscription_id = old.webhook_subscription_id
        and d.delivery_id = old.delivery_id`,
  });
  if (signal.aborted) return 0;
  // The foreign key deletes the session's approvals, of which there are few.
  return db.transaction(async (tx) => {
    const rows = await tx.query<{ sessionId: string; metadata: Session['metadata'] }>(sql`
      select session_id as "sessionId", metadata from sessions
      where organization_id = ${organizationId} and session_id = any(${ids}::uuid[]) and ended_at is not null
      order by session_id for update ${erasure ? empty : sql`skip locked`}`);
    const found = new Set(rows.map(({ sessionId }) => sessionId));
    // A family that another node is deleting is left to it as a whole.
    const left = new Set(erasure ? [] : ids.filter((id) => !found.has(id)).map((id) => rootOf.get(id) ?? id));
    const whole = rows.filter(({ sessionId: id }) => !left.has(rootOf.get(id) ?? id));
    const deleted = whole.map(({ sessionId }) => sessionId);
    if (deleted.length === 0) return 0;
    await deleteUninherited(tx, organizationId, deleted, signal);
    await releaseTranscripts(tx, organizationId, deleted);
    const files = await forgetHolders(tx, organizationId, deleted, clock.now(), erasure);
    for (const statement of deletePairs(organizationId, whole)) tx.write(statement);
    tx.write(sql`
      delete from received_webhooks
      where organization_id = ${organizationId} and session_id = any(${deleted}::uuid[])`);
    tx.write(deletePendingDeliveries(organizationId, deleted));
    // The foreign key would delete these one by one, which takes as long as all of the above.
    tx.write(sql`
      delete from session_search where organization_id = ${organizationId} and session_id = any(${deleted}::uuid[])`);
    tx.write(deleteFromTail(organizationId, deleted));
    const sessions = await tx.execute(sql`
      delete from sessions
      where organization_id = ${organizationId} and session_id = any(${deleted}::uuid[])`);
    await erasure?.record(tx, { sessions, files });
    return sessions;
  });
}

/** Deletes the current deliveries of sessions, whose rows must still be there. */
export function deletePendingDeliveries(organizationId: string, ids: readonly string[]): Sql {
  const currentOf = (column: Sql) => sql`
    select ${column} from sessions s
    where s.organization_id = ${organizationId} and s.session_id = any(${[...ids]}::uuid[])`;
  return sql`
    delete from pending_deliveries d
    where d.organization_id = ${organizationId}
      and d.webhook_subscription_id = any(array(${currentOf(sql`s.delivery_subscription_id`)}))
      and d.delivery_id = any(array(${currentOf(sql`s.delivery_id`)}))`;
}
