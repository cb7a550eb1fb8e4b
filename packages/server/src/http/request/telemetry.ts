// What is recorded for each request: a log line, metrics, and a span if tracing is on. They contain the route instead of the path, and
// no part of the query, headers or body.
import { METHODS } from 'node:http';
import type { Route } from '@signalbox/contract';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { formatId } from '../../lib/ids.ts';
import type { Span } from '../../observe/tracing.ts';
import type { Platform } from '../../platform.ts';

declare module 'fastify' {
  interface FastifyRequest {
    span: Span | undefined;
    /** Whether the response is a stream. */
    isStream: boolean;
    /** Whether it has been recorded: a stream that ends by itself is reported twice. */
    isOver: boolean;
  }
}

/** A child of the caller's span, if the request names one. */
export function beginSpan(
  { tracing }: Pick<Platform, 'tracing'>,
  request: FastifyRequest,
  route: Route,
): Span | undefined {
  const { traceparent } = request.headers;
  return tracing?.span(
    `${route.method} ${patternOf(request)}`,
    'server',
    {
      'http.request.method': route.method,
      'http.route': patternOf(request),
      'signalbox.request.id': request.id,
    },
    typeof traceparent === 'string' ? traceparent : undefined,
  );
}

/** Records a request once, when its response was sent or its stream has ended. */
export function recordRequest(
  { log, metrics }: Pick<Platform, 'log' | 'metrics'>,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  if (request.isOver) return;
  request.isOver = true;
  const { statusCode } = reply.raw;
  const method = METHODS.includes(request.method) ? request.method : 'other';
  const organizationId = request.ctx && formatId('org', request.ctx.organizationId);
  log.info(
    {
      requestId: request.id,
      callerRequestId: callerRequestIdOf(request),
      method,
      route: request.routeOptions.url ?? null,
      status: statusCode,
      durationMs: Math.round(reply.elapsedTime),
      organizationId,
      actorId: request.ctx?.actor.id,
    },
    'request',
  );
  // A request without a route can have any method.
  const labels = request.is404 ? { route: 'none', method: 'other' } : { route: patternOf(request), method };
  metrics.requests.inc({ ...labels, status: statusCode });
  // The duration of a stream depends on its client.
  if (!request.isStream) metrics.requestSeconds.observe(labels, reply.elapsedTime / 1000);
  request.span?.end(
    { 'http.response.status_code': statusCode, 'signalbox.organization.id': organizationId },
    statusCode >= 500 ? String(statusCode) : undefined,
  );
}

/** The route's path as the contract has it. */
function patternOf(request: FastifyRequest): string {
  return (request.routeOptions.url ?? 'none').replaceAll(/:(\w+)/g, '{$1}');
}

// The forms that load balancers and tracing libraries use: UUIDs, hexadecimal, base64url, nginx's and AWS's. Anything else is omitted, so
// that a caller can't write arbitrary text into the log.
const CALLER_REQUEST_ID = /^[\w.:;=+/-]{1,128}$/;

/** The id that the caller, or the load balancer in front of the service, gave the request. */
function callerRequestIdOf({ headers }: FastifyRequest): string | undefined {
  const id = headers['x-request-id'];
  return typeof id === 'string' && CALLER_REQUEST_ID.test(id) ? id : undefined;
}
