// Secrets that were rotated away or whose key was deleted, which have a code of their own for a while (api.md section 2).
import sql from 'sql-template-tag';
import { deleteAcross } from '../db/delete-in-batches.ts';
import type { Platform } from '../platform.ts';

/** How long; afterwards they are `invalid_token`, as if they had never been. */
export const RETIRED_KEPT_MS = 90 * 24 * 3600 * 1000;

/** Drops the hashes that have no code of their own any more, and the deleted keys that they were of. */
export async function dropRetiredSecrets(
  { shards }: Pick<Platform, 'shards'>,
  now: Date,
  signal: AbortSignal,
): Promise<void> {
  const before = new Date(now.getTime() - RETIRED_KEPT_MS);
  await deleteAcross(
    shards,
    'deleting retired secrets',
    signal,
    (limit, within) => sql`
      delete from retired_key_secrets r using (
        select organization_id, key_id, secret_hash from retired_key_secrets
        where retired_at <= ${before} ${within()} order by retired_at ${limit}) old
      where r.organization_id = old.organization_id ${within(sql`r.organization_id`)} and r.key_id = old.key_id and r.secret_hash = old.secret_hash`,
  );
  await deleteAcross(
    shards,
    'deleting old deleted keys',
    signal,
    (limit, within) => sql`
      delete from api_keys k using (
        select organization_id, key_id from api_keys
        where deleted_at <= ${before} ${within()} order by deleted_at ${limit}) old
      where k.organization_id = old.organization_id ${within(sql`k.organization_id`)} and k.key_id = old.key_id`,
  );
}
