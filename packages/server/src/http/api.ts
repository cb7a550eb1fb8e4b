// The API: every route of the contract. This is the path of a request, from top to bottom. A step ends it by throwing an ApiError, so
// this is also the order in which requests are refused.
//
//   before the body is read
//     preflight       204, the only response without a caller                         request/cors.ts
//     no such route   404                                                             app.ts
//     slot            503 if this node has too many requests in flight                request/admission.ts
//     caller          401; 403 without the route's scope, 404 for a session token;    request/auth.ts, request/token-caller.ts,
//                     429 by address                                                  request/limits.ts
//                     what a stream needs, if the caller asks for one                 request/event-stream.ts
//     limits          429 by the caller's requests or open streams                    request/limits.ts
//   when it has arrived
//     body            415, 413, 400                                                   request/body.ts
//                     an upload is read after the next two steps                      request/upload.ts
//     input           400, or 404 for a path that can't exist                         request/validate.ts
//     token           404 for what a session token does not reach                     request/token-gate.ts
//     reach           403 for a key that is limited to other environments or agents   request/environment-gate.ts,
//                                                                                     request/agent-gate.ts
//     budget          429 for a key whose sessions have cost what they can in a day   request/limits.ts
//     check           400 for what takes long to judge, before a transaction begins   handlers.ts
//     act             once for each Idempotency-Key                                   request/idempotency.ts, handlers.ts
//                     a route with `each`: reach, check and act for each id           request/each.ts
//     respond         JSON, or a stream; after a long wait the caller is              request/streams.ts,
//                     authorised again                                                request/reauthorise.ts
import { type Route, type RouteName, routes, tokenViews } from '@signalbox/contract';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Compile } from 'typebox/compile';
import type { PlannedChange } from '../db/planned-change.ts';
import type { OpenFile } from '../files/content.ts';
import type { JournalStream } from '../journal/stream.ts';
import type { Context, PoolContext } from '../lib/context.ts';
import type { ExportedFile } from '../lib/exported-file.ts';
import { uuidOf } from '../lib/ids.ts';
import type { Identity } from '../people/identity.ts';
import type { Platform } from '../platform.ts';
import { checks, eachResults, handlers, plans } from './handlers.ts';
import type { Admission } from './request/admission.ts';
import { agentGateOf } from './request/agent-gate.ts';
import { type Authorizer, type Caller, callerOf, lastingCallerOf } from './request/auth.ts';
import { responseOfContent } from './request/content.ts';
import { addPreflights, varyByOrigin } from './request/cors.ts';
import { type EachResult, eachOf, type Steps } from './request/each.ts';
import { type EnvironmentGate, environmentGateOf } from './request/environment-gate.ts';
import { acceptsEvents, eventsAfter } from './request/event-stream.ts';
import { responseOfExport } from './request/file.ts';
import { actOnce, type IdempotentResponse, idempotencyKeyOf } from './request/idempotency.ts';
import { type Limits, mayWait, requireBudgets, requireRoom } from './request/limits.ts';
import type { OpenAccess, Reauthorisation } from './request/reauthorise.ts';
import { pathOf } from './request/server.ts';
import type { SlowBodies } from './request/slow-bodies.ts';
import { withLastEventId } from './request/sse.ts';
import type { Streams } from './request/streams.ts';
import { beginSpan } from './request/telemetry.ts';
import { refusingFor } from './request/token-errors.ts';
import { tokenGateOf } from './request/token-gate.ts';
import { contentIdOf, keepOrDiscard, receiveUpload } from './request/upload.ts';
import { validatorOf } from './request/validate.ts';

export const API_PREFIX = '/api/v1';

/** What the steps of a request share on a node. */
export interface ApiParts {
  readonly platform: Platform;
  readonly identity: Identity;
  readonly admission: Admission;
  readonly authorizer: Authorizer;
  readonly limits: Limits;
  readonly reauthorisation: Reauthorisation;
  readonly streams: Streams;
  readonly slowBodies: SlowBodies;
  /** Waits until the event loop has time for this request's organization. */
  readonly loopTurn: (request: FastifyRequest) => Promise<void> | undefined;
  /** Of an organization; 0 is no limit. */
  readonly maxOpenSessions: number;
  /** Fails a request whose response differs from the contract: for tests. */
  readonly checkResponses: boolean;
}

type Handler = (ctx: Context, input: unknown) => Promise<unknown>;
type Input = Record<string, unknown>;

export function addApi(app: FastifyInstance, parts: ApiParts): void {
  for (const [name, route] of Object.entries(routes) as [RouteName, Route][]) {
    const steps = { onRequest: admit(route, parts), handler: respond(name, route, parts) };
    const addTo = (scope: FastifyInstance) => {
      for (const path of [`${API_PREFIX}${route.path}`, ...(route.alsoAtRoot ? [route.path] : [])]) {
        scope.route({ method: route.method, url: path.replaceAll(/\{(\w+)\}/g, ':$1'), ...steps });
      }
    };
    if (route.upload) void app.register(async (scope) => addTo(leaveBodiesUnread(scope)));
    else addTo(app);
  }
  addPreflights(app, API_PREFIX, Object.values<Route>(routes));
}

/** Before the body is read: slot, caller, limits. */
function admit(route: Route, { platform, admission, authorizer, limits, streams }: ApiParts) {
  const waits = mayWait(route);
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    request.span = beginSpan(platform, request, route);
    if (route.token) varyByOrigin(reply);
    const caller = callerOf(request, reply);
    const slot = admission.of(request, reply);
    slot.identifyCaller(limits.isTrusted(caller));
    const ctx = await limits.throttle(caller, () => authorizer.authorize(route, caller));
    request.ctx = request.span ? { ...ctx, traceParent: request.span.traceParent } : ctx;
    const wantsEvents = route.canStream && acceptsEvents(request.headers);
    if (wantsEvents) await authorizer.requireAlso(routes.streamSession, ctx);
    limits.countRequest(ctx, route, reply);
    await limits.countRequestOfKey(ctx, reply);
    if (route.upload) return slot.upload(ctx.callerId!);
    if (waits || wantsEvents) {
      streams.requireServing();
      limits.countStream(ctx, reply.raw);
    }
    if (waits) slot.release();
    else slot.work(ctx.callerId!);
  };
}

/** What the route does with an input that is valid. */
function stepsOf(name: RouteName, route: Route, parts: ApiParts): Steps & Pick<EnvironmentGate, 'leave'> {
  const { authorizer } = parts;
  const gate = environmentGateOf(route);
  const enterAgents = agentGateOf(route);
  const check = checks[name] as ((ctx: PoolContext, input: unknown) => Promise<void>) | undefined;
  return {
    name,
    route,
    leave: gate.leave,
    async enterReach(ctx, input) {
      if (!ctx.environments && !ctx.agents) return input;
      return authorizer.auditDenials(route, ctx, async () => enterAgents(ctx, await gate.enter(ctx, input)));
    },
    async check(ctx, input) {
      if (check) await authorizer.auditDenials(route, ctx, () => check(ctx, input));
    },
    act: actionOf(name, route, parts),
  };
}

/** When the body has arrived: input, environment, check, act, respond. */
function respond(name: RouteName, route: Route, parts: ApiParts) {
  const { platform, identity, authorizer, limits, reauthorisation, streams, slowBodies, loopTurn } = parts;
  const waits = mayWait(route);
  const validate = validatorOf(route);
  const tokenGate = tokenGateOf(route);
  const { enterReach, check, act, leave } = stepsOf(name, route, parts);
  const plan = planOf(name, route, parts);
  const forEach =
    route.each &&
    eachOf(
      route.each,
      innerSteps(route.each, parts),
      limits,
      eachResults[name as keyof typeof eachResults] as EachResult,
    );

  /** Without an idempotency record, so in no transaction of one. */
  async function actDirectly(ctx: PoolContext, input: Input): Promise<unknown> {
    const value = await act(ctx, input);
    if (ctx.environments) await authorizer.auditDenials(route, ctx, () => leave(ctx, value));
    if (route.method !== 'GET') announceAccessChange(reauthorisation, input);
    return value;
  }

  async function actWithKey(
    key: string,
    request: FastifyRequest,
    input: Input,
    body: unknown,
  ): Promise<IdempotentResponse> {
    const { raw, rawBody } = request;
    const credential = credentialOf(request);
    const once = { key, method: route.method, path: pathOf(raw), body, rawBody, credential };
    const ctx = request.ctx!;
    const response = await actOnce(
      ctx,
      route,
      once,
      (inner) => act(inner, input),
      () => plan?.(ctx, input),
    );
    announceAccessChange(reauthorisation, input);
    return response;
  }

  function credentialOf({ headers }: FastifyRequest): string {
    return headers.authorization ?? identity.cookieIn(headers.cookie)!;
  }

  async function runForEach(
    request: FastifyRequest,
    reply: FastifyReply,
    input: Input,
    run: NonNullable<typeof forEach>,
  ): Promise<IdempotentResponse> {
    const ctx = request.ctx!;
    const { raw, rawBody, body } = request;
    const key = idempotencyKeyOf(request.headers['idempotency-key']);
    const credential = credentialOf(request);
    const all = async () => run({ ctx, reply, input, idempotencyKey: key, credential });
    if (key === undefined) return { status: route.status, body: JSON.stringify(await all()), replayed: false };
    return actOnce(ctx, route, { key, method: route.method, path: pathOf(raw), body, rawBody, credential }, all);
  }

  /** `body`: what makes two requests with the same key the same. */
  async function run(
    request: FastifyRequest,
    reply: FastifyReply,
    access: OpenAccess,
    input: Input,
    body: unknown = request.body ?? null,
  ): Promise<IdempotentResponse> {
    const ctx = request.ctx!;
    const key = route.method === 'POST' ? idempotencyKeyOf(request.headers['idempotency-key']) : undefined;
    if (key !== undefined && !route.repeatable) return actWithKey(key, request, input, body);
    const own = key === undefined ? {} : { idempotencyKey: key };
    const value = route.repeatable
      ? await streams.whileWanted(reply.raw, (signal) => actDirectly({ ...ctx, ...own, signal }, input))
      : await actDirectly(ctx, input);
    if (waits) await access.reauthorise();
    await loopTurn(request);
    return { status: route.status, body: JSON.stringify(value), replayed: false };
  }

  async function runUpload(
    request: FastifyRequest,
    reply: FastifyReply,
    access: OpenAccess,
    input: Input,
  ): Promise<IdempotentResponse> {
    idempotencyKeyOf(request.headers['idempotency-key']);
    const received = await receiveUpload(platform, slowBodies, request, input as { environment: string });
    return keepOrDiscard(platform, received, async () => {
      await access.reauthorise();
      return run(request, reply, access, { ...input, received }, { ...input, ...contentIdOf(received) });
    });
  }

  /** Outlives the request, so it is a function of its own: a closure keeps all that the functions around it use. */
  function accessOf(ctx: PoolContext, caller: Caller, given: Input, wantsEvents: boolean): OpenAccess {
    return reauthorisation.start(ctx, async () => {
      const again = await authorizer.authorize(route, caller);
      if (wantsEvents) await authorizer.requireAlso(routes.streamSession, again);
      return enterReach(again, given);
    });
  }

  return async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const ctx = request.ctx!;
    const given = validate(ctx.token ? tokenGate.narrow(ctx.token, request) : request);
    if (ctx.token) await tokenGate.enter(ctx, ctx.token, given);
    const input = await enterReach(ctx, given);
    if (route.errors?.includes('key_budget_exceeded')) await refusingFor(ctx, () => requireBudgets(ctx, input));
    await check(ctx, input);
    if (forEach) {
      const { status, body, replayed } = await runForEach(request, reply, input, forEach);
      if (replayed) reply.header('Idempotent-Replayed', 'true');
      return sendJson(reply, status, body);
    }

    const wantsEvents = route.canStream === true && acceptsEvents(request.headers);
    const caller = route.stream || wantsEvents ? lastingCallerOf(request) : callerOf(request);
    const access = accessOf(ctx, caller, given, wantsEvents);
    if (route.stream === 'sse') {
      const from = withLastEventId(input, request.headers);
      // It has ended when the stream begins, so that its connection can be taken (outlet.ts).
      request.raw.resume();
      const events = await streams.whileWanted(reply.raw, (signal) => actDirectly({ ...ctx, signal }, from));
      return events ? streams.sendEvents(request, reply, access, events as JournalStream) : reply.code(204).send();
    }
    if (route.stream === 'export') {
      const file = responseOfExport((await actDirectly(ctx, input)) as ExportedFile);
      return streams.sendFile(request, reply, access, file);
    }
    if (route.stream === 'content') {
      const file = responseOfContent(request, reply, (await actDirectly(ctx, input)) as OpenFile);
      return file ? streams.sendFile(request, reply, access, file) : reply;
    }
    const response = await (route.upload ? runUpload : run)(request, reply, access, input);
    if (response.replayed) reply.header('Idempotent-Replayed', 'true');
    if (wantsEvents && response.status < 400) {
      request.slot?.release();
      return streams.sendEvents(request, reply, access, eventsAfter(ctx, response), response);
    }
    return sendJson(reply, response.status, response.body);
  };
}

function innerSteps({ route }: NonNullable<Route['each']>, parts: ApiParts): Steps {
  const name = route as RouteName;
  return stepsOf(name, routes[name], parts);
}

/** The route reads the body itself, whatever its type. */
function leaveBodiesUnread(scope: FastifyInstance): FastifyInstance {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', (_request: FastifyRequest, _body: unknown, done: (error: null) => void) =>
    done(null),
  );
  return scope;
}

/** The route's handler, with what applies around it inside the same transaction. */
function actionOf(name: RouteName, route: Route, parts: ApiParts): Handler {
  const { maxOpenSessions } = parts;
  const handle = handlers[name as keyof typeof handlers] as Handler;
  const checkResponse = responseCheckOf(name, route, parts);
  const isLimited = maxOpenSessions > 0 && ['openSession', 'forkSession', 'runSchedule'].includes(name);
  return async (ctx, input) => {
    const value = await refusingFor(ctx, async () => {
      if (isLimited) await requireRoom(ctx, maxOpenSessions);
      return handle(ctx, input);
    });
    checkResponse(value);
    const view = ctx.token && (tokenViews as Partial<Record<RouteName, (value: unknown) => unknown>>)[name];
    if (!view) return value;
    const shown = view(value);
    checkResponse(shown);
    return shown;
  };
}

/** In tests, throws if a response differs from the contract. */
function responseCheckOf(name: RouteName, route: Route, { checkResponses }: ApiParts): (value: unknown) => void {
  if (!checkResponses || route.stream) return () => {};
  const expected = Compile(route.result);
  return (value) => {
    if (expected.Check(value)) return;
    throw new Error(`The response of ${name} differs from the contract: ${JSON.stringify(expected.Errors(value))}`);
  };
}

/** What the route changes, if it can be planned and nothing else applies around it. */
function planOf(name: RouteName, route: Route, parts: ApiParts) {
  const plan = plans[name as keyof typeof plans] as
    | ((ctx: Context, input: unknown) => PlannedChange<unknown> | undefined)
    | undefined;
  if (!plan || parts.maxOpenSessions > 0) return undefined;
  const checkResponse = responseCheckOf(name, route, parts);
  return (ctx: Context, input: unknown) => {
    const planned = ctx.token ? undefined : plan(ctx, input);
    if (planned) checkResponse(planned.result);
    return planned;
  };
}

/** Streams of the key or person that the request named are authorised again, on every node: the request may have changed it. */
function announceAccessChange(reauthorisation: Reauthorisation, input: Input): void {
  const { keyId, userId } = input as { keyId?: string; userId?: string };
  if (keyId !== undefined) reauthorisation.announceAccessChange(uuidOf('key', keyId));
  if (userId !== undefined) reauthorisation.announceAccessChange(uuidOf('usr', userId));
}

function sendJson(reply: FastifyReply, status: number, body: string): FastifyReply {
  return reply
    .code(status)
    .type(status >= 400 ? 'application/problem+json; charset=utf-8' : 'application/json; charset=utf-8')
    .send(body);
}
