// Sessions that are parked until their models are called again.
import sql from 'sql-template-tag';
import type { Tx } from '../db/db.ts';
import type { Platform } from '../platform.ts';
import type { SessionRow } from './session.ts';

/** Whether the session waits for models that did not respond; not for one that asks for fewer requests. */
export function waitsForOutage({ waitingFor }: Pick<SessionRow, 'waitingFor'>): boolean {
  const code = waitingFor?.type === 'model' ? waitingFor.error?.code : undefined;
  return code === 'model_unavailable' || code === 'model_timeout';
}

/** Lets a node call the models of a parked session now. The caller holds the row's lock. */
export async function callModelsNow(
  tx: Tx,
  row: Pick<SessionRow, 'organizationId' | 'sessionId' | 'turn'>,
  { wake, now }: { wake: Platform['wake']; now: Date },
): Promise<void> {
  await Promise.all([
    tx.query(sql`
      update sessions set runnable_at = ${now}
      where organization_id = ${row.organizationId} and session_id = ${row.sessionId} and node_id is null`),
    tx.query(sql`
      update operations set retry_at = ${now}
      where organization_id = ${row.organizationId} and session_id = ${row.sessionId} and turn = ${row.turn}
        and kind <> 'tool' and status = 'pending'`),
  ]);
  tx.afterCommit(() => wake.publish('runnable', row));
}
