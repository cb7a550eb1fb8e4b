// Keeps files in a bucket of an S3-compatible store, each as one object. A content is sent in parts of 5 MiB, the least that S3 takes, so
// that no request to the store waits for a slow client; for the same reason it is read in windows.
//
// The address is the operator's, like that of the database, so its requests do not go through egress/.
import { Readable } from 'node:stream';
import type { S3Client, S3ServiceException } from '@aws-sdk/client-s3';
import type { S3Location } from '../config/setting-values.ts';
import { OVER } from '../lib/aborted.ts';
import { ApiError } from '../lib/api-error.ts';
import type { Clock } from '../lib/clock.ts';
import { createFairShare } from '../lib/fair-share.ts';
import type { Log } from '../lib/log.ts';
import { type Piece, piecesOf } from './pieces.ts';
import type { FileKey, FileStore } from './store.ts';

const PART_BYTES = 5 * 1024 * 1024;
const WINDOW_BYTES = 1024 * 1024;
/** Requests to the store at a time. */
const MAX_AT_ONCE = 32;
const CONNECT_TIMEOUT_MS = 5_000;
const SILENCE_TIMEOUT_MS = 30_000;
/** The time for 5 MiB over a slow line. A store that sends a byte now and then is never silent. */
const REQUEST_TIMEOUT_MS = 60_000;
/** The limit of a response without content of a file: an error, or what S3 says of an upload. They have some hundred bytes. */
const MAX_ANSWER_BYTES = 64 * 1024;

type S3 = typeof import('@aws-sdk/client-s3');

export function createS3Store(
  location: S3Location,
  { log, clock }: { log: Pick<Log, 'warn'>; clock: Pick<Clock, 'sleep'> },
): FileStore {
  const { bucket, prefix } = location;
  const gate = createFairShare({ max: MAX_AT_ONCE });
  let loading: Promise<{ s3: S3; client: S3Client }> | undefined;

  /** Loaded by the first use: it takes 20 MB, which a node without files does not need. */
  function load(): Promise<{ s3: S3; client: S3Client }> {
    loading ??= import('@aws-sdk/client-s3').then((s3) => ({ s3, client: clientOf(s3, location) }));
    return loading;
  }

  const objectOf = ({ organizationId, fileId }: FileKey) => ({
    Bucket: bucket,
    Key: `${prefix}${organizationId}/${fileId}`,
  });

  /** Sends requests to the store. A failure of the store is a 503, and is logged without what the store says: that may have keys. */
  async function request<T>(
    organizationId: string,
    act: (s3: S3, client: S3Client, options: { abortSignal: AbortSignal }) => Promise<T>,
  ): Promise<T> {
    const { s3, client } = await load();
    const leave = await gate.take(organizationId);
    const [late, over] = [new AbortController(), new AbortController()];
    clock.sleep(REQUEST_TIMEOUT_MS, over.signal).then(
      () => late.abort(OVER),
      () => {},
    );
    try {
      return await act(s3, client, { abortSignal: late.signal });
    } catch (error) {
      const { name, $metadata } = error as Partial<S3ServiceException>;
      const known = /^[A-Za-z]{1,40}$/.test(name ?? '') ? name : undefined;
      log.warn({ error: known, status: $metadata?.httpStatusCode }, 'the store of files failed');
      throw new ApiError('unavailable', 'The store of files is not available. Retry in a moment.', {
        retryAfterSeconds: 1,
      });
    } finally {
      over.abort(OVER);
      leave?.();
    }
  }

  async function writeParts(file: FileKey, pieces: AsyncIterable<Piece>): Promise<void> {
    const object = objectOf(file);
    let UploadId: string | undefined;
    const parts: { PartNumber: number; ETag: string | undefined }[] = [];
    try {
      for await (const { bytes, isLast } of pieces) {
        const PartNumber = parts.length + 1;
        await request(file.organizationId, async (s3, client, options) => {
          if (isLast && PartNumber === 1) {
            await client.send(new s3.PutObjectCommand({ ...object, Body: bytes }), options);
            return;
          }
          UploadId ??= (await client.send(new s3.CreateMultipartUploadCommand(object), options)).UploadId;
          const part = { ...object, UploadId, PartNumber, Body: bytes };
          parts.push({ PartNumber, ETag: (await client.send(new s3.UploadPartCommand(part), options)).ETag });
        });
      }
      if (UploadId === undefined) return;
      const whole = { ...object, UploadId, MultipartUpload: { Parts: parts } };
      await request(file.organizationId, (s3, client, options) =>
        client.send(new s3.CompleteMultipartUploadCommand(whole), options),
      );
    } catch (error) {
      const upload = { ...object, UploadId };
      if (UploadId) {
        await request(file.organizationId, (s3, client, options) =>
          client.send(new s3.AbortMultipartUploadCommand(upload), options),
        ).catch(() => {});
      }
      throw error;
    }
  }

  return {
    name: 's3',
    pieceBytes: PART_BYTES,

    write: (file, content) => writeParts(file, piecesOf(content, PART_BYTES)),

    async *read(file, { start, end }, signal) {
      for (let at = start; at < end && !signal?.aborted; ) {
        const to = Math.min(at + WINDOW_BYTES, end);
        const range = { ...objectOf(file), Range: `bytes=${at}-${to - 1}` };
        const bytes = await request(file.organizationId, async (s3, client, options) => {
          const { Body, ContentRange = 'bytes 0-' } = await client.send(new s3.GetObjectCommand(range), options);
          const received = await beginningOf(Body as Readable, to - at);
          return ContentRange.startsWith(`bytes ${at}-`) ? received : undefined;
        });
        if (bytes?.length !== to - at) throw new Error('The content of a file is not there any more');
        yield bytes;
        at = to;
      }
    },

    async remove(file) {
      await request(file.organizationId, (s3, client, options) =>
        client.send(new s3.DeleteObjectCommand(objectOf(file)), options),
      );
    },
  };
}

function clientOf(s3: S3, { endpoint, region, usesPaths }: S3Location): S3Client {
  const client = new s3.S3Client({
    region,
    ...(endpoint && { endpoint }),
    forcePathStyle: usesPaths,
    // Compatible stores do not all have the newer checksums. TLS protects the way, and the file has its own SHA-256.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: { connectionTimeout: CONNECT_TIMEOUT_MS, socketTimeout: SILENCE_TIMEOUT_MS },
  });
  client.middlewareStack.add(
    (next, { commandName }) =>
      async (args) => {
        const result = await next(args);
        const response = result.response as { statusCode: number; body: Readable };
        const isContent = commandName === 'GetObjectCommand' && response.statusCode < 300;
        // The client reads all other responses into memory, however long they are.
        if (!isContent) response.body = Readable.from(limited(response.body));
        return result;
      },
    // Next to what sends the request, before what reads the response.
    { name: 'limitResponses', step: 'deserialize', priority: 'low' },
  );
  return client;
}

/** Not all stores know every range: one may send more after it, or without end. */
async function beginningOf(body: Readable, bytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let received = 0;
  for await (const chunk of body) {
    chunks.push(chunk as Buffer);
    received += (chunk as Buffer).length;
    if (received > bytes) break;
  }
  return Buffer.concat(chunks).subarray(0, bytes);
}

async function* limited(body: Readable): AsyncGenerator<Buffer> {
  let received = 0;
  for await (const chunk of body) {
    received += (chunk as Buffer).length;
    if (received > MAX_ANSWER_BYTES) throw new Error('The store responds with more than it should');
    yield chunk as Buffer;
  }
}
