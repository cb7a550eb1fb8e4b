// The caller of a request with a session token. What the token reaches is in token-gate.ts; here is whether it is valid, whether the web
// page that sent it may, and whether it may use the route at all. For every other route it is as if there were none.
import { createHash } from 'node:crypto';
import { type Route, type Scope, scopeBehind } from '@signalbox/contract';
import type { AuthenticatedKey, Authenticator } from '../../keys/authenticate.ts';
import { readSessionToken, type SessionTokenClaims, TOKEN_PREFIX } from '../../keys/session-token.ts';
import { ApiError } from '../../lib/api-error.ts';
import type { PoolContext, TokenReach } from '../../lib/context.ts';
import { uuidOfBytes } from '../../lib/ids.ts';
import { isAllowedOrigin } from '../../lib/origins.ts';
import type { Platform } from '../../platform.ts';
import type { Authorizer, Caller } from './auth.ts';
import { userAgentOf } from './session-cookie.ts';

const BEARER = /^Bearer +(\S+)$/i;

/** The token of an `Authorization` header; undefined if it has something else. */
export function sessionTokenIn(authorization: string | undefined): string | undefined {
  const [, bearer] = BEARER.exec(authorization?.trim() ?? '') ?? [];
  return bearer?.startsWith(TOKEN_PREFIX) ? bearer : undefined;
}

/** Throws 401, 403 `origin_not_allowed`, or 404 for a route that the token does not reach. */
export async function contextOfToken(
  platform: Platform,
  authenticator: Authenticator,
  { route, caller, token }: { route: Route; caller: Caller; token: string },
  auditDenials: Authorizer['auditDenials'],
): Promise<PoolContext> {
  const { origin } = caller.headers;
  // Also before a refusal, so that the page can read why. A token is no cookie: only a page that has it can send it.
  if (origin !== undefined) caller.allowOrigin?.(origin);
  const claims = readSessionToken(platform.vault, token);
  if (!claims) {
    throw new ApiError('session_token_invalid', 'This is not a session token of this service, or it is incomplete.');
  }
  const { key, allowedOrigins, refusal } = await authenticator.keyOfToken(claims);
  const ctx = contextOf(platform, key, claims, caller);
  if (origin !== undefined) await auditDenials(route, ctx, () => requireAllowed(allowedOrigins, origin));
  if (refusal) throw refusal;
  requireTokenScope(route, claims, ctx.scopes);
  return ctx;
}

/** Throws 404 for a route that the token, or its key by now, may not use. */
export function requireTokenScope(
  route: Route,
  { scopes }: Pick<TokenReach, 'scopes'>,
  ofKey: ReadonlySet<Scope>,
): void {
  if (!route.token || !scopes.includes(route.token) || !canStill(ofKey, route)) {
    throw new ApiError('not_found', 'Not found.');
  }
}

function requireAllowed(allowedOrigins: readonly string[], origin: string): void {
  if (isAllowedOrigin(allowedOrigins, origin)) return;
  // As long as a browser's: this header is the client's own text.
  const shown = origin.length <= 300 ? origin : 'this origin';
  throw new ApiError(
    'origin_not_allowed',
    `Pages of ${shown} may not use session tokens of this organization. Add the origin to its allowedOrigins (PUT /api/v1/organization).`,
  );
}

/** The key may have lost a scope since. */
function canStill(held: ReadonlySet<Scope>, { token, scope }: Route): boolean {
  return held.has(scopeBehind[token!]) && (scope === 'any' || held.has(scope));
}

function contextOf(
  platform: Platform,
  key: AuthenticatedKey,
  { sessionId, agentId, environment, endUser, scopes, expiresAt }: SessionTokenClaims,
  caller: Caller,
): PoolContext {
  const reach: TokenReach = { sessionId, agentId, environment, endUser, scopes, expiresAt };
  return {
    ...platform,
    db: platform.db.of(key.organizationId),
    organizationId: key.organizationId,
    actor: { type: 'end_user', id: endUser?.id ?? null, name: endUser?.name ?? endUser?.id ?? 'End user' },
    callerId: callerIdOf(key.organizationId, reach),
    keyId: key.keyId,
    token: reach,
    scopes: key.scopes,
    maxCostUsdPerDay: key.maxCostUsdPerDay,
    requestId: caller.requestId,
    ipAddress: caller.ipAddress,
    userAgent: userAgentOf(caller.headers),
  };
}

/**
 * Every token with the same reach is the same caller: it shares limits and idempotency keys with the tokens that replace it, and with no
 * other.
 */
function callerIdOf(organizationId: string, { sessionId, agentId, environment, endUser }: TokenReach): string {
  const reach = sessionId ?? [agentId, environment, endUser?.id];
  const hash = createHash('sha256').update(JSON.stringify(['session token', organizationId, reach]));
  return uuidOfBytes(hash.digest().subarray(0, 16));
}
