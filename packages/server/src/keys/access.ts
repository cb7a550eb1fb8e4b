// What a key gives its holder: a permission, which is a set of scopes, or scopes of its own; and what it is limited to.
import { type Permission, permissions, type Scope, scopes, scopesOfPermission } from '@signalbox/contract';
import { ApiError, invalidField } from '../lib/api-error.ts';
import { isNetworkWithin, parseNetwork } from '../lib/network.ts';

/** One of the two. */
export interface Grant {
  permission: Permission | null;
  /** In the order of the contract. */
  scopes: Scope[] | null;
}

/** The two columns. They differ from a grant only for a permission of a key that is limited to agents (migration 0009). */
export interface StoredGrant {
  permission: Permission | null;
  scopes: string[] | null;
}

export interface KeyAccess extends Grant {
  /** Null: no limit, for each of these. */
  environments: readonly string[] | null;
  agents: readonly string[] | null;
  allowedIps: readonly string[] | null;
  expiresAt: Date | null;
  requestsPerMinute: number | null;
  maxCostUsdPerDay: number | null;
}

export function grantOf({ permission, scopes: stored }: StoredGrant): Grant {
  const named = permission ?? permissions.find((one) => stored?.includes(one)) ?? null;
  // A later release may have scopes that this one does not know.
  return { permission: named, scopes: named ? null : scopes.filter((scope) => stored?.includes(scope)) };
}

export function storedGrant({ permission, scopes: own, agents }: KeyAccess): StoredGrant {
  return permission && agents ? { permission: null, scopes: [permission] } : { permission, scopes: own };
}

export function scopesOf({ permission, scopes: own }: Grant): ReadonlySet<Scope> {
  return permission ? scopesOfPermission[permission] : new Set(own);
}

/** What a request to create or change a key gives it; undefined: nothing new. Throws 400 for both. */
export function requestedGrant(input: { permission?: Permission; scopes?: Scope[] }): Grant | undefined {
  const { permission, scopes: own } = input;
  if (permission && own) throw invalidField('scopes', 'must not be given together with `permission`');
  if (permission) return { permission, scopes: null };
  return own && { permission: null, scopes: scopes.filter((scope) => own.includes(scope)) };
}

/** For a new key: throws 400 if it gets neither. */
export function requiredGrant(input: { permission?: Permission; scopes?: Scope[] }): Grant {
  const grant = requestedGrant(input);
  if (!grant) throw invalidField('permission', 'is missing; give a permission, or `scopes`');
  return grant;
}

/**
 * Throws 403 if a key can do anything that its manager can't. A manager could otherwise get more from the keys that it creates,
 * changes and rotates.
 */
export function requireNoMore(manager: KeyAccess, key: KeyAccess): void {
  const having = scopesOf(manager);
  const missing = [...scopesOf(key)].filter((scope) => !having.has(scope));
  const excess =
    missing.length > 0
      ? `the scope "${missing[0]}"`
      : isBeyond(manager.environments, key.environments)
        ? 'other environments'
        : isBeyond(manager.agents, key.agents)
          ? 'other agents'
          : isFromElsewhere(manager.allowedIps, key.allowedIps)
            ? 'other addresses in `allowedIps`'
            : manager.expiresAt && !(key.expiresAt && key.expiresAt <= manager.expiresAt)
              ? 'a later `expiresAt`'
              : isAbove(manager.requestsPerMinute, key.requestsPerMinute)
                ? 'a higher `requestsPerMinute`'
                : isAbove(manager.maxCostUsdPerDay, key.maxCostUsdPerDay)
                  ? 'a higher `maxCostUsdPerDay`'
                  : undefined;
  if (excess === undefined) return;
  throw new ApiError(
    'insufficient_permission',
    `A key can only manage keys that can do no more than itself; this one would have ${excess}.`,
  );
}

function isBeyond(limit: readonly string[] | null, wanted: readonly string[] | null): boolean {
  return limit !== null && !wanted?.every((one) => limit.includes(one));
}

function isAbove(limit: number | null, wanted: number | null): boolean {
  return limit !== null && (wanted === null || wanted > limit);
}

function isFromElsewhere(limit: readonly string[] | null, wanted: readonly string[] | null): boolean {
  if (limit === null) return false;
  const networks = limit.map(parseNetwork);
  return !wanted?.every((text) => networks.some((network) => isNetworkWithin(network, parseNetwork(text))));
}

export function refuseWrongIps(allowedIps: readonly string[] | null | undefined): void {
  for (const [index, text] of (allowedIps ?? []).entries()) {
    try {
      parseNetwork(text);
    } catch (error) {
      throw invalidField(`allowedIps[${index}]`, `"${text}" ${(error as Error).message}`);
    }
  }
}
