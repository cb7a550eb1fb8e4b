// From a request to a Context: who calls, for which organization, and whether the route allows it.
import type { IncomingMessage } from 'node:http';
import { type Permission, permissions, type Route } from '@signalbox/contract';
import { createNoteDenied } from '../events/denied.ts';
import { type AuthenticatedKey, type Authenticator, KnownKeyRefused } from '../keys/authenticate.ts';
import { ApiError } from '../lib/api-error.ts';
import type { Context } from '../lib/context.ts';
import { formatId } from '../lib/ids.ts';
import type { Platform } from '../platform.ts';

export interface Caller {
  requestId: string;
  ipAddress: string;
  headers: IncomingMessage['headers'];
}

export interface Authorizer {
  /** Throws 401, or 403 where the key may not do this. */
  authorize(route: Route, caller: Caller): Promise<Context>;
  /** Throws what `fn` throws; the event log hears of a 403. */
  heard<T>(route: Route, ctx: Context, fn: () => T | Promise<T>): Promise<T>;
}

const MAX_USER_AGENT = 300;

export function createAuthorizer(platform: Platform, authenticator: Authenticator): Authorizer {
  const noteDenied = createNoteDenied();

  function contextOf(key: AuthenticatedKey, caller: Caller): Context {
    return {
      ...platform,
      organizationId: key.organizationId,
      actor: { type: 'api_key', id: formatId('key', key.keyId), name: key.name },
      keyId: key.keyId,
      permission: key.permission,
      ...(key.environments && { environments: key.environments }),
      requestId: caller.requestId,
      ipAddress: caller.ipAddress,
      userAgent: userAgentOf(caller.headers),
    };
  }

  async function heard<T>(route: Route, ctx: Context, fn: () => T | Promise<T>): Promise<T> {
    try {
      return await fn();
    } catch (error) {
      if (error instanceof ApiError && error.status === 403) await noteDenied(ctx, error, route);
      throw error;
    }
  }

  return {
    async authorize(route, caller) {
      let key: AuthenticatedKey;
      try {
        key = await authenticator.authenticate(caller.headers.authorization, caller.ipAddress);
      } catch (error) {
        if (error instanceof KnownKeyRefused) await noteDenied(contextOf(error.key, caller), error, route);
        throw error;
      }
      const ctx = contextOf(key, caller);
      await heard(route, ctx, () => requirePermission(key.permission, route.permission));
      return ctx;
    },
    heard,
  };
}

function requirePermission(held: Permission, needed: Permission): void {
  if (includes(held, needed)) return;
  throw new ApiError('insufficient_permission', `This needs the permission "${needed}"; the key has "${held}".`);
}

function includes(held: Permission, needed: Permission): boolean {
  return permissions.indexOf(held) >= permissions.indexOf(needed);
}

/** As text that the event log can keep: headers arrive as Latin-1 and may hold anything. */
function userAgentOf(headers: IncomingMessage['headers']): string | null {
  return headers['user-agent']?.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, MAX_USER_AGENT) ?? null;
}
