// One operation of a session in full, for people who debug it.
//
//   prompt.ts      what a model got, built again from the transcript and the agent's version
//   tool-call.ts   what was sent to a tool's server
//
// Nothing here is stored for this purpose but the head of a server's response (state/operation-trace.ts), so a session takes no more
// room because people may look at it, and what is deleted with its session is deleted from here.
import type { Input, OperationDetails, Result, SentRequest } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { readDefinition } from '../agents/read-definition.ts';
import { type ApprovalRow, selectApprovals, viewApproval } from '../approvals/approvals.ts';
import { deciderOf } from '../approvals/approvers.ts';
import { notFound } from '../lib/api-error.ts';
import type { Context } from '../lib/context.ts';
import { formatId, uuidOf } from '../lib/ids.ts';
import { shortOrTextOf } from '../lib/json/json-text.ts';
import type { StoredResponse } from '../session-rows/operation-trace.ts';
import { type Operation, operationColumnsWith } from '../session-rows/operations.ts';
import { readSession, type SessionRow } from '../session-rows/session.ts';
import { viewTurns } from '../sessions/reading/timeline.ts';
import { readModelCall } from './prompt.ts';
import { toolCallRequest } from './tool-call.ts';

/** What an operation has besides its line in the timeline. */
export type Rebuilt = Pick<OperationDetails, 'prompt' | 'response' | 'request' | 'exact' | 'notes'>;

/** 404 if the session has no such operation. */
export async function getOperation(ctx: Context, input: Input<'getOperation'>): Promise<Result<'getOperation'>> {
  const { db, organizationId } = ctx;
  const session = await readSession(db, organizationId, uuidOf('ses', input.sessionId));
  const { sessionId } = session;
  const operationId = uuidOf('op', input.operationId);
  const [found] = await db.query<Operation & { output: string | null }>(sql`
    select ${operationColumnsWith(sql`o.output::text`)} from operations o
    where o.organization_id = ${organizationId} and o.session_id = ${sessionId} and o.operation_id = ${operationId}`);
  if (!found) throw notFound('operation');
  const row: Operation = { ...found, output: found.output === null ? null : shortOrTextOf(found.output) };
  const [turns, definition, approval] = await Promise.all([
    viewTurns(ctx, session, [row.turn]),
    readVersion(ctx, session, row).then(async ({ version }) =>
      readDefinition(db, organizationId, session.agentId, version),
    ),
    readApproval(ctx, row),
  ]);
  const turn = turns.get(row.turn)!;
  const line = turn.operations.find((one) => one.kind === row.kind && one.operationId === input.operationId)!;
  const rebuilt: Rebuilt =
    row.kind === 'tool'
      ? toolRebuilt(toolCallRequest(session, definition, row))
      : await readModelCall(ctx, session, definition, row, turn);
  return {
    operation: {
      ...line,
      sessionId: formatId('ses', sessionId),
      turn: row.turn,
      agentVersion: turn.agentVersion,
      ...rebuilt,
      input: row.kind === 'tool' ? (row.input ?? null) : null,
      output: row.kind === 'tool' ? (row.output ?? null) : null,
      received: row.trace?.response ? viewResponse(row.trace.response) : null,
      approval,
    },
  };
}

/** The version of the agent that the step ran: a turn that was retried may run another from then on. */
async function readVersion(
  { db, organizationId }: Context,
  { sessionId }: SessionRow,
  { turn, step }: Operation,
): Promise<{ version: number }> {
  const [found] = await db.query<{ version: number }>(sql`
    select o.agent_version as version from operations o
    where o.organization_id = ${organizationId} and o.session_id = ${sessionId} and o.turn = ${turn}
      and o.agent_version is not null
    order by (o.step <= ${step}) desc, case when o.step <= ${step} then -o.step else o.step end limit 1`);
  return found!;
}

async function readApproval(ctx: Context, { kind, operationId }: Operation): Promise<OperationDetails['approval']> {
  if (kind !== 'tool') return null;
  const [row] = await ctx.db.query<ApprovalRow>(sql`
    ${selectApprovals()} where organization_id = ${ctx.organizationId} and operation_id = ${operationId}`);
  return row ? viewApproval(row, deciderOf(ctx)) : null;
}

function toolRebuilt({ request, notes }: { request: SentRequest | null; notes: string[] }): Rebuilt {
  return { prompt: null, response: null, request, exact: notes.length === 0, notes };
}

function viewResponse({ status, headers, bytes, body }: StoredResponse): OperationDetails['received'] {
  return { status, headers: headers.map(([name, value]) => ({ name, value })), bytes, body: body ?? null };
}
