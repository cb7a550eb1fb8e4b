/** API keys. */
import type { Shape } from './components.ts';
import {
  EnvironmentName,
  Id,
  ListQuery,
  Metadata,
  Name,
  Nullable,
  Page,
  type Static,
  Strict,
  Timestamp,
  Type,
} from './schema.ts';
import { Permission, Scope, scopes } from './scopes.ts';

const allowedIps = Type.Array(
  Type.String({ minLength: 2, maxLength: 50, examples: ['203.0.113.0/24'], description: 'An address or a CIDR.' }),
  {
    minItems: 1,
    maxItems: 50,
    description: 'The only addresses that the key can be used from, as addresses and CIDRs; null: any.',
  },
);
const environments = Type.Array(EnvironmentName, {
  minItems: 1,
  maxItems: 50,
  uniqueItems: true,
  description:
    "The only environments that the key can use; null: all. A restricted key can read agents, but can't change anything that environments share.",
});

const agents = Type.Array(Id('agt'), {
  minItems: 1,
  maxItems: 50,
  uniqueItems: true,
  description:
    'The only agents that the key can use, with their sessions, approvals, schedules, worker turns, files and usage; null: all. A child session belongs to the agent that runs it. What does not belong to an agent is closed to a restricted key.',
});
const grantedScopes = Type.Array(Scope, {
  minItems: 1,
  maxItems: scopes.length,
  uniqueItems: true,
  description: 'What the key can do, scope by scope, instead of a `permission`.',
});
const ExpiringSecret = Type.Object(
  {
    preview: Type.String({ description: 'The beginning and the last four characters of the secret.' }),
    expiresAt: Timestamp,
  },
  { title: 'ExpiringSecret' },
);

const requestsPerMinute = Type.Integer({
  minimum: 1,
  maximum: 1_000_000,
  description: 'How many requests the key can make in a minute, on all nodes together; null: no limit of its own.',
});
const maxCostUsdPerDay = Type.Number({
  exclusiveMinimum: 0,
  maximum: 1_000_000_000,
  description:
    'What the sessions of the key can cost in a UTC day, in US dollars; null: no limit. Then their turns end with `budgetReached`, and the key starts no more. Needs a configured price for the models.',
});

const fields = {
  keyId: Id('key'),
  name: Name,
  permission: Nullable(Permission, { description: 'Null if the key was given scopes.' }),
  scopes: Type.Array(Scope, {
    description: 'Scopes of the key: the scopes that it was given, or the scopes of its permission.',
  }),
  expiresAt: Nullable(Timestamp, { description: 'When the key expires; null: never.' }),
  allowedIps: Nullable(allowedIps),
  environments: Nullable(environments),
  agents: Nullable(agents),
  requestsPerMinute: Nullable(requestsPerMinute),
  maxCostUsdPerDay: Nullable(maxCostUsdPerDay),
  costUsdToday: Type.Number({
    description:
      'What the sessions of the key have cost in this UTC day. `Organization.pricesDate` is the day of the built-in prices.',
  }),
  metadata: Metadata,
  secretPreview: Type.String({ description: 'The beginning and the last four characters of the secret.' }),
  expiringSecret: Nullable(ExpiringSecret, {
    description: 'The secret before the last rotation, while it still works; null if there is none.',
  }),
  lastUsedAt: Nullable(Timestamp, { description: 'To the minute; null for an unused key.' }),
  createdAt: Timestamp,
  updatedAt: Timestamp,
};

export const ApiKey = Type.Object(fields, { title: 'ApiKey' });
export type ApiKey = Static<typeof ApiKey>;

export const ApiKeyWithSecret = Type.Object(
  {
    ...fields,
    secret: Type.Optional(
      Type.String({
        description:
          'The whole secret, shown only once. Absent only from an idempotent replay that was requested with another credential.',
      }),
    ),
  },
  { title: 'ApiKeyWithSecret' },
);
export type ApiKeyWithSecret = Static<typeof ApiKeyWithSecret>;

export const CreateKey = Strict(
  {
    name: Name,
    permission: Type.Optional(
      Type.Unsafe<Permission>({ ...Permission, description: 'Required unless the key is given `scopes`.' }),
    ),
    scopes: Type.Optional(grantedScopes),
    expiresAt: Type.Optional(Nullable(Timestamp, { description: 'In the future; null or absent: never expires.' })),
    allowedIps: Type.Optional(Nullable(allowedIps)),
    environments: Type.Optional(Nullable(environments)),
    agents: Type.Optional(Nullable(agents)),
    requestsPerMinute: Type.Optional(Nullable(requestsPerMinute)),
    maxCostUsdPerDay: Type.Optional(Nullable(maxCostUsdPerDay)),
    metadata: Type.Optional(Metadata),
  },
  {
    title: 'CreateKey',
    'x-shapes': [
      { requires: ['permission'], excludes: ['scopes'] },
      { requires: ['scopes'], excludes: ['permission'] },
    ] satisfies Shape[],
  },
);
export const UpdateKey = Strict(
  {
    name: Type.Optional(Name),
    permission: Type.Optional(
      Type.Unsafe<Permission>({ ...Permission, description: 'Replaces the permission or the scopes.' }),
    ),
    scopes: Type.Optional(
      Type.Unsafe<Scope[]>({ ...grantedScopes, description: 'Replaces the permission or the scopes.' }),
    ),
    allowedIps: Type.Optional(Nullable(allowedIps)),
    environments: Type.Optional(Nullable(environments)),
    agents: Type.Optional(Nullable(agents)),
    requestsPerMinute: Type.Optional(Nullable(requestsPerMinute)),
    maxCostUsdPerDay: Type.Optional(Nullable(maxCostUsdPerDay)),
    metadata: Type.Optional(Metadata),
  },
  { title: 'UpdateKey', 'x-shapes': [{ excludes: ['scopes'] }, { excludes: ['permission'] }] satisfies Shape[] },
);
/** A week: long enough for a deployment that waits for people. */
export const maxGracePeriodSeconds = 604_800;
export const RotateKey = Strict(
  {
    gracePeriodSeconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: maxGracePeriodSeconds,
        default: 0,
        description: 'How long the old secret still works.',
      }),
    ),
  },
  { title: 'RotateKey' },
);
export const KeyParams = Strict({ keyId: Id('key') });
export const ListKeys = ListQuery({});
export const KeyPage = Page(ApiKey);

/** A user who signs in to the console. */
export const User = Type.Object(
  { userId: Id('usr'), name: Type.String(), email: Type.String() },
  { title: 'User', description: 'A user who signs in to the console.' },
);
export type User = Static<typeof User>;

/** The caller (`GET /me`): a key or a user. */
export const Me = Type.Object(
  {
    organization: Type.Object({ organizationId: Id('org'), name: Type.String() }),
    apiKey: Nullable(ApiKey),
    user: Nullable(User),
    permission: Nullable(Permission, {
      description: 'Null if no permission has exactly these scopes: a key that was given some, or an approver.',
    }),
    scopes: Type.Array(Scope),
  },
  { title: 'Me' },
);
