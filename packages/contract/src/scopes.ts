/** What a caller can do: scopes, and the permissions that are sets of them. */
import { OneOf, type Static } from './schema.ts';

/** A name for a set of scopes; each includes the ones before it. */
export const permissions = ['read', 'write', 'admin'] as const;
export const Permission = OneOf(permissions, {
  title: 'Permission',
  description: '`read` lists and reads, `write` also changes, `admin` also manages API keys and secrets.',
});
export type Permission = Static<typeof Permission>;

interface ScopeFacts {
  /** The least permission that has it. */
  readonly permission: Permission;
  /** What it allows, for the docs and the console: an infinitive that follows "can". */
  readonly allows: string;
}

/**
 * Every scope. Each route of the API names the one that it needs; the permission of a route, the sets of scopes below, OpenAPI and
 * the docs are derived from these two. A scope includes no other.
 */
export const scopeFacts = {
  'sessions:read': {
    permission: 'read',
    allows: 'read sessions, messages, streams, files, approvals and what webhooks delivered',
  },
  'agents:read': {
    permission: 'read',
    allows: 'read agents, environments, webhook subscriptions, destinations and schedules',
  },
  'usage:read': { permission: 'read', allows: 'read usage, costs and the overview' },
  'events:read': { permission: 'read', allows: 'read and export the event log' },
  'sessions:run': {
    permission: 'write',
    allows: 'open, continue, fork, stop and delete sessions, send tool results, and upload and delete files',
  },
  'approvals:decide': { permission: 'write', allows: 'approve and deny tool calls' },
  'agents:write': { permission: 'write', allows: 'create, change and archive agents' },
  'environments:write': { permission: 'write', allows: 'create and delete environments' },
  'webhooks:write': {
    permission: 'write',
    allows: 'change webhook subscriptions and destinations, rotate their signing secrets, and resend deliveries',
  },
  'schedules:write': { permission: 'write', allows: 'create, change and delete schedules, which open sessions' },
  'workers:run': { permission: 'write', allows: 'claim worker turns, and submit responses and tool results for them' },
  'keys:manage': { permission: 'admin', allows: 'create, change, rotate and delete API keys' },
  'secrets:manage': { permission: 'admin', allows: 'list, set and delete the secrets of environments' },
  'organization:manage': {
    permission: 'admin',
    allows: 'change how long sessions are kept, erase end users, and change other settings of the organization',
  },
} as const satisfies Record<string, ScopeFacts>;

export const scopes = Object.keys(scopeFacts) as (keyof typeof scopeFacts)[];
export const Scope = OneOf(scopes, {
  title: 'Scope',
  description: 'What a key can do; a scope includes no other. The operations name the one that they need.',
});
export type Scope = Static<typeof Scope>;

/** The scopes of each permission. */
export const scopesOfPermission: Readonly<Record<Permission, ReadonlySet<Scope>>> = {
  read: scopesUpTo('read'),
  write: scopesUpTo('write'),
  admin: scopesUpTo('admin'),
};

/** The greatest permission whose scopes are all among these. */
export function permissionWithin(held: ReadonlySet<Scope>): Permission | undefined {
  return permissions.findLast((permission) => [...scopesOfPermission[permission]].every((scope) => held.has(scope)));
}

/** The permission whose scopes are exactly these; null if there is none. */
export function permissionWith(held: ReadonlySet<Scope>): Permission | null {
  const within = permissionWithin(held);
  return within !== undefined && scopesOfPermission[within].size === held.size ? within : null;
}

function scopesUpTo(permission: Permission): ReadonlySet<Scope> {
  const rank = permissions.indexOf(permission);
  return new Set(scopes.filter((scope) => permissions.indexOf(scopeFacts[scope].permission) <= rank));
}

/** What a route says about the scopes that it needs. */
interface Scoped {
  readonly scope: Scope | 'any';
  readonly alsoScope?: Scope | readonly Scope[];
}

/** Everything that a caller needs to use a route. */
export function scopesOf({ scope, alsoScope = [] }: Scoped): Scope[] {
  return [...(scope === 'any' ? [] : [scope]), ...[alsoScope].flat()];
}

/** The least permission that may use a route: the one whose scopes first include all that the route needs. */
export function permissionOf(route: Scoped): Permission {
  const needed = scopesOf(route).map((scope) => scopeFacts[scope].permission);
  return permissions.findLast((permission) => needed.includes(permission)) ?? 'read';
}

/** Scopes that a key with such a restriction can't use: it changes nothing that others share. It can still rotate and delete itself. */
export const unusableScopes = {
  agents: ['environments:write', 'webhooks:write', 'keys:manage', 'secrets:manage', 'organization:manage'],
  environments: ['agents:write', 'keys:manage'],
} as const satisfies Record<string, readonly Scope[]>;
