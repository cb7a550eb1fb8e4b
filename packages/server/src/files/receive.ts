// Receives the content of a file: takes room for it, finds out what it is, and stores it as it arrives.
//
//   1. insertPending      a row that expires, and is cleaned up with its bytes if nothing follows (purge.ts)
//   2. the store          takes the bytes, once there is room for them (room.ts); no transaction is open, however long a client takes
//   3. keepFile           the row becomes a file, in one transaction with its record in the event log
import { createHash } from 'node:crypto';
import { maxFileBytes, type Uploader } from '@signalbox/contract';
import sql from 'sql-template-tag';
import type { Tx } from '../db/db.ts';
import { type EventSource, recordEvent } from '../events/record.ts';
import { ApiError } from '../lib/api-error.ts';
import { newUuid } from '../lib/ids.ts';
import type { Platform } from '../platform.ts';
import { type FileRow, fileEvent } from './file-row.ts';
import { createMediaTypeDetector } from './media-type.ts';
import { discardFile } from './purge.ts';
import { createRoom } from './room.ts';

export interface NewFile {
  readonly organizationId: string;
  readonly environment: string;
  readonly filename: string | null;
  /** The `Content-Type` that came with it. */
  readonly claimedType: string | undefined;
  /** The length of the content in bytes, if it is known. */
  readonly length?: number | undefined;
  /** The session whose tool returned it; null for an upload. */
  readonly sessionId: string | null;
  /** Null for what a tool returned. */
  readonly uploader: Uploader | null;
  /** For an upload with a session token: its caller, whose tokens alone may use it. */
  readonly tokenCallerId?: string | null;
}

/** A file whose content is stored and which does not exist yet: for `keepFile`. */
export type ReceivedFile = FileRow & { readonly organizationId: string };

type ReceivePlatform = Pick<Platform, 'db' | 'clock' | 'files' | 'log'>;

/** Longer than an upload can take (http/body/slow-bodies.ts), with a margin for clocks that differ. */
const PENDING_MS = 2 * 3600 * 1000;

/**
 * Stores the content. 404 without the environment, 413 if it is too large, 422 `file_invalid` if it is empty, 409 `storage_full`.
 * If it rejects, nothing is left to do for the caller.
 */
export async function receiveFile(
  platform: ReceivePlatform,
  file: NewFile,
  content: AsyncIterable<Uint8Array>,
): Promise<ReceivedFile> {
  const { files, log } = platform;
  const key = { organizationId: file.organizationId, fileId: newUuid() };
  const createdAt = await insertPending(platform, file, key.fileId);
  try {
    const room = createRoom(platform, key, { length: file.length, sharer: sharerOf(file) });
    if (file.length !== undefined && file.length > 0) await room.take(file.length);
    const detector = createMediaTypeDetector(file);
    const hash = createHash('sha256');
    let bytes = 0;
    await files.own.write(key, inspected());
    if (bytes === 0) throw new ApiError('file_invalid', 'The file is empty: send its content as the body.');
    const { filename, environment, sessionId, uploader } = file;
    const mediaType = await detector.detect();
    return { ...key, environment, filename, mediaType, bytes, sha256: hash.digest(), sessionId, uploader, createdAt };

    async function* inspected(): AsyncGenerator<Uint8Array> {
      for await (const chunk of content) {
        bytes += chunk.length;
        if (bytes > maxFileBytes) throw fileTooLarge();
        await room.take(bytes);
        hash.update(chunk);
        detector.add(chunk);
        yield chunk;
      }
    }
  } catch (error) {
    await discardFile(platform, key).catch((failure) => log.warn({ err: failure }, 'discarding an upload failed'));
    throw error;
  }
}

export function fileTooLarge(): ApiError {
  return new ApiError('payload_too_large', `A file can have at most ${maxFileBytes / 1024 / 1024} MiB.`);
}

/** As the index `files_by_uploader` has it. */
function sharerOf({ uploader, tokenCallerId }: NewFile): string | undefined {
  return tokenCallerId ? (uploader?.id ?? tokenCallerId) : undefined;
}

async function insertPending({ db, clock, files }: ReceivePlatform, file: NewFile, fileId: string): Promise<Date> {
  const { organizationId, environment, sessionId, uploader, tokenCallerId = null } = file;
  const now = clock.now();
  const inserted = await db.execute(sql`
    insert into files (organization_id, file_id, environment, store, session_id, uploader, uploaded_by, is_unsent,
      purge_after, used_at, created_at)
    select e.organization_id, ${fileId}, e.name, ${files.own.name}, ${sessionId}, ${uploader && JSON.stringify(uploader)},
      ${tokenCallerId}, ${tokenCallerId !== null}, ${new Date(now.getTime() + PENDING_MS)}, ${now}, ${now}
    from environments e where e.organization_id = ${organizationId} and e.name = ${environment}`);
  if (inserted === 0) throw new ApiError('not_found', `There is no environment "${environment}".`);
  return now;
}

/** The received file exists once the transaction commits. */
export async function keepFile(
  tx: Tx,
  { clock }: Pick<Platform, 'clock'>,
  source: EventSource,
  file: ReceivedFile,
): Promise<void> {
  const { organizationId, fileId, filename, mediaType, bytes, sha256, sessionId } = file;
  const now = clock.now();
  const event = await fileEvent(tx, organizationId, file);
  const [, kept] = await Promise.all([
    tx.query(sql`
      update organizations set file_bytes = file_bytes + ${bytes} where organization_id = ${organizationId}`),
    tx.execute(sql`
      update files set filename = ${filename}, media_type = ${mediaType}, bytes = ${bytes}, sha256 = ${sha256},
        reserved_bytes = 0, purge_after = null, used_at = ${now}
      where organization_id = ${organizationId} and file_id = ${fileId} and purge_after > ${now}`),
    // Its transcript names it.
    sessionId &&
      tx.query(sql`
      insert into file_uses (organization_id, holder_id, file_id)
      values (${organizationId}, ${sessionId}, ${fileId}) on conflict do nothing`),
    tx.query(
      recordEvent(source, now, {
        type: 'file.created',
        ...event,
        changes: {
          // Without its name, which may say whose it is: the log can't forget it (vault/pseudonym.ts).
          mediaType: [null, mediaType],
          bytes: [null, bytes],
          sha256: [null, sha256.toString('hex')],
        },
      }),
    ),
  ]);
  if (kept === 0) throw new ApiError('request_timeout', 'The upload took too long. Send the file again.');
}
