// Receives the body of an upload as a file, before the request acts.
import { maxFileBytes, type Uploader } from '@signalbox/contract';
import type { FastifyRequest } from 'fastify';
import { filenameOf, filenameOfPart } from '../files/filename.ts';
import { discardFile } from '../files/purge.ts';
import { fileTooLarge, type ReceivedFile, receiveFile } from '../files/receive.ts';
import type { FileStore } from '../files/store.ts';
import { ApiError } from '../lib/api-error.ts';
import type { Platform } from '../platform.ts';
import { FORM_OVERHEAD_BYTES, fileOfForm } from './body/multipart.ts';
import type { SlowBodies } from './body/slow-bodies.ts';
import type { IdempotentResponse } from './idempotency/idempotency.ts';

const MIB = 1024 * 1024;

/** The body is the file, or a form with it. Throws 400, 413, 415 or 422, and what `receiveFile` throws. */
export async function receiveUpload(
  platform: Platform,
  slowBodies: SlowBodies,
  { headers, raw, ctx }: FastifyRequest,
  { environment }: { environment: string },
): Promise<ReceivedFile> {
  const given = filenameOf(headers['x-filename']);
  const contentType = headers['content-type'];
  const [, subtype] = /^multipart\/([^;\s]*)/i.exec(contentType ?? '') ?? [];
  if (subtype !== undefined && subtype.toLowerCase() !== 'form-data') {
    throw new ApiError(
      'unsupported_media_type',
      'Send the content of one file as the body, with its own `Content-Type`, or a form (`multipart/form-data`).',
    );
  }
  const isForm = subtype !== undefined;
  const length = headers['content-length'] === undefined ? undefined : Number(headers['content-length']);
  if ((length ?? 0) > maxFileBytes + (isForm ? FORM_OVERHEAD_BYTES : 0)) throw fileTooLarge();
  const { organizationId, callerId, token, actor } = ctx!;
  const uploader = actor as Uploader;
  const owner = { organizationId, environment, sessionId: null, uploader, tokenCallerId: token ? callerId : null };
  const body = slowBodies.upload(raw);
  if (!isForm)
    return await receiveFile(platform, { ...owner, filename: given, claimedType: contentType, length }, body);
  const form = await fileOfForm(contentType!, body);
  try {
    const filename = given ?? (form.filename === undefined ? null : filenameOfPart(form.filename));
    return await receiveFile(platform, { ...owner, filename, claimedType: form.contentType }, form.content);
  } finally {
    form.end();
  }
}

/** What an upload has in memory at most, which is also what it counts for in its pool. */
export function mebibytesInMemory({ headers }: FastifyRequest, { pieceBytes }: FileStore): number {
  const length = Number(headers['content-length'] ?? pieceBytes);
  return Math.max(1, Math.ceil(Math.min(length, pieceBytes) / MIB));
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
