// The API: every route of the contract. This is the path of a request, from top to bottom. A step ends it by throwing an ApiError, so
// this is also the order in which requests are refused.
//
//   before the body is read
//     preflight       204, the only response without a caller                         request/cors.ts
//     no such route   404                                                             app.ts
//     slot            503 if this node has too many requests in flight                request/admission.ts
//     caller          401; 403 without the route's scope, 404 for a session token;    request/auth.ts, request/token-caller.ts,
//                     429 by address                                                  request/limits.ts
//                     a key that the node remembers, for a change that is planned:    request/recalled-caller.ts
//                     before anything is refused, or with the change itself
//                     what a stream needs, if the caller asks for one                 request/event-stream.ts
//     limits          429 by the caller's requests or open streams                    request/limits.ts
//     memory          a long body waits; 429 for a session token with several         request/body-memory.ts
//   when it has arrived
//     body            415, 413, 400; a client that waits for `100 Continue` gets it   request/body.ts, request/server.ts
//                     when the body is first read
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
//                     authorized again                                                request/reauthorize.ts
import { type Route, type RouteName, routes } from '@signalbox/contract';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { DatabaseUnavailable } from '../db/db.ts';
import type { PlannedChange } from '../db/planned-change.ts';
import type { OpenFile } from '../files/content.ts';
import type { JournalStream } from '../journal/stream.ts';
import type { PoolContext } from '../lib/context.ts';
import type { ExportedFile } from '../lib/files/exported-file.ts';
import { uuidOf } from '../lib/ids.ts';
import { jsonWithTexts } from '../lib/json/json-text.ts';
import type { Identity } from '../people/identity.ts';
import type { Platform } from '../platform.ts';
import type { Admission } from './admission/admission.ts';
import { mayWait, requireBudgets } from './admission/limits.ts';
import { type Caller, callerOf, lastingCallerOf } from './auth/auth.ts';
import { addPreflights, varyByOrigin } from './auth/cors.ts';
import type { OpenAccess, Reauthorization } from './auth/reauthorize.ts';
import { hasArrived, identify } from './auth/recalled-caller.ts';
import { withTokenErrors } from './auth/token-errors.ts';
import { tokenGateOf } from './auth/token-gate.ts';
import type { BodyMemory } from './body/body-memory.ts';
import { withPrecondition } from './body/precondition.ts';
import type { SlowBodies } from './body/slow-bodies.ts';
import { validatorOf } from './body/validate.ts';
import { pathOf } from './connection/server.ts';
import { beginSpan } from './connection/telemetry.ts';
import {
  actAsPlanned,
  actOnce,
  type IdempotentRequest,
  type IdempotentResponse,
  idempotencyKeyOf,
} from './idempotency/idempotency.ts';
import { forEachOf, type Plan, planOf, type StepParts, stepsOf } from './route-steps.ts';
import { responseOfContent } from './stream/content.ts';
import { acceptsEvents, eventsAfter } from './stream/event-stream.ts';
import type { Exports } from './stream/exports.ts';
import { withLastEventId } from './stream/sse.ts';
import type { Streams } from './stream/streams.ts';
import { contentIdOf, keepOrDiscard, mebibytesInMemory, receiveUpload } from './upload.ts';

export const API_PREFIX = '/api/v1';

/** What the steps of a request share on a node. */
export interface ApiParts extends StepParts {
  readonly platform: Platform;
  readonly identity: Identity;
  readonly admission: Admission;
  readonly reauthorization: Reauthorization;
  readonly streams: Streams;
  readonly exports: Exports;
  readonly slowBodies: SlowBodies;
  readonly bodyMemory: BodyMemory;
  /** Waits until the event loop has time for this request's organization. */
  readonly loopTurn: (request: FastifyRequest) => Promise<void> | undefined;
}

type Input = Record<string, unknown>;

interface Entered {
  /** The input as it was validated. */
  given: Input;
  /** With what the key's limits fill in. */
  input: Input;
}

interface Prepared extends Entered {
  planned?: PlannedChange<unknown>;
  once?: IdempotentRequest | undefined;
}

export function addApi(app: FastifyInstance, parts: ApiParts): void {
  for (const [name, route] of Object.entries(routes) as [RouteName, Route][]) {
    const plan = planOf(name, route, parts);
    const steps = { onRequest: admit(route, plan, parts), handler: respond(name, route, plan, parts) };
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
function admit(route: Route, plan: Plan, parts: ApiParts) {
  const { platform, admission, authorizer, limits, exports, bodyMemory } = parts;
  const waits = mayWait(route);
  const mayRecall = plan !== undefined && !limits.counts(route);
  return async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    request.span = beginSpan(platform, request, route);
    if (route.token) varyByOrigin(reply);
    const caller = callerOf(request, reply);
    const slot = admission.of(request, reply);
    const isTrusted = limits.isTrusted(caller);
    slot.identifyCaller(isTrusted);
    const wantsEvents = route.canStream && acceptsEvents(request.headers);
    const enterAs = (ctx: PoolContext) => {
      request.ctx = request.span ? { ...ctx, traceParent: request.span.traceParent } : ctx;
    };
    const lookUp = async (): Promise<void> => {
      const ctx = await limits.throttle(caller, () => authorizer.authorize(route, caller));
      enterAs(ctx);
      if (wantsEvents) await authorizer.requireAlso(routes.streamSession, ctx);
      limits.countRequest(ctx, route, reply);
      await limits.countRequestOfKey(ctx, reply);
    };
    const recalled =
      mayRecall && isTrusted
        ? authorizer.recall(wantsEvents ? [route, routes.streamSession] : [route], caller)
        : undefined;
    if (recalled && (await hasArrived(request.raw))) {
      enterAs({ ...recalled.ctx, isRecalled: true });
      const confirm = () => {
        request.recalled = undefined;
        enterAs(recalled.ctx);
        limits.trust(caller);
        recalled.confirm();
      };
      request.recalled = { ...recalled, confirm, lookUp };
    } else await lookUp();
    const ctx = request.ctx!;
    if (route.upload) return slot.upload(ctx, mebibytesInMemory(request, platform.files.own));
    if (waits || wantsEvents) limits.countStream(ctx, reply.raw);
    if (route.stream === 'export') exports.enter(ctx, reply.raw);
    if (waits) slot.release();
    else slot.work(ctx.callerId!, ctx.organizationId);
    await bodyMemory.beforeReading(request, ctx);
  };
}

/** When the body has arrived: input, environment, check, act, respond. */
function respond(name: RouteName, route: Route, plan: Plan, parts: ApiParts) {
  const { platform, identity, authorizer, reauthorization, streams, exports, slowBodies, loopTurn } = parts;
  const waits = mayWait(route);
  const validate = validatorOf(route);
  const tokenGate = tokenGateOf(route);
  const { enterReach, check, act, leave } = stepsOf(name, route, parts);
  const forEach = forEachOf(name, route, parts);

  /** Without an idempotency record, so in no transaction of one. */
  async function actDirectly(ctx: PoolContext, input: Input): Promise<unknown> {
    const value = await act(ctx, input);
    if (ctx.environments) await authorizer.auditDenials(route, ctx, () => leave(ctx, value));
    if (route.method !== 'GET') announceAccessChange(reauthorization, input);
    return value;
  }

  /** Undefined without an idempotency key. */
  function onceOf(request: FastifyRequest, body: unknown = request.body ?? null): IdempotentRequest | undefined {
    const { raw, rawBody } = request;
    const key = idempotencyKeyOf(request.headers['idempotency-key']);
    if (key === undefined) return undefined;
    return { key, method: route.method, path: pathOf(raw), body, rawBody, credential: credentialOf(request) };
  }

  async function actWithKey(once: IdempotentRequest, ctx: PoolContext, input: Input): Promise<IdempotentResponse> {
    const response = await actOnce(ctx, route, once, (inner) => act(inner, input));
    announceAccessChange(reauthorization, input);
    return response;
  }

  /** The input, and what it may reach. */
  async function enter(request: FastifyRequest): Promise<Entered> {
    const ctx = request.ctx!;
    const valid = validate(ctx.token ? tokenGate.narrow(ctx.token, request) : request);
    const given = withPrecondition(route, valid, request.headers);
    if (ctx.token) await tokenGate.enter(ctx, ctx.token, given);
    const input = await enterReach(ctx, given);
    if (route.errors?.includes('key_budget_exceeded'))
      await withTokenErrors(ctx, () => requireBudgets(ctx, name, input));
    return { given, input };
  }

  /** All that comes before the change, which is planned if it can be. */
  async function prepare(request: FastifyRequest): Promise<Prepared> {
    const ctx = request.ctx!;
    const entered = await enter(request);
    const planned = plan?.(ctx, entered.input);
    if (!planned) return entered;
    await check(ctx, entered.input);
    return { ...entered, planned, once: onceOf(request) };
  }

  /** Acts by a plan if there is one that applies. Without a `response`, nothing was changed, and the caller has been looked up. */
  async function begin(request: FastifyRequest): Promise<Prepared & { response?: IdempotentResponse | undefined }> {
    const { recalled } = request;
    // What is refused here is refused again below, to a caller who is known by then.
    const prepared = await (recalled ? prepare(request).catch(ifRefused) : prepare(request));
    const response = prepared && (await commit(request, prepared));
    if (prepared && (response || !recalled)) return { ...prepared, response };
    await identify(request);
    return enter(request);
  }

  async function commit(
    { ctx, recalled }: FastifyRequest,
    { planned, once }: Prepared,
  ): Promise<IdempotentResponse | undefined> {
    if (!planned) return undefined;
    const requires = recalled ? [recalled.check, ...planned.requires] : planned.requires;
    const response = await actAsPlanned(ctx!, route, once, { ...planned, requires });
    if (response) recalled?.confirm();
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
    const once = onceOf(request);
    const all = async () => run({ ctx, reply, input, idempotencyKey: once?.key, credential: credentialOf(request) });
    if (!once) return { status: route.status, body: jsonWithTexts(await all()), replayed: false };
    return actOnce(ctx, route, once, all);
  }

  /** `body`: what makes two requests with the same key the same. */
  async function run(
    request: FastifyRequest,
    reply: FastifyReply,
    access: OpenAccess,
    input: Input,
    body?: unknown,
  ): Promise<IdempotentResponse> {
    const ctx = request.ctx!;
    const once = route.method === 'POST' ? onceOf(request, body) : undefined;
    if (once && !route.repeatable) return actWithKey(once, ctx, input);
    const own = once ? { idempotencyKey: once.key } : {};
    const value = route.repeatable
      ? await streams.whileWanted(reply.raw, (signal) => actDirectly({ ...ctx, ...own, signal }, input), { waits })
      : await actDirectly(ctx, input);
    if (waits) await access.reauthorize();
    await loopTurn(request);
    return { status: route.status, body: jsonWithTexts(value), replayed: false };
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
      await access.reauthorize();
      return run(request, reply, access, { ...input, received }, { ...input, ...contentIdOf(received) });
    });
  }

  /** Outlives the request, so it is a function of its own: a closure keeps all that the functions around it use. */
  function accessOf(ctx: PoolContext, caller: Caller, given: Input, wantsEvents: boolean): OpenAccess {
    return reauthorization.start(ctx, async () => {
      const again = await authorizer.authorize(route, caller);
      if (wantsEvents) await authorizer.requireAlso(routes.streamSession, again);
      return enterReach(again, given);
    });
  }

  return async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const { given, input, response: done } = await begin(request);
    const ctx = request.ctx!;
    if (!done) await check(ctx, input);
    if (forEach) {
      const { status, body, replayed } = await runForEach(request, reply, input, forEach);
      if (replayed) reply.header('Idempotent-Replayed', 'true');
      return sendJson(reply, status, body);
    }

    const wantsEvents = route.canStream === true && acceptsEvents(request.headers);
    const caller = route.stream || wantsEvents ? lastingCallerOf(request) : callerOf(request);
    const access = accessOf(ctx, caller, given, wantsEvents);
    if (route.stream === 'sse') {
      // It has ended when the stream begins, so that its connection can be taken (outlet.ts).
      request.raw.resume();
      const events = await withLastEventId(input, request.headers, (from) =>
        streams.whileWanted(reply.raw, (signal) => actDirectly({ ...ctx, signal }, from)),
      );
      return events ? streams.sendEvents(request, reply, access, events as JournalStream) : reply.code(204).send();
    }
    if (route.stream === 'export') {
      const file = exports.responseOf(ctx, (await actDirectly(ctx, input)) as ExportedFile);
      return streams.sendFile(request, reply, access, file);
    }
    if (route.stream === 'content') {
      const file = responseOfContent(request, reply, (await actDirectly(ctx, input)) as OpenFile);
      return file ? streams.sendFile(request, reply, access, file) : reply;
    }
    const response = done ?? (await (route.upload ? runUpload : run)(request, reply, access, input));
    if (response.replayed) reply.header('Idempotent-Replayed', 'true');
    if (wantsEvents && response.status < 400) {
      request.slot?.release();
      return streams.sendEvents(request, reply, access, eventsAfter(ctx, response), response);
    }
    return sendJson(reply, response.status, response.body);
  };
}

/** The route reads the body itself, whatever its type. */
function leaveBodiesUnread(scope: FastifyInstance): FastifyInstance {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', (_request: FastifyRequest, _body: unknown, done: (error: null) => void) =>
    done(null),
  );
  return scope;
}

/** Streams of the key or person that the request named are authorized again, on every node: the request may have changed it. */
function announceAccessChange(reauthorization: Reauthorization, input: Input): void {
  const { keyId, userId } = input as { keyId?: string; userId?: string };
  if (keyId !== undefined) reauthorization.announceAccessChange(uuidOf('key', keyId));
  if (userId !== undefined) reauthorization.announceAccessChange(uuidOf('usr', userId));
}

function sendJson(reply: FastifyReply, status: number, body: string): FastifyReply {
  return reply
    .code(status)
    .type(status >= 400 ? 'application/problem+json; charset=utf-8' : 'application/json; charset=utf-8')
    .send(body);
}

function ifRefused(error: unknown): undefined {
  if (error instanceof DatabaseUnavailable) throw error;
}
