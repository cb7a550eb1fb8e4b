/** What authors of agents ask for while they write one: models of a provider, tools of an MCP server, a test of an `http` tool. */
import { EndUser } from './end-users.ts';
import { SecretName } from './environments.ts';
import { inputMedia } from './model-facts.ts';
import { calledProviders } from './models.ts';
import { Json, JsonSchema, Nullable, OneOf, type Static, Strict, Timestamp, Type } from './schema.ts';
import { HttpTool, McpTool } from './tools.ts';
import { PricesDate } from './usage.ts';

export const ListModels = Strict({
  provider: OneOf(calledProviders, { examples: ['openai'] }),
  baseUrl: Type.Optional(
    Type.String({
      maxLength: 2048,
      description: 'As in the model of an agent; required for `openai-compatible` and clouds.',
    }),
  ),
  apiKeySecret: Type.Optional(
    Type.Unsafe<string>({
      ...SecretName,
      description: 'As in the model of an agent: the secret with the provider’s key.',
    }),
  ),
});

const price = {
  inputUsd: Type.Number(),
  cachedInputUsd: Type.Optional(Type.Number({ description: 'Default: `inputUsd`.' })),
  cacheWriteInputUsd: Type.Optional(Type.Number({ description: 'Default: `inputUsd`.' })),
  outputUsd: Type.Number(),
};

const ModelPrices = Type.Object(
  {
    ...price,
    webSearchUsd: Type.Optional(
      Type.Number({
        description: 'For one search of the web, if the operator has set it; else searches are in no cost.',
      }),
    ),
    tiers: Type.Optional(
      Type.Array(Type.Object({ aboveInputTokens: Type.Integer(), ...price }), {
        description: 'The prices of all tokens of a call with more input tokens than `aboveInputTokens`.',
      }),
    ),
  },
  {
    title: 'ModelPrices',
    description: 'In US dollars per million tokens, apart from `webSearchUsd`: of the operator, or built in.',
  },
);

export const OfferedModel = Type.Object(
  {
    model: Type.String({ description: "The provider's name of the model." }),
    displayName: Nullable(Type.String()),
    contextTokens: Nullable(Type.Integer({ description: 'Its context window, if known.' })),
    input: Nullable(Type.Array(OneOf(inputMedia), { description: 'The files that it takes besides text, if known.' })),
    prices: Nullable(ModelPrices, { description: 'Null if they are not known.' }),
    endsAt: Nullable(
      Type.String({
        description: 'The day on which the provider has announced to end it, if one is known.',
        examples: ['2026-12-11'],
      }),
    ),
    replacement: Nullable(Type.String({ description: 'The model that the provider names in its place, if known.' })),
  },
  { title: 'OfferedModel' },
);
export type OfferedModel = Static<typeof OfferedModel>;

export const ModelList = Type.Object(
  {
    models: Type.Array(OfferedModel, {
      description: 'Models by name, without models that are known to generate no text, such as embedding models.',
    }),
    problem: Nullable(
      Type.Object(
        {
          code: Type.String({ description: 'Such as `model_key_missing`, with the codes of a model call.' }),
          message: Type.String(),
        },
        { title: 'ModelListProblem', description: 'Why the provider’s list could not be read.' },
      ),
    ),
    listedAt: Timestamp,
    pricesDate: PricesDate,
  },
  { title: 'ModelList' },
);
export type ModelList = Static<typeof ModelList>;

const Headers = Type.Array(Type.Array(Type.String(), { minItems: 2, maxItems: 2 }), {
  description: 'Name and value. Secrets are replaced by their names, and credentials of the server are removed.',
});

export const TestTool = Strict(
  {
    tool: Type.Unsafe<HttpTool>({ ...HttpTool, description: 'As in an agent, saved or not.' }),
    input: Type.Optional(Type.Unsafe<unknown>({ ...Json, description: 'What a model would give. Default: `{}`.' })),
    endUser: Type.Optional(EndUser),
  },
  { title: 'TestTool' },
);
export type TestTool = Static<typeof TestTool>;

export const ToolTest = Type.Object(
  {
    request: Nullable(
      Type.Object(
        { method: Type.String(), url: Type.String(), headers: Headers, body: Nullable(Type.String()) },
        { title: 'ToolTestRequest', description: 'Null if nothing was sent.' },
      ),
    ),
    response: Nullable(
      Type.Object(
        { status: Type.Integer(), headers: Headers, bytes: Type.Integer() },
        { title: 'ToolTestResponse', description: 'Null if there was none.' },
      ),
    ),
    output: Type.Optional(Type.Unsafe<unknown>({ ...Json, description: 'What the model would get.' })),
    error: Type.Optional(Type.String({ description: 'What the model would get instead.' })),
    outcomeUnknown: Type.Optional(
      Type.Literal(true, { description: 'The request was sent and interrupted: it may have taken effect.' }),
    ),
    durationMs: Type.Integer(),
  },
  { title: 'ToolTest', description: 'Never contains a secret of the environment.' },
);
export type ToolTest = Static<typeof ToolTest>;

export const ListMcpTools = Strict(
  {
    server: Type.Unsafe<McpTool>({
      ...McpTool,
      description: 'As in an agent, saved or not. All tools are listed, whatever `allowedTools` says.',
    }),
  },
  { title: 'ListMcpTools' },
);
export type ListMcpTools = Static<typeof ListMcpTools>;

export const McpToolList = Type.Object(
  {
    tools: Type.Array(
      Type.Object(
        {
          name: Type.String({ description: 'The server’s own name, as in `allowedTools`.' }),
          offeredAs: Type.String({ description: 'The name by which a model calls it.' }),
          description: Type.String(),
          inputSchema: JsonSchema,
          needsApproval: Type.Boolean({ description: 'Whether calls need an approval, by `approval` or by default.' }),
        },
        { title: 'ListedMcpTool' },
      ),
      { description: 'By name.' },
    ),
    leftOut: Type.Array(Type.Object({ name: Type.String(), reason: Type.String() }, { title: 'LeftOutTool' }), {
      description:
        'Tools that models can’t be offered, and why. Also names in `allowedTools`, and in `approval` with `never`, that are not tools of the server.',
    }),
    problem: Nullable(
      Type.String({
        description:
          'Why the tools could not be listed, or why a turn gets none of them: `approval` names a tool that the server does not have.',
      }),
    ),
  },
  { title: 'McpToolList' },
);
export type McpToolList = Static<typeof McpToolList>;
