// Approvals: a tool call with an effect waits until its approvers have decided.
//
//   approvers.ts   who may decide: pure
//   decisions.ts   what a decision does: pure
//   resolve.ts     a decision, under the lock of the session's row, so decisions on different nodes come one after another
//   list.ts        the list of approvals
//   context.ts     the messages before a call
import type { Approval, Approvers, Input, Result } from '@signalbox/contract';
import sql, { empty, type Sql } from 'sql-template-tag';
import type { Queryable } from '../db/db.ts';
import { type EventSource, recordEvent, systemSource } from '../events/record.ts';
import type { NewChunk } from '../journal/segment.ts';
import { notFound } from '../lib/api-error.ts';
import type { Context } from '../lib/context.ts';
import { formatId, uuidOf } from '../lib/ids.ts';
import { resolvedChunk, toolCallIdOf } from '../session-rows/operations.ts';
import { type SessionRow, sessionEvent } from '../session-rows/session.ts';
import { type Decider, deciderOf, mayDecide } from './approvers.ts';
import { contextIf } from './context.ts';
import { progressOf, type StoredDecision } from './decisions.ts';

export interface ApprovalRow {
  operationId: string;
  sessionId: string;
  agentId: string;
  environment: string;
  name: string;
  input: unknown;
  inputSchema: Record<string, unknown>;
  editedInput: unknown;
  /** Whether approving it lets later calls of the tool run unasked. */
  once: boolean;
  /** Null: the default. */
  by: Approvers | null;
  /** Null if the approvers do not exclude them. */
  requesters: string[] | null;
  decisions: StoredDecision[];
  status: Approval['status'];
  reason: string | null;
  resolvedBy: Approval['resolvedBy'];
  requestedAt: Date;
  resolvedAt: Date | null;
  expiresAt: Date | null;
  /** If the request asked for it. */
  context?: Approval['context'];
}

/** What a new approval is about. */
export type ApprovalRequest = Pick<
  ApprovalRow,
  'operationId' | 'name' | 'input' | 'inputSchema' | 'once' | 'by' | 'expiresAt'
>;

export async function getApproval(ctx: Context, input: Input<'getApproval'>): Promise<Result<'getApproval'>> {
  const { organizationId } = ctx;
  const more = contextIf(organizationId, input);
  const row = await readApproval(ctx.db, organizationId, uuidOf('op', input.operationId), more);
  return { approval: viewApproval(row, deciderOf(ctx)) };
}

/** The statements that store a request and the chunk that announces it, for one transaction: no reader sees an id that is not stored. */
export function requestApproval(
  session: SessionRow,
  request: ApprovalRequest,
  now: Date,
): { statement: Sql; chunk: NewChunk } {
  const { organizationId, sessionId, agentId, environment } = session;
  const { operationId, name, input, inputSchema, once, by, expiresAt } = request;
  return {
    statement: sql`
      insert into approvals (organization_id, operation_id, session_id, agent_id, environment, name, input,
        input_schema, once, approvers, requesters, status, requested_at, expires_at)
      select s.organization_id, ${operationId}, s.session_id, ${agentId}, ${environment}, ${name},
        ${JSON.stringify(input)}, ${JSON.stringify(inputSchema)}, ${once}, ${by && JSON.stringify(by)},
        case when ${by?.notRequester ?? false} then s.requesters end, 'pending', ${now}, ${expiresAt}
      from sessions s where s.organization_id = ${organizationId} and s.session_id = ${sessionId}`,
    chunk: {
      type: 'approval.requested',
      operationId: formatId('op', operationId),
      name,
      input,
      toolCallId: toolCallIdOf(request),
      expiresAt: expiresAt?.toISOString() ?? null,
      ...(by && { by }),
    },
  };
}

/** The result of a call whose approval expired, for the model. */
export const EXPIRED = 'This call was not approved in time, so it did not run.';

/** Marks approvals as expired, in the transaction of the session's writer. Returns the statements and the chunks that show it. */
export function expiredApprovals(session: SessionRow, operationIds: readonly string[], now: Date) {
  const { organizationId } = session;
  const source = systemSource(organizationId);
  return undecided(session, operationIds, 'expired', source, now);
}

/** Marks approvals that are not needed any more, in the same way. */
export function cancelledApprovals(
  session: SessionRow,
  operationIds: readonly string[],
  source: EventSource,
  now: Date,
) {
  return undecided(session, operationIds, 'cancelled', source, now);
}

function undecided(
  session: SessionRow,
  operationIds: readonly string[],
  status: 'expired' | 'cancelled',
  source: EventSource,
  now: Date,
): { statements: Sql[]; chunks: NewChunk[] } {
  if (operationIds.length === 0) return { statements: [], chunks: [] };
  return {
    statements: [
      sql`
        update approvals set status = ${status}, resolved_at = ${now}
        where organization_id = ${session.organizationId} and operation_id = any(${[...operationIds]}::uuid[])
          and status = 'pending'`,
      ...operationIds.map((operationId) => recordEvent(source, now, resolvedEvent(session, operationId, status))),
    ],
    chunks: operationIds.map((operationId) => resolvedChunk(operationId, status, null)),
  };
}

/** How events of the event log name an approval. */
export function approvalEvent(of: Pick<ApprovalRow, 'operationId' | 'environment' | 'sessionId' | 'agentId'>) {
  return { ...sessionEvent(of), resource: { type: 'approval', id: formatId('op', of.operationId) } };
}

function resolvedEvent(session: SessionRow, operationId: string, status: string) {
  return {
    type: 'approval.resolved' as const,
    ...approvalEvent({ ...session, operationId }),
    changes: { status: ['pending', status] as [string, string] },
  };
}

export async function readApproval(
  db: Queryable,
  organizationId: string,
  operationId: string,
  more?: Sql,
): Promise<ApprovalRow> {
  const [row] = await db.query<ApprovalRow>(sql`
    ${selectApprovals({ more })} where a.organization_id = ${organizationId} and a.operation_id = ${operationId}`);
  if (!row) throw notFound('approval');
  return row;
}

/** From a table or a subquery, under the alias a; `more`: further columns. */
export function selectApprovals({
  from = sql`approvals`,
  more = empty,
}: {
  from?: Sql;
  more?: Sql | undefined;
} = {}): Sql {
  return sql`
    select a.operation_id as "operationId", a.session_id as "sessionId", a.agent_id as "agentId", a.environment, a.name, a.input,
      a.input_schema as "inputSchema", a.edited_input as "editedInput", a.once, a.approvers as by, a.requesters, a.decisions, a.status, a.reason, a.resolved_by as "resolvedBy", a.requested_at as "requestedAt", a.resolved_at as "resolvedAt",
      a.expires_at as "expiresAt" ${more}
    from ${from} a`;
}

export function viewApproval(row: ApprovalRow, caller: Decider): Approval {
  return {
    operationId: formatId('op', row.operationId),
    toolCallId: toolCallIdOf(row),
    sessionId: formatId('ses', row.sessionId),
    agentId: formatId('agt', row.agentId),
    environment: row.environment,
    name: row.name,
    input: row.input,
    allowsSession: row.once,
    editedInput: row.editedInput,
    status: row.status,
    reason: row.reason,
    by: row.by,
    decisions: decisionsOf(row).map(({ deciders: _, ...shown }) => shown),
    progress: progressOf({ ...row, decisions: decisionsOf(row) }),
    refusal: row.status === 'pending' ? mayDecide(row.by, caller, row) : null,
    resolvedBy: row.resolvedBy,
    requestedAt: row.requestedAt.toISOString(),
    resolvedAt: row.resolvedAt?.toISOString() ?? null,
    expiresAt: row.expiresAt?.toISOString() ?? null,
    ...(row.context && { context: row.context }),
  };
}

/** An approval that an earlier release decided has its one decision in other columns. */
function decisionsOf({
  decisions,
  status,
  resolvedBy,
  resolvedAt,
  reason,
  editedInput,
}: ApprovalRow): StoredDecision[] {
  if (decisions.length > 0 || (status !== 'approved' && status !== 'denied')) return decisions;
  const edited = editedInput === null ? {} : { input: editedInput };
  const at = resolvedAt!.toISOString();
  return [{ decision: status, actor: resolvedBy!, at, reason, ...edited, scope: 'once', deciders: [] }];
}
