/** Environments and their secrets. */
import { ownProvider } from './providers.ts';
import { EnvironmentName, Id, ListQuery, Nullable, Page, type Static, Strict, Timestamp, Type } from './schema.ts';

const keepSessionsDays = Type.Integer({
  minimum: 1,
  maximum: 36_500,
  description:
    'How many days sessions are kept after they end, with their transcript, journal and deliveries. A shorter limit of the operator takes precedence; null: the limit of the operator.',
});

const limitedModel = Type.String({
  minLength: 1,
  maxLength: 220,
  description:
    'The provider and the model as agents name them: `provider/model`. `*`: all models without a limit of their own, together.',
  examples: [`openai/${ownProvider('openai')!.exampleModel}`],
});
const requestsPerMinute = Type.Integer({
  minimum: 1,
  maximum: 1_000_000,
  description: 'How many calls are made in a minute. Each attempt of a call that fails counts.',
});
const tokensPerMinute = Type.Integer({
  minimum: 1,
  maximum: 1_000_000_000,
  description:
    'How many tokens calls read and write in a minute: estimated before a call, and corrected by what it used. A call that takes more than that is made alone.',
});

/** How often an environment calls a model. At least one of the two numbers is set. */
export const SetModelLimit = Strict(
  {
    model: limitedModel,
    requestsPerMinute: Type.Optional(Nullable(requestsPerMinute)),
    tokensPerMinute: Type.Optional(Nullable(tokensPerMinute)),
  },
  { title: 'SetModelLimit' },
);
export type SetModelLimit = Static<typeof SetModelLimit>;

const SetModelLimits = Type.Array(SetModelLimit, {
  maxItems: 50,
  description:
    'Replaces the limits of the environment for its models. Calls beyond a limit wait in order. A new limit applies to the calls that wait already. If a limit is removed, the calls that wait for it are made at once.',
});

export const ModelLimit = Type.Object(
  {
    model: limitedModel,
    requestsPerMinute: Nullable(requestsPerMinute),
    tokensPerMinute: Nullable(tokensPerMinute),
    waiting: Type.Integer({ minimum: 0, description: 'How many calls wait for it now.' }),
    waitingSince: Nullable(Timestamp, { description: 'Since when the first of them waits; null if none does.' }),
  },
  { title: 'ModelLimit' },
);
export type ModelLimit = Static<typeof ModelLimit>;

export const Environment = Type.Object(
  {
    environmentId: Id('env'),
    name: EnvironmentName,
    keepSessionsDays: Nullable(keepSessionsDays),
    modelLimits: Type.Array(ModelLimit, {
      description:
        'How often it calls models, for all nodes of the service together, and what waits. Empty: no limits.',
    }),
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
  {
    name: EnvironmentName,
    keepSessionsDays: Type.Optional(Nullable(keepSessionsDays)),
    modelLimits: Type.Optional(SetModelLimits),
  },
  { title: 'CreateEnvironment' },
);
export const UpdateEnvironment = Strict(
  { keepSessionsDays: Type.Optional(Nullable(keepSessionsDays)), modelLimits: Type.Optional(SetModelLimits) },
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
