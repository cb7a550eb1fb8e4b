// The HTTP server of a node: the API (api.ts), its reference (reference/), the console (console/), and health and metrics
// (monitoring.ts), with what they have in common: limits, headers, errors, telemetry, and a stop that no client notices.
import { setImmediate } from 'node:timers/promises';
import Fastify, { type FastifyBaseLogger, type FastifyReply, type FastifyRequest, LogController } from 'fastify';
import { DatabaseUnavailable } from '../db/db.ts';
import { createAuthenticator } from '../keys/authenticate.ts';
import { OVER } from '../lib/aborted.ts';
import { ApiError } from '../lib/api-error.ts';
import type { Clock } from '../lib/clock.ts';
import type { PoolContext } from '../lib/context.ts';
import { formatId, newUuid } from '../lib/ids.ts';
import { networkOf } from '../lib/network.ts';
import type { Identity } from '../people/identity.ts';
import type { Platform } from '../platform.ts';
import { createAdmission } from './admission/admission.ts';
import { createLimits, type LimitSettings } from './admission/limits.ts';
import { createLoopQueue } from './admission/loop-queue.ts';
import { API_PREFIX, addApi } from './api.ts';
import { createAuthorizer } from './auth/auth.ts';
import { createReauthorization } from './auth/reauthorize.ts';
import { identify } from './auth/recalled-caller.ts';
import { BODY_LIMIT_BYTES, discardRest, readJsonStrictly, requirePlainBody } from './body/body.ts';
import { createBodyMemory } from './body/body-memory.ts';
import { parseQuery } from './body/query.ts';
import { createSlowBodies } from './body/slow-bodies.ts';
import { handleError, sendProblem } from './connection/errors.ts';
import {
  dataHeaders,
  pathOf,
  prepareServer,
  refuseUnread,
  requireShortUrl,
  type ServerSettings,
  serverOptions,
} from './connection/server.ts';
import { factsOf, recordRequest } from './connection/telemetry.ts';
import { requireNoSlashAtEnd, unknownRoute } from './connection/unknown-route.ts';
import { addConsoleApi } from './console/api.ts';
import { addConsole } from './console/console.ts';
import { addSharedSessions } from './console/shared.ts';
import { addOtherSignIns } from './console/sign-in.ts';
import { addMonitoring, type Monitoring } from './monitoring.ts';
import { addOperatorApi, type OperatorApiOptions } from './operator.ts';
import { addReference } from './reference/routes.ts';
import { createExports } from './stream/exports.ts';
import { createStalledReaders } from './stream/stalled-readers.ts';
import { createStreams } from './stream/streams.ts';
import { createUnreadBound } from './stream/unread-bound.ts';

// A turn of a busy node's event loop takes some milliseconds.
const SHORT_TURN_MS = 0.5;
const MAX_WAIT_FOR_TURN_MS = 1_000;
// How long a stop waits for requests in flight; then their connections are closed.
const CLOSE_GRACE_MS = 5_000;

export interface AppOptions {
  version: string;
  /** Fails a request whose response differs from the contract: for tests. */
  checkResponses?: boolean;
  limits: LimitSettings & ServerSettings;
  /** The proxies whose `X-Forwarded-For` is believed: addresses and CIDRs. */
  trustProxy?: readonly string[];
  monitoring: Monitoring;
  operator: Pick<OperatorApiOptions, 'operatorToken' | 'organizationId'>;
  identity: Identity;
  /** The OpenID Connect provider that people may sign in with. */
  provider: { name: string } | undefined;
  /** The directory of the built console; without one the console is not served. */
  consoleDir?: string | undefined;
}

export interface App {
  /** Returns the port. */
  listen(options: { port: number; host: string }): Promise<number>;
  /** Continues to serve for so long, closes each connection with its next response, and in the second half ends streams and long polls. */
  drain(ms: number): Promise<void>;
  /** Accepts no more connections, ends streams and long polls, and waits for requests in flight. */
  close(): Promise<void>;
}

declare module 'fastify' {
  interface FastifyRequest {
    ctx: PoolContext | undefined;
  }
}

export async function createApp(platform: Platform, options: AppOptions): Promise<App> {
  const { identity } = options;
  const authenticator = createAuthenticator(platform);
  const limits = createLimits(options.limits, platform);
  const admission = createAdmission(options.limits, platform.clock);
  const reauthorization = createReauthorization(platform);
  const stalledReaders = createStalledReaders(platform.clock);
  const unreadBound = createUnreadBound(options.limits.maxUnreadMegabytes, platform.log);
  const slowBodies = createSlowBodies(platform.clock, options.limits.requestTimeoutSeconds * 1000);
  const streams = createStreams({ platform, unreadBound, limits, stalledReaders });
  const bodyMemory = createBodyMemory(slowBodies);
  const loopQueue = createLoopQueue();
  const loopTurn = ({ ctx, ip }: FastifyRequest) => loopQueue.next(ctx?.organizationId ?? networkOf(ip));
  let draining = false;

  const app = Fastify({
    loggerInstance: platform.log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => formatId('req', newUuid()),
    requestIdHeader: false,
    bodyLimit: BODY_LIMIT_BYTES,
    ...serverOptions(options.limits),
    clientErrorHandler: refuseUnread,
    trustProxy: options.trustProxy?.length ? [...options.trustProxy] : false,
    schemaController: { compilersFactory: { buildValidator: noCompiler, buildSerializer: noCompiler } },
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    routerOptions: { maxParamLength: 500, querystringParser: parseQuery },
    frameworkErrors: (error, request, reply) => {
      reply.headers(dataHeaders).header('X-Request-Id', request.id);
      handleError(error, request as FastifyRequest, reply as FastifyReply);
    },
  });

  prepareServer(app.server, options.limits, platform);
  app.server.on('connection', (connection) => stalledReaders.watch(connection));
  readJsonStrictly(app, bodyMemory, loopTurn);
  app.decorateRequest('ctx', undefined);
  app
    .decorateRequest('slot', undefined)
    .decorateRequest('recalled', undefined)
    .decorateRequest('rawBody', undefined)
    .decorateRequest('span', undefined)
    .decorateRequest('isStream', false);
  app.setErrorHandler((error, request, reply) => {
    // A database that does not respond is not waited for twice; the caller learns nothing else.
    if (!request.recalled || error instanceof DatabaseUnavailable) return handleError(error, request, reply);
    return identify(request).then(
      () => handleError(error, request, reply),
      (refusal: unknown) => handleError(refusal, request, reply),
    );
  });
  app.addHook('onRequest', async (request, reply) => {
    slowBodies.watch(request.raw);
    reply.headers(dataHeaders).header('X-Request-Id', request.id);
    requireShortUrl(request.raw);
    const path = pathOf(request.raw);
    requireNoSlashAtEnd(request.method, path, API_PREFIX);
    if (request.is404) throw unknownRoute(request.method, path, API_PREFIX);
  });
  app.addHook('preParsing', async (request, reply) => requirePlainBody(request, reply));
  // A client that keeps connections uses another node for its next request, and the stop need not wait for any of them.
  app.addHook('onSend', async (request, reply, payload) => {
    if (draining) reply.header('Connection', 'close');
    unreadBound.count(reply.raw, request.ctx?.organizationId ?? '', payload);
  });
  app.addHook('preValidation', async (request) => {
    slowBodies.arrived(request.raw);
    request.slot?.bodyArrived();
  });
  app.addHook('onResponse', async (request, reply) => {
    discardRest(platform.clock, request);
    if (!request.isStream) recordRequest(platform, factsOf(platform, request, reply), reply.elapsedTime);
  });
  // The onRequest hook above has already refused the request.
  app.setNotFoundHandler((request, reply) => sendProblem(reply, new ApiError('not_found', 'Not found.'), request.id));

  addApi(app, {
    platform,
    identity,
    admission,
    authorizer: createAuthorizer(platform, authenticator, identity),
    limits,
    reauthorization,
    streams,
    exports: createExports(),
    slowBodies,
    bodyMemory,
    loopTurn,
    maxOpenSessions: options.limits.maxOpenSessions,
    checkResponses: options.checkResponses ?? false,
  });
  addOperatorApi(app, platform, { ...options.operator, prefix: API_PREFIX, admission, limits });
  addReference(app, { prefix: API_PREFIX, version: options.version, directory: options.consoleDir });
  addMonitoring(app, platform, options.monitoring);
  const consoleParts = { ...options, limits, admission, reauthorization };
  addConsoleApi(app, platform, consoleParts);
  addOtherSignIns(app, platform, consoleParts);
  addSharedSessions(app, platform, consoleParts);
  await addConsole(app, options.consoleDir);

  return {
    async listen({ port, host }) {
      await app.listen({ port, host });
      const address = app.server.address();
      return typeof address === 'object' && address ? address.port : port;
    },
    async drain(ms) {
      draining = true;
      // By then a load balancer has seen that the node is not ready, and sends clients that reconnect to other nodes.
      await platform.clock.sleep(ms / 2);
      await streams.endOver(ms / 2);
    },
    async close() {
      draining = true;
      await hasAccepted(platform.clock);
      // Before the clients of streams and long polls reconnect: a load balancer then sends them to another node.
      app.server.close();
      streams.endAll();
      const closed = new AbortController();
      void platform.clock.sleep(CLOSE_GRACE_MS, closed.signal).then(
        () => {
          app.server.closeAllConnections();
          streams.closeConnections();
        },
        () => {},
      );
      await app.close();
      closed.abort(OVER);
      await Promise.all([reauthorization.stop(), stalledReaders.stop(), slowBodies.stop()]);
      await authenticator.close();
    },
  };
}

/**
 * Resolves when hardly any connection can be waiting to be accepted: closing the server would reset it, and a load balancer does not
 * repeat a POST. The event loop accepts all that wait in each of its turns, so a short turn has just done so.
 */
async function hasAccepted(clock: Clock): Promise<void> {
  const begun = clock.elapsedMs();
  for (let turn = begun; ; ) {
    await setImmediate();
    const now = clock.elapsedMs();
    if (now - turn < SHORT_TURN_MS || now - begun > MAX_WAIT_FOR_TURN_MS) return;
    turn = now;
  }
}

/** Requests are checked by the contract (validate.ts), so no route has a schema of Fastify's. Its compilers would take 8 MB. */
function noCompiler(): never {
  throw new TypeError('A route has a Fastify schema; requests are validated by the contract (validate.ts)');
}
