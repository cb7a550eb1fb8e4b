// Secrets that were rotated away or whose key was deleted, which have a code of their own for a while (api.md section 2).
import sql from 'sql-template-tag';
import type { Db } from '../db/db.ts';

/** How long; afterwards they are `invalid_token`, as if they had never been. */
export const RETIRED_KEPT_MS = 90 * 24 * 3600 * 1000;

/** Drops the hashes that have no code of their own any more, and the deleted keys that they were of. */
export async function dropRetiredSecrets(db: Db, now: Date): Promise<void> {
  const before = new Date(now.getTime() - RETIRED_KEPT_MS);
  await db.execute(sql`delete from retired_key_secrets where retired_at <= ${before}`);
  await db.execute(sql`delete from api_keys where deleted_at <= ${before}`);
}
