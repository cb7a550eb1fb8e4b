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
    /** Whether the response is a stream, which records the request when it ends. */
    isStream: boolean;
  }
}

/** What is recorded of a request. A stream keeps it instead of the request. */
export interface RequestFacts {
  readonly requestId: string;
  readonly callerRequestId: string | undefined;
  readonly method: string;
  /** Null: there is no such route. */
  readonly route: string | null;
  readonly organizationId: string | undefined;
  readonly actorId: string | null | undefined;
  readonly status: number;
  readonly isStream: boolean;
  /** By the clock, in milliseconds. */
  readonly startedAt: number;
  readonly span: Span | undefined;
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

/** Once the status of its response is known. */
export function factsOf(
  { clock }: Pick<Platform, 'clock'>,
  request: FastifyRequest,
  reply: FastifyReply,
): RequestFacts {
  const { id, ctx, method, isStream, span } = request;
  return {
    requestId: id,
    callerRequestId: callerRequestIdOf(request),
    method: METHODS.includes(method) ? method : 'other',
    route: request.is404 ? null : (request.routeOptions.url ?? null),
    organizationId: ctx?.organizationId,
    actorId: ctx?.actor.id,
    status: reply.raw.statusCode,
    isStream,
    startedAt: clock.now().getTime() - reply.elapsedTime,
    span,
  };
}

/** Records a request, when its response was sent or its stream has ended. */
export function recordRequest(
  { clock, log, metrics }: Pick<Platform, 'clock' | 'log' | 'metrics'>,
  facts: RequestFacts,
  durationMs = clock.now().getTime() - facts.startedAt,
): void {
  const { requestId, callerRequestId, method, route, status, actorId } = facts;
  const organizationId = facts.organizationId && formatId('org', facts.organizationId);
  log.info(
    { requestId, callerRequestId, method, route, status, durationMs: Math.round(durationMs), organizationId, actorId },
    'request',
  );
  // A request without a route can have any method.
  const labels = route === null ? { route: 'none', method: 'other' } : { route: templateOf(route), method };
  metrics.requests.inc({ ...labels, status });
  // The duration of a stream depends on its client.
  if (!facts.isStream) metrics.requestSeconds.observe(labels, durationMs / 1000);
  facts.span?.end(
    { 'http.response.status_code': status, 'signalbox.organization.id': organizationId },
    status >= 500 ? String(status) : undefined,
  );
}

/** The route's path as the contract has it. */
function patternOf(request: FastifyRequest): string {
  return templateOf(request.routeOptions.url ?? 'none');
}

function templateOf(route: string): string {
  return route.replaceAll(/:(\w+)/g, '{$1}');
}

// The forms that load balancers and tracing libraries use: UUIDs, hexadecimal, base64url, nginx's and AWS's. Anything else is omitted, so
// that a caller can't write arbitrary text into the log.
const CALLER_REQUEST_ID = /^[\w.:;=+/-]{1,128}$/;

/** The id that the caller, or the load balancer in front of the service, gave the request. */
function callerRequestIdOf({ headers }: FastifyRequest): string | undefined {
  const id = headers['x-request-id'];
  return typeof id === 'string' && CALLER_REQUEST_ID.test(id) ? id : undefined;
}
