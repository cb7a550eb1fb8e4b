// Approvals (api.md section 5): an effectful operation waits for a person. The decision is one conditional update, so the first
// one wins whatever arrives at the same moment on whichever node.
import type { Approval, Input, Result } from '@signalbox/contract';
import sql, { empty, type Sql } from 'sql-template-tag';
import type { Queryable, Tx } from '../db/db.ts';
import { recordEvent } from '../events/record.ts';
import type { NewChunk } from '../journal/segment.ts';
import { ApiError, notFound } from '../lib/api-error.ts';
import { type Context, inTransaction } from '../lib/context.ts';
import { formatId, uuidOf } from '../lib/ids.ts';
import { pageOf, pageRequest } from '../lib/page.ts';
import { awaitedCame } from '../sessions/awaited.ts';
import { toolCallIdOf } from '../sessions/operations.ts';
import { lockSession, type SessionRow } from '../sessions/session.ts';

interface Row {
  operationId: string;
  sessionId: string;
  agentId: string;
  environment: string;
  name: string;
  input: unknown;
  status: Approval['status'];
  reason: string | null;
  resolvedBy: Approval['resolvedBy'];
  requestedAt: Date;
  resolvedAt: Date | null;
  expiresAt: Date | null;
}

/** What a new approval is about. */
export type ApprovalRequest = Pick<Row, 'operationId' | 'name' | 'input'>;

/** Over all Sessions, oldest first. */
export async function listApprovals(ctx: Context, input: Input<'listApprovals'>): Promise<Result<'listApprovals'>> {
  const request = pageRequest(`approvals:${ctx.organizationId}`, input);
  const rows = await ctx.db.query<Row>(sql`
    ${selectApprovals()} where organization_id = ${ctx.organizationId}
      ${request.after === undefined ? empty : sql`and operation_id > ${request.after}`}
      ${input.status === undefined ? empty : sql`and status = ${input.status}`}
      ${input.environment === undefined ? empty : sql`and environment = ${input.environment}`}
      ${input.sessionId === undefined ? empty : sql`and session_id = ${uuidOf('ses', input.sessionId)}`}
    order by operation_id limit ${request.limit + 1}`);
  return pageOf(request, rows, (row) => row.operationId, view);
}

export async function getApproval(ctx: Context, input: Input<'getApproval'>): Promise<Result<'getApproval'>> {
  return { approval: view(await readApproval(ctx.db, ctx.organizationId, uuidOf('op', input.operationId))) };
}

/** The same decision again answers what was first recorded; another is 409 `approval_already_resolved`. */
export async function resolveApproval(
  ctx: Context,
  input: Input<'resolveApproval'>,
): Promise<Result<'resolveApproval'>> {
  const { organizationId } = ctx;
  return inTransaction(ctx, async (tx) => {
    const { sessionId, operationId } = await readApproval(tx, organizationId, uuidOf('op', input.operationId));
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
        resolved_by = ${JSON.stringify(resolvedBy)}, resolved_at = ${now}
      where organization_id = ${organizationId} and operation_id = ${operationId} and status = 'pending'`);
    const row = await readApproval(tx, organizationId, operationId);
    if (decided === 0) {
      if (row.status === input.decision) return { approval: view(row) };
      throw new ApiError('approval_already_resolved', `The approval is ${row.status} already.`);
    }

    const denied = input.decision === 'denied';
    await Promise.all([
      tx.query(sql`
        update operations set status = ${denied ? 'denied' : 'ready'}, error = ${denied ? denialOf(row.reason) : null},
          finished_at = ${denied ? now : null}
        where organization_id = ${organizationId} and operation_id = ${operationId}`),
      tx.query(
        recordEvent(ctx, now, {
          type: 'approval.resolved',
          resource: { type: 'approval', id: formatId('op', operationId) },
          environment: row.environment,
          sessionId: formatId('ses', sessionId),
          changes: {
            status: ['pending', input.decision],
            ...(input.onBehalfOf !== undefined && { onBehalfOf: [null, input.onBehalfOf] }),
          },
        }),
      ),
    ]);
    const shown = resolvedChunk(operationId, input.decision, row.reason);
    await awaitedCame(tx, ctx, session, shown, {
      kind: 'approval',
      operationId,
      decision: input.decision,
      ...(row.reason !== null && { reason: row.reason }),
    });
    return { approval: view(row) };
  });
}

/** The chunk that says how an approval was resolved. */
export function resolvedChunk(
  operationId: string,
  decision: 'approved' | 'denied' | 'cancelled',
  reason: string | null,
): NewChunk {
  return {
    type: 'approval.resolved',
    operationId: formatId('op', operationId),
    decision,
    ...(reason !== null && { reason }),
  };
}

/** What the model is told of a denied call. */
function denialOf(reason: string | null): string {
  return reason === null ? 'A person denied this call.' : `A person denied this call: ${reason}`;
}

/** What stores a request and what announces it, for one transaction: nobody hears of an id that is not stored. */
export function requestApproval(
  session: SessionRow,
  request: ApprovalRequest,
  now: Date,
): { statement: Sql; chunk: NewChunk } {
  const { organizationId, sessionId, agentId, environment } = session;
  const { operationId, name, input } = request;
  return {
    statement: sql`
      insert into approvals (organization_id, operation_id, session_id, agent_id, environment, name, input, status,
        requested_at)
      values (${organizationId}, ${operationId}, ${sessionId}, ${agentId}, ${environment}, ${name},
        ${JSON.stringify(input)}, 'pending', ${now})`,
    chunk: {
      type: 'approval.requested',
      operationId: formatId('op', operationId),
      name,
      input,
      toolCallId: toolCallIdOf(request),
      expiresAt: null,
    },
  };
}

/** Cancels what is pending in a Session, and gives the chunks that say so. */
export async function cancelApprovals(tx: Tx, session: SessionRow, now: Date): Promise<NewChunk[]> {
  const rows = await tx.query<{ operationId: string }>(sql`
    update approvals as a set status = 'cancelled', resolved_at = ${now}
    where a.organization_id = ${session.organizationId} and a.session_id = ${session.sessionId} and a.status = 'pending'
    returning a.operation_id as "operationId"`);
  return rows
    .map(({ operationId }) => operationId)
    .sort()
    .map((operationId) => resolvedChunk(operationId, 'cancelled', null));
}

async function readApproval(db: Queryable, organizationId: string, operationId: string): Promise<Row> {
  const [row] = await db.query<Row>(sql`
    ${selectApprovals()} where organization_id = ${organizationId} and operation_id = ${operationId}`);
  if (!row) throw notFound('approval');
  return row;
}

function selectApprovals(): Sql {
  return sql`
    select operation_id as "operationId", session_id as "sessionId", agent_id as "agentId", environment, name, input,
      status, reason, resolved_by as "resolvedBy", requested_at as "requestedAt", resolved_at as "resolvedAt",
      expires_at as "expiresAt"
    from approvals`;
}

function view(row: Row): Approval {
  return {
    operationId: formatId('op', row.operationId),
    sessionId: formatId('ses', row.sessionId),
    agentId: formatId('agt', row.agentId),
    environment: row.environment,
    name: row.name,
    input: row.input,
    editedInput: null,
    status: row.status,
    reason: row.reason,
    resolvedBy: row.resolvedBy,
    requestedAt: row.requestedAt.toISOString(),
    resolvedAt: row.resolvedAt?.toISOString() ?? null,
    expiresAt: row.expiresAt?.toISOString() ?? null,
  };
}
