// Finds the caller of a request and its organization, and checks that it has the scope of the route. A program calls with an API key, a person
// with the cookie of a sign-in to the console; never with both. The page of an end user calls with a session token (token-caller.ts).
import type { IncomingMessage } from 'node:http';
import { permissionWith, type Route, scopeFacts, scopes, scopesOf, scopesOfRole } from '@signalbox/contract';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { createNoteDenied } from '../../events/denied.ts';
import { type AuthenticatedKey, type Authenticator, KnownKeyRefused } from '../../keys/authenticate.ts';
import { ApiError, invalidField } from '../../lib/api-error.ts';
import type { Context, PoolContext } from '../../lib/context.ts';
import { formatId, parseId } from '../../lib/ids.ts';
import type { Identity } from '../../people/identity.ts';
import { accessIn } from '../../people/memberships/memberships.ts';
import { actorOf } from '../../people/records.ts';
import type { Platform } from '../../platform.ts';
import { allowOrigin } from './cors.ts';
import type { RecalledCaller } from './recalled-caller.ts';
import { CSRF_HEADER, ORGANIZATION_HEADER, requireCsrfToken, requireOwnOrigin, userAgentOf } from './session-cookie.ts';
import { contextOfToken, requireTokenScope, sessionTokenIn } from './token-caller.ts';

export interface Caller {
  requestId: string;
  ipAddress: string;
  headers: IncomingMessage['headers'];
  /** Lets the web page that sent the request read the response. */
  allowOrigin?(origin: string): void;
}

export function callerOf(request: FastifyRequest, reply?: FastifyReply): Caller {
  return {
    requestId: request.id,
    ipAddress: request.ip,
    headers: request.headers,
    ...(reply && { allowOrigin: (origin) => allowOrigin(reply, origin) }),
  };
}

/** The headers that `authorize` reads. */
const CALLER_HEADERS = [
  'authorization',
  'cookie',
  'host',
  'origin',
  'sec-fetch-site',
  'user-agent',
  CSRF_HEADER,
  ORGANIZATION_HEADER,
];

/** The caller of a stream, to authorize it again: without the request, which would be kept in memory while the stream is open. */
export function lastingCallerOf({ id, ip, headers }: FastifyRequest): Caller {
  const own = CALLER_HEADERS.filter((name) => headers[name] !== undefined);
  return { requestId: id, ipAddress: ip, headers: Object.fromEntries(own.map((name) => [name, headers[name]])) };
}

export interface Authorizer {
  /** Throws 401, or 403 if the key or the person may not use the route, or 404 if a session token may not. */
  authorize(route: Route, caller: Caller): Promise<PoolContext>;
  /** The caller as `authorize` would find it for all of these routes, if this node remembers its key. It may have changed since. */
  recall(needed: readonly Route[], caller: Caller): RecalledCaller | undefined;
  /** Throws as `authorize` does if a caller that was authorized for one route may not use this one as well. */
  requireAlso(route: Route, ctx: PoolContext): Promise<void>;
  /** Runs `fn`, and records a 403 that it throws in the event log. */
  auditDenials<T>(route: Route, ctx: PoolContext, fn: () => T | Promise<T>): Promise<T>;
}

export function createAuthorizer(platform: Platform, authenticator: Authenticator, identity: Identity): Authorizer {
  const noteDenied = createNoteDenied();

  function contextOf(key: AuthenticatedKey, caller: Caller): PoolContext {
    return {
      ...platform,
      db: platform.db.of(key.organizationId),
      organizationId: key.organizationId,
      actor: { type: 'api_key', id: formatId('key', key.keyId), name: key.name },
      callerId: key.keyId,
      keyId: key.keyId,
      keyCreatedBy: key.createdBy,
      scopes: key.scopes,
      keySecretHash: key.secretHash,
      ...(key.environments && { environments: key.environments }),
      ...(key.agents && { agents: key.agents }),
      ...(key.requestsPerMinute !== null && { requestsPerMinute: key.requestsPerMinute }),
      maxCostUsdPerDay: key.maxCostUsdPerDay,
      requestId: caller.requestId,
      ipAddress: caller.ipAddress,
      userAgent: userAgentOf(caller.headers),
    };
  }

  async function auditDenials<T>(route: Route, ctx: PoolContext, fn: () => T | Promise<T>): Promise<T> {
    try {
      return await fn();
    } catch (error) {
      if (error instanceof ApiError && error.status === 403 && !ctx.isRecalled) await noteDenied(ctx, error, route);
      throw error;
    }
  }

  async function contextOfKey(route: Route, caller: Caller): Promise<PoolContext> {
    try {
      const key = await authenticator.authenticate(caller.headers.authorization, caller.ipAddress);
      return contextOf(key, caller);
    } catch (error) {
      if (error instanceof KnownKeyRefused) await noteDenied(contextOf(error.key, caller), error, route);
      throw error;
    }
  }

  async function contextOfPerson(route: Route, caller: Caller): Promise<PoolContext> {
    const { headers, requestId, ipAddress } = caller;
    const signIn = await identity.find(headers.cookie);
    if (!signIn) throw new ApiError('signed_out', 'You are no longer signed in. Sign in again.');
    const organizationId = organizationOf(headers);
    const { userId, name, email } = signIn;
    const access = await accessIn(platform.db, organizationId, userId);
    if (!access) throw new ApiError('insufficient_permission', 'You are not a member of this organization.');
    const ctx: PoolContext = {
      ...platform,
      db: platform.db.of(organizationId),
      organizationId,
      actor: actorOf(signIn),
      callerId: userId,
      keyId: null,
      person: { userId, name, email, ...access },
      scopes: scopesOfRole[access.role],
      requestId,
      ipAddress,
      userAgent: userAgentOf(headers),
    };
    if (route.method !== 'GET') {
      await auditDenials(route, ctx, () => {
        requireOwnOrigin(headers, platform.publicUrl());
        requireCsrfToken(identity, signIn, headers);
      });
    }
    return ctx;
  }

  async function authorize(route: Route, caller: Caller): Promise<PoolContext> {
    const { authorization, cookie } = caller.headers;
    const isPerson = identity.cookieIn(cookie) !== undefined;
    if (isPerson && authorization !== undefined) {
      throw new ApiError('invalid_request', 'Send an API key or the cookie of the console, never both.', {
        errors: [{ path: 'Authorization', message: 'must not be sent together with the cookie of a sign-in' }],
      });
    }
    const token = sessionTokenIn(authorization);
    // A page that has forgotten its token.
    if (authorization === undefined && !isPerson && route.token && caller.headers.origin !== undefined)
      caller.allowOrigin?.(caller.headers.origin);
    if (token !== undefined) {
      return contextOfToken(platform, authenticator, { route, caller, token }, auditDenials);
    }
    const ctx = await (isPerson ? contextOfPerson(route, caller) : contextOfKey(route, caller));
    await auditDenials(route, ctx, () => requireUse(ctx, route));
    return ctx;
  }

  return {
    async authorize(route, caller) {
      const { authentications } = platform.metrics;
      try {
        const ctx = await authorize(route, caller);
        authentications.inc({ code: 'ok' });
        return ctx;
      } catch (error) {
        authentications.inc({ code: error instanceof ApiError ? error.code : 'error' });
        throw error;
      }
    },
    recall(needed, caller) {
      const { authorization, cookie } = caller.headers;
      if (authorization === undefined || identity.cookieIn(cookie) !== undefined) return undefined;
      const recalled = authenticator.recall(authorization, caller.ipAddress);
      // A request that counts towards a limit must be that of a known caller.
      if (!recalled || recalled.key.requestsPerMinute !== null) return undefined;
      const ctx = contextOf(recalled.key, caller);
      if (needed.some((route) => refusalOf(ctx, route))) return undefined;
      return {
        ctx,
        check: recalled.check,
        confirm() {
          platform.metrics.authentications.inc({ code: 'ok' });
          recalled.noteUse();
        },
        forget: recalled.forget,
      };
    },
    requireAlso: (route, ctx) =>
      auditDenials(route, ctx, () =>
        ctx.token ? requireTokenScope(route, ctx.token, ctx.scopes) : requireUse(ctx, route),
      ),
    auditDenials,
  };
}

function organizationOf(headers: IncomingMessage['headers']): string {
  const given = headers[ORGANIZATION_HEADER];
  const organizationId = typeof given === 'string' ? parseId('org', given) : undefined;
  if (organizationId === undefined) throw invalidField('X-Signalbox-Organization', 'must name the organization, org_…');
  return organizationId;
}

function requireUse(ctx: Context, route: Route): void {
  const refusal = refusalOf(ctx, route);
  if (refusal) throw refusal;
}

/** Why a key or a person may not use the route. */
function refusalOf(ctx: Context, route: Route): ApiError | undefined {
  const missing = missingScope(ctx, route);
  if (missing) return missing;
  if (route.byPerson && !ctx.person) {
    return new ApiError('person_required', "People can't be managed with an API key: sign in to the console.");
  }
  if (route.byKey && ctx.person) {
    return new ApiError('api_key_required', 'This needs an API key: what it creates ends with the key.');
  }
  return undefined;
}

function missingScope(ctx: Context, route: Route): ApiError | undefined {
  const scope = scopesOf(route).find((needed) => !ctx.scopes.has(needed));
  if (scope === undefined) return undefined;
  const has = ctx.person ? `the role ${ctx.person.role} has` : 'the key has';
  return new ApiError(
    'insufficient_permission',
    `This needs the scope "${scope}", which the permission "${scopeFacts[scope].permission}" includes; ${has} ${inWords(ctx.scopes)}.`,
  );
}

/** The permission that is exactly these scopes, or else their names. */
function inWords(held: Context['scopes']): string {
  const names = scopes.filter((scope) => held.has(scope)).map((scope) => `"${scope}"`);
  const permission = permissionWith(held);
  return permission ? `the permission "${permission}"` : `only ${names.join(', ')}`;
}
