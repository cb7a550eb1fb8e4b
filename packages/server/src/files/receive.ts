// Receives the content of a file: checks its size, finds out what it is, and stores it as it arrives.
//
//   1. insertPending      a row that expires, and is cleaned up with its bytes if nothing follows (retention.ts)
//   2. the store          takes the bytes; no transaction is open, however long a client takes
//   3. keepFile           the row becomes a file, in one transaction with its record in the event log
import { createHash } from 'node:crypto';
import { maxFileBytes } from '@signalbox/contract';
import sql from 'sql-template-tag';
import type { Tx } from '../db/db.ts';
import { type EventSource, recordEvent } from '../events/record.ts';
import { ApiError } from '../lib/api-error.ts';
import { newUuid } from '../lib/ids.ts';
import type { Platform } from '../platform.ts';
import { type FileRow, fileEvent } from './file-row.ts';
import { createMediaTypeDetector } from './media-type.ts';
import { discardFile } from './purge.ts';

export interface NewFile {
  readonly organizationId: string;
  readonly environment: string;
  readonly filename: string | null;
  /** The `Content-Type` that came with it. */
  readonly claimedType: string | undefined;
  /** The session whose tool returned it; null for an upload. */
  readonly sessionId: string | null;
  /** For an upload with a session token: its caller, whose tokens alone may use it. */
  readonly uploadedBy?: string | null;
}

/** A file whose content is stored and which does not exist yet: for `keepFile`. */
export type ReceivedFile = FileRow & { readonly organizationId: string };

type ReceivePlatform = Pick<Platform, 'db' | 'clock' | 'files' | 'log'>;

/** Longer than an upload can take (http/request/slow-bodies.ts), with a margin for clocks that differ. */
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
    const detector = createMediaTypeDetector();
    const hash = createHash('sha256');
    let bytes = 0;
    await files.own.write(key, inspected());
    if (bytes === 0) throw new ApiError('file_invalid', 'The file is empty: send its content as the body.');
    const { filename, environment, sessionId } = file;
    const mediaType = await detector.detect(file.claimedType);
    return { ...key, environment, filename, mediaType, bytes, sha256: hash.digest(), sessionId, createdAt };

    async function* inspected(): AsyncGenerator<Uint8Array> {
      for await (const chunk of content) {
        bytes += chunk.length;
        if (bytes > maxFileBytes) throw fileTooLarge();
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

async function insertPending({ db, clock, files }: ReceivePlatform, file: NewFile, fileId: string): Promise<Date> {
  const { organizationId, environment, sessionId, uploadedBy = null } = file;
  const [organization] = await db.query<{ fileBytes: number }>(sql`
    select file_bytes as "fileBytes" from organizations where organization_id = ${organizationId}`);
  // Its size is known only at its end.
  requireStorage(organization!.fileBytes + 1, files.maxBytes);
  const now = clock.now();
  const inserted = await db.execute(sql`
    insert into files (organization_id, file_id, environment, store, session_id, uploaded_by, purge_after, used_at, created_at)
    select e.organization_id, ${fileId}, e.name, ${files.own.name}, ${sessionId}, ${uploadedBy},
      ${new Date(now.getTime() + PENDING_MS)}, ${now}, ${now}
    from environments e where e.organization_id = ${organizationId} and e.name = ${environment}`);
  if (inserted === 0) throw new ApiError('not_found', `There is no environment "${environment}".`);
  return now;
}

/** The received file exists once the transaction commits. 409 `storage_full`. */
export async function keepFile(
  tx: Tx,
  { clock, files }: Pick<Platform, 'clock' | 'files'>,
  source: EventSource,
  file: ReceivedFile,
): Promise<void> {
  const { organizationId, fileId, filename, mediaType, bytes, sha256, sessionId } = file;
  const now = clock.now();
  const [[organization], kept] = await Promise.all([
    tx.query<{ fileBytes: number }>(sql`
      update organizations set file_bytes = file_bytes + ${bytes} where organization_id = ${organizationId}
      returning organizations.file_bytes as "fileBytes"`),
    tx.execute(sql`
      update files set filename = ${filename}, media_type = ${mediaType}, bytes = ${bytes}, sha256 = ${sha256},
        purge_after = null, used_at = ${now}
      where organization_id = ${organizationId} and file_id = ${fileId} and purge_after > ${now}`),
    // Its transcript names it.
    sessionId &&
      tx.query(sql`
      insert into file_uses (organization_id, holder_id, file_id)
      values (${organizationId}, ${sessionId}, ${fileId}) on conflict do nothing`),
    tx.query(
      recordEvent(source, now, {
        type: 'file.created',
        ...fileEvent(file),
        changes: {
          // Without its name, which may say whose it is: the log can't forget it (vault/pseudonym.ts).
          mediaType: [null, mediaType],
          bytes: [null, bytes],
          sha256: [null, sha256.toString('hex')],
        },
      }),
    ),
  ]);
  requireStorage(organization!.fileBytes, files.maxBytes);
  if (kept === 0) throw new ApiError('request_timeout', 'The upload took too long. Send the file again.');
}

function requireStorage(usedBytes: number, maxBytes: number): void {
  if (usedBytes <= maxBytes) return;
  const limit = `${Math.floor(maxBytes / 1024 / 1024)} MiB`;
  throw new ApiError('storage_full', `The files of the organization may have ${limit} together. Delete some first.`);
}
