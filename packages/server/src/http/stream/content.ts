// Responds with the content of a file, or a range of it (RFC 9110). Whatever the bytes are, no browser runs or shows them here: they are
// a download, with a type that is never guessed again, in a sandbox without any origin.
import { create as contentDisposition } from 'content-disposition';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { OpenFile } from '../../files/content.ts';
import type { ByteRange } from '../../files/store.ts';
import { ApiError } from '../../lib/api-error.ts';
import type { FileResponse } from './file.ts';

/** Undefined if the client has the content already: a 304 was sent. Throws 416 `range_invalid`. */
export function responseOfContent(
  { headers, method }: FastifyRequest,
  reply: FastifyReply,
  file: OpenFile,
): FileResponse | undefined {
  const { bytes, filename, mediaType } = file;
  const etag = `"${file.sha256.toString('hex')}"`;
  if (matches(headers['if-none-match'], etag)) {
    void reply.code(304).header('etag', etag).send();
    return undefined;
  }
  const isCurrent = headers['if-range'] === undefined || headers['if-range'] === etag;
  const range = method === 'GET' && isCurrent ? rangeOf(headers.range, bytes) : undefined;
  if (range === 'none') {
    reply.header('Content-Range', `bytes */${bytes}`);
    throw new ApiError('range_invalid', `The file has ${bytes} bytes, and the range begins after them.`);
  }
  const { start, end } = range ?? { start: 0, end: bytes };
  return {
    status: range ? 206 : 200,
    headers: {
      etag,
      'content-type': /^text\/[^;]*$/.test(mediaType) ? `${mediaType}; charset=utf-8` : mediaType,
      'content-length': end - start,
      'content-disposition': contentDisposition(filename ?? undefined),
      'content-security-policy': "sandbox; default-src 'none'; frame-ancestors 'none'",
      'accept-ranges': 'bytes',
      ...(range && { 'content-range': `bytes ${start}-${end - 1}/${bytes}` }),
    },
    read: (signal) => file.read({ start, end }, signal),
  };
}

function matches(header: string | undefined, etag: string): boolean {
  return (header ?? '').split(',').some((one) => one.trim() === '*' || one.trim().replace(/^W\//, '') === etag);
}

/**
 * The requested range; `none` if it begins after the content. Undefined for a header that is to be ignored: one that is not a range of
 * bytes, or names several, which few clients use and which cost a multiple of the content.
 */
function rangeOf(header: string | undefined, bytes: number): ByteRange | 'none' | undefined {
  const [, first = '', last = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.replaceAll(' ', '') ?? '') ?? [];
  if (first === '' && last === '') return undefined;
  if (first === '') {
    const length = Math.min(Number(last), bytes);
    return length === 0 ? 'none' : { start: bytes - length, end: bytes };
  }
  if (last !== '' && Number(last) < Number(first)) return undefined;
  if (Number(first) >= bytes) return 'none';
  return { start: Number(first), end: last === '' ? bytes : Math.min(Number(last) + 1, bytes) };
}
