/** Chunks, and the envelope that carries them in webhooks, streams and lists. */
import { ApprovalProgress, Approvers } from './approvals.ts';
import { ByProvider, Sources } from './cited-sources.ts';
import { FilePart } from './files.ts';
import {
  EnvironmentName,
  Id,
  Json,
  ListQuery,
  longLists,
  Nullable,
  OneOf,
  Page,
  type Static,
  Strict,
  Tagged,
  Timestamp,
  Type,
} from './schema.ts';
import { SessionError, SessionStatus, StopReason, TokensAndCost, Usage, WaitingFor } from './session-state.ts';

export const Decision = OneOf(['approved', 'denied', 'expired', 'cancelled'], { title: 'Decision' });

const position = {
  turn: Type.Integer({ description: 'Counts from 1; 0 before the first turn.' }),
  seq: Type.Integer({ description: 'Counts from 1 in each turn, without gaps.' }),
};

const errorOfTurn = Type.Unsafe<SessionError>({ ...SessionError, description: 'Present if `stopReason` is `error`.' });

/** The model responds: what follows is its response to this step, until the next one starts or the turn ends. */
export const StepStartedChunk = Type.Object(
  {
    type: Type.Literal('step.started'),
    step: Type.Integer({
      description: 'Counts from 1 in each turn. It comes again if the response is void: `message.reset`.',
    }),
    model: Type.String({ description: '`provider/model` that responds, or `worker/queue`.' }),
    ...position,
  },
  { title: 'StepStartedChunk' },
);
export const MessageStartedChunk = Type.Object(
  {
    type: Type.Literal('message.started'),
    messageId: Id(
      'msg',
      'The id that the response has in the transcript. It comes before everything that the response shows, also if that is no text.',
    ),
    step: Type.Integer(),
    ...position,
  },
  { title: 'MessageStartedChunk' },
);
export const MessageChunk = Type.Object(
  {
    type: Type.Literal('message.chunk'),
    delta: Type.String({ description: 'The next characters of the text. Empty if the chunk only has `sources`.' }),
    sources: Sources,
    ...position,
  },
  { title: 'MessageChunk' },
);
export const ReasoningChunk = Type.Object(
  {
    type: Type.Literal('reasoning.chunk'),
    delta: Type.String({
      description:
        'What the model thinks before it responds. Only if the agent has `showReasoning` and the model sends it.',
    }),
    ...position,
  },
  { title: 'ReasoningChunk' },
);
export const ToolInputChunk = Type.Object(
  {
    type: Type.Literal('tool.input.chunk'),
    toolCallId: Id('call', 'The call that the model is writing. The chunks of several calls can alternate.'),
    toolName: Type.String(),
    delta: Type.String({
      description:
        'The next characters of the input, which is JSON. Only if the agent has `showToolInput`. Run the call when its `tool.call` comes, not before.',
    }),
    ...position,
  },
  { title: 'ToolInputChunk' },
);
export const SessionStatusChunk = Type.Object(
  {
    type: Type.Literal('session.status'),
    status: SessionStatus,
    waitingFor: Nullable(WaitingFor),
    stopReason: Type.Optional(StopReason),
    error: Type.Optional(errorOfTurn),
    ...position,
  },
  { title: 'SessionStatusChunk' },
);
export const ToolCallChunk = Type.Object(
  {
    type: Type.Literal('tool.call'),
    tool: Type.String(),
    toolCallId: Id('call'),
    input: Json,
    by: ByProvider,
    mocked: Type.Optional(
      Type.Boolean({ description: 'true: the call is not run; its `tool.result` is that of a mock of the draft.' }),
    ),
    notRun: Type.Optional(
      Type.Boolean({
        description:
          'true: the call is not run; its `tool.result` says why. Never set on calls of `client` tools: you always run these.',
      }),
    ),
    ...position,
  },
  { title: 'ToolCallChunk' },
);
export const ToolResultChunk = Type.Object(
  {
    type: Type.Literal('tool.result'),
    toolCallId: Id('call'),
    tool: Type.Optional(
      Type.String({
        description:
          'Only for a call with the name of a `client` tool that you must not run and that therefore has no `tool.call`: it did not run, or the provider ran it.',
      }),
    ),
    input: Type.Optional(Type.Unsafe<unknown>({ description: 'Present together with `tool`.' })),
    output: Type.Optional(Json),
    error: Type.Optional(Type.String()),
    by: ByProvider,
    notRun: Type.Optional(
      Type.Boolean({
        description:
          'true: the call never ran. It was denied, expired or was cancelled before it started, its input did not match the schema, there is no such tool, or a token limit cut off the response.',
      }),
    ),
    outcomeUnknown: Type.Optional(
      Type.Boolean({
        description: 'true: the call was interrupted while it ran; it may or may not have taken effect.',
      }),
    ),
    ...position,
  },
  { title: 'ToolResultChunk' },
);
export const FileCreatedChunk = Type.Object(
  {
    type: Type.Literal('file.created'),
    toolCallId: Id('call', 'The call that returned the file. Comes before its `tool.result`.'),
    file: FilePart,
    ...position,
  },
  { title: 'FileCreatedChunk' },
);
export const ApprovalRequestedChunk = Type.Object(
  {
    type: Type.Literal('approval.requested'),
    operationId: Id('op'),
    name: Type.String({ description: 'The tool that would run.' }),
    input: Json,
    toolCallId: Id('call'),
    expiresAt: Nullable(Timestamp),
    by: Type.Optional(
      Type.Unsafe<Approvers>({ ...Approvers, description: "Who may decide, if the tool's `approval` says it." }),
    ),
    ...position,
  },
  { title: 'ApprovalRequestedChunk' },
);
/** One of several approvers has approved. The last decision is an `approval.resolved` instead. */
export const ApprovalDecidedChunk = Type.Object(
  {
    type: Type.Literal('approval.decided'),
    operationId: Id('op'),
    toolCallId: Id('call'),
    decision: OneOf(['approved']),
    progress: ApprovalProgress,
    ...position,
  },
  { title: 'ApprovalDecidedChunk' },
);
export const ApprovalResolvedChunk = Type.Object(
  {
    type: Type.Literal('approval.resolved'),
    operationId: Id('op'),
    toolCallId: Id('call'),
    decision: Decision,
    reason: Type.Optional(Type.String()),
    ...position,
  },
  { title: 'ApprovalResolvedChunk' },
);
export const MessageResetChunk = Type.Object(
  {
    type: Type.Literal('message.reset'),
    fromSeq: Type.Integer({
      description:
        'Discard what the model has shown in this turn from this `seq` on (`step.started`, `message.started`, `message.chunk`, `reasoning.chunk`, `tool.input.chunk`): the model call failed, or its response was rejected.',
    }),
    ...position,
  },
  { title: 'MessageResetChunk' },
);
export const TurnCompletedChunk = Type.Object(
  {
    type: Type.Literal('turn.completed'),
    stopReason: StopReason,
    usage: Usage,
    messageId: Type.Optional(
      Id('msg', "The turn's last message of the model in the transcript. Left out if there is none."),
    ),
    output: Type.Optional(Json),
    error: Type.Optional(errorOfTurn),
    ...position,
  },
  { title: 'TurnCompletedChunk' },
);
/**
 * The model now gets a summary instead of the older part of the transcript. The transcript and the journal keep everything.
 */
export const ContextCompactedChunk = Type.Object(
  {
    type: Type.Literal('context.compacted'),
    operationId: Id('op'),
    untilTurn: Type.Integer({
      description:
        'The turn of the last message that the summary replaces: this turn, if its own first steps are in it.',
    }),
    tokensBefore: Type.Integer({ description: 'Estimated tokens that the next model call would have read.' }),
    tokensAfter: Type.Integer({ description: 'Estimated tokens that it reads now.' }),
    summary: Type.String(),
    model: Nullable(Type.String(), {
      description: '`provider/model` that wrote the summary; null if no model did, and it only says what is left out.',
    }),
    usage: Nullable(TokensAndCost),
    ...position,
  },
  { title: 'ContextCompactedChunk' },
);

/** One entry of a session's journal. */
export const Chunk = Tagged(
  [
    StepStartedChunk,
    MessageStartedChunk,
    MessageChunk,
    ReasoningChunk,
    ToolInputChunk,
    SessionStatusChunk,
    ToolCallChunk,
    ToolResultChunk,
    FileCreatedChunk,
    ApprovalRequestedChunk,
    ApprovalDecidedChunk,
    ApprovalResolvedChunk,
    MessageResetChunk,
    TurnCompletedChunk,
    ContextCompactedChunk,
  ],
  { title: 'Chunk' },
);
export type Chunk = Static<typeof Chunk>;

export const chunkTypes = [
  'step.started',
  'message.started',
  'message.chunk',
  'reasoning.chunk',
  'tool.input.chunk',
  'session.status',
  'tool.call',
  'tool.result',
  'file.created',
  'approval.requested',
  'approval.decided',
  'approval.resolved',
  'message.reset',
  'turn.completed',
  'context.compacted',
] as const satisfies readonly Chunk['type'][];
export const ChunkType = OneOf(chunkTypes, { title: 'ChunkType' });
export type ChunkType = Static<typeof ChunkType>;

/** The default chunk types of a webhook subscription. `message.reset` is always included with `message.chunk`. */
export const defaultChunkTypes = [
  'message.chunk',
  'session.status',
  'tool.call',
  'approval.requested',
  'approval.resolved',
] as const satisfies readonly ChunkType[];

export const cursorPattern = '^turn_(0|[1-9][0-9]{0,8}):seq_(0|[1-9][0-9]{0,14})$';

/** A position in a session's journal: `turn_<n>:seq_<n>`. */
export const ChunkCursor = Type.String({
  pattern: cursorPattern,
  description: 'The position of a chunk in its session.',
  examples: ['turn_1:seq_12'],
});

/** The one format of chunks outside of the service: in webhooks, streams and lists. */
export const Envelope = Type.Object(
  {
    event: Type.Literal('session.chunks'),
    environment: EnvironmentName,
    sessionId: Id('ses'),
    agentId: Id('agt'),
    cursor: ChunkCursor,
    timestamp: Timestamp,
    chunks: Type.Array(Chunk),
  },
  { title: 'Envelope' },
);
export type Envelope = Static<typeof Envelope>;

/** `types` in a query: chunk types, comma separated. */
const Types = Type.String({
  pattern: `^(${chunkTypes.join('|').replaceAll('.', '\\.')})(,(${chunkTypes.join('|').replaceAll('.', '\\.')}))*$`,
  'x-expected': `one or more of ${chunkTypes.join(', ')}, comma separated`,
  description: 'Only chunks of these types, comma separated. Cursors stay valid.',
  examples: ['message.chunk,session.status'],
});

const After = Type.String({
  maxLength: 500,
  description: 'Only chunks after this cursor, `turn_<n>:seq_<n>`; without it, from the beginning.',
});
export const ListChunks = ListQuery({ cursor: Type.Optional(After), types: Type.Optional(Types) }, longLists);
export const StreamQuery = Strict({ cursor: Type.Optional(After), types: Type.Optional(Types) });
export const StreamEnvironmentQuery = Strict({
  cursor: Type.Optional(
    Type.Unsafe<string>({
      ...Timestamp,
      description:
        'Start with the chunks of this time: the `id` of the last event that you received, or any time. Default: now.',
    }),
  ),
  types: Type.Optional(Types),
  agentId: Type.Optional(Id('agt', 'Only sessions of this agent.')),
});
export const EnvelopePage = Page(Envelope);
