// Removes files that do not exist (any more), with their bytes: uploads that ended early, and deleted files.
//
// The bytes go first and the row last, so an interrupted removal is found again. A file comes into being only before `purge_after`, so
// none is removed under a transaction that keeps it.
import sql from 'sql-template-tag';
import type { Platform } from '../platform.ts';
import type { FileKey } from './store.ts';

type PurgePlatform = Pick<Platform, 'db' | 'clock' | 'files'>;

/** How many files a pass removes at a time: each has up to 32 MiB. */
const BATCH = 100;
const ZERO_UUID = '00000000-0000-0000-0000-000000000000';

/** Removes the purged files of every organization. */
export async function purgeFiles(
  platform: PurgePlatform & Pick<Platform, 'shards' | 'log'>,
  signal: AbortSignal,
): Promise<void> {
  // Files that can't be removed now are left behind, so a pass looks at each file once.
  let after = { purgeAfter: new Date(0), fileId: ZERO_UUID };
  for (;;) {
    const now = platform.clock.now();
    const { rows } = await platform.shards.query<FileKey & { store: string; purgeAfter: Date }>(
      'looking for files to remove',
      (within) => sql`
        select f.organization_id as "organizationId", f.file_id as "fileId", f.store, f.purge_after as "purgeAfter" from files f
        where f.purge_after <= ${now} and (f.purge_after, f.file_id) > (${after.purgeAfter}, ${after.fileId})
          ${within(sql`f.organization_id`)}
        order by f.purge_after, f.file_id limit ${BATCH}`,
    );
    // Each database server may return a whole page.
    const page = rows.toSorted(byTime).slice(0, BATCH);
    for (const file of page) {
      if (signal.aborted) return;
      await purgeFile(platform, file, file.store).catch((error) => {
        platform.log.warn({ err: error }, 'removing a file failed; retrying');
      });
    }
    if (page.length < BATCH) return;
    after = page.at(-1)!;
  }
}

/** Removes the purged files of an organization, now. Throws if a file can't be removed. */
export async function purgeFilesOf(
  platform: PurgePlatform,
  organizationId: string,
  signal: AbortSignal,
): Promise<void> {
  for (let found = BATCH; found === BATCH && !signal.aborted; ) {
    const files = await platform.db.query<FileKey & { store: string }>(sql`
      select f.organization_id as "organizationId", f.file_id as "fileId", f.store from files f
      where f.organization_id = ${organizationId} and f.purge_after <= ${platform.clock.now()}
      order by f.purge_after limit ${BATCH}`);
    found = files.length;
    for (const file of files) {
      if (signal.aborted) return;
      await purgeFile(platform, file, file.store);
    }
  }
}

type Purged = FileKey & { purgeAfter: Date };

function byTime(a: Purged, b: Purged): number {
  return a.purgeAfter.getTime() - b.purgeAfter.getTime() || (a.fileId < b.fileId ? -1 : 1);
}

/** Removes a received file that is not kept. Has no effect on a file that exists. */
export async function discardFile(platform: PurgePlatform, file: FileKey): Promise<void> {
  const expired = await platform.db.execute(sql`
    update files set purge_after = ${platform.clock.now()}
    where organization_id = ${file.organizationId} and file_id = ${file.fileId} and purge_after is not null`);
  if (expired > 0) await purgeFile(platform, file, platform.files.own.name);
}

async function purgeFile({ db, files }: PurgePlatform, file: FileKey, store: string): Promise<void> {
  await files.named(store).remove(file);
  await db.execute(sql`
    delete from files
    where organization_id = ${file.organizationId} and file_id = ${file.fileId} and purge_after is not null`);
}
