/** API keys. */
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
import { Permission } from './scopes.ts';

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

const fields = {
  keyId: Id('key'),
  name: Name,
  permission: Permission,
  expiresAt: Nullable(Timestamp, { description: 'When the key expires; null: never.' }),
  allowedIps: Nullable(allowedIps),
  environments: Nullable(environments),
  metadata: Metadata,
  secretPreview: Type.String({ description: 'The beginning and the last four characters of the secret.' }),
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
    permission: Permission,
    expiresAt: Type.Optional(Nullable(Timestamp, { description: 'In the future; null or absent: never expires.' })),
    allowedIps: Type.Optional(Nullable(allowedIps)),
    environments: Type.Optional(Nullable(environments)),
    metadata: Type.Optional(Metadata),
  },
  { title: 'CreateKey' },
);
export const UpdateKey = Strict(
  {
    name: Type.Optional(Name),
    permission: Type.Optional(Permission),
    allowedIps: Type.Optional(Nullable(allowedIps)),
    environments: Type.Optional(Nullable(environments)),
    metadata: Type.Optional(Metadata),
  },
  { title: 'UpdateKey' },
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
    permission: Permission,
  },
  { title: 'Me' },
);
