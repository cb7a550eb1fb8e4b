// Deletes files that nothing has used for some days: no session and no schedule names them. What end users have uploaded and not sent is
// deleted after a day (room.ts). What a tool created goes with its session.
import type { Uploader } from '@signalbox/contract';
import sql, { empty, type Sql } from 'sql-template-tag';
import type { Tx } from '../db/db.ts';
import { areThere } from '../db/rounds.ts';
import type { Within } from '../db/shards.ts';
import type { Platform } from '../platform.ts';

const DAY_MS = 24 * 3600 * 1000;
const BATCH = 200;
/** Not less than a day: see message-files.ts. */
const UNSENT_KEPT_DAYS = 1;
const ERASED: Uploader = { type: 'end_user', id: null, name: 'End user' };

/** Whether an organization may have files to delete, for rounds through all of them. */
export function hasOldFiles(organizationId: Sql, keptDays: number, now: Date, within: Within): Sql {
  const isThere = (days: number, which: Sql) =>
    areThere(sql`
      from files f
      where f.organization_id = ${organizationId} and f.purge_after is null
        and f.used_at < ${new Date(now.getTime() - days * DAY_MS)} ${which} ${within(sql`f.organization_id`)}`);
  const isUnsent = sql`and f.is_unsent and f.uploaded_by is not null`;
  return sql`${isThere(keptDays, empty)} or ${isThere(UNSENT_KEPT_DAYS, isUnsent)}`;
}

/** For one organization. */
export async function dropUnusedFiles(
  platform: Pick<Platform, 'db' | 'clock' | 'log' | 'metrics'>,
  organizationId: string,
  keptDays: number,
  signal: AbortSignal,
): Promise<void> {
  const isUnsent = sql`and f.is_unsent and f.uploaded_by is not null`;
  const dropped =
    (await dropOld(platform, organizationId, { which: empty, keptDays }, signal)) +
    (await dropOld(platform, organizationId, { which: isUnsent, keptDays: UNSENT_KEPT_DAYS }, signal));
  platform.metrics.filesDropped.inc(dropped);
  if (dropped > 0) platform.log.info({ organizationId, files: dropped }, 'deleted unused files');
}

/** Returns how many were deleted. */
async function dropOld(
  { db, clock }: Pick<Platform, 'db' | 'clock'>,
  organizationId: string,
  { which, keptDays }: { which: Sql; keptDays: number },
  signal: AbortSignal,
): Promise<number> {
  let dropped = 0;
  for (let found = BATCH; found === BATCH && !signal.aborted; ) {
    const now = clock.now();
    const before = new Date(now.getTime() - keptDays * DAY_MS);
    const [checked, gone] = await db.transaction(async (tx) => {
      const old = await tx.query<{ fileId: string; isUsed: boolean }>(sql`
        select f.file_id as "fileId", exists (
          select 1 from file_uses u where u.organization_id = ${organizationId} and u.file_id = f.file_id) as "isUsed"
        from files f
        where f.organization_id = ${organizationId} and f.purge_after is null and f.used_at < ${before} ${which}
        order by f.used_at limit ${BATCH} for no key update of f skip locked`);
      const idsOf = (isUsed: boolean) => old.filter((file) => file.isUsed === isUsed).map(({ fileId }) => fileId);
      // Checked again only after as many days. Nodes of an earlier version use a file without saying that it was sent.
      tx.write(sql`
        update files set used_at = ${now}, is_unsent = false
        where organization_id = ${organizationId} and file_id = any(${idsOf(true)}::uuid[])`);
      return [old.length, await retireFiles(tx, organizationId, idsOf(false), now)];
    });
    found = checked;
    dropped += gone;
  }
  return dropped;
}

/**
 * For an end user who is erased: what was uploaded with session tokens and is in no message is deleted, and the other uploads do not name
 * the end user any more. Returns how many files were deleted.
 */
export async function eraseUploads(tx: Tx, organizationId: string, endUserId: string, now: Date): Promise<number> {
  const uploads = sql`
    f.organization_id = ${organizationId} and f.is_unsent = any('{true,false}') and f.uploaded_by is not null
    and coalesce(f.uploader->>'id', f.uploaded_by::text) = ${endUserId}`;
  // A message that names one of them locks it (message-files.ts). The statement after the locks sees its use.
  await tx.query(sql`
    select 1 from files f where ${uploads} and f.is_unsent and f.purge_after is null
    order by f.file_id for no key update of f`);
  const unused = await tx.query<{ fileId: string }>(sql`
    select f.file_id as "fileId" from files f
    where ${uploads} and f.is_unsent and f.purge_after is null and not exists (
      select 1 from file_uses u where u.organization_id = ${organizationId} and u.file_id = f.file_id)`);
  const deleted = await retireFiles(
    tx,
    organizationId,
    unused.map(({ fileId }) => fileId),
    now,
  );
  await tx.query(sql`update files f set uploader = ${JSON.stringify(ERASED)} where ${uploads}`);
  return deleted;
}

/**
 * For sessions or a schedule that are deleted, in their transaction: nothing is used by them any more, and what a tool created in them is
 * deleted unless another session uses it. `alsoUploaded`: the same for what was uploaded for them, which otherwise stays until it is unused
 * for some days. Returns how many files were deleted.
 */
export async function forgetHolders(
  tx: Tx,
  organizationId: string,
  holders: readonly string[],
  now: Date,
  { alsoUploaded = false } = {},
): Promise<number> {
  const forgotten = await tx.query<{ fileId: string }>(sql`
    delete from file_uses where organization_id = ${organizationId} and holder_id = any(${holders}::uuid[])
    returning file_uses.file_id as "fileId"`);
  const used = alsoUploaded ? [...new Set(forgotten.map(({ fileId }) => fileId))] : [];
  // A message of another session that names one of them locks it (message-files.ts). The statement after the locks sees its use.
  await tx.query(sql`
    select 1 from files f
    where f.organization_id = ${organizationId} and f.purge_after is null
      and (f.session_id = any(${holders}::uuid[]) or f.file_id = any(${used}::uuid[]))
    order by f.file_id for no key update of f`);
  const unused = await tx.query<{ fileId: string }>(sql`
    select f.file_id as "fileId" from files f
    where f.organization_id = ${organizationId} and f.purge_after is null
      and (f.session_id = any(${holders}::uuid[]) or f.file_id = any(${used}::uuid[])) and not exists (
        select 1 from file_uses u where u.organization_id = ${organizationId} and u.file_id = f.file_id)`);
  const fileIds = unused.map(({ fileId }) => fileId);
  return fileIds.length > 0 ? await retireFiles(tx, organizationId, fileIds, now) : 0;
}

/** The files do not exist any more once the transaction commits; their bytes are removed later (purge.ts). Returns how many did. */
export async function retireFiles(tx: Tx, organizationId: string, fileIds: string[], now: Date): Promise<number> {
  const retired = await tx.query<{ bytes: number }>(sql`
    update files set purge_after = ${now}
    where organization_id = ${organizationId} and file_id = any(${fileIds}::uuid[]) and purge_after is null
    returning files.bytes`);
  const bytes = retired.reduce((sum, file) => sum + file.bytes, 0);
  if (bytes > 0) {
    await tx.query(sql`
      update organizations set file_bytes = file_bytes - ${bytes} where organization_id = ${organizationId}`);
  }
  return retired.length;
}
