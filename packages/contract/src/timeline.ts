/** The timeline of a Session: its turns, and what was done in each of them. */
import { approvalStatuses } from './approvals.ts';
import { StopReason, Usage } from './chunks.ts';
import { Id, ListQuery, Nullable, OneOf, Page, type Static, Timestamp, Type } from './schema.ts';

/**
 * Where a turn is.
 *
 * - `running`, `waiting`: it is under way, as its Session is. → the others
 * - `completed`: it is over; `stopReason` says why, also where somebody stopped it.
 * - `failed`: it ended with an error, and its Session with it.
 * - `cancelled`: its Session was cancelled in the middle of it.
 */
export const turnStatuses = ['running', 'waiting', 'completed', 'failed', 'cancelled'] as const;

/**
 * Where something that a turn did is.
 *
 * - `pending`: a call that waits for its approval, or an approval that waits for somebody.
 * - `running`: the model, the service or a program has it.
 * - `waiting`: the integrator (a `client` tool) or a child Session has it.
 * - `succeeded`, `failed`, `denied`, `cancelled`: the end; `unknown`: cut off, it may or may not have had its effect.
 * - `approved`, `denied`, `expired`, `cancelled`: the end of an approval.
 */
export const turnOperationStatuses = [
  'running',
  'waiting',
  'succeeded',
  'failed',
  'unknown',
  ...approvalStatuses,
] as const;

export const TurnOperation = Type.Object(
  {
    operationId: Id('op', 'An approval has that of the tool call that it is for.'),
    kind: OneOf(['model', 'tool', 'approval']),
    name: Type.String({
      description: '`provider/model` (`worker/queue` where a program of yours is the model), or the name of the tool.',
    }),
    step: Type.Integer({
      description: 'Counts from 1 in the turn: a model call and the tool calls that it asked for.',
    }),
    status: OneOf(turnOperationStatuses, { title: 'TurnOperationStatus' }),
    startedAt: Nullable(Timestamp, { description: 'null: it has not begun, or never did.' }),
    endedAt: Nullable(Timestamp),
    toolCallId: Nullable(Id('call'), { description: 'As in chunks and in the transcript; null of a model call.' }),
    childSessionId: Nullable(Id('ses'), { description: 'Of a call of an `agent` tool: the Session that it opened.' }),
    usage: Nullable(
      Type.Object(
        {
          inputTokens: Type.Integer(),
          outputTokens: Type.Integer(),
          cachedTokens: Type.Integer(),
          costUsd: Nullable(Type.Number()),
        },
        { title: 'ModelCallUsage' },
      ),
      { description: 'Of a model call that was answered.' },
    ),
  },
  { title: 'TurnOperation' },
);
export type TurnOperation = Static<typeof TurnOperation>;

export const SessionTurn = Type.Object(
  {
    turn: Type.Integer({ description: 'Counts from 1.' }),
    agentVersion: Type.Integer({ description: 'The version of the Agent that it runs.' }),
    status: OneOf(turnStatuses, { title: 'TurnStatus' }),
    stopReason: Nullable(StopReason, { description: 'null while it is under way, and of one that was cancelled.' }),
    startedAt: Timestamp,
    endedAt: Nullable(Timestamp),
    usage: Usage,
    unavailableToolServers: Type.Array(
      Type.Object({ name: Type.String(), reason: Type.String() }, { title: 'UnavailableToolServer' }),
      {
        description:
          'The `mcp` tools of the Agent whose server could not be asked for its tools when the turn needed them, by name, and why.',
      },
    ),
    operations: Type.Array(TurnOperation, {
      description: 'In order: step by step its model call, then the tool calls, each after its approval.',
    }),
  },
  { title: 'SessionTurn' },
);
export type SessionTurn = Static<typeof SessionTurn>;

export const ListTurns = ListQuery({});
export const TurnPage = Page(SessionTurn);
