/** Sessions, their messages and tool results. */
import { ChunkCursor } from './chunks.ts';
import { ByProvider, Sources } from './cited-sources.ts';
import { Draft } from './drafts.ts';
import { EndUser, EndUserId } from './end-users.ts';
import { FileInput, FilePart } from './files.ts';
import { LeftOut } from './left-out.ts';
import { maxCount } from './overview.ts';
import {
  EnvironmentName,
  Id,
  Json,
  ListQuery,
  Metadata,
  Nullable,
  OneOf,
  Page,
  type Static,
  Strict,
  Tagged,
  Timestamp,
  Type,
} from './schema.ts';
import { SessionError, SessionStatus, StopReason, sessionStatuses, Usage, WaitingFor } from './session-state.ts';

/**
 * How much a session can use over all of its turns, including its child sessions. Checked before each model call. The tokens and
 * the cost of a call are known only after its response, so calls in progress can exceed the limit.
 */
export const Budget = Strict(
  {
    maxTokens: Type.Optional(Type.Integer({ minimum: 1, description: 'Input and output tokens together.' })),
    maxSteps: Type.Optional(Type.Integer({ minimum: 1, description: 'Model calls; never exceeded.' })),
    maxCostUsd: Type.Optional(
      Type.Number({
        exclusiveMinimum: 0,
        description: 'Needs a price for the model (otherwise 422 `budget_invalid`).',
      }),
    ),
  },
  { title: 'Budget' },
);
export type Budget = Static<typeof Budget>;

export const Session = Type.Object(
  {
    sessionId: Id('ses'),
    agentId: Id(
      'agt',
      'ID of the agent. A draft without an agent has an ID that no agent has, the same for all such sessions of the organization.',
    ),
    agentVersion: Nullable(Type.Integer(), {
      description:
        'Version of the agent in the current or last turn; null before the first, 0 if the session runs a draft.',
    }),
    draft: Type.Boolean({
      description:
        'Whether the session runs a definition that was not saved. It is not delivered to webhooks. The sessions that it opens are drafts as well.',
    }),
    environment: EnvironmentName,
    status: SessionStatus,
    waitingFor: Nullable(WaitingFor),
    stopReason: Nullable(StopReason),
    turn: Type.Integer({ description: '0 before the first turn; a fork starts with that of its origin.' }),
    cursor: Nullable(ChunkCursor, {
      description:
        'Cursor of the last chunk; null before the first. With `SIGNALBOX_TAIL`, of a chunk up to 20 seconds earlier while a response streams.',
    }),
    usage: Usage,
    budget: Nullable(Budget),
    error: Nullable(SessionError, { description: 'Why the last turn failed, until the next one starts.' }),
    leftOut: Nullable(LeftOut, {
      description: 'What models do not get, because a retry left it out; null if there is nothing.',
    }),
    metadata: Metadata,
    endUser: Nullable(EndUser, {
      description:
        'For whom it is; never changes. Child sessions and forks have that of the session that they come from.',
    }),
    parentSessionId: Nullable(Id('ses'), {
      description: 'For a child session: the session whose `agent` tool opened it.',
    }),
    forkedFrom: Nullable(Type.Object({ sessionId: Id('ses'), turn: Type.Integer() }, { title: 'ForkedFrom' }), {
      description:
        'For a fork: the session whose conversation it continues, and the turn after which. That session may be deleted.',
    }),
    createdAt: Timestamp,
    updatedAt: Timestamp,
    endedAt: Nullable(Timestamp),
  },
  { title: 'Session' },
);
export type Session = Static<typeof Session>;

const TextInput = Strict(
  { type: Type.Literal('text'), text: Type.String({ minLength: 1, maxLength: 500_000 }) },
  { title: 'TextInput' },
);
const Text = Type.Object({ type: Type.Literal('text'), text: Type.String(), sources: Sources }, { title: 'TextPart' });
const ToolCallPart = Type.Object(
  {
    type: Type.Literal('tool_call'),
    toolCallId: Id('call'),
    tool: Type.String(),
    input: Json,
    by: ByProvider,
    mocked: Type.Optional(Type.Boolean({ description: 'true: the call was not run; its result is that of a mock.' })),
  },
  { title: 'ToolCallPart' },
);
const ToolResultPart = Type.Object(
  {
    type: Type.Literal('tool_result'),
    toolCallId: Id('call'),
    input: Type.Optional(
      Type.Unsafe<unknown>({ description: 'The input with which the approver replaced the input of the call.' }),
    ),
    output: Type.Optional(Json),
    error: Type.Optional(Type.String()),
    by: ByProvider,
    outcomeUnknown: Type.Optional(Type.Boolean()),
  },
  { title: 'ToolResultPart' },
);
export const MessagePart = Tagged([Text, FilePart, ToolCallPart, ToolResultPart], { title: 'MessagePart' });
export type MessagePart = Static<typeof Text> | FilePart | Static<typeof ToolCallPart> | Static<typeof ToolResultPart>;

/** The content of a user message: a string, or parts that are text or files. */
const anyPart = '{ "type": "text", "text": "Hello" }';
const ContentPart = Tagged([TextInput, FileInput], {
  title: 'ContentPart',
  'x-expected': `a part of a user message, such as ${anyPart}`,
});
export const Content = Type.Unsafe<string | Static<typeof ContentPart>[]>({
  title: 'Content',
  'x-expected': `a text, or a list of parts such as [${anyPart}]`,
  anyOf: [
    { type: 'string', minLength: 1, maxLength: 500_000 },
    { type: 'array', items: ContentPart, minItems: 1, maxItems: 100 },
  ],
});
export type Content = Static<typeof Content>;

/** Who wrote a message. */
export const messageRoles = ['user', 'assistant', 'tool'] as const;

/** One entry of the transcript: input to the model, or its response. */
export const Message = Type.Object(
  {
    messageId: Id('msg'),
    role: OneOf(messageRoles),
    turn: Nullable(Type.Integer(), { description: 'null for a message whose turn has not started.' }),
    content: Type.Array(MessagePart),
    rejected: Type.Optional(
      Type.Literal(true, {
        description:
          'A response that does not match `outputSchema`, or the message that tells the model so. Not part of the conversation: leave it out where you show one.',
      }),
    ),
    createdAt: Timestamp,
  },
  { title: 'Message' },
);
export type Message = Static<typeof Message>;

export const OpenSession = Strict(
  {
    agentId: Type.Optional(
      Id(
        'agt',
        'Required without `draft`. With it, the agent that the session belongs to, for lists, usage and keys that are limited to agents.',
      ),
    ),
    agentVersion: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 2_147_483_647,
        description: 'Always use this version; by default, each turn uses the newest.',
      }),
    ),
    draft: Type.Optional(
      Type.Unsafe<Draft>({
        ...Draft,
        description: 'Run this definition instead of a version. Needs the scope `agents:write` as well.',
      }),
    ),
    environment: EnvironmentName,
    input: Type.Optional(Content),
    metadata: Type.Optional(Metadata),
    endUser: Type.Optional(Nullable(EndUser)),
    budget: Type.Optional(Nullable(Budget)),
    closeOnIdle: Type.Optional(
      Type.Boolean({ description: 'Complete the session when a turn ends and no message is queued.' }),
    ),
  },
  { title: 'OpenSession' },
);
export const ForkSession = Strict(
  {
    atTurn: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 2_147_483_647,
        description:
          'The last turn that the fork inherits; 0: none. Default: the last finished turn. A turn that failed has finished.',
      }),
    ),
    agentVersion: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 2_147_483_647,
        description: 'Always use this version; by default, as the origin does.',
      }),
    ),
    draft: Type.Optional(
      Type.Unsafe<Draft>({
        ...Draft,
        description: 'Continue with this definition instead of a version. Needs the scope `agents:write` as well.',
      }),
    ),
    input: Type.Optional(Content),
    metadata: Type.Optional(Metadata),
    budget: Type.Optional(
      Nullable(Budget, { description: 'Default: that of the origin. The usage of a fork starts at zero.' }),
    ),
    closeOnIdle: Type.Optional(
      Type.Boolean({ description: 'Complete the fork when a turn ends and no message is queued.' }),
    ),
  },
  { title: 'ForkSession' },
);
export const UpdateSession = Strict({ metadata: Type.Optional(Metadata) }, { title: 'UpdateSession' });
export const SendMessage = Strict(
  {
    content: Content,
    onBusy: Type.Optional(
      OneOf(['queue', 'steer', 'reject'], {
        default: 'queue',
        description:
          'If a turn is running: `queue` starts a turn after it; `steer` ends it as `interrupted` and continues with this message; `reject` refuses the message with 409 `session_busy`.',
      }),
    ),
  },
  { title: 'SendMessage' },
);
export const ToolResult = Strict(
  {
    toolCallId: Id('call'),
    output: Type.Optional(Json),
    error: Type.Optional(Type.String({ minLength: 1, maxLength: 100_000 })),
  },
  { title: 'ToolResult', description: 'Exactly one of `output` and `error`.' },
);
export const SessionParams = Strict({ sessionId: Id('ses') });
/** Which sessions: they have to match all that is given. */
const sessionFilters = {
  q: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      description:
        'Only sessions with all of these words in their messages, tool inputs, end user or metadata, in any order, case and with or without accents; the last word may be the beginning of one. Or the beginning of a session id. The words of a message are found some seconds after it was written.',
    }),
  ),
  status: Type.Optional(OneOf(sessionStatuses)),
  hasError: Type.Optional(
    Type.Boolean({ description: '`true`: only sessions whose last turn failed, whether they have ended or not.' }),
  ),
  agentId: Type.Optional(Id('agt')),
  environment: Type.Optional(EnvironmentName),
  draft: Type.Optional(Type.Boolean({ description: 'true: only sessions that run a draft; false: only others.' })),
  parentSessionId: Type.Optional(Id('ses', 'Only child sessions of this session.')),
  forkedFromSessionId: Type.Optional(Id('ses', 'Only forks of this session, which may be deleted.')),
  endUserId: Type.Optional(
    Type.Unsafe<string>({
      ...EndUserId,
      description: 'Only sessions for this end user, including child sessions and forks.',
    }),
  ),
  since: Type.Optional(
    Type.Unsafe<string>({ ...Timestamp, description: 'Only sessions created at this time or later.' }),
  ),
  until: Type.Optional(Type.Unsafe<string>({ ...Timestamp, description: 'Only sessions created before this time.' })),
  metadata: Type.Optional(
    Type.Unsafe<Record<string, string>>({
      type: 'object',
      description:
        '`metadata[key]=value`: sessions whose metadata has this value, compared as text. If you give several pairs, put the one that the fewest sessions have first. A page takes longest if many sessions match each of several filters and hardly any matches all.',
      maxProperties: 10,
      additionalProperties: { type: 'string', maxLength: 512 },
    }),
  ),
};
export const ListSessions = ListQuery({
  ...sessionFilters,
  order: Type.Optional(OneOf(['asc', 'desc'], { default: 'desc', description: 'Oldest or newest first.' })),
});
export const CountSessions = Strict(sessionFilters);
export const ExportSessions = Strict({
  format: Type.Optional(
    OneOf(['jsonl', 'csv'], {
      default: 'jsonl',
      description: '`jsonl`: one session per line, as in the list; `csv`: for spreadsheets.',
    }),
  ),
  ...sessionFilters,
  order: Type.Optional(OneOf(['asc', 'desc'], { default: 'desc', description: 'Oldest or newest first.' })),
});

/** The most sessions that one request changes. */
export const maxChangedSessions = 500;
export const ChangeSessions = Strict(
  {
    sessionIds: Type.Optional(
      Type.Array(Id('ses'), { minItems: 1, maxItems: maxChangedSessions, description: 'Only these sessions.' }),
    ),
    ...sessionFilters,
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: maxChangedSessions,
        default: 100,
        description: 'How many open sessions it changes at most. Without effect if you give `sessionIds`.',
      }),
    ),
    cursor: Type.Optional(
      Type.String({ description: 'The `page.nextCursor` of the previous request.', maxLength: 500 }),
    ),
  },
  {
    title: 'ChangeSessions',
    description: 'The sessions that match all given filters. At least one filter is needed.',
  },
);
/** What happened to one of the sessions. */
export const ChangedSession = Type.Object(
  {
    sessionId: Id('ses'),
    status: Nullable(SessionStatus, { description: 'Afterwards; null if the session was not found.' }),
    error: Nullable(Type.Object({ code: Type.String(), message: Type.String() }), {
      description: 'Why the session was not changed. Null if it was, or if it had been before.',
    }),
  },
  { title: 'ChangedSession' },
);
export type ChangedSession = Static<typeof ChangedSession>;
export const ChangedSessionPage = Page(ChangedSession);

/** What a list shows of a session. */
export const ListedSession = Type.Object(
  {
    ...Session.properties,
    preview: Nullable(Type.String(), { description: 'The first words of its first message; null if there is none.' }),
    workingMs: Nullable(Type.Integer(), {
      description:
        'How long models and tools have worked, in milliseconds, up to some seconds ago: without the time in which it waited for approvals or for results of `client` tools. Null if it is not known yet.',
    }),
  },
  { title: 'ListedSession' },
);
export type ListedSession = Static<typeof ListedSession>;

export const ListMessages = ListQuery({
  order: Type.Optional(
    OneOf(['asc', 'desc'], {
      default: 'asc',
      description:
        'Oldest or newest first. Messages whose turn has not started are the newest and do not count toward the `limit`.',
    }),
  ),
});
export const SessionPage = Page(ListedSession);
export const SessionCount = Type.Object({
  count: Type.Integer({ maximum: maxCount, description: `At most ${maxCount}.` }),
  isExact: Type.Boolean({ description: 'False: there are that many or more.' }),
});
export const MessagePage = Page(Message);
