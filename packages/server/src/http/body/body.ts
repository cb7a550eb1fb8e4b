// Reads the body of a request, which must be UTF-8 JSON that can be kept as it is, and discards the rest of a refused one.
import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { OVER } from '../../lib/aborted.ts';
import { ApiError } from '../../lib/api-error.ts';
import type { Clock } from '../../lib/clock.ts';
import { onceClosed } from '../connection/closed.ts';
import type { BodyMemory } from './body-memory.ts';
import { jsonErrorIndex, placeOf } from './json-error.ts';
import { requireFaithful } from './json-value.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The body's bytes as they were sent, if there is a body. */
    rawBody: Uint8Array | undefined;
  }
}

export const BODY_LIMIT_BYTES = 1024 * 1024;

export function hasBody({ headers }: IncomingMessage): boolean {
  return (headers['content-length'] ?? '0') !== '0' || headers['transfer-encoding'] !== undefined;
}

/** An empty body counts as none. Waits for memory, and for `turn`, before it parses. */
export function readJsonStrictly(
  app: FastifyInstance,
  memory: Pick<BodyMemory, 'beforeParsing'>,
  turn: (request: FastifyRequest) => Promise<void> | undefined,
): void {
  const parse = app.getDefaultJsonParser('error', 'error');
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, async (request: FastifyRequest, body: Buffer) => {
    await memory.beforeParsing(request, body);
    await turn(request);
    request.rawBody = body;
    let text: string;
    try {
      text = decoder.decode(body);
    } catch {
      throw notJson('is not UTF-8');
    }
    if (text.trim() === '') return undefined;
    let [wrong, value]: [Error | null, unknown] = [null, undefined];
    parse(request, text, (error, parsed) => {
      [wrong, value] = [error, parsed];
    });
    if (wrong) throw notJson(whatIsWrong(text));
    requireFaithful(text, body, value);
    return value;
  });
}

/** Throws 415 for a body that is compressed: it would be read as if it were not. */
export function requirePlainBody({ headers, raw }: FastifyRequest, reply: FastifyReply): void {
  const coding = (headers['content-encoding'] ?? '').trim().toLowerCase();
  if (coding === '' || coding === 'identity' || !hasBody(raw)) return;
  // RFC 9110, 15.5.16: what would have been accepted.
  reply.header('Accept-Encoding', 'identity');
  throw new ApiError('unsupported_media_type', 'Send the body as it is, without `Content-Encoding`.');
}

/** Names the position, never the text: it may be a secret. */
function whatIsWrong(text: string): string {
  const at = jsonErrorIndex(text);
  return at === undefined
    ? 'has a field that is not allowed: `__proto__`, or `prototype` in `constructor`'
    : `is not JSON from ${placeOf(text, at)} on`;
}

function notJson(message: string): ApiError {
  return new ApiError('invalid_request', `The body ${message}.`, { errors: [{ path: '', message }] });
}

const DISCARD_MS = 5_000;
const MAX_DISCARDED_BYTES = 64 * 1024 * 1024;

/**
 * Reads and drops the rest of a body after a refusal. If the connection were closed at once, a client that is still sending would get a
 * connection reset and never see why it was refused.
 */
export function discardRest(clock: Clock, { raw }: FastifyRequest): void {
  if (raw.complete || raw.destroyed) return;
  const { socket } = raw;
  const mostBytes = socket.bytesRead + MAX_DISCARDED_BYTES;
  const over = new AbortController();
  raw.on('data', () => socket.bytesRead > mostBytes && socket.destroy());
  const forget = onceClosed(socket, () => over.abort(OVER));
  raw.once('end', () => {
    // The connection stays, for the next request.
    forget();
    over.abort(OVER);
  });
  clock.sleep(DISCARD_MS, over.signal).then(
    () => socket.destroy(),
    () => {},
  );
}
