// Approvals: a tool call with an effect waits for an approver's decision. The decision is one conditional update, so if several
// arrive at the same time, on any nodes, the first wins.
import type { Approval, Input, Result } from '@signalbox/contract';
import sql, { empty, type Sql } from 'sql-template-tag';
import type { Queryable } from '../db/db.ts';
import { type EventSource, recordEvent, systemSource, withoutValues } from '../events/record.ts';
import type { NewChunk } from '../journal/segment.ts';
import { ApiError, invalidField, notFound } from '../lib/api-error.ts';
import { type Context, inTransaction } from '../lib/context.ts';
import { formatId, uuidOf } from '../lib/ids.ts';
import { inputErrors } from '../runtime/schemas/schemas.ts';
import { recordAwaitedResult } from '../sessions/state/awaited-result.ts';
import {
  notRunChunks,
  type Operation,
  operationColumns,
  resolvedChunk,
  toolCallIdOf,
} from '../sessions/state/operations.ts';
import { lockSession, type SessionRow } from '../sessions/state/session.ts';

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
  status: Approval['status'];
  reason: string | null;
  resolvedBy: Approval['resolvedBy'];
  requestedAt: Date;
  resolvedAt: Date | null;
  expiresAt: Date | null;
}

/** What a new approval is about. */
export type ApprovalRequest = Pick<
  ApprovalRow,
  'operationId' | 'name' | 'input' | 'inputSchema' | 'once' | 'expiresAt'
>;

export async function getApproval(ctx: Context, input: Input<'getApproval'>): Promise<Result<'getApproval'>> {
  return { approval: viewApproval(await readApproval(ctx.db, ctx.organizationId, uuidOf('op', input.operationId))) };
}

/** 400 if an edited `input` does not match the tool's schema. */
export async function checkEditedInput(ctx: Context, { operationId, input }: Input<'resolveApproval'>): Promise<void> {
  if (input === undefined) return;
  const { inputSchema: schema } = await readApproval(ctx.db, ctx.organizationId, uuidOf('op', operationId));
  const [wrong] = await inputErrors(ctx.organizationId, [{ schema, value: input }]);
  if (wrong) throw invalidField('input', `does not match the tool's schema: ${wrong}`);
}

/**
 * Repeating a decision returns what was first recorded; another is 409 `approval_already_resolved`, as is any after the
 * deadline. An edited `input` was judged by `checkEditedInput`.
 */
export async function resolveApproval(
  ctx: Context,
  input: Input<'resolveApproval'>,
): Promise<Result<'resolveApproval'>> {
  // The approvers are people and keys.
  if (ctx.token) throw new ApiError('not_an_approver', 'End users may not decide this.');
  const { organizationId } = ctx;
  const denied = input.decision === 'denied';
  const isEdited = input.input !== undefined;
  if (denied && isEdited) throw invalidField('input', 'is only allowed with the decision approved');
  if (denied && input.scope === 'session') throw invalidField('scope', 'is only allowed with the decision approved');
  return inTransaction(ctx, async (tx, ctx) => {
    const asked = await readApproval(tx, organizationId, uuidOf('op', input.operationId));
    const { sessionId, operationId, name } = asked;
    const session = await lockSession(tx, organizationId, sessionId);
    const now = ctx.clock.now();
    const resolvedBy: Approval['resolvedBy'] = {
      type: ctx.actor.type === 'user' ? 'user' : 'api_key',
      id: ctx.actor.id,
      name: ctx.actor.name,
      onBehalfOf: input.onBehalfOf ?? null,
    };
    const decided = await tx.execute(sql`
      update approvals set status = ${input.decision}, reason = ${input.reason ?? null},
        edited_input = ${isEdited ? JSON.stringify(input.input) : null},
        resolved_by = ${JSON.stringify(resolvedBy)}, resolved_at = ${now}
      where organization_id = ${organizationId} and operation_id = ${operationId} and status = 'pending'
        and (expires_at is null or expires_at > ${now})`);
    const row = await readApproval(tx, organizationId, operationId);
    if (decided === 0) {
      if (row.status === input.decision) return { approval: viewApproval(row) };
      // If it is still pending, its deadline has passed: the node runtime marks it as expired soon.
      const status = row.status === 'pending' ? 'expired' : row.status;
      throw new ApiError('approval_already_resolved', `The approval is already ${status}.`);
    }

    const grants = !denied && (row.once || input.scope === 'session') && !session.grantedTools.includes(name);
    if (grants) session.grantedTools = [...session.grantedTools, name];
    const [[call]] = await Promise.all([
      tx.query<Operation>(sql`
        update operations o set status = ${denied ? 'denied' : 'ready'}, error = ${denied ? denialOf(row.reason) : null},
          ${isEdited ? sql`input = ${JSON.stringify(input.input)},` : empty} finished_at = ${denied ? now : null}
        where organization_id = ${organizationId} and operation_id = ${operationId} returning ${operationColumns}`),
      ...(grants
        ? [
            tx.query(sql`
              update sessions set granted_tools = ${session.grantedTools}
              where organization_id = ${organizationId} and session_id = ${sessionId}`),
          ]
        : []),
      tx.query(
        recordEvent(ctx, now, {
          type: 'approval.resolved',
          resource: { type: 'approval', id: formatId('op', operationId) },
          environment: row.environment,
          sessionId: formatId('ses', sessionId),
          changes: {
            status: ['pending', input.decision],
            ...(isEdited &&
              withoutValues({ input: [row.input, input.input] }, session.endUserId === null ? [] : ['input'])),
            ...(input.scope === 'session' && { scope: ['once', 'session'] }),
            ...(input.onBehalfOf !== undefined && { onBehalfOf: [null, input.onBehalfOf] }),
          },
        }),
      ),
    ]);
    const resolved = resolvedChunk(operationId, input.decision, row.reason);
    await recordAwaitedResult(tx, ctx, session, denied ? [resolved, ...notRunChunks(call!)] : [resolved], {
      kind: 'approval',
      operationId,
      decision: input.decision,
      ...(row.reason !== null && { reason: row.reason }),
    });
    return { approval: viewApproval(row) };
  });
}

/** The result of a denied call, for the model. */
function denialOf(reason: string | null): string {
  return reason === null ? 'The approver denied this call.' : `The approver denied this call: ${reason}`;
}

/** The statements that store a request and the chunk that announces it, for one transaction: no reader sees an id that is not stored. */
export function requestApproval(
  session: SessionRow,
  request: ApprovalRequest,
  now: Date,
): { statement: Sql; chunk: NewChunk } {
  const { organizationId, sessionId, agentId, environment } = session;
  const { operationId, name, input, inputSchema, once, expiresAt } = request;
  return {
    statement: sql`
      insert into approvals (organization_id, operation_id, session_id, agent_id, environment, name, input,
        input_schema, once, status, requested_at, expires_at)
      values (${organizationId}, ${operationId}, ${sessionId}, ${agentId}, ${environment}, ${name},
        ${JSON.stringify(input)}, ${JSON.stringify(inputSchema)}, ${once}, 'pending', ${now}, ${expiresAt})`,
    chunk: {
      type: 'approval.requested',
      operationId: formatId('op', operationId),
      name,
      input,
      toolCallId: toolCallIdOf(request),
      expiresAt: expiresAt?.toISOString() ?? null,
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

function resolvedEvent(session: Pick<SessionRow, 'environment' | 'sessionId'>, operationId: string, status: string) {
  return {
    type: 'approval.resolved' as const,
    resource: { type: 'approval', id: formatId('op', operationId) },
    environment: session.environment,
    sessionId: formatId('ses', session.sessionId),
    changes: { status: ['pending', status] as [string, string] },
  };
}

async function readApproval(db: Queryable, organizationId: string, operationId: string): Promise<ApprovalRow> {
  const [row] = await db.query<ApprovalRow>(sql`
    ${selectApprovals()} where organization_id = ${organizationId} and operation_id = ${operationId}`);
  if (!row) throw notFound('approval');
  return row;
}

/** From a table or a subquery, under the alias a. */
export function selectApprovals(from: Sql = sql`approvals`): Sql {
  return sql`
    select a.operation_id as "operationId", a.session_id as "sessionId", a.agent_id as "agentId", a.environment, a.name, a.input,
      a.input_schema as "inputSchema", a.edited_input as "editedInput", a.once, a.status, a.reason, a.resolved_by as "resolvedBy", a.requested_at as "requestedAt", a.resolved_at as "resolvedAt",
      a.expires_at as "expiresAt"
    from ${from} a`;
}

export function viewApproval(row: ApprovalRow): Approval {
  return {
    operationId: formatId('op', row.operationId),
    sessionId: formatId('ses', row.sessionId),
    agentId: formatId('agt', row.agentId),
    environment: row.environment,
    name: row.name,
    input: row.input,
    allowsSession: row.once,
    editedInput: row.editedInput,
    status: row.status,
    reason: row.reason,
    by: null,
    decisions: decisionsOf(row),
    progress: { approved: row.status === 'approved' ? 1 : 0, required: 1 },
    refusal: null,
    resolvedBy: row.resolvedBy,
    requestedAt: row.requestedAt.toISOString(),
    resolvedAt: row.resolvedAt?.toISOString() ?? null,
    expiresAt: row.expiresAt?.toISOString() ?? null,
  };
}

function decisionsOf({ status, resolvedBy, resolvedAt, reason, editedInput }: ApprovalRow): Approval['decisions'] {
  if ((status !== 'approved' && status !== 'denied') || !resolvedBy || !resolvedAt) return [];
  const input = editedInput === null ? {} : { input: editedInput };
  return [{ decision: status, actor: resolvedBy, at: resolvedAt.toISOString(), reason, ...input, scope: 'once' }];
}
