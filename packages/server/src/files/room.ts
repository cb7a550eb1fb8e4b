// Room for the bytes of files: the storage of an organization (SIGNALBOX_MAX_FILE_MEGABYTES), and in it the shares of its end users.
//
// Room is taken before bytes are stored, so an upload that is refused is not stored: for the whole file if its length is known, else for a
// mebibyte at a time. `organizations.file_bytes` counts the files that exist. What uploads have taken is on their own rows, and disappears
// with them, so nothing has to be returned after a crash.
//
// End users could otherwise use up the storage for all others. What one of them has uploaded with session tokens, and no message has named
// yet, has a small share, and is deleted after a day (retention.ts).
import sql, { type Sql } from 'sql-template-tag';
import { ApiError } from '../lib/api-error.ts';
import type { Platform } from '../platform.ts';
import type { FileKey } from './store.ts';

const MIB = 1024 * 1024;
/** Enough for a message with three of the largest files. */
const MAX_UNSENT_BYTES = 100 * MIB;
/** For the files of one end user, in messages or not. */
const PART_OF_END_USER = 1 / 4;

export interface Room {
  /** To be called before so many bytes of the file are stored. 409 `storage_full`. */
  take(bytes: number): Promise<void>;
}

export interface RoomOptions {
  /** The length of the whole file in bytes, if it is known. */
  readonly length: number | undefined;
  /** The end user whose share it counts in, as the index `files_by_uploader` has it; undefined: none. */
  readonly sharer: string | undefined;
}

interface Used {
  readonly organization: number;
  readonly unsent: number;
  readonly sent: number;
  /** Undefined if there is not enough. */
  readonly taken: number | null;
}

export function createRoom(
  platform: Pick<Platform, 'db' | 'clock' | 'files'>,
  file: FileKey,
  { length, sharer }: RoomOptions,
): Room {
  const { db, files } = platform;
  const isLimited = Number.isFinite(files.maxBytes);
  const maxBytes = isLimited ? files.maxBytes : null;
  const maxUnsent = sharer === undefined ? null : MAX_UNSENT_BYTES;
  const maxOfSharer = isLimited && sharer !== undefined ? Math.floor(files.maxBytes * PART_OF_END_USER) : null;
  let taken = 0;

  /** Takes what is `wanted`, or what is left if that is enough for what is `needed`. */
  async function takeBetween(needed: number, wanted: number): Promise<void> {
    const [, rows] = await db.batch<Used>([
      // Uploads that take the last room at the same time wait for each other.
      sql`select 1 from organizations where organization_id = ${file.organizationId} for no key update`,
      sql`
        with used as (${usedBy(file, sharer, platform.clock.now())}),
        left_over as (
          select least(${maxBytes}::bigint - u.organization, ${maxUnsent}::bigint - u.unsent,
            ${maxOfSharer}::bigint - u.unsent - u.sent) as bytes from used u),
        taken as (
          update files f set reserved_bytes = least(${wanted}::bigint, l.bytes) from left_over l
          where f.organization_id = ${file.organizationId} and f.file_id = ${file.fileId} and l.bytes >= ${needed}::bigint
          returning f.reserved_bytes as bytes)
        select u.organization, u.unsent, u.sent, (select t.bytes from taken t) as taken from used u`,
    ]);
    const [used] = rows!;
    if (used!.taken === null) throw refusal(used!, needed);
    taken = used!.taken;
  }

  function refusal({ organization, unsent, sent }: Used, needed: number): ApiError {
    if (isLimited && organization + needed > files.maxBytes) {
      const limit = `The files of the organization may have ${mebibytes(files.maxBytes)} together.`;
      return new ApiError('storage_full', `${limit} Delete some first.`);
    }
    if (maxUnsent !== null && unsent + needed > maxUnsent) {
      const limit = `Your files that are in no message yet may have ${mebibytes(maxUnsent)} together.`;
      return new ApiError('storage_full', `${limit} Send them in a message first; the others are deleted after a day.`);
    }
    if (maxOfSharer !== null && unsent + sent + needed > maxOfSharer) {
      return new ApiError('storage_full', `Your files may have ${mebibytes(maxOfSharer)} together.`);
    }
    // The row of the upload is gone.
    return new ApiError('request_timeout', 'The upload took too long. Send the file again.');
  }

  return {
    async take(bytes) {
      if (bytes <= taken || (!isLimited && sharer === undefined)) return;
      await takeBetween(bytes, Math.max(bytes, length ?? Math.ceil(bytes / MIB) * MIB));
    },
  };
}

/** In files and by uploads, without this one. */
function usedBy({ organizationId, fileId }: FileKey, sharer: string | undefined, now: Date): Sql {
  const ofSharer = (isUnsent: boolean) =>
    sharer === undefined
      ? sql`0`
      : sql`(
          select coalesce(sum(greatest(f.bytes, f.reserved_bytes)), 0) from files f
          where f.organization_id = ${organizationId} and f.is_unsent = ${isUnsent} and f.uploaded_by is not null
            and coalesce(f.uploader->>'id', f.uploaded_by::text) = ${sharer}
            and (f.purge_after is null or f.purge_after > ${now}) and f.file_id <> ${fileId})`;
  return sql`
    select (o.file_bytes + (
        select coalesce(sum(f.reserved_bytes), 0) from files f
        where f.organization_id = ${organizationId} and f.purge_after > ${now} and f.file_id <> ${fileId}))::bigint as organization,
      ${ofSharer(true)}::bigint as unsent, ${ofSharer(false)}::bigint as sent
    from organizations o where o.organization_id = ${organizationId}`;
}

function mebibytes(bytes: number): string {
  return `${Math.floor(bytes / MIB)} MiB`;
}
