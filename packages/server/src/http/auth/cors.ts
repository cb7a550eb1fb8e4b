// Cross-origin requests of web pages with a session token (Fetch Standard, "CORS protocol").
//
// A preflight has no credentials, so whose request it announces is unknown: it is answered without a look-up, for any origin, and only for
// the routes that tokens reach. It permits nothing by itself. The request that follows is refused if its organization does not allow the
// origin (token-caller.ts). A page of any origin can read that refusal. Cookies are never allowed.
import type { Route } from '@signalbox/contract';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

const MAX_AGE_SECONDS = 600;
const REQUEST_HEADERS = [
  'Authorization',
  'Content-Type',
  'Idempotency-Key',
  'If-None-Match',
  'If-Range',
  'Last-Event-ID',
  'Range',
  'Traceparent',
  'X-Filename',
  'X-Request-Id',
].join(', ');
const RESPONSE_HEADERS = [
  'Accept-Ranges',
  'Content-Disposition',
  'Content-Range',
  'ETag',
  'Idempotent-Replayed',
  'RateLimit',
  'RateLimit-Policy',
  'Retry-After',
  'X-Request-Id',
].join(', ');

/** Answers the preflights of the routes that tokens reach. */
export function addPreflights(app: FastifyInstance, prefix: string, routes: readonly Route[]): void {
  for (const [path, ofPath] of Map.groupBy(routes, (route) => route.path)) {
    const reached = ofPath.filter(({ token }) => token !== undefined);
    const url = prefix + path.replaceAll(/\{(\w+)\}/g, ':$1');
    if (reached.length === 0) {
      // `/sessions/count` would otherwise have the preflight of `/sessions/{sessionId}`.
      app.options(url, (_, reply) => reply.callNotFound());
      continue;
    }
    const methods = [...new Set(reached.map(({ method }) => method))].sort().join(', ');
    app.options(
      url,
      // Before a body would be read.
      { onRequest: (request, reply) => void respond(request, reply, methods) },
      unreached,
    );
  }
}

function respond({ headers }: FastifyRequest, reply: FastifyReply, methods: string): FastifyReply {
  const { origin } = headers;
  varyByOrigin(reply);
  if (origin !== undefined && isOfPage(origin)) {
    reply.headers({
      'Access-Control-Allow-Origin': origin,
      'Access-Control-Allow-Methods': methods,
      'Access-Control-Allow-Headers': REQUEST_HEADERS,
      'Access-Control-Max-Age': MAX_AGE_SECONDS,
    });
  }
  return reply.code(204).send();
}

function unreached(): never {
  throw new TypeError('The onRequest hook has answered');
}

/** A cache must not give the response for one origin to another. */
export function varyByOrigin(reply: FastifyReply): void {
  reply.header('Vary', 'Origin');
}

function isOfPage(origin: string): boolean {
  return /^https?:\/\/[\w.:[\]-]+$/.test(origin);
}

/** Lets a page of this origin read the response: to a session token that it may use, or the refusal of one. */
export function allowOrigin(reply: FastifyReply, origin: string): void {
  if (!isOfPage(origin)) return;
  reply.header('Access-Control-Allow-Origin', origin).header('Access-Control-Expose-Headers', RESPONSE_HEADERS);
}
