// What operators and their systems check: whether the service is alive and ready, and its metrics (docs/operations/observability.md). It is
// next to the API, and on a port of its own if one is set: a node that only runs turns or sends webhooks has no other.
//
// Metrics are for this machine and for callers with the token. Whether a request is from this machine is decided by the socket, never by
// a header. A forwarded request came from elsewhere, even if a local proxy sent it. One that names this machine by a DNS name may come
// from a page in a local browser, whose author pointed that name here.
import Fastify, { type FastifyBaseLogger, type FastifyInstance, type FastifyRequest, LogController } from 'fastify';
import { ApiError } from '../lib/api-error.ts';
import { formatId, newUuid } from '../lib/ids.ts';
import { isWithin, parseNetwork } from '../lib/network.ts';
import type { Scrape } from '../observe/scrape.ts';
import type { Platform } from '../platform.ts';
import { bearerIn, isSameToken } from './auth/bearer.ts';
import { handleError, sendProblem } from './connection/errors.ts';
import { dataHeaders, prepareServer, refuseUnread, type ServerSettings, serverOptions } from './connection/server.ts';

export interface Monitoring {
  readonly scrape: Scrape;
  /** Lets other machines read the metrics; undefined: none may. */
  readonly token: string | undefined;
  /** Whether the node is about to stop and should get no more requests. */
  readonly isDraining: () => boolean;
}

export interface MonitoringServer {
  /** Returns the port. */
  listen(options: { port: number; host: string }): Promise<number>;
  close(): Promise<void>;
}

const PROMETHEUS_TEXT = 'text/plain; version=0.0.4; charset=utf-8';
const loopback = ['127.0.0.0/8', '::1'].map(parseNetwork);
const FORWARDED = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip', 'via'];

/** `/healthz`, `/readyz`, `/metrics`. */
export function addMonitoring(
  app: FastifyInstance,
  { db }: Pick<Platform, 'db'>,
  { scrape, token, isDraining }: Monitoring,
): void {
  app.get('/healthz', async () => ({ status: 'alive' }));
  app.get('/readyz', async () => {
    if (isDraining()) throw new ApiError('unavailable', 'The node is stopping.');
    await db.check();
    return { status: 'ready' };
  });
  app.get('/metrics', async (request, reply) => {
    requireObserver(request, token);
    return reply.type(PROMETHEUS_TEXT).send(await scrape.text());
  });
}

/** A server of these alone. */
export function createMonitoringServer(
  platform: Pick<Platform, 'db' | 'log' | 'clock'>,
  monitoring: Monitoring,
  settings: ServerSettings,
): MonitoringServer {
  const app = Fastify({
    loggerInstance: platform.log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => formatId('req', newUuid()),
    requestIdHeader: false,
    ...serverOptions(settings),
    clientErrorHandler: refuseUnread,
    forceCloseConnections: true,
  });
  prepareServer(app.server, settings, platform);
  app.setErrorHandler(handleError);
  app.setNotFoundHandler((request, reply) => sendProblem(reply, new ApiError('not_found', 'Not found.'), request.id));
  app.addHook('onRequest', async (request, reply) => {
    reply.headers(dataHeaders).header('X-Request-Id', request.id);
  });
  addMonitoring(app, platform, monitoring);
  return {
    async listen({ port, host }) {
      await app.listen({ port, host });
      const address = app.server.address();
      return typeof address === 'object' && address ? address.port : port;
    },
    close: () => app.close(),
  };
}

/** Throws 401, or 403 where no token would help. */
function requireObserver(request: FastifyRequest, token: string | undefined): void {
  const given = bearerIn(request.headers.authorization);
  if (token !== undefined && given !== undefined && isSameToken(given, token)) return;
  const isForwarded = FORWARDED.some((name) => request.headers[name] !== undefined);
  if (!isForwarded && isLocalName(request.headers.host) && isWithin(loopback, request.raw.socket.remoteAddress ?? ''))
    return;
  if (token === undefined) {
    throw new ApiError(
      'ip_not_allowed',
      'Without SIGNALBOX_METRICS_TOKEN, metrics are available only on this machine.',
    );
  }
  throw given === undefined
    ? new ApiError('missing_token', 'Send `Authorization: Bearer` with the token of SIGNALBOX_METRICS_TOKEN.')
    : new ApiError('invalid_token', 'This token does not match SIGNALBOX_METRICS_TOKEN.');
}

/** Whether only the operator can have pointed the name here: an address, or a name without a dot. */
function isLocalName(host = ''): boolean {
  const name = host.replace(/:\d+$/, '');
  return name.startsWith('[') || /^[\d.]+$/.test(name) || !name.includes('.');
}
