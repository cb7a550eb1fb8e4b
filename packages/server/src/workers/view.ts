// A worker turn as the API shows it: all that a worker needs to run the step.
import type { CallOutcome, PendingCall, WorkerTurn } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { readDefinition } from '../agents/agents.ts';
import { formatCursor } from '../journal/cursor.ts';
import type { Context } from '../lib/context.ts';
import { formatId } from '../lib/ids.ts';
import { isOfSource, transcriptSources } from '../sessions/state/inherited.ts';
import { isFinished, type Operation, readOperations, toolCallIdOf } from '../sessions/state/operations.ts';
import type { Offer } from '../sessions/state/submission.ts';
import { type TranscriptEntry, viewEntry } from '../sessions/state/transcript.ts';
import { type ClaimedSession, turnLost } from './claims.ts';

/** 409 `turn_lost` if the claim was lost in the meantime. */
export async function viewWorkerTurn(ctx: Context, row: ClaimedSession): Promise<WorkerTurn> {
  const { organizationId, sessionId, agentId, agentVersion, turn, nodeId } = row;
  const [operations, entries, definition, [lease]] = await Promise.all([
    readOperations(ctx.db, organizationId, sessionId, turn),
    ctx.db.query<TranscriptEntry>(sql`
      select m.turn, m.position, m.message_id as "messageId", m.role, m.content, m.created_at as "createdAt"
      from (${transcriptSources(row)}) s
      cross join lateral (
        select * from messages m where m.organization_id = ${organizationId} and ${isOfSource} offset 0) m
      order by m.turn, m.position`),
    readDefinition(ctx.db, organizationId, agentId, agentVersion!),
    ctx.db.query<{ expiresAt: Date }>(sql`
      select lease_expires_at as "expiresAt" from nodes where node_id = ${nodeId}`),
  ]);
  if (!lease) throw turnLost();
  const modelCall = operations.findLast(({ kind }) => kind === 'model');
  if (!modelCall) throw new Error('A session names a step that is not there');
  const { tools = [], unavailable = [] } = (modelCall.input ?? {}) as Partial<Offer>;
  const { step } = modelCall;
  return {
    workerTurnId: formatId('wtn', nodeId),
    sessionId: formatId('ses', sessionId),
    agentId: formatId('agt', agentId),
    agentVersion: agentVersion!,
    environment: row.environment,
    queue: row.queue!,
    turn,
    step,
    cursor: formatCursor({ turn, seq: row.nextSeq - 1 }),
    instructions: [definition.instructions, ...unavailable].filter((text) => text !== '').join('\n\n'),
    messages: entries.map(viewEntry),
    tools,
    pendingCalls: callsOf(operations, step)
      .filter(({ status }) => status === 'running')
      .map(viewPendingCall),
    outcomes: callsOf(operations, step - 1)
      .filter(isFinished)
      .map(viewOutcome),
    outputSchema: definition.outputSchema,
    limits: definition.limits,
    metadata: row.metadata,
    leaseExpiresAt: lease.expiresAt.toISOString(),
    deadlineAt: row.turnDeadline?.toISOString() ?? null,
  };
}

function callsOf(operations: readonly Operation[], step: number): Operation[] {
  return operations.filter((operation) => operation.kind === 'tool' && operation.step === step);
}

function viewPendingCall(call: Operation): PendingCall {
  return { toolCallId: toolCallIdOf(call), index: call.index - 1, tool: call.tool!, input: call.input };
}

function viewOutcome(call: Operation): CallOutcome {
  return {
    toolCallId: toolCallIdOf(call),
    index: call.index - 1,
    tool: call.tool!,
    status: call.status as CallOutcome['status'],
    ...(call.error === null ? { output: call.output ?? null } : { error: call.error }),
  };
}
