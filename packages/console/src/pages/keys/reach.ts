// What a key can do, in one sentence, and what to think of before it is created.
import type { ApiKey } from '@signalbox/client';
import { type Permission, permissions, type Scope, scopesOfPermission, unusableScopes } from '@signalbox/contract';
import { longDay } from '../../ui/time.tsx';

export interface KeyReach {
  scopes: readonly Scope[];
  /** Names; null: all. */
  agents: readonly string[] | null;
  environments: readonly string[] | null;
  allowedIps: readonly string[] | null;
  /** For a reader, such as `1 March 2027`; null: never. */
  expires: string | null;
}

const and = new Intl.ListFormat('en', { type: 'conjunction' });

/** What a permission allows if no limit changes it. */
const inFull: Readonly<Record<Permission, string>> = {
  read: 'read everything except API keys and secrets',
  write: 'do everything except manage API keys, secrets and the organization',
  admin: 'do everything',
};

/** What a permission allows, for a column next to its name. */
const inShort: Readonly<Record<Permission, string>> = {
  read: 'read all but keys and secrets',
  write: 'everything but admin tasks',
  admin: 'everything',
};

/** What each scope is about, by what it does to it. */
const parts: readonly (readonly [verb: string, readonly (readonly [Scope, string])[]])[] = [
  [
    'run',
    [
      ['sessions:run', 'sessions'],
      ['workers:run', 'worker turns'],
    ],
  ],
  [
    'read',
    [
      ['sessions:read', 'sessions'],
      ['agents:read', 'agents'],
      ['usage:read', 'usage'],
      ['events:read', 'the event log'],
    ],
  ],
  ['decide', [['approvals:decide', 'approvals']]],
  [
    'change',
    [
      ['agents:write', 'agents'],
      ['environments:write', 'environments'],
      ['webhooks:write', 'webhooks'],
      ['schedules:write', 'schedules'],
    ],
  ],
  [
    'manage',
    [
      ['keys:manage', 'API keys'],
      ['secrets:manage', 'secrets'],
      ['organization:manage', 'the organization'],
    ],
  ],
];

/** Such as “Can run and read sessions of the agent Support in production, from 203.0.113.0/24, until 1 March 2027.” */
export function reachSentence(key: KeyReach): string {
  const reach = reachIn(key, inFull);
  return reach === undefined ? 'Can do nothing.' : `Can ${reach}.`;
}

/** In a column next to those of the permission and of when the key expires. */
export function reachWords(key: KeyReach): string {
  const reach = reachIn({ ...key, expires: null }, inShort) ?? 'nothing';
  return reach[0]!.toUpperCase() + reach.slice(1);
}

/** Undefined if the key can do nothing. */
function reachIn(key: KeyReach, words: typeof inFull): string | undefined {
  const { agents, environments, allowedIps, expires } = key;
  // A form in which nothing has been chosen yet.
  const isNowhere = agents?.length === 0 || environments?.length === 0;
  const can = isNowhere ? undefined : abilities(usable(key), words);
  const limits = [
    agents && ` of the agent${agents.length > 1 ? 's' : ''} ${and.format(agents)}`,
    environments && ` in ${and.format(environments)}`,
    allowedIps && `, from ${and.format(allowedIps)}`,
    expires && `, until ${expires}`,
  ];
  return can && `${can}${limits.map((text) => text ?? '').join('')}`;
}

/** The reach of a key as the service shows it. */
export function reachOf(
  key: Pick<ApiKey, 'scopes' | 'agents' | 'environments' | 'allowedIps' | 'expiresAt'>,
  agentNames: ReadonlyMap<string, string>,
): KeyReach {
  return {
    scopes: key.scopes,
    agents: key.agents?.map((agentId) => agentNames.get(agentId) ?? agentId) ?? null,
    environments: key.environments,
    allowedIps: key.allowedIps,
    expires: key.expiresAt && longDay(new Date(key.expiresAt)),
  };
}

/** What its creator should know before the key is used. */
export function reachWarnings(key: KeyReach): string[] {
  const can = new Set(usable(key));
  const runs = can.has('sessions:run') || can.has('schedules:write') || can.has('workers:run');
  if (runs && can.has('approvals:decide')) {
    return [
      'The key can both run sessions and decide their approvals, so a program that has it can approve what it started. Use two keys to keep these apart.',
    ];
  }
  if (runs && can.has('agents:write')) {
    return [
      'The key can run sessions and change agents, so a program that has it can remove the approvals of their tools.',
    ];
  }
  return [];
}

/** Without the scopes that the limits leave no use for. */
function usable({ scopes, agents, environments }: KeyReach): Scope[] {
  const without = new Set<Scope>([
    ...(agents ? unusableScopes.agents : []),
    ...(environments ? unusableScopes.environments : []),
  ]);
  return scopes.filter((scope) => !without.has(scope));
}

function abilities(scopes: readonly Scope[], words: typeof inFull): string | undefined {
  const whole = permissions.find((permission) => isSame(scopesOfPermission[permission], scopes));
  if (whole) return words[whole];
  const said = parts.flatMap(([verb, objects]) => {
    const named = objects.flatMap(([scope, object]) => (scopes.includes(scope) ? [object] : []));
    return named.length > 0 ? [{ verb, object: list(named) }] : [];
  });
  const [first, second, ...rest] = said;
  // "run and read sessions" rather than "run sessions and read sessions".
  if (first && second && first.object === second.object) {
    said.splice(0, said.length, { verb: `${first.verb} and ${second.verb}`, object: first.object }, ...rest);
  }
  const phrases = said.map(({ verb, object }) => `${verb} ${object}`);
  return phrases.length > 0 ? list(phrases) : undefined;
}

function isSame(all: ReadonlySet<Scope>, scopes: readonly Scope[]): boolean {
  return all.size === scopes.length && scopes.every((scope) => all.has(scope));
}

/** With a comma before the last "and" only if one of the items has an "and" of its own. */
function list(items: readonly string[]): string {
  if (items.length < 2) return items.join('');
  const isNested = items.some((item) => item.includes(' and '));
  return `${items.slice(0, -1).join(', ')}${isNested ? ', and ' : ' and '}${items.at(-1)}`;
}
