// Receives the body of an upload as a file, before the request acts.
import { maxFileBytes } from '@signalbox/contract';
import type { FastifyRequest } from 'fastify';
import { filenameOf } from '../../files/filename.ts';
import { discardFile } from '../../files/purge.ts';
import { fileTooLarge, type ReceivedFile, receiveFile } from '../../files/receive.ts';
import { ApiError } from '../../lib/api-error.ts';
import type { Platform } from '../../platform.ts';
import type { IdempotentResponse } from './idempotency.ts';
import type { SlowBodies } from './slow-bodies.ts';

/** Throws 400, 413, 415 or 422, and what `receiveFile` throws. */
export async function receiveUpload(
  platform: Platform,
  slowBodies: SlowBodies,
  { headers, raw, ctx }: FastifyRequest,
  { environment }: { environment: string },
): Promise<ReceivedFile> {
  const filename = filenameOf(headers['x-filename']);
  const claimedType = headers['content-type'];
  if (claimedType?.toLowerCase().startsWith('multipart/')) {
    throw new ApiError(
      'unsupported_media_type',
      'Send the content of one file as the body, with its own `Content-Type` and its name in `X-Filename`.',
    );
  }
  if (Number(headers['content-length'] ?? 0) > maxFileBytes) throw fileTooLarge();
  const { organizationId, callerId, token } = ctx!;
  const uploadedBy = token ? callerId : null;
  const file = { organizationId, environment, filename, claimedType, sessionId: null, uploadedBy };
  return await receiveFile(platform, file, slowBodies.upload(raw));
}

/** What makes two uploads the same request, for an `Idempotency-Key`. */
export function contentIdOf({ sha256, bytes, filename, mediaType }: ReceivedFile): object {
  return { sha256: sha256.toString('hex'), bytes, filename, mediaType };
}

/**
 * Runs `act`, and discards the file if it was refused, or if the response is that of an earlier request. After any other failure the
 * file may exist, as when the connection is lost during a commit. If it does not, maintenance finds it.
 */
export async function keepOrDiscard(
  platform: Platform,
  file: ReceivedFile,
  act: () => Promise<IdempotentResponse>,
): Promise<IdempotentResponse> {
  const discard = () =>
    discardFile(platform, file).catch((error) => platform.log.warn({ err: error }, 'discarding an upload failed'));
  try {
    const response = await act();
    if (response.replayed || response.status >= 400) await discard();
    return response;
  } catch (error) {
    if (error instanceof ApiError) await discard();
    throw error;
  }
}
