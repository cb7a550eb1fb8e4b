/** Agents: a model, instructions and tools, in immutable versions (api.md section 3). */

import { SecretName } from './environments.ts';
import {
  Id,
  Json,
  JsonSchema,
  ListQuery,
  Metadata,
  Name,
  Nullable,
  OneOf,
  Page,
  type Static,
  Strict,
  Tagged,
  Timestamp,
  Type,
} from './schema.ts';

/** The providers of models. `scripted` needs no network and answers by the Agent's own script. */
export const providers = ['scripted', 'openai-compatible'] as const;

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
    tokenDelayMs: Type.Optional(Type.Integer({ minimum: 0, maximum: 10_000, description: 'Wait before each word.' })),
    failWith: Type.Optional(OneOf(['timeout', 'rate_limited', 'broken_stream', 'refusal'])),
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
        description: 'For `scripted`: one step a model call, the last one repeated.',
      }),
    ),
    temperature: Type.Optional(Type.Number({ minimum: 0, maximum: 2 })),
    topP: Type.Optional(Type.Number({ minimum: 0, maximum: 1 })),
    seed: Type.Optional(Type.Integer()),
    stopSequences: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 200 }), { maxItems: 8 })),
  },
  { title: 'ModelSettings' },
);

export const Model = Strict(
  {
    provider: OneOf(providers),
    model: Name,
    baseUrl: Type.Optional(
      Type.String({
        maxLength: 2048,
        description: 'Where an `openai-compatible` server answers, up to and with `/v1`.',
      }),
    ),
    apiKeySecret: Type.Optional(
      Type.Unsafe<string>({ ...SecretName, description: "The Environment's secret that holds the provider's key." }),
    ),
    settings: Type.Optional(ModelSettings),
  },
  { title: 'Model' },
);
export type Model = Static<typeof Model>;

const ToolName = Type.String({
  pattern: '^[A-Za-z][A-Za-z0-9_-]{0,63}$',
  description: 'What the model calls it by; unique in the Agent.',
});
const Description = Type.String({ maxLength: 4_000 });
const Effectful = Type.Boolean({
  description:
    'Whether a call changes something outside. Default: for `http` tools whether the method is not GET, for others false.',
});
const Approval = OneOf(['always', 'never'], {
  title: 'ApprovalPolicy',
  description:
    'Whether a person decides before a call runs. Default: `always` for effectful tools, `never` for others.',
});

export const HttpRequest = Strict(
  {
    method: OneOf(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']),
    url: Type.String({
      maxLength: 2048,
      description: '`{{input.x}}` and `{{secrets.NAME}}` may stand in path and query, never in scheme, host or port.',
    }),
    headers: Type.Optional(
      Type.Unsafe<Record<string, string>>({
        type: 'object',
        maxProperties: 50,
        propertyNames: { pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$" },
        additionalProperties: { type: 'string', maxLength: 8_192 },
      }),
    ),
    body: Type.Optional(
      Type.Unsafe<unknown>({
        description: 'JSON. A string that is a lone `"{{input.n}}"` keeps the JSON type of what it stands for.',
      }),
    ),
  },
  { title: 'HttpRequest' },
);
export type HttpRequest = Static<typeof HttpRequest>;

export const HttpTool = Strict(
  {
    type: Type.Literal('http'),
    name: ToolName,
    description: Description,
    inputSchema: JsonSchema,
    request: HttpRequest,
    effectful: Type.Optional(Effectful),
    approval: Type.Optional(Approval),
    idempotent: Type.Optional(
      Type.Boolean({ description: 'Whether a call may be repeated after a crash. Default: false.' }),
    ),
    timeoutSeconds: Type.Optional(Type.Integer({ minimum: 1, maximum: 300, default: 30 })),
  },
  { title: 'HttpTool' },
);
export type HttpTool = Static<typeof HttpTool>;

export const ClientTool = Strict(
  {
    type: Type.Literal('client'),
    name: ToolName,
    description: Description,
    inputSchema: JsonSchema,
    effectful: Type.Optional(Effectful),
    approval: Type.Optional(Approval),
  },
  { title: 'ClientTool' },
);
export type ClientTool = Static<typeof ClientTool>;

export const Tool = Tagged([HttpTool, ClientTool], { title: 'Tool' });
export type Tool = Static<typeof Tool>;

export const Limits = Strict(
  {
    maxStepsPerTurn: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 20 })),
    maxOutputTokens: Type.Optional(
      Nullable(Type.Integer({ minimum: 1, maximum: 1_000_000 }), {
        description: 'For one model call; null: the model decides.',
      }),
    ),
  },
  { title: 'Limits' },
);

const Instructions = Type.String({ maxLength: 100_000 });

export const Agent = Type.Object(
  {
    agentId: Id('agt'),
    version: Type.Integer({ description: 'Every change makes a new version, which never changes again.' }),
    name: Name,
    description: Type.String(),
    model: Model,
    instructions: Instructions,
    tools: Type.Array(Tool),
    limits: Type.Object({ maxStepsPerTurn: Type.Integer(), maxOutputTokens: Nullable(Type.Integer()) }),
    outputSchema: Type.Null(),
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
      pattern: `^(${providers.join('|')})/.+$`,
      maxLength: 300,
      description: '`provider/model`, in short.',
    },
  ],
});

const settable = {
  description: Type.Optional(Type.String({ maxLength: 2_000 })),
  instructions: Type.Optional(Instructions),
  tools: Type.Optional(Type.Array(Tool, { maxItems: 100 })),
  limits: Type.Optional(Limits),
  metadata: Type.Optional(Metadata),
};
export const CreateAgent = Strict({ name: Name, model: ModelOrShort, ...settable }, { title: 'CreateAgent' });
export const UpdateAgent = Strict(
  { name: Type.Optional(Name), model: Type.Optional(ModelOrShort), ...settable },
  { title: 'UpdateAgent' },
);
export const AgentParams = Strict({ agentId: Id('agt') });
export const ListAgents = ListQuery({
  archived: Type.Optional(Type.Boolean({ description: 'true: archived Agents instead of live ones.' })),
});
export const ListAgentVersions = ListQuery({});
export const AgentPage = Page(Agent);
