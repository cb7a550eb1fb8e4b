/** Agents: a model, instructions and tools, in immutable versions. */

import { calledProviders, Model, queueName } from './models.ts';
import { providerFacts } from './providers.ts';
import {
  Id,
  JsonSchema,
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
import { Tool } from './tools.ts';

/** The defaults of a definition. A limit of null means that the service sets none. */
export const agentDefaults: Readonly<
  Pick<
    Agent,
    | 'description'
    | 'instructions'
    | 'tools'
    | 'limits'
    | 'outputSchema'
    | 'showReasoning'
    | 'showToolInput'
    | 'metadata'
  >
> = {
  description: '',
  instructions: '',
  tools: [],
  limits: {
    maxStepsPerTurn: 20,
    maxOutputTokens: null,
    continueWhenCut: 0,
    turnTimeoutSeconds: 600,
    modelOutageSeconds: 900,
    approvalTimeoutSeconds: null,
    onApprovalTimeout: 'deny',
    compactAtTokens: null,
  },
  outputSchema: null,
  showReasoning: false,
  showToolInput: false,
  metadata: {},
};

/** The fields that a version fixes, in the order in which the console shows them. */
export const agentFields = [
  'name',
  'description',
  'model',
  'instructions',
  'tools',
  'limits',
  'outputSchema',
  'showReasoning',
  'showToolInput',
  'metadata',
] as const satisfies readonly (keyof Agent)[];

/** How many times a turn can continue a response that was cut. */
export const CONTINUE_WHEN_CUT_MAX = 10;

export const Limits = Strict(
  {
    maxStepsPerTurn: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 200, default: agentDefaults.limits.maxStepsPerTurn }),
    ),
    maxOutputTokens: Type.Optional(
      Nullable(Type.Integer({ minimum: 1, maximum: 1_000_000 }), {
        description: 'For one model call; null: the limit of the model.',
      }),
    ),
    continueWhenCut: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: CONTINUE_WHEN_CUT_MAX,
        default: agentDefaults.limits.continueWhenCut,
        description:
          'How many times in a turn the model is called again to continue a response that its token limit has cut. Each time is a step. Not for `worker`.',
      }),
    ),
    turnTimeoutSeconds: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 86_400,
        default: agentDefaults.limits.turnTimeoutSeconds,
        description: 'How long a turn can run; time spent `waiting` does not count.',
      }),
    ),
    modelOutageSeconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 86_400,
        default: agentDefaults.limits.modelOutageSeconds,
        description:
          'How long a turn waits for a model that is unavailable; the session is `waiting`, and the time does not count toward `turnTimeoutSeconds`. It continues within seconds once the model responds again. 0: the turn fails after its first retries.',
      }),
    ),
    approvalTimeoutSeconds: Type.Optional(
      Nullable(Type.Integer({ minimum: 1, maximum: 31_536_000 }), {
        description: 'How long an approval stays open; null: no limit.',
      }),
    ),
    onApprovalTimeout: Type.Optional(
      OneOf(['deny', 'cancel'], {
        default: agentDefaults.limits.onApprovalTimeout,
        description: '`deny`: the call is denied and the turn continues. `cancel`: the session is cancelled.',
      }),
    ),
    compactAtTokens: Type.Optional(
      Nullable(Type.Integer({ minimum: 1_000, maximum: 1_000_000 }), {
        description:
          'How many tokens a model call may read before older messages are replaced by a summary; null: three quarters of the context window of the model, or 100,000 if it is not known.',
      }),
    ),
  },
  { title: 'Limits' },
);

const Instructions = Type.String({ maxLength: 100_000 });

export const Agent = Type.Object(
  {
    agentId: Id('agt'),
    version: Type.Integer({ description: 'Every change creates a new, immutable version.' }),
    name: Name,
    description: Type.String(),
    model: Model,
    instructions: Instructions,
    tools: Type.Array(Tool),
    limits: Type.Object({
      maxStepsPerTurn: Type.Integer(),
      maxOutputTokens: Nullable(Type.Integer()),
      continueWhenCut: Type.Integer(),
      turnTimeoutSeconds: Type.Integer(),
      modelOutageSeconds: Type.Integer(),
      approvalTimeoutSeconds: Nullable(Type.Integer()),
      onApprovalTimeout: OneOf(['deny', 'cancel']),
      compactAtTokens: Nullable(Type.Integer()),
    }),
    outputSchema: Nullable(JsonSchema),
    showReasoning: Type.Boolean(),
    showToolInput: Type.Boolean(),
    metadata: Metadata,
    createdAt: Timestamp,
    updatedAt: Timestamp,
    archivedAt: Nullable(Timestamp),
  },
  { title: 'Agent' },
);
export type Agent = Static<typeof Agent>;

const ModelOrShort = Type.Unsafe<Model | string>({
  anyOf: [
    Model,
    {
      type: 'string',
      pattern: `^(worker/${queueName}|(${calledProviders.join('|')})/.{1,200})$`,
      'x-prefixes': [...calledProviders, 'worker'].map((provider) => `${provider}/`),
      'x-expected': `"provider/model", its provider one of ${calledProviders.join(', ')}, or "worker/queue"`,
      description: 'Short form: `provider/model`, or `worker/queue` for a program of your own.',
      examples: [`anthropic/${providerFacts.anthropic.own.exampleModel}`],
    },
  ],
});

const settable = {
  description: Type.Optional(Type.String({ maxLength: 2_000 })),
  instructions: Type.Optional(Instructions),
  tools: Type.Optional(Type.Array(Tool, { maxItems: 100 })),
  limits: Type.Optional(Limits),
  outputSchema: Type.Optional(
    Nullable(JsonSchema, {
      description: 'Schema of the final response of a turn, as JSON; it appears as `output` in `turn.completed`.',
    }),
  ),
  showReasoning: Type.Optional(
    Type.Boolean({
      default: agentDefaults.showReasoning,
      description:
        "Show the model's reasoning as `reasoning.chunk`s, if it sends any. It can contain what the instructions say.",
    }),
  ),
  showToolInput: Type.Optional(
    Type.Boolean({
      default: agentDefaults.showToolInput,
      description: 'Show the input of tool calls while the model writes it, as `tool.input.chunk`s.',
    }),
  ),
  metadata: Type.Optional(Metadata),
};
export const CreateAgent = Strict({ name: Name, model: ModelOrShort, ...settable }, { title: 'CreateAgent' });
export const UpdateAgent = Strict(
  {
    name: Type.Optional(Name),
    model: Type.Optional(ModelOrShort),
    ...settable,
    expectedVersion: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 2_147_483_647,
        description: 'The newest version that you know. If the agent has a newer one, nothing changes: 409 `conflict`.',
      }),
    ),
  },
  { title: 'UpdateAgent' },
);
export const AgentParams = Strict({ agentId: Id('agt') });
export const ListAgents = ListQuery({
  archived: Type.Optional(Type.Boolean({ description: 'true: archived agents instead of active ones.' })),
  q: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      description:
        'Only agents with all of these words, or parts of words, in their name, description, model, names of tools or id; in any order and case, with or without accents.',
    }),
  ),
  model: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 300,
      description: 'Only agents with this model: `provider/model`, or `worker/queue`. Fallbacks do not count.',
    }),
  ),
});
export const ListAgentVersions = ListQuery({});
export const AgentPage = Page(Agent);
