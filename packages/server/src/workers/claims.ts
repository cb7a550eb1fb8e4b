// A worker turn that a program holds: its Session's row names it as `node_id`. Each change is made under the row's lock, or
// conditional on the worker turn's id and the epoch that it was read with: what a program sends that has lost its turn is
// refused, whatever it believes of its lease.
import sql, { empty, join, type Sql } from 'sql-template-tag';
import type { Queryable, Tx } from '../db/db.ts';
import { ApiError } from '../lib/api-error.ts';
import type { Platform } from '../platform.ts';
import { type SessionRow, sessionColumns } from '../sessions/state/session.ts';

/** A Session that a program holds. */
export type ClaimedSession = SessionRow & { nodeId: string };

/** 409 `turn_lost`. */
export function turnLost(): ApiError {
  return new ApiError('turn_lost', 'The turn has ended, or another worker has it.');
}

/** As it is now. */
export function readClaimedSession(
  db: Queryable,
  organizationId: string,
  workerTurnId: string,
): Promise<ClaimedSession> {
  return selectClaimedSession(db, organizationId, workerTurnId, empty);
}

/** Nobody else changes the row until the transaction ends. */
export function lockClaimedSession(tx: Tx, organizationId: string, workerTurnId: string): Promise<ClaimedSession> {
  return selectClaimedSession(tx, organizationId, workerTurnId, sql`for no key update`);
}

async function selectClaimedSession(
  db: Queryable,
  organizationId: string,
  workerTurnId: string,
  lock: Sql,
): Promise<ClaimedSession> {
  // The service's own workers stand in the same column, without a queue: who learned of one's id holds nothing by it.
  const [row] = await db.query<ClaimedSession>(sql`
    select ${sessionColumns} from sessions s
    where s.organization_id = ${organizationId} and s.node_id = ${workerTurnId} and s.queue is not null ${lock}`);
  if (!row) throw turnLost();
  return row;
}

/** What of the row changes when the service's own worker takes over from the program, which is refused from then on. */
export function endClaimPatch(now: Date): Sql[] {
  return [sql`node_id = null`, sql`queue = null`, sql`epoch = epoch + 1`, sql`runnable_at = ${now}`];
}

/** The worker turn's lease. */
export function deleteClaimLease(workerTurnId: string): Sql {
  return sql`delete from nodes where node_id = ${workerTurnId}`;
}

/**
 * Gives a claimed step back in the transaction that has the row's lock: the service's worker takes text that it has shown back
 * and offers it again, client calls too.
 */
export async function releaseLockedClaim(
  tx: Tx,
  { clock, wake }: Pick<Platform, 'clock' | 'wake'>,
  { organizationId, sessionId, turn, nodeId }: ClaimedSession,
): Promise<void> {
  const now = clock.now();
  await Promise.all([
    tx.query(sql`
      update sessions set node_id = null, queue = null, epoch = epoch + 1, runnable_at = ${now}
      where organization_id = ${organizationId} and session_id = ${sessionId}`),
    tx.query(sql`
      update operations set status = 'awaiting_result'
      where organization_id = ${organizationId} and session_id = ${sessionId} and turn = ${turn} and kind = 'tool'
        and status = 'running'`),
    tx.query(deleteClaimLease(nodeId)),
  ]);
  tx.afterCommit(() => wake.publish('runnable', { organizationId, sessionId }));
}

/** The same for who has no transaction; nothing where it is lost already. */
export async function releaseClaim(
  platform: Pick<Platform, 'db' | 'clock' | 'wake'>,
  { organizationId, nodeId }: SessionRow,
): Promise<void> {
  await platform.db
    .transaction(async (tx) => releaseLockedClaim(tx, platform, await lockClaimedSession(tx, organizationId, nodeId!)))
    .catch((error) => {
      if (!(error instanceof ApiError)) throw error;
    });
}

/**
 * Takes the step back from a program whose time is over; nothing where it is lost already. Calls that it runs stay `running`:
 * as when it had died, nobody knows whether they had their effect.
 */
export async function revokeClaim(
  { db, clock, wake }: Pick<Platform, 'db' | 'clock' | 'wake'>,
  { organizationId, sessionId, epoch, nodeId }: ClaimedSession,
): Promise<void> {
  await db.transaction(async (tx) => {
    await Promise.all([
      tx.query(sql`
        update sessions set ${join(endClaimPatch(clock.now()))}
        where organization_id = ${organizationId} and session_id = ${sessionId} and epoch = ${epoch}`),
      tx.query(deleteClaimLease(nodeId)),
    ]);
  });
  wake.publish('runnable', { organizationId, sessionId });
}
