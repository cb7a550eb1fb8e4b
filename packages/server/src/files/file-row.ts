// The row of a file that exists.
import type { FilePart, StoredFile, Uploader } from '@signalbox/contract';
import sql from 'sql-template-tag';
import type { Queryable } from '../db/db.ts';
import { formatId } from '../lib/ids.ts';
import { agentIdOf } from '../session-rows/session.ts';

export interface FileRow {
  readonly fileId: string;
  readonly environment: string;
  readonly filename: string | null;
  readonly mediaType: string;
  readonly bytes: number;
  readonly sha256: Buffer;
  readonly sessionId: string | null;
  readonly uploader: Uploader | null;
  readonly createdAt: Date;
}

/** Columns of the table `files f`. */
export const fileColumns = sql`f.file_id as "fileId", f.environment, f.filename, f.media_type as "mediaType", f.bytes, f.sha256,
  f.session_id as "sessionId", f.uploader, f.created_at as "createdAt"`;

export function viewFile(row: FileRow): StoredFile {
  return {
    fileId: formatId('file', row.fileId),
    environment: row.environment,
    filename: row.filename,
    mediaType: row.mediaType,
    bytes: row.bytes,
    sha256: row.sha256.toString('hex'),
    sessionId: row.sessionId && formatId('ses', row.sessionId),
    uploadedBy: row.uploader,
    createdAt: row.createdAt.toISOString(),
  };
}

/** The file in a message. */
export function filePart({ fileId, mediaType, bytes, filename }: FileRow): FilePart {
  return { type: 'file', fileId: formatId('file', fileId), mediaType, bytes, ...(filename !== null && { filename }) };
}

/** How events refer to a file; with the agent, if a tool of its session returned it. */
export async function fileEvent(
  db: Queryable,
  organizationId: string,
  { fileId, environment, sessionId }: Pick<FileRow, 'fileId' | 'environment' | 'sessionId'>,
) {
  return {
    ...(sessionId && { agentId: await agentIdOf(db, organizationId, sessionId) }),
    resource: { type: 'file', id: formatId('file', fileId) },
    environment,
    sessionId: sessionId && formatId('ses', sessionId),
  };
}
