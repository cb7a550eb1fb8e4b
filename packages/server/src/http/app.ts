// The HTTP server: every route of the contract, in three hops: who calls (auth.ts), what they sent (validate.ts), and the
// domain function (handlers.ts). Checks come in the order of api.md section 1: 404 of a route, 401, 403, then 415, 413, 400,
// then what the domain function refuses.
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { type Route, type RouteName, routes } from '@signalbox/contract';
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify';
import { Compile } from 'typebox/compile';
import type { FileStream } from '../events/export.ts';
import type { JournalStream } from '../journal/live.ts';
import { createAuthenticator } from '../keys/authenticate.ts';
import { ApiError } from '../lib/api-error.ts';
import type { Context, PoolContext } from '../lib/context.ts';
import { formatId, newUuid, uuidOf } from '../lib/ids.ts';
import { networkOf } from '../lib/network.ts';
import type { Identity } from '../people/identity.ts';
import type { Platform } from '../platform.ts';
import { addConsoleApi } from './console/api.ts';
import { addConsole } from './console/console.ts';
import { addOtherSignIns } from './console/sign-in.ts';
import { checks, handlers } from './handlers.ts';
import { addMonitoring, type Monitoring } from './monitoring.ts';
import { openApiDocument } from './reference/openapi.ts';
import { docsPage, exampleOrigin } from './reference/page.ts';
import { createAdmission } from './request/admission.ts';
import { type Caller, createAuthorizer } from './request/auth.ts';
import { BODY_LIMIT_BYTES, discardRest, readJsonStrictly } from './request/body.ts';
import { onceClosed } from './request/closed.ts';
import { environmentGateOf } from './request/environment-gate.ts';
import { handleError, sendProblem } from './request/errors.ts';
import { writeFile } from './request/file.ts';
import { actOnce, idempotencyKeyOf } from './request/idempotency.ts';
import { createLimits, type LimitSettings, mayWait, requireRoom } from './request/limits.ts';
import { createLoopQueue } from './request/loop-queue.ts';
import { createOpenResponses, type OpenResponses } from './request/open-responses.ts';
import { parseQuery } from './request/query.ts';
import { createDoubts, recheck } from './request/reauthorise.ts';
import {
  dataHeaders,
  prepareServer,
  refuseUnread,
  requireShortUrl,
  type ServerSettings,
  serverOptions,
} from './request/server.ts';
import { withLastEventId, writeEvents } from './request/sse.ts';
import { createStalledReaders } from './request/stalled-readers.ts';
import { beginSpan, countedAuthorizer, recordRequest } from './request/telemetry.ts';
import { createUnreadBound, type Write } from './request/unread-bound.ts';
import { validatorOf } from './request/validate.ts';

const PREFIX = '/api/v1';
// How long the end waits for requests under way; after it, who still sends is cut off.
const CLOSE_GRACE_MS = 5_000;
// Whoever was asked about a moment ago is not asked about again. Less than a long poll waits at least.
const LATE_MS = 250;
export interface AppOptions {
  version: string;
  /** Checks every answer against the contract and fails the request where it differs: for tests. */
  checkAnswers?: boolean;
  limits: LimitSettings & ServerSettings;
  /** Whose `X-Forwarded-For` is believed: addresses and CIDRs. */
  trustProxy?: readonly string[];
  observation: Monitoring;
  identity: Identity;
  /** How people may sign in beside a password. */
  provider: { name: string } | undefined;
  /** Where the built console stands; without it there is none. */
  consoleDir?: string | undefined;
}

export interface App {
  /** Returns the port. */
  listen(options: { port: number; host: string }): Promise<number>;
  /** Serves on for so long, closes each connection with its next answer, and in the second half ends streams and long polls. */
  drain(ms: number): Promise<void>;
  /** Takes no connection any more, ends streams and long polls, and waits for requests under way. */
  close(): Promise<void>;
}

declare module 'fastify' {
  interface FastifyRequest {
    ctx: PoolContext | undefined;
  }
}

export async function createApp(platform: Platform, options: AppOptions): Promise<App> {
  const authenticator = createAuthenticator(platform);
  const limits = createLimits(options.limits, platform.clock);
  const admission = createAdmission(options.limits.maxRequestsInFlight, platform.clock);
  const { maxOpenSessions } = options.limits;
  const { authorize, auditDenials: heard } = countedAuthorizer(
    platform.metrics,
    createAuthorizer(platform, authenticator, options.identity),
  );
  const openAnswers = createOpenResponses(platform.clock);
  /** Files on their way, which nobody can go on with elsewhere: only the end of the service ends them. */
  const openFiles = createOpenResponses(platform.clock);
  const doubts = createDoubts();
  const unread = createStalledReaders(platform.clock);
  const unreadBound = createUnreadBound(options.limits.maxUnreadMegabytes, platform.log);
  const turns = createLoopQueue();
  const turnOf = ({ ctx, ip }: FastifyRequest) => turns.next(ctx?.organizationId ?? networkOf(ip));
  let draining = false;
  let closing = false;

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

  prepareServer(app.server, options.limits);
  readJsonStrictly(app, turnOf);
  app.decorateRequest('ctx', undefined);
  app
    .decorateRequest('slot', undefined)
    .decorateRequest('rawBody', undefined)
    .decorateRequest('span', undefined)
    .decorateRequest('isStream', false)
    .decorateRequest('isOver', false);
  app.setErrorHandler(handleError);
  app.addHook('onRequest', async (request, reply) => {
    unread.watch(reply.raw);
    reply.headers(dataHeaders).header('X-Request-Id', request.id);
    requireShortUrl(request.raw);
    if (request.is404)
      throw new ApiError('not_found', `There is no route ${request.method} ${pathOf(request.raw)}. See /docs.`);
  });
  // Whoever keeps connections goes elsewhere with the next request, and none of them has to be waited for.
  app.addHook('onSend', async (request, reply, payload) => {
    if (draining) reply.header('Connection', 'close');
    unreadBound.count(reply.raw, request.ctx?.organizationId ?? '', payload);
  });
  app.addHook('preValidation', async (request) => request.slot?.bodyArrived());
  app.addHook('onResponse', async (request, reply) => {
    discardRest(platform.clock, request);
    recordRequest(platform, request, reply);
  });
  // Reached only past the hook above, which has answered already.
  app.setNotFoundHandler((request, reply) => sendProblem(reply, new ApiError('not_found', 'Not found.'), request.id));

  for (const [name, route] of Object.entries(routes) as [RouteName, Route][]) {
    addRoute(name, route, `${PREFIX}${route.path}`);
    if (route.alsoAtRoot) addRoute(name, route, route.path);
  }
  addPages(app, options.version, platform.publicUrl);
  addMonitoring(app, platform, options.observation);
  addConsoleApi(app, platform, { ...options, limits, admission, doubts, callerOf });
  addOtherSignIns(app, platform, { ...options, limits, admission, doubts, callerOf });
  await addConsole(app, options.consoleDir);

  function addRoute(name: RouteName, route: Route, path: string): void {
    const validate = validatorOf(route);
    const gate = environmentGateOf(route);
    const waits = mayWait(route);
    const handle = handlers[name] as (ctx: Context, input: unknown) => Promise<unknown>;
    const check = (checks[name] ?? (async () => {})) as (ctx: PoolContext, input: unknown) => Promise<void>;
    const isAnswer = options.checkAnswers && !route.stream ? Compile(route.result) : undefined;

    async function act(ctx: Context, input: unknown): Promise<unknown> {
      if (maxOpenSessions > 0 && name === 'openSession') await requireRoom(ctx, maxOpenSessions);
      const value = await handle(ctx, input);
      if (isAnswer && !isAnswer.Check(value)) {
        throw new Error(
          `The answer of ${name} is not as the contract has it: ${JSON.stringify(isAnswer.Errors(value))}`,
        );
      }
      return value;
    }

    /** In no transaction of a request's record. */
    async function actAlone(ctx: PoolContext, input: Record<string, unknown>): Promise<unknown> {
      const value = await act(ctx, input);
      if (ctx.environments) await heard(route, ctx, () => gate.leave(ctx, value));
      if (route.method !== 'GET') doubtWhoWasChanged(input);
      return value;
    }

    app.route({
      method: route.method,
      url: path.replaceAll(/\{(\w+)\}/g, ':$1'),
      onRequest: async (request, reply) => {
        request.span = beginSpan(platform, request, route);
        const caller = callerOf(request);
        const slot = admission.of(request, reply);
        slot.identifyCaller(limits.isTrusted(caller));
        const ctx = await limits.throttle(caller, () => authorize(route, caller));
        request.ctx = request.span ? { ...ctx, traceParent: request.span.traceParent } : ctx;
        limits.countRequest(ctx, route, reply);
        if (!waits) return slot.work(ctx.callerId!);
        // Begun now, nobody would end it.
        if (closing) throw shuttingDown();
        limits.countStream(ctx, reply.raw);
        slot.release();
      },
      handler: async (request, reply) => {
        const ctx = request.ctx!;
        const given = validate(request);
        const admit = async (who: PoolContext) =>
          who.environments ? await heard(route, who, () => gate.enter(who, given)) : given;
        const input = await admit(ctx);
        await check(ctx, input);
        const still = async () => admit(await authorize(route, callerOf(request)));
        const begun = platform.clock.now().getTime();
        /** What a long poll waited for is for nobody who was removed, signed out or limited meanwhile. */
        const ifStill = async (value: unknown) => {
          if (waits && platform.clock.now().getTime() - begun > LATE_MS) await still();
          await turnOf(request);
          return JSON.stringify(value);
        };
        if (route.stream === 'sse') {
          const from = withLastEventId(input, request.headers);
          const found = await whileWanted(reply, (signal) => actAlone({ ...ctx, signal }, from));
          if (!found) return reply.code(204).send();
          return stream(request, reply, still, openAnswers, (...to) => writeEvents(...to, found as JournalStream));
        }
        if (route.stream === 'export') {
          const file = (await actAlone(ctx, input)) as FileStream;
          return stream(request, reply, still, openFiles, (...to) => writeFile(...to, file));
        }
        const key = route.method === 'POST' ? idempotencyKeyOf(request.headers['idempotency-key']) : undefined;
        if (route.repeatable) {
          const own = key === undefined ? {} : { idempotencyKey: key };
          const value = await whileWanted(reply, (signal) => actAlone({ ...ctx, ...own, signal }, input));
          return send(reply, route.status, await ifStill(value));
        }
        if (key === undefined) return send(reply, route.status, await ifStill(await actAlone(ctx, input)));
        const answer = await actOnce(
          ctx,
          route,
          {
            key,
            method: route.method,
            path: pathOf(request.raw),
            body: request.body ?? null,
            rawBody: request.rawBody,
            credential: request.headers.authorization ?? options.identity.cookieIn(request.headers.cookie)!,
          },
          (inner) => act(inner, input),
        );
        doubtWhoWasChanged(input);
        if (answer.replayed) reply.header('Idempotent-Replayed', 'true');
        return send(reply, answer.status, answer.body);
      },
    });
  }

  /** Asks whether the streams of a key or a person that the request named may go on. */
  function doubtWhoWasChanged({ keyId, userId }: { keyId?: string; userId?: string }): void {
    if (keyId !== undefined) doubts.about(uuidOf('key', keyId));
    if (userId !== undefined) doubts.about(uuidOf('usr', userId));
  }

  /** The signal is aborted when the caller has gone, or the service stops. */
  async function whileWanted<T>(reply: FastifyReply, fn: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const unwanted = new AbortController();
    const end = () => unwanted.abort();
    const forgets = [openAnswers.add(end), onceClosed(reply.raw, end)];
    try {
      return await fn(unwanted.signal);
    } finally {
      for (const forget of forgets) forget();
    }
  }

  /** Hands the response to `send`, and ends it when the service stops, or the key may not read it any more. */
  async function stream(
    request: FastifyRequest,
    reply: FastifyReply,
    still: () => Promise<unknown>,
    open: OpenResponses,
    send: (response: ServerResponse, headers: OutgoingHttpHeaders, over: AbortSignal, write: Write) => Promise<void>,
  ): Promise<void> {
    if (closing) throw shuttingDown();
    reply.hijack();
    request.isStream = true;
    const over = new AbortController();
    const forget = open.add(() => over.abort());
    const cut = () => reply.raw.destroy();
    const { callerId, organizationId } = request.ctx!;
    const stopRechecking = recheck(platform.clock, still, cut, (hear) => doubts.listen(callerId!, hear));
    try {
      const write = unreadBound.writerOf(reply.raw, organizationId);
      await send(reply.raw, reply.getHeaders() as OutgoingHttpHeaders, over.signal, write);
    } catch (error) {
      // The reader resumes at its cursor; the cause is for the operator.
      platform.log.warn({ err: error, requestId: request.id }, 'stream ended by an error');
    } finally {
      stopRechecking();
      forget();
      recordRequest(platform, request, reply);
    }
  }

  return {
    async listen({ port, host }) {
      await app.listen({ port, host });
      const address = app.server.address();
      return typeof address === 'object' && address ? address.port : port;
    },
    async drain(ms) {
      draining = true;
      // By then a balancer has seen that the node is not ready, and leads who comes back elsewhere.
      await platform.clock.sleep(ms / 2);
      await openAnswers.endOver(ms / 2);
    },
    async close() {
      draining = true;
      closing = true;
      openAnswers.endAll();
      openFiles.endAll();
      const closed = new AbortController();
      void platform.clock.sleep(CLOSE_GRACE_MS, closed.signal).then(
        () => app.server.closeAllConnections(),
        () => {},
      );
      await app.close();
      closed.abort();
      await unread.stop();
      await authenticator.close();
    },
  };
}

/** What comes is checked by the contract (validate.ts), so no route has a schema of Fastify's. Its compilers would take 8 MB. */
function noCompiler(): never {
  throw new TypeError('A route has a schema of Fastify’s');
}

function callerOf(request: FastifyRequest): Caller {
  return { requestId: request.id, ipAddress: request.ip, headers: request.headers };
}

function shuttingDown(): ApiError {
  return new ApiError('unavailable', 'The service is shutting down.', { retryAfterSeconds: 1 });
}

function send(reply: FastifyReply, status: number, body: string): FastifyReply {
  return reply
    .code(status)
    .type(status >= 400 ? 'application/problem+json; charset=utf-8' : 'application/json; charset=utf-8')
    .send(body);
}

function pathOf(request: IncomingMessage): string {
  return request.url?.split('?', 1)[0] ?? '';
}

/** Where the request came to, as its sender says; the public url if it says nothing that can be shown in a command line. */
function originOf({ protocol, host }: FastifyRequest, publicUrl: URL): string {
  const url = /^[a-z0-9.:[\]-]+$/i.test(host) ? URL.parse(`${protocol}://${host}`) : null;
  // Behind a proxy the scheme is what only the setting knows.
  return url === null || url.host === publicUrl.host ? publicUrl.origin : url.origin;
}

/** What stands beside the resources (api.md section 9). */
function addPages(app: FastifyInstance, version: string, publicUrl: () => URL): void {
  let made: { text: string; page: string[] } | undefined;
  // With the first request: it is more work than the rest of the interface together, and most nodes are never asked.
  const pages = () => {
    if (made) return made;
    const document = openApiDocument(routes, version);
    made = { text: JSON.stringify(document), page: docsPage(document).split(exampleOrigin) };
    return made;
  };
  app.get(`${PREFIX}/openapi.json`, async (_, reply) =>
    reply.type('application/json; charset=utf-8').send(pages().text),
  );
  app.get('/docs', async (request, reply) =>
    reply
      .type('text/html; charset=utf-8')
      .header(
        'Content-Security-Policy',
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      )
      .send(pages().page.join(originOf(request, publicUrl()))),
  );
  app.get('/', async (_, reply) => reply.redirect('/console'));
}
