// Secrets that were rotated or whose key was deleted. For 90 days they are refused with a code of their own (`token_rotated`,
// `token_revoked`), so that the caller learns why.
import sql from 'sql-template-tag';
import { deleteAcross } from '../db/delete-in-batches.ts';
import type { Platform } from '../platform.ts';

/** Afterwards they are `invalid_token`, as if they had never existed. */
export const RETIRED_KEPT_MS = 90 * 24 * 3600 * 1000;

/** Deletes the hashes that are older than that, and the deleted keys they belonged to. */
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
