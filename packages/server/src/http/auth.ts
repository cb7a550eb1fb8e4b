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

export type Authorize = (route: Route, caller: Caller) => Promise<Context>;

const MAX_USER_AGENT = 300;

export function createAuthorize(platform: Platform, authenticator: Authenticator): Authorize {
  const noteDenied = createNoteDenied();

  function contextOf(key: AuthenticatedKey, caller: Caller): Context {
    return {
      ...platform,
      organizationId: key.organizationId,
      actor: { type: 'api_key', id: formatId('key', key.keyId), name: key.name },
      keyId: key.keyId,
      permission: key.permission,
      requestId: caller.requestId,
      ipAddress: caller.ipAddress,
      userAgent: userAgentOf(caller.headers),
    };
  }

  return async (route, caller) => {
    let key: AuthenticatedKey;
    try {
      key = await authenticator.authenticate(caller.headers.authorization);
    } catch (error) {
      if (error instanceof KnownKeyRefused) await noteDenied(contextOf(error.key, caller), error, route);
      throw error;
    }
    const ctx = contextOf(key, caller);
    if (!includes(key.permission, route.permission)) {
      const error = new ApiError(
        'insufficient_permission',
        `This needs the permission "${route.permission}"; the key has "${key.permission}".`,
      );
      await noteDenied(ctx, error, route);
      throw error;
    }
    return ctx;
  };
}

function includes(held: Permission, needed: Permission): boolean {
  return permissions.indexOf(held) >= permissions.indexOf(needed);
}

/** As text that the event log can keep: headers arrive as Latin-1 and may hold anything. */
function userAgentOf(headers: IncomingMessage['headers']): string | null {
  return headers['user-agent']?.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, MAX_USER_AGENT) ?? null;
}
