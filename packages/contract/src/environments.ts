/** Environments and their secrets. */
import { EnvironmentName, Id, ListQuery, Nullable, Page, type Static, Strict, Timestamp, Type } from './schema.ts';

const keepSessionsDays = Type.Integer({
  minimum: 1,
  maximum: 36_500,
  description:
    'How many days sessions are kept after they end, with their transcript, journal and deliveries. A shorter limit of the operator takes precedence; null: the limit of the operator.',
});

export const Environment = Type.Object(
  {
    environmentId: Id('env'),
    name: EnvironmentName,
    keepSessionsDays: Nullable(keepSessionsDays),
    secretCount: Nullable(Type.Integer({ minimum: 0 }), {
      description: 'How many secrets it has. Null for callers without the scope `secrets:manage`.',
    }),
    createdAt: Timestamp,
  },
  { title: 'Environment' },
);
export type Environment = Static<typeof Environment>;

export const SecretName = Type.String({
  pattern: '^[A-Z][A-Z0-9_]{0,63}$',
  'x-expected': '1 to 64 capital letters, digits and "_", the first a letter',
  examples: ['PAYMENTS_TOKEN'],
});

/** A secret without its value, which can't be read. */
export const EnvironmentSecret = Type.Object(
  {
    name: SecretName,
    allowedHosts: Type.Array(Type.String(), {
      description:
        'The only hosts that this secret is sent to: `api.example.com`, `*.example.com`, with or without a port.',
    }),
    version: Type.Integer({ description: 'Incremented each time the secret is set.' }),
    updatedAt: Timestamp,
  },
  { title: 'EnvironmentSecret' },
);
export type EnvironmentSecret = Static<typeof EnvironmentSecret>;

export const AllowedHost = Type.String({
  maxLength: 255,
  pattern: '^(\\*\\.)?([A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*|\\[[0-9A-Fa-f:.]+\\])(:[0-9]{1,5})?$',
  'x-expected': 'a host without scheme and path, or "*." and a host, with or without a port',
  examples: ['api.example.com'],
});

export const CreateEnvironment = Strict(
  { name: EnvironmentName, keepSessionsDays: Type.Optional(Nullable(keepSessionsDays)) },
  { title: 'CreateEnvironment' },
);
export const UpdateEnvironment = Strict(
  { keepSessionsDays: Type.Optional(Nullable(keepSessionsDays)) },
  { title: 'UpdateEnvironment' },
);
export const SetSecret = Strict(
  {
    value: Type.String({ minLength: 1, maxLength: 16_384 }),
    allowedHosts: Type.Array(AllowedHost, { minItems: 1, maxItems: 50 }),
  },
  { title: 'SetSecret' },
);
export const EnvironmentParams = Strict({ env: EnvironmentName });
export const SecretParams = Strict({ env: EnvironmentName, name: SecretName });
export const ListEnvironments = ListQuery({});
export const EnvironmentPage = Page(Environment);
export const SecretPage = Page(EnvironmentSecret);
