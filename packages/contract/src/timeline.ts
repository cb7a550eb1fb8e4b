/** The timeline of a session: its turns and their operations. */
import { approvalStatuses } from './approvals.ts';
import { Id, ListQuery, Nullable, OneOf, Page, type Static, Timestamp, Type } from './schema.ts';
import { SessionError, StopReason, TokensAndCost, Usage } from './session-state.ts';

/**
 * The status of a turn.
 *
 * - `running`, `waiting`: in progress, with the status of its session. → the others
 * - `completed`: ended; `stopReason` says why, also if it was interrupted.
 * - `failed`: ended with an `error`. If it is the last turn of an open session, it can be retried. → running
 * - `cancelled`: its session was cancelled during the turn.
 */
export const turnStatuses = ['running', 'waiting', 'completed', 'failed', 'cancelled'] as const;

/**
 * The status of an operation of a turn.
 *
 * - `pending`: a call that waits for its approval, or an approval that waits for a decision.
 * - `running`: a model, the service or a worker is executing it.
 * - `waiting`: a `client` tool call that waits for its result, an `agent` tool call that waits for its child session, or a model
 *   call that is repeated later because no model is available.
 * - `succeeded`, `failed`, `denied`, `cancelled`: final; `unknown`: interrupted, and may have taken effect.
 * - `approved`, `denied`, `expired`, `cancelled`: the final status of an approval.
 */
export const turnOperationStatuses = [
  'running',
  'waiting',
  'succeeded',
  'failed',
  'unknown',
  ...approvalStatuses,
] as const;

export const ModelAttempt = Type.Object(
  {
    model: Type.String({ description: '`provider/model`.' }),
    startedAt: Timestamp,
    endedAt: Timestamp,
    error: Nullable(SessionError, { description: 'Why it failed; null if it succeeded.' }),
  },
  { title: 'ModelAttempt' },
);
export type ModelAttempt = Static<typeof ModelAttempt>;

export const TurnOperation = Type.Object(
  {
    operationId: Id('op', 'An approval has the id of its tool call.'),
    kind: OneOf(['model', 'tool', 'approval', 'compaction']),
    name: Type.String({
      description:
        '`provider/model` (`worker/queue` if a program of yours is the model), or the name of the tool. Of a completed model call: the model that responded, which may be a fallback.',
    }),
    step: Type.Integer({
      description: 'Counts from 1 in the turn: a model call and the tool calls that it requested.',
    }),
    status: OneOf(turnOperationStatuses, { title: 'TurnOperationStatus' }),
    startedAt: Nullable(Timestamp, { description: 'null: not started.' }),
    endedAt: Nullable(Timestamp),
    toolCallId: Nullable(Id('call'), { description: 'As in chunks and in the transcript; null for a model call.' }),
    childSessionId: Nullable(Id('ses'), { description: 'For a call of an `agent` tool: the session that it opened.' }),
    toolType: Nullable(OneOf(['http', 'mcp', 'client', 'agent', 'mock']), {
      description:
        'What runs the tool: a `client` tool waits for a program of yours, an `agent` tool for its child session, and a `mock` of a draft is not run. null for a model call, and if there is no such tool.',
    }),
    error: Nullable(Type.String(), {
      description: 'Why it failed; the result of a denied, cancelled or interrupted call. At most 500 characters.',
    }),
    firstTokenAt: Nullable(Timestamp, {
      description:
        'When the response of a model call began. null for a worker’s, and for calls of releases before 0.2.0.',
    }),
    attempts: Type.Array(ModelAttempt, {
      description:
        'Attempts of a model call that failed at least once, oldest first, at most the newest 20. Between two attempts the session waited. Empty if the first one succeeded.',
    }),
    usage: Nullable(TokensAndCost, { description: 'Usage of a completed model call or compaction.' }),
    compaction: Nullable(
      Type.Object(
        {
          untilTurn: Type.Integer({ description: 'The turn of the last message that the summary replaces.' }),
          tokensBefore: Type.Integer(),
          tokensAfter: Type.Integer(),
          summary: Type.String(),
        },
        { title: 'Compaction' },
      ),
      { description: 'For a completed compaction: the summary that the model gets instead of older messages.' },
    ),
  },
  { title: 'TurnOperation' },
);
export type TurnOperation = Static<typeof TurnOperation>;

export const SessionTurn = Type.Object(
  {
    turn: Type.Integer({ description: 'Counts from 1.' }),
    agentVersion: Type.Integer({
      description:
        'The version of the agent that it runs; if it was retried, the version since then. 0 if the session runs a draft.',
    }),
    status: OneOf(turnStatuses, { title: 'TurnStatus' }),
    stopReason: Nullable(StopReason, { description: 'null while it is running, and if it was cancelled.' }),
    error: Nullable(SessionError, { description: 'Why it failed; null unless `failed`.' }),
    startedAt: Timestamp,
    endedAt: Nullable(Timestamp),
    usage: Usage,
    unavailableToolServers: Type.Array(
      Type.Object({ name: Type.String(), reason: Type.String() }, { title: 'UnavailableToolServer' }),
      {
        description:
          'The `mcp` tools of the agent whose server could not list its tools when the turn needed them, by name, and the reason.',
      },
    ),
    toolsLeftOut: Type.Array(Type.Object({ name: Type.String(), reason: Type.String() }, { title: 'LeftOutTool' }), {
      description:
        'Tools that a model of the turn did not get, because its server would refuse them: there are too many, or their schema cannot be written for it.',
    }),
    operations: Type.Array(TurnOperation, {
      description: 'In order: for each step its model call, then the tool calls, each after its approval.',
    }),
  },
  { title: 'SessionTurn' },
);
export type SessionTurn = Static<typeof SessionTurn>;

export const ListTurns = ListQuery({});
export const TurnPage = Page(SessionTurn);
