// A worker's claim on a step: the session row has the worker turn's id as its `node_id`. Every change is made under the row's
// lock, or is conditional on the worker turn's id and the epoch. A worker that has lost its claim is therefore refused, even if
// it believes that its lease is valid.
import sql, { empty, join, type Sql } from 'sql-template-tag';
import type { Queryable, Tx } from '../db/db.ts';
import { ApiError } from '../lib/api-error.ts';
import type { Platform } from '../platform.ts';
import { releasedCall } from '../session-rows/operations.ts';
import { type SessionRow, sessionColumns } from '../session-rows/session.ts';

/** A session with a step that a worker has claimed; `nodeId` is the worker turn's id. */
export type ClaimedSession = SessionRow & { nodeId: string };

/** With the characters that the worker has appended. */
export type AppendedSession = ClaimedSession & { appendedCharacters: number };

/** 409 `turn_lost`. */
export function turnLost(): ApiError {
  return new ApiError('turn_lost', 'The turn has ended, or another worker has it.');
}

/** 409 `turn_lost` if the claim was lost. */
export function readClaimedSession(
  db: Queryable,
  organizationId: string,
  workerTurnId: string,
): Promise<AppendedSession> {
  return selectClaimedSession(db, organizationId, workerTurnId, empty);
}

/** The same, and no other transaction can change the row until this one ends. */
export function lockClaimedSession(tx: Tx, organizationId: string, workerTurnId: string): Promise<ClaimedSession> {
  return selectClaimedSession(tx, organizationId, workerTurnId, sql`for no key update`);
}

async function selectClaimedSession(
  db: Queryable,
  organizationId: string,
  workerTurnId: string,
  lock: Sql,
): Promise<AppendedSession> {
  // Nodes are in the same column, but without a queue: a node's id can't be used as a worker turn's.
  const [row] = await db.query<AppendedSession>(sql`
    select ${sessionColumns}, s.appended_characters as "appendedCharacters" from sessions s
    where s.organization_id = ${organizationId} and s.node_id = ${workerTurnId} and s.queue is not null ${lock}`);
  if (!row) throw turnLost();
  return row;
}

/** Ends the claim, so that a node continues the turn. From then on the worker is refused. */
export function endClaimPatch(now: Date): Sql[] {
  return [sql`node_id = null`, sql`queue = null`, sql`epoch = epoch + 1`, sql`runnable_at = ${now}`];
}

/** Deletes the row in `nodes` that keeps the claim's lease. */
export function deleteClaimLease(workerTurnId: string): Sql {
  return sql`delete from nodes where node_id = ${workerTurnId}`;
}

/**
 * Releases the claim, in the transaction that has the row's lock. A node then resets the step's text and offers the step and
 * its client calls again.
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
      update operations set status = ${releasedCall.to}
      where organization_id = ${organizationId} and session_id = ${sessionId} and turn = ${turn} and kind = 'tool'
        and status = ${releasedCall.from}`),
    tx.query(deleteClaimLease(nodeId)),
  ]);
  tx.afterCommit(() => wake.publish('runnable', { organizationId, sessionId }));
}

/** Releases the claim in a transaction of its own. Does nothing if the claim was already lost. */
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
 * Revokes the claim of a worker whose turn is to stop or has timed out. Does nothing if the claim was already lost. Its calls
 * stay `running`, as after a crash of the worker, because it is unknown whether they had their effect.
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
