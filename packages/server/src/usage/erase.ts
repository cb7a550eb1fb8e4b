// Removes the id of an end user from the usage. The sums stay: they are also in those of the day, under no end user.
import sql from 'sql-template-tag';
import type { Db } from '../db/db.ts';
import { deleteInBatches } from '../db/delete-in-batches.ts';

/** After the last call for the end user. A compaction that is moving calls has locked them, so the second statement finds what it adds. */
export async function eraseUsage(
  db: Db,
  organizationId: string,
  endUserId: string,
  signal: AbortSignal,
): Promise<void> {
  await db.execute(sql`
    update model_usage set end_user_id = null
    where organization_id = ${organizationId} and end_user_id = ${endUserId}`);
  await deleteInBatches(db, signal, {
    find: (limit) => sql`
      select x.day, x.environment from model_usage_end_user_days x
      where x.organization_id = ${organizationId} and x.end_user_id = ${endUserId} ${limit}`,
    drop: sql`
      delete from model_usage_end_user_days d using old
      where d.organization_id = ${organizationId} and d.day = old.day and d.environment = old.environment
        and d.end_user_id = ${endUserId}`,
  });
}
