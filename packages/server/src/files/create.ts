// Files that the service creates itself: what tools return.
import type { FilePart } from '@signalbox/contract';
import type { EventSource } from '../events/record.ts';
import type { Platform } from '../platform.ts';
import { filePart } from './file-row.ts';
import { filenameFromTool } from './filename.ts';
import { keepFile, receiveFile } from './receive.ts';

export interface ToolFile {
  environment: string;
  /** The session whose tool returned it. It is deleted with the session. */
  sessionId: string;
  /** As the tool named it; a name that can't be one is dropped. */
  filename: string | undefined;
  /** The media type that the tool says; the file gets the one that its bytes have. */
  mediaType: string | undefined;
  /** The length of the content in bytes, if it is known. */
  length?: number | undefined;
}

/**
 * Stores the content and returns the file as messages name it. Throws 413, 409 `storage_full`, or 422 `file_invalid` for an empty one.
 * `source`: who did it, for the event log.
 */
export async function createFile(
  platform: Pick<Platform, 'db' | 'clock' | 'files' | 'log'>,
  source: EventSource,
  { environment, sessionId, filename, mediaType, length }: ToolFile,
  content: AsyncIterable<Uint8Array>,
): Promise<FilePart> {
  const { organizationId } = source;
  const name = filename === undefined ? null : filenameFromTool(filename);
  const file = {
    organizationId,
    environment,
    filename: name,
    claimedType: mediaType,
    length,
    sessionId,
    uploader: null,
  };
  const received = await receiveFile(platform, file, content);
  await platform.db.transaction((tx) => keepFile(tx, platform, source, received));
  return filePart(received);
}
