/** API keys (source sections 2.1 and 4.2, api.md section 2). */
import {
  Id,
  ListQuery,
  Metadata,
  Name,
  Nullable,
  OneOf,
  Page,
  type Static,
  Strict,
  Timestamp,
  Type,
} from './schema.ts';

/** What a key may do; each includes the ones before it (source section 5). */
export const permissions = ['read', 'write', 'admin'] as const;
export const Permission = OneOf(permissions, {
  title: 'Permission',
  description: '`read` lists and reads, `write` also changes, `admin` also manages API keys and secrets.',
});
export type Permission = Static<typeof Permission>;

const fields = {
  keyId: Id('key'),
  name: Name,
  permission: Permission,
  expiresAt: Nullable(Timestamp, { description: 'From this instant on the key is refused; null: never.' }),
  metadata: Metadata,
  secretPreview: Type.String({ description: 'The beginning and the last four characters of the secret.' }),
  lastUsedAt: Nullable(Timestamp, { description: 'To the minute; null for a key never used.' }),
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
          'The whole secret, shown this once. Absent only from an idempotent replay asked for with another credential.',
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
    metadata: Type.Optional(Metadata),
  },
  { title: 'CreateKey' },
);
export const UpdateKey = Strict(
  { name: Type.Optional(Name), permission: Type.Optional(Permission), metadata: Type.Optional(Metadata) },
  { title: 'UpdateKey' },
);
export const KeyParams = Strict({ keyId: Id('key') });
export const ListKeys = ListQuery({});
export const KeyPage = Page(ApiKey);

/** Who is calling (`GET /me`). */
export const Me = Type.Object(
  {
    organization: Type.Object({ organizationId: Id('org'), name: Type.String() }),
    apiKey: Nullable(ApiKey),
    user: Type.Null({ description: 'The person, for calls of the console.' }),
    permission: Permission,
  },
  { title: 'Me' },
);
