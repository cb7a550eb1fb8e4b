/**
 * Worker turns: an agent whose model is `{ provider: "worker", queue }` is run by the integrator's own program.
 *
 * The program gives the responses that a model gives for other agents, one step at a time. A step is offered on the agent's
 * queue. A program claims it (a worker turn, with a lease), appends text, and completes it with the tool calls it requests, or
 * without any, which ends the turn. The service does the rest: approvals, tool calls, budgets, timeouts, the journal.
 * The program also runs the calls of the agent's `client` tools: they are offered on the same queue.
 */
import { Agent } from './agents.ts';
import { ChunkCursor } from './chunks.ts';
import { EndUser } from './end-users.ts';
import { QueueName } from './models.ts';
import {
  EnvironmentName,
  Id,
  Json,
  JsonSchema,
  Metadata,
  Nullable,
  OneOf,
  type Static,
  Strict,
  Tagged,
  Timestamp,
  Type,
} from './schema.ts';
import { Message, ToolResult } from './sessions.ts';

/** The longest wait of a claim, in seconds. */
export const maxClaimWaitSeconds = 20;
/** The limits of one `append`: the number of deltas, and the characters of each. */
export const maxDeltas = 1_000;
export const maxDeltaLength = 100_000;

/** How a tool call ended. */
export const callOutcomes = ['succeeded', 'failed', 'denied', 'cancelled', 'unknown'] as const;

/** A tool that the program can call through the service. */
export const WorkerTool = Type.Object(
  {
    name: Type.String(),
    description: Type.String(),
    inputSchema: JsonSchema,
    client: Type.Boolean({ description: 'Whether your program runs its calls itself (a `client` tool).' }),
  },
  { title: 'WorkerTool' },
);
export type WorkerTool = Static<typeof WorkerTool>;

/** A call of a `client` tool that the program must run now. */
export const PendingCall = Type.Object(
  {
    toolCallId: Id('call'),
    index: Type.Integer({ description: "The index of the call in the `toolCalls` of the step's response, from 0." }),
    tool: Type.String(),
    input: Type.Unsafe<unknown>({ description: 'The input to use; if an approver edited it, the edited one.' }),
  },
  { title: 'PendingCall' },
);
export type PendingCall = Static<typeof PendingCall>;

/** How a call of the previous step ended. */
export const CallOutcome = Type.Object(
  {
    toolCallId: Id('call'),
    index: Type.Integer({ description: "The index of the call in the `toolCalls` of the step's response, from 0." }),
    tool: Type.String(),
    status: OneOf(callOutcomes, {
      description: '`denied`: it was denied. `unknown`: it was interrupted while it ran; it may have taken effect.',
    }),
    output: Type.Optional(Json),
    error: Type.Optional(
      Type.String({ description: 'The error that the model sees; for a denial, including its reason.' }),
    ),
  },
  { title: 'CallOutcome' },
);
export type CallOutcome = Static<typeof CallOutcome>;

/** A step of a turn, claimed by a worker. */
export const WorkerTurn = Type.Object(
  {
    workerTurnId: Id('wtn'),
    sessionId: Id('ses'),
    agentId: Id('agt'),
    agentVersion: Type.Integer(),
    environment: EnvironmentName,
    queue: QueueName,
    turn: Type.Integer(),
    step: Type.Integer({ description: 'From 1 in each turn.' }),
    cursor: ChunkCursor,
    instructions: Type.String(),
    messages: Type.Array(Message, {
      description:
        "The transcript, oldest first, with the calls and results of this turn's earlier steps. Without calls that a provider ran itself.",
    }),
    tools: Type.Array(WorkerTool, { description: 'The tools that the step can call; empty with `pendingCalls`.' }),
    pendingCalls: Type.Array(PendingCall, {
      description: 'If not empty, run these calls and complete with `toolResults`. If empty, respond to the step.',
    }),
    outcomes: Type.Array(CallOutcome, { description: 'Outcomes of the calls of the previous step, in order.' }),
    outputSchema: Nullable(JsonSchema, { description: 'Schema of the response that ends the turn, as JSON.' }),
    limits: Agent.properties.limits,
    showReasoning: Type.Boolean({
      description: 'Whether reasoning that you append is shown. Otherwise it is ignored.',
    }),
    showToolInput: Type.Boolean({
      description: 'Whether tool input that you append is shown. Otherwise it is ignored.',
    }),
    metadata: Metadata,
    endUser: Nullable(EndUser),
    leaseExpiresAt: Timestamp,
    deadlineAt: Nullable(Timestamp, { description: 'When the turn times out.' }),
  },
  { title: 'WorkerTurn' },
);
export type WorkerTurn = Static<typeof WorkerTurn>;

export const ClaimWorkerTurn = Strict(
  {
    queue: QueueName,
    environment: Type.Optional(
      Type.Unsafe<string>({ ...EnvironmentName, description: 'Only turns of sessions in this environment.' }),
    ),
    sessionId: Type.Optional(Id('ses', "Only the next step of this session; 409 `turn_lost` if there can't be one.")),
    turn: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 2_147_483_647, description: 'With `sessionId`: only this turn.' }),
    ),
    waitSeconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: maxClaimWaitSeconds,
        default: maxClaimWaitSeconds,
        description: 'How long to wait for a turn.',
      }),
    ),
  },
  { title: 'ClaimWorkerTurn' },
);
const Delta = Type.String({ minLength: 1, maxLength: maxDeltaLength });
const ReasoningDelta = Strict(
  { type: Type.Literal('reasoning'), delta: Delta },
  { title: 'ReasoningDelta', description: 'Shown if the agent has `showReasoning`.' },
);
const ToolInputDelta = Strict(
  {
    type: Type.Literal('toolInput'),
    index: Type.Integer({
      minimum: 0,
      maximum: 99,
      description: 'The index that the call will have in `toolCalls`, from 0.',
    }),
    tool: Type.String({ minLength: 1, maxLength: 200 }),
    delta: Delta,
  },
  { title: 'ToolInputDelta', description: 'Shown if the agent has `showToolInput`.' },
);
/** A string is text. */
export const WorkerDelta = Type.Unsafe<string | Static<typeof ReasoningDelta> | Static<typeof ToolInputDelta>>({
  title: 'WorkerDelta',
  anyOf: [Delta, Tagged([ReasoningDelta, ToolInputDelta])],
});
export type WorkerDelta = Static<typeof WorkerDelta>;
export const AppendToWorkerTurn = Strict(
  {
    deltas: Type.Array(WorkerDelta, {
      minItems: 1,
      maxItems: maxDeltas,
      description: 'Pieces of the response in their order: text as strings, reasoning and the input of tool calls.',
    }),
    after: Type.Optional(
      Type.Unsafe<string>({
        ...ChunkCursor,
        description:
          'The `cursor` of the worker turn or of the last append: with it, a repeated append of the same text is written only once. Default: the end of the journal.',
      }),
    ),
  },
  { title: 'AppendToWorkerTurn' },
);

const Tokens = Type.Integer({ minimum: 0, maximum: 1_000_000_000 });
export const WorkerUsage = Strict(
  {
    inputTokens: Tokens,
    outputTokens: Tokens,
    cachedTokens: Type.Optional(Tokens),
    cacheWriteTokens: Type.Optional(Tokens),
    webSearches: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 1_000_000,
        description: 'Searches of the web that the provider ran itself.',
      }),
    ),
    costUsd: Type.Optional(Type.Number({ minimum: 0, maximum: 1_000_000 })),
  },
  { title: 'WorkerUsage', description: 'The usage of the step; counts toward the budget.' },
);
const RanCall = Strict(
  {
    tool: Type.String({ minLength: 1, maxLength: 200 }),
    input: Json,
    output: Type.Optional(Json),
    error: Type.Optional(Type.String({ maxLength: 2_000, description: 'Why it failed; instead of `output`.' })),
  },
  { title: 'RanToolCall' },
);
const WorkerSource = Strict(
  {
    url: Type.Optional(Type.String({ minLength: 1, maxLength: 2_048, description: 'Its address: `http` or `https`.' })),
    title: Type.Optional(Type.String({ maxLength: 1_000 })),
    citedText: Type.Optional(Type.String({ maxLength: 10_000 })),
  },
  { title: 'WorkerSource' },
);
export const CompleteWorkerTurn = Strict(
  {
    toolCalls: Type.Optional(
      Type.Array(
        Strict({ tool: Type.String({ minLength: 1, maxLength: 200 }), input: Json }, { title: 'AskedToolCall' }),
        { maxItems: 100, description: 'Run in parallel. None: the turn ends.' },
      ),
    ),
    toolResults: Type.Optional(
      Type.Array(ToolResult, {
        maxItems: 100,
        description: 'For a worker turn with `pendingCalls`: the result of each.',
      }),
    ),
    providerCalls: Type.Optional(
      Type.Array(RanCall, {
        maxItems: 100,
        description:
          "What your model's provider ran itself for this response, such as web searches. They are shown with their results and are not run.",
      }),
    ),
    sources: Type.Optional(
      Type.Array(WorkerSource, { maxItems: 100, description: 'What the text of this response cites.' }),
    ),
    usage: Type.Optional(WorkerUsage),
    stopReason: Type.Optional(
      OneOf(['endTurn', 'maxOutputTokens', 'refusal'], {
        default: 'endTurn',
        description: 'Why the turn ends; only without `toolCalls`.',
      }),
    ),
    error: Type.Optional(
      Strict(
        {
          code: Type.Optional(
            Type.String({ pattern: '^[a-z][a-z0-9_]{0,62}$', description: 'Default: `worker_failed`.' }),
          ),
          message: Type.String({ minLength: 1, maxLength: 2_000 }),
        },
        { title: 'WorkerTurnError', description: 'The step failed and is not retried: the turn fails.' },
      ),
    ),
  },
  { title: 'CompleteWorkerTurn' },
);
export type CompleteWorkerTurn = Static<typeof CompleteWorkerTurn>;

export const WorkerTurnParams = Strict({ workerTurnId: Id('wtn') });
export const ClaimedWorkerTurn = Type.Object({ workerTurn: Nullable(WorkerTurn) });
export const WorkerTurnLease = Type.Object({ leaseExpiresAt: Timestamp });
export const WorkerTurnCursor = Type.Object({ cursor: ChunkCursor });
