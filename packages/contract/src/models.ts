/** The model of an agent. */

import type { Shape } from './components.ts';
import { SecretName } from './environments.ts';
import { inputMedia } from './model-facts.ts';
import { ownProviders, providers, usualKeyName } from './providers.ts';
import { Json, Name, OneOf, type Static, Strict, Type } from './schema.ts';

/** One call of the `scripted` model. */
export const ScriptStep = Strict(
  {
    text: Type.Optional(
      Type.String({
        maxLength: 20_000,
        description:
          'Streamed word by word. `{{input}}` is the last user message, `{{lastToolResult}}` the last tool result.',
      }),
    ),
    toolCalls: Type.Optional(
      Type.Array(Strict({ name: Type.String(), input: Type.Optional(Json) }, { title: 'ScriptToolCall' }), {
        maxItems: 20,
      }),
    ),
    reasoning: Type.Optional(
      Type.String({ maxLength: 100_000, description: 'What the model thinks first; for agents with `showReasoning`.' }),
    ),
    tokenDelayMs: Type.Optional(Type.Integer({ minimum: 0, maximum: 10_000, description: 'Wait before each word.' })),
    failWith: Type.Optional(
      OneOf(['rejected', 'timeout', 'rate_limited', 'unavailable', 'broken_stream', 'refusal', 'max_output_tokens']),
    ),
  },
  { title: 'ScriptStep' },
);
export type ScriptStep = Static<typeof ScriptStep>;

export const ModelSettings = Strict(
  {
    script: Type.Optional(
      Type.Array(ScriptStep, {
        minItems: 1,
        maxItems: 100,
        description: 'For `scripted`: one step per model call; the last one is repeated.',
      }),
    ),
    temperature: Type.Optional(Type.Number({ minimum: 0, maximum: 2 })),
    topP: Type.Optional(Type.Number({ minimum: 0, maximum: 1 })),
    seed: Type.Optional(Type.Integer()),
    stopSequences: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 200 }), { maxItems: 8 })),
    reasoning: Type.Optional(
      OneOf(['none', 'minimal', 'low', 'medium', 'high', 'xhigh'], {
        description: 'How much the model reasons before it responds, on its own scale. Default: that of its provider.',
      }),
    ),
  },
  { title: 'ModelSettings' },
);

export const queueName = '[A-Za-z0-9][A-Za-z0-9._-]{0,99}';
/** The queue from which a worker claims turns. */
export const QueueName = Type.String({
  pattern: `^${queueName}$`,
  'x-expected': '1 to 100 letters, digits, ".", "_" and "-", the first a letter or digit',
  examples: ['support-agent'],
});

const keyNames = providers
  .flatMap((name) => usualKeyName(name) ?? [])
  .map((keyName) => `\`${keyName}\``)
  .join(', ');

/** Without `worker`, which is not called. */
export const calledProviders = providers.filter((provider) => provider !== 'worker');

const modelFields = {
  baseUrl: Type.Optional(
    Type.String({
      maxLength: 2048,
      description:
        "Base URL of the provider's API, up to and including `/v1`. Required for `openai-compatible` and clouds (`azure`, `vertex`, `bedrock`); other providers have a default.",
    }),
  ),
  apiKeySecret: Type.Optional(
    Type.Unsafe<string>({
      ...SecretName,
      description: `The secret of the environment that contains the provider's key. Default: ${keyNames}.`,
    }),
  ),
  contextTokens: Type.Optional(
    Type.Integer({
      minimum: 1_000,
      maximum: 100_000_000,
      description: "The model's context window. Default: that of the model, if its name is well known.",
    }),
  ),
  input: Type.Optional(
    Type.Array(OneOf(inputMedia), {
      uniqueItems: true,
      maxItems: inputMedia.length,
      description:
        'The files that the model takes besides text. Default: by its name, if the model is well known; otherwise every file is sent.',
    }),
  ),
  settings: Type.Optional(ModelSettings),
};

const scripted = 'scripted';
/** Providers with one address for all. */
const own = ownProviders.map(({ name }) => name);
const calledShapes: Shape[] = [
  {
    values: { provider: own },
    requires: ['model'],
  },
  {
    values: { provider: calledProviders.filter((provider) => provider !== scripted && !own.includes(provider)) },
    requires: ['model', 'baseUrl'],
  },
  { values: { provider: [scripted] }, requires: ['model'], excludes: ['baseUrl', 'apiKeySecret'] },
];

/** A model of a provider that the service calls. */
export const ModelRef = Strict(
  {
    provider: OneOf(calledProviders),
    model: Type.Unsafe<string>({ ...Name, description: "The provider's name of the model." }),
    ...modelFields,
  },
  { title: 'ModelRef', 'x-shapes': calledShapes },
);
export type ModelRef = Static<typeof ModelRef>;

export const Model = Strict(
  {
    provider: OneOf(providers),
    model: Type.Optional(
      Type.Unsafe<string>({
        ...Name,
        description: "The provider's name of the model; for all providers except `worker`.",
      }),
    ),
    queue: Type.Optional(
      Type.Unsafe<string>({
        ...QueueName,
        description: 'For `worker`: the queue from which your program claims turns.',
      }),
    ),
    ...modelFields,
    fallbacks: Type.Optional(
      Type.Array(ModelRef, {
        maxItems: 4,
        description:
          'Models to use instead, in this order, while this one is unreachable, rate limited, out of quota, times out, responds with 5xx or refuses its key. Not for `worker`.',
      }),
    ),
    compaction: Type.Optional(
      Type.Unsafe<ModelRef>({
        ...ModelRef,
        description: 'The model that summarizes the older messages of a long session. Default: this model.',
      }),
    ),
  },
  {
    title: 'Model',
    'x-shapes': [
      ...calledShapes.map((shape) => ({ ...shape, excludes: [...(shape.excludes ?? []), 'queue'] })),
      {
        values: { provider: ['worker'] },
        requires: ['queue'],
        excludes: ['model', 'baseUrl', 'apiKeySecret', 'fallbacks'],
      },
    ] satisfies Shape[],
  },
);
export type Model = Static<typeof Model>;
