// The body of a request: UTF-8 JSON or refused, and what of it nobody reads.
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { ApiError } from '../lib/api-error.ts';
import type { Clock } from '../lib/clock.ts';
import { onceClosed } from './closed.ts';
import { jsonErrorIndex, placeOf } from './json-error.ts';

export const BODY_LIMIT_BYTES = 1024 * 1024;

/** An empty body is no body. */
export function readJsonStrictly(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error');
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    let text: string;
    try {
      text = decoder.decode(body as Buffer);
    } catch {
      return done(notJson('is not UTF-8'), undefined);
    }
    if (text.trim() === '') return done(null, undefined);
    parse(request, text, (error, value) => done(error && notJson(whatIsWrong(text)), value));
  });
}

/** Where, and never what: it may be a secret. */
function whatIsWrong(text: string): string {
  const at = jsonErrorIndex(text);
  return at === undefined
    ? 'has a field that no object may have: `__proto__`, or `prototype` in `constructor`'
    : `is not JSON from ${placeOf(text, at)} on`;
}

function notJson(message: string): ApiError {
  return new ApiError('invalid_request', `The body ${message}.`, { errors: [{ path: '', message }] });
}

const DISCARD_MS = 5_000;
const MAX_DISCARDED_BYTES = 64 * 1024 * 1024;

/**
 * Reads and drops the rest of a body after a refusal. Were the connection closed at once, a caller that is still sending would
 * meet a reset, and never see why it was refused.
 */
export function discardRest(clock: Clock, { raw }: FastifyRequest): void {
  if (raw.complete || raw.destroyed) return;
  const { socket } = raw;
  const mostBytes = socket.bytesRead + MAX_DISCARDED_BYTES;
  const over = new AbortController();
  const end = () => over.abort();
  raw.on('data', () => socket.bytesRead > mostBytes && socket.destroy());
  raw.once('end', end);
  onceClosed(socket, end);
  clock.sleep(DISCARD_MS, over.signal).then(
    () => socket.destroy(),
    () => {},
  );
}
