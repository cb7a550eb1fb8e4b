// What the HTTP parser refuses before there is a request: headers that are too long, requests that arrive too slowly, bytes that are not
// HTTP. The response is a Problem like any other, and the connection is closed after it.
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { ApiError } from '../../lib/api-error.ts';
import { formatId, newUuid } from '../../lib/ids.ts';
import type { Platform } from '../../platform.ts';
import { problemOf } from './errors.ts';

export interface ServerSettings {
  /** Connections beyond it are closed at once: each costs memory, idle or not. */
  readonly maxConnections: number;
  /** The limit of the request line and all headers together. */
  readonly maxHeaderBytes: number;
  /** For a request to arrive, from its first byte to its last. */
  readonly requestTimeoutSeconds: number;
}

/** On every response that does not override them: it is data, which a browser must not run, show in a frame or cache. */
export const dataHeaders = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'same-origin',
};

/** Longer than any URL of the API. With a limit of its own the service can name the reason, which a proxy might not. */
const MAX_URL_LENGTH = 8192;

/** As Node names it. */
const REQUEST_TIMEOUT = 'ERR_HTTP_REQUEST_TIMEOUT';

/** Longer than an upload and the writing of it can take. */
const MAX_REQUEST_MS = 3600_000;

/** How often slow requests are searched for; they may take this much longer. */
const CHECK_EVERY_MS = 1000;

/** How often the log says that connections are refused. */
const REPORT_EVERY_MS = 60_000;

/** How much a connection buffers before writers wait. Node's default, 64 KiB, is all that a stream may use. */
const HELD_BYTES = 16 * 1024;

/** For Fastify, which sets the time-out itself and hands the rest to `http.createServer`. */
export function serverOptions({ maxHeaderBytes, requestTimeoutSeconds }: ServerSettings) {
  return {
    // The time limit of uploads. All other requests have `requestTimeoutSeconds` (slow-bodies.ts).
    requestTimeout: MAX_REQUEST_MS,
    http: {
      maxHeaderSize: maxHeaderBytes,
      highWaterMark: HELD_BYTES,
      headersTimeout: requestTimeoutSeconds * 1000,
      connectionsCheckingInterval: CHECK_EVERY_MS,
    },
  };
}

/** What Fastify has no option for. */
export function prepareServer(
  server: Server,
  { maxConnections }: ServerSettings,
  { log, clock }: Pick<Platform, 'log' | 'clock'>,
): void {
  server.maxConnections = maxConnections;
  let refused = 0;
  let reportedAt = Number.NEGATIVE_INFINITY;
  server.on('drop', () => {
    refused += 1;
    const now = clock.now().getTime();
    if (now - reportedAt < REPORT_EVERY_MS) return;
    log.warn({ maxConnections, refused }, 'connections were refused: the node has as many as it accepts');
    reportedAt = now;
    refused = 0;
  });
  // An unknown expectation is ignored, as HTTP allows: node:http would respond 417 before there is a request id.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  server.on('checkContinue', (request, response) => {
    continueOnRead(request, response);
    server.emit('request', request, response);
  });
}

/** Sends `100 Continue` when the body is read for the first time, so that a client does not send one that is refused by the headers. */
function continueOnRead(request: IncomingMessage, response: ServerResponse): void {
  const read = request._read;
  request._read = (size) => {
    request._read = read;
    if (!response.headersSent) response.writeContinue();
    read.call(request, size);
  };
}

/** Throws 414. */
export function requireShortUrl(request: IncomingMessage): void {
  if ((request.url ?? '').length > MAX_URL_LENGTH) {
    throw new ApiError(
      'uri_too_long',
      `The path and query of a request can have at most ${MAX_URL_LENGTH} characters.`,
    );
  }
}

/** Without the query. */
export function pathOf(request: IncomingMessage): string {
  return request.url?.split('?', 1)[0] ?? '';
}

/** For Fastify's `clientErrorHandler`. */
export function refuseUnread(error: Error & { code?: string }, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const refusal = refusalOf(error.code);
  const requestId = formatId('req', newUuid());
  const body = JSON.stringify(problemOf(refusal, requestId));
  const lines = [
    `HTTP/1.1 ${refusal.status} Refused`,
    'Content-Type: application/problem+json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    ...Object.entries(dataHeaders).map(([name, value]) => `${name}: ${value}`),
    'Connection: close',
  ];
  socket.end(`${lines.join('\r\n')}\r\n\r\n${body}`);
  // Does not wait for a client that does not read it.
  socket.destroySoon();
}

/** Refuses a request whose rest did not arrive in time. */
export function requestTimeout(socket: Socket): void {
  refuseUnread(Object.assign(new Error('The request did not arrive in time'), { code: REQUEST_TIMEOUT }), socket);
}

function refusalOf(code: string | undefined): ApiError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new ApiError('headers_too_large', 'The headers of the request are too long.');
    case REQUEST_TIMEOUT:
      return new ApiError('request_timeout', 'The request did not arrive in time.');
    default:
      return new ApiError('invalid_request', 'The request is not well-formed HTTP.');
  }
}
