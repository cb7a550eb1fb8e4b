// The end user that a session is for: refused while it is being erased.
import sql, { type Sql } from 'sql-template-tag';
import type { Tx } from '../db/db.ts';
import { ApiError } from '../lib/api-error.ts';

/**
 * 409 `conflict` while the end user is being erased. Call it after the transaction has locked an environment: an erasure begins by locking
 * all of them more strongly (end-users/end-users.ts), so it sees what this transaction inserts, or this statement sees the erasure.
 */
export async function requireNotErasing(tx: Tx, organizationId: string, endUserId: string): Promise<void> {
  const running = await tx.execute(erasureOf(organizationId, endUserId));
  if (running > 0) throw new ApiError('conflict', 'The end user is being erased. Try again when that has finished.');
}

/** For the same in a statement of its own. One row while the end user is being erased. */
export function erasureOf(organizationId: string, endUserId: string): Sql {
  return sql`
    select 1 from end_user_erasures where organization_id = ${organizationId} and end_user_id = ${endUserId}`;
}
