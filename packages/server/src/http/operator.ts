// The routes of the operator of an installation: its organizations, the first key of each, and the link for its first user. The caller has
// the token of SIGNALBOX_OPERATOR_TOKEN. It opens nothing else, and no key or sign-in opens these.
import { type OperatorRouteName, operatorRoutes, type Route } from '@signalbox/contract';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { systemActor } from '../events/record.ts';
import { ApiError } from '../lib/api-error.ts';
import type { Context, PoolContext } from '../lib/context.ts';
import { uuidOf } from '../lib/ids.ts';
import {
  createOrganization,
  createOrganizationKey,
  listOrganizations,
  requireOrganization,
} from '../organizations/by-operator.ts';
import { createSetupLink } from '../people/invitations.ts';
import type { Platform } from '../platform.ts';
import { type Admission, STRANGER_BODY_BYTES } from './admission/admission.ts';
import type { Limits } from './admission/limits.ts';
import { callerOf } from './auth/auth.ts';
import { bearerIn, isSameToken } from './auth/bearer.ts';
import { userAgentOf } from './auth/session-cookie.ts';
import { validatorOf } from './body/validate.ts';
import { pathOf } from './connection/server.ts';
import { beginSpan } from './connection/telemetry.ts';
import { actOnce, idempotencyKeyOf } from './idempotency/idempotency.ts';

export interface OperatorApiOptions {
  readonly prefix: string;
  /** Undefined: the routes are closed. */
  readonly operatorToken: string | undefined;
  /** The first organization, which keeps the stored responses of requests that are about no organization yet. */
  readonly organizationId: string;
  readonly admission: Admission;
  readonly limits: Limits;
}

/** In place of a key or a user, in stored responses. */
const OPERATOR = '00000000-0000-0000-0000-000000000000';

const actions: Record<OperatorRouteName, (ctx: Context, input: never) => Promise<unknown>> = {
  listOrganizations,
  createOrganization,
  createOrganizationKey,
  createSetupLink,
};

export function addOperatorApi(app: FastifyInstance, platform: Platform, options: OperatorApiOptions): void {
  const { prefix, admission, limits } = options;

  async function enter(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const caller = callerOf(request);
    const slot = admission.of(request, reply);
    slot.identifyCaller(limits.isTrusted(caller));
    await limits.throttle(caller, async () => requireOperator(request, options.operatorToken));
    slot.work(OPERATOR);
  }

  function contextOf({ id, ip, headers }: FastifyRequest, organizationId: string): PoolContext {
    return {
      ...platform,
      db: platform.db.of(organizationId),
      organizationId,
      actor: systemActor,
      callerId: OPERATOR,
      keyId: null,
      scopes: new Set(),
      requestId: id,
      ipAddress: ip,
      userAgent: userAgentOf(headers),
    };
  }

  for (const [name, route] of Object.entries(operatorRoutes) as [OperatorRouteName, Route][]) {
    const validate = validatorOf(route);
    const act = actions[name] as (ctx: Context, input: unknown) => Promise<unknown>;
    app.route({
      method: route.method,
      url: `${prefix}${route.path}`.replaceAll(/\{(\w+)\}/g, ':$1'),
      bodyLimit: STRANGER_BODY_BYTES,
      onRequest: async (request, reply) => {
        request.span = beginSpan(platform, request, route);
        await enter(request, reply);
      },
      handler: async (request, reply) => {
        const input = validate(request) as { organizationId?: string };
        const named = input.organizationId === undefined ? undefined : uuidOf('org', input.organizationId);
        const ctx = contextOf(request, named ?? options.organizationId);
        if (named !== undefined) await requireOrganization(ctx);
        const key = route.method === 'POST' ? idempotencyKeyOf(request.headers['idempotency-key']) : undefined;
        if (key === undefined) return reply.code(route.status).send(await act(ctx, input));
        const sent = { method: route.method, path: pathOf(request.raw), body: request.body ?? null };
        const once = { key, ...sent, rawBody: request.rawBody, credential: request.headers.authorization! };
        const response = await actOnce(ctx, route, once, (inner) => act(inner, input));
        if (response.replayed) reply.header('Idempotent-Replayed', 'true');
        const type = response.status >= 400 ? 'application/problem+json' : 'application/json';
        return reply.code(response.status).type(`${type}; charset=utf-8`).send(response.body);
      },
    });
  }
}

/** Throws 403 if there is no operator's token, or 401 if the request has another one. */
function requireOperator({ headers }: FastifyRequest, token: string | undefined): void {
  if (token === undefined) {
    throw new ApiError(
      'insufficient_permission',
      'The routes of the operator are closed: set SIGNALBOX_OPERATOR_TOKEN for the service to open them.',
    );
  }
  if (headers.authorization === undefined) {
    throw new ApiError('missing_token', 'Send `Authorization: Bearer` with the token of SIGNALBOX_OPERATOR_TOKEN.');
  }
  const given = bearerIn(headers.authorization);
  if (given !== undefined && isSameToken(given, token)) return;
  throw new ApiError('invalid_token', 'This token does not match SIGNALBOX_OPERATOR_TOKEN.');
}
