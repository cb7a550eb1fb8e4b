// Operations: every model call, tool call and compaction of a session, stored before it starts, with the key (session, turn, step,
// index).
import type {
  Approval,
  ApprovalProgress,
  SessionTurn,
  Tool,
  Usage,
  WaitingFor,
  WebSearchTool,
} from '@signalbox/contract';
import sql, { type Sql } from 'sql-template-tag';
import type { Queryable } from '../db/db.ts';
import type { NewChunk } from '../journal/segment.ts';
import { formatId, newUuid } from '../lib/ids.ts';
import { jsonOf } from '../lib/json/json-text.ts';
import { roundUsd } from '../usage/prices.ts';
import { rareCounts } from '../usage/rare-counts.ts';
import type { OperationTrace } from './operation-trace.ts';

/**
 * - `pending`: a model call or compaction without a response. → succeeded, failed, cancelled
 * - `awaiting_approval`: a tool call that needs a decision. → ready, denied (also if there is no decision in time), cancelled
 * - `ready`: a tool call that may start. → running, awaiting_result, awaiting_session, failed (its tool is gone), cancelled
 * - `running`: the service runs it, or a worker that claimed it. → succeeded, failed, unknown (interrupted, and it is unknown
 *   whether it took effect), cancelled, awaiting_result (the worker released it)
 * - `awaiting_result`: the integrator runs it (client tools). → succeeded, failed, cancelled, running (claimed by a worker)
 * - `awaiting_session`: a child session runs it (agent tools). → succeeded, failed, cancelled
 * - `succeeded`, `failed`, `denied`, `cancelled`, `unknown`: the end.
 */
export type OperationStatus =
  | 'pending'
  | 'awaiting_approval'
  | 'ready'
  | 'running'
  | 'awaiting_result'
  | 'awaiting_session'
  | 'succeeded'
  | 'failed'
  | 'denied'
  | 'cancelled'
  | 'unknown';

/** What a worker's calls become when it releases its claim, also those that can't be repeated: it has not run them. */
export const releasedCall = { from: 'running', to: 'awaiting_result' } as const satisfies Record<
  string,
  OperationStatus
>;

export interface Operation {
  turn: number;
  step: number;
  /**
   * 0: the step's model call; from 1 on its tool calls, in the model's order. The compactions before the model call are -1, -2 and
   * so on, in their order.
   */
  index: number;
  operationId: string;
  kind: 'model' | 'tool' | 'compaction';
  status: OperationStatus;
  tool: string | null;
  /** For a tool call: the type of its tool, `mock` if a draft mocks it; null if there is no such tool. */
  toolType: Exclude<Tool, WebSearchTool>['type'] | 'mock' | null;
  input: unknown;
  /** For a tool call: on a node that runs the turn, a long one is a `JsonText`. Undefined, or null, if it is not needed any more. */
  output: unknown;
  /** For a tool call on a node: its result is stored, and not in memory, because the model will not get it. */
  isLeftOut?: true;
  error: string | null;
  usage: PricedUsage | null;
  fromSeq: number | null;
  /** For a model call or compaction: how often it failed, and the earliest time of the next retry. */
  failures: number;
  retryAt: Date | null;
  /** For a model call whose session waits, or waited, because no model was available: since when. */
  unavailableSince: Date | null;
  /** For a model call with a response: `provider/model` of the model that gave it. */
  model: string | null;
  /** For a tool call: whether it may be repeated after an interruption. If not, its outcome is then unknown. */
  repeatable: boolean;
  /** For a call that awaits approval: when the approval expires. */
  expiresAt: Date | null;
  /** For a call of an agent tool: the child. */
  childSessionId: string | null;
  /** For a turn's first model call: the version of the agent that the turn runs. */
  agentVersion: number | null;
  /** For a turn's first model call: the MCP servers whose tools could not be listed. */
  unavailableServers: SessionTurn['unavailableToolServers'] | null;
  trace: OperationTrace | null;
}

/** The columns of an Operation, and another value in place of its output. */
export const operationColumnsWith = (output: Sql): Sql => sql`
  o.turn, o.step, o.index, o.operation_id as "operationId", o.kind, o.status, o.tool, o.tool_type as "toolType", o.input, ${output} as output,
  o.error, o.usage, o.from_seq as "fromSeq", o.failures, o.retry_at as "retryAt",
  o.unavailable_since as "unavailableSince", o.model, o.repeatable, o.expires_at as "expiresAt",
  o.child_session_id as "childSessionId", o.agent_version as "agentVersion",
  o.unavailable_servers as "unavailableServers", o.trace`;

/** The columns of an Operation. */
export const operationColumns: Sql = operationColumnsWith(sql`o.output`);

/** What a model call used. Of the input tokens, some came from the provider's cache, and others were written to it. */
export type TokenUsage = Pick<
  Usage,
  'inputTokens' | 'outputTokens' | 'cachedTokens' | 'cacheWriteTokens' | 'webSearches'
>;

/** With the cost; null if the model has no price. */
export type PricedUsage = TokenUsage & Pick<Usage, 'costUsd'>;

/** A tool call names the same operation to the integrator under another prefix. */
export function toolCallIdOf(operation: { operationId: string }): string {
  return formatId('call', operation.operationId);
}

/** The response to a model call has the id of the call, so it is known before there is a response. */
export function messageIdOf({ operationId }: Pick<Operation, 'operationId'>): string {
  return operationId;
}

/** The model call of a step, as it is stored before it starts. `fromSeq`: the first seq that its text can have. */
export function newModelCall(turn: number, step: number, fromSeq: number): Operation {
  return { ...newCallOfModel(turn, step, 0), fromSeq };
}

/** The next compaction of a step, as it is stored before it starts. It shows no text. */
export function newCompaction(turn: number, step: number, operations: readonly Operation[]): Operation {
  const before = operations.filter((operation) => operation.kind === 'compaction' && operation.step === step);
  return { ...newCallOfModel(turn, step, -1 - before.length), kind: 'compaction' };
}

function newCallOfModel(turn: number, step: number, index: number): Operation {
  return {
    turn,
    step,
    index,
    operationId: newUuid(),
    kind: 'model',
    status: 'pending',
    tool: null,
    toolType: null,
    input: null,
    output: null,
    error: null,
    usage: null,
    fromSeq: null,
    failures: 0,
    retryAt: null,
    unavailableSince: null,
    model: null,
    repeatable: false,
    expiresAt: null,
    childSessionId: null,
    agentVersion: null,
    unavailableServers: null,
    trace: null,
  };
}

export function insertOperation(
  owner: { organizationId: string; sessionId: string },
  operation: Operation,
  now: Date,
): Sql {
  return sql`
    insert into operations (organization_id, session_id, turn, step, index, operation_id, kind, status, tool,
      tool_type, input, error, from_seq, repeatable, expires_at, agent_version, created_at, finished_at)
    values (${owner.organizationId}, ${owner.sessionId}, ${operation.turn}, ${operation.step}, ${operation.index},
      ${operation.operationId}, ${operation.kind}, ${operation.status}, ${operation.tool}, ${operation.toolType},
      ${operation.input === null ? null : JSON.stringify(operation.input)}, ${operation.error}, ${operation.fromSeq},
      ${operation.repeatable}, ${operation.expiresAt}, ${operation.agentVersion}, ${now}, ${isFinished(operation) ? now : null})`;
}

/** Stores the operation; its timestamps follow from its status. */
export function updateOperation(owner: { organizationId: string }, operation: Operation, now: Date): Sql {
  const { status } = operation;
  const started = ['running', 'awaiting_result', 'awaiting_session'].includes(status);
  const finished = isFinished(operation);
  return sql`
    update operations set status = ${status}, output = ${operation.output === undefined ? null : jsonOf(operation.output)},
      error = ${operation.error}, usage = ${operation.usage && JSON.stringify(operation.usage)},
      from_seq = ${operation.fromSeq}, failures = ${operation.failures}, retry_at = ${operation.retryAt},
      unavailable_since = ${operation.unavailableSince}, model = ${operation.model},
      child_session_id = ${operation.childSessionId}, trace = ${operation.trace && JSON.stringify(operation.trace)},
      started_at = coalesce(started_at, ${started ? now : null}::timestamptz), finished_at = ${finished ? now : null}
    where organization_id = ${owner.organizationId} and operation_id = ${operation.operationId}`;
}

/** The operations of one turn, in order; of tool calls before the last two steps, without their results, which are in the transcript. */
export function readOperations(
  db: Queryable,
  organizationId: string,
  sessionId: string,
  turn: number,
): Promise<Operation[]> {
  return db.query<Operation>(sql`
    select ${operationColumnsWith(sql`case when o.kind <> 'tool' or o.step >= max(o.step) over () - 1 then o.output end`)}
    from operations o
    where organization_id = ${organizationId} and session_id = ${sessionId} and turn = ${turn}
    order by step, index`);
}

/** How chunks and messages mark a call whose result is that of a mock. */
export function mockMark({ toolType }: Pick<Operation, 'toolType'>): { mocked?: true } {
  return toolType === 'mock' ? { mocked: true } : {};
}

/** The chunk that shows how a tool call ended. */
export function resultChunk(call: Operation): Extract<NewChunk, { type: 'tool.result' }> {
  return {
    type: 'tool.result',
    toolCallId: toolCallIdOf(call),
    ...(call.error === null ? { output: call.output ?? null } : { error: call.error }),
    ...(call.status === 'unknown' && { outcomeUnknown: true }),
  };
}

/**
 * The chunks of a call that ends without having run. A call of a `client` tool has no `tool.call` then: programs run the call as
 * soon as they see that chunk, so it must never name a call that was denied.
 */
export function notRunChunks(call: Operation): NewChunk[] {
  const asked = { tool: call.tool!, input: call.input };
  const result = { ...resultChunk(call), notRun: true };
  if (call.toolType === 'client') return [{ ...result, ...asked }];
  return [{ type: 'tool.call', toolCallId: toolCallIdOf(call), ...asked, ...mockMark(call), notRun: true }, result];
}

export function isFinished({ status }: Pick<Operation, 'status'>): boolean {
  return ['succeeded', 'failed', 'denied', 'cancelled', 'unknown'].includes(status);
}

/** What a turn with these operations used. */
export function usageOf(operations: readonly Pick<Operation, 'kind' | 'usage'>[]): Usage {
  const models = operations.filter(({ kind, usage }) => kind !== 'tool' && usage !== null);
  const sum = (of: (usage: PricedUsage) => number) => models.reduce((total, { usage }) => total + of(usage!), 0);
  const isPriced = models.some(({ usage }) => usage!.costUsd !== null);
  return {
    inputTokens: sum(({ inputTokens }) => inputTokens),
    outputTokens: sum(({ outputTokens }) => outputTokens),
    cachedTokens: sum(({ cachedTokens }) => cachedTokens),
    ...rareCounts({
      cacheWriteTokens: sum(({ cacheWriteTokens = 0 }) => cacheWriteTokens),
      webSearches: sum(({ webSearches = 0 }) => webSearches),
    }),
    steps: models.length,
    toolCalls: operations.filter(({ kind }) => kind === 'tool').length,
    costUsd: isPriced ? roundUsd(sum(({ costUsd }) => costUsd ?? 0)) : null,
  };
}

/** What the session waits for when nothing else of the step can proceed; null if it waits for nothing. */
export function waitingForOf(operations: readonly Operation[]): WaitingFor | null {
  const approvals = operations.filter(({ status }) => status === 'awaiting_approval');
  const results = operations.filter(({ status }) => status === 'awaiting_result');
  const children = operations.filter(({ status }) => status === 'awaiting_session');
  const kinds = [
    ...(approvals.length > 0 ? (['approval'] as const) : []),
    ...(results.length > 0 ? (['toolResult'] as const) : []),
    ...(children.length > 0 ? (['session'] as const) : []),
  ];
  const [kind] = kinds;
  if (kind === undefined) return null;
  return {
    type: kinds.length > 1 ? 'several' : kind,
    operationIds: approvals.map(({ operationId }) => formatId('op', operationId)),
    toolCallIds: results.map(toolCallIdOf),
    sessionIds: children.map(({ childSessionId }) => formatId('ses', childSessionId!)),
    expiresAt: firstExpiry(operations)?.toISOString() ?? null,
  };
}

/** When the first pending approval expires; null if none of them does. */
export function firstExpiry(operations: readonly Operation[]): Date | null {
  const times = operations.flatMap(({ status, expiresAt }) =>
    status === 'awaiting_approval' && expiresAt ? [expiresAt.getTime()] : [],
  );
  return times.length === 0 ? null : new Date(Math.min(...times));
}

/** The chunk that says that one of several approvers has approved. */
export function decidedChunk(operationId: string, progress: ApprovalProgress): NewChunk {
  return {
    type: 'approval.decided',
    operationId: formatId('op', operationId),
    toolCallId: toolCallIdOf({ operationId }),
    decision: 'approved',
    progress,
  };
}

/** The chunk that says how an approval was resolved. */
export function resolvedChunk(
  operationId: string,
  decision: Exclude<Approval['status'], 'pending'>,
  reason: string | null,
): NewChunk {
  return {
    type: 'approval.resolved',
    operationId: formatId('op', operationId),
    toolCallId: toolCallIdOf({ operationId }),
    decision,
    ...(reason !== null && { reason }),
  };
}
