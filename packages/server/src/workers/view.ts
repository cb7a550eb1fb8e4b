// A worker turn as the API shows it: all that a worker needs to run the step.
import type { CallOutcome, Message, PendingCall, WorkerTurn } from '@signalbox/contract';
import sql from 'sql-template-tag';
import type { Definition } from '../agents/agents.ts';
import { readDefinition } from '../agents/read-definition.ts';
import { formatCursor } from '../journal/cursor.ts';
import type { Context } from '../lib/context.ts';
import { shownVersion } from '../lib/draft-version.ts';
import { formatId } from '../lib/ids.ts';
import { splitPinned, summaryText } from '../session-rows/compactions.ts';
import { type Loaded, loadTranscripts } from '../session-rows/load-transcripts.ts';
import { isFinished, type Operation, readOperations, toolCallIdOf } from '../session-rows/operations.ts';
import { viewEndUser } from '../session-rows/session.ts';
import type { Offer } from '../session-rows/submission.ts';
import { type TranscriptEntry, viewEntry } from '../session-rows/transcript.ts';
import { type ClaimedSession, turnLost } from './claims.ts';

/** A claimed step, with what it takes to run it. */
export interface ClaimedStep {
  row: ClaimedSession;
  definition: Definition;
  operations: readonly Operation[];
  modelCall: Operation;
  loaded: Loaded<unknown>;
  leaseExpiresAt: Date;
}

/** 409 `turn_lost` if the claim was lost in the meantime. */
export async function readClaimedStep(ctx: Context, row: ClaimedSession): Promise<ClaimedStep> {
  const { organizationId, sessionId, agentId, agentVersion, turn, nodeId } = row;
  const [operations, [loaded], definition, [lease]] = await Promise.all([
    readOperations(ctx.db, organizationId, sessionId, turn),
    loadTranscripts(ctx.db, [row]),
    readDefinition(ctx.db, organizationId, agentId, agentVersion!),
    ctx.db.query<{ expiresAt: Date }>(sql`
      select lease_expires_at as "expiresAt" from nodes where node_id = ${nodeId}`),
  ]);
  if (!lease) throw turnLost();
  const modelCall = operations.findLast(({ kind }) => kind === 'model');
  if (!modelCall) throw new Error('A session names a step that is not there');
  return { row, definition, operations, modelCall, loaded: loaded!, leaseExpiresAt: lease.expiresAt };
}

export function viewWorkerTurn({
  row,
  definition,
  operations,
  modelCall,
  loaded,
  leaseExpiresAt,
}: ClaimedStep): WorkerTurn {
  const { sessionId, agentId, agentVersion, turn, nodeId } = row;
  const { tools = [], unavailable = [] } = (modelCall.input ?? {}) as Partial<Offer>;
  const { step } = modelCall;
  return {
    workerTurnId: formatId('wtn', nodeId),
    sessionId: formatId('ses', sessionId),
    agentId: formatId('agt', agentId),
    agentVersion: shownVersion(agentVersion!),
    environment: row.environment,
    queue: row.queue!,
    turn,
    step,
    cursor: formatCursor({ turn, seq: row.nextSeq - 1 }),
    instructions: [definition.instructions, ...unavailable].filter((text) => text !== '').join('\n\n'),
    messages: messagesOf(loaded),
    tools,
    pendingCalls: callsOf(operations, step)
      .filter(({ status }) => status === 'running')
      .map(viewPendingCall),
    outcomes: callsOf(operations, step - 1)
      .filter(isFinished)
      .map(viewOutcome),
    outputSchema: definition.outputSchema,
    limits: definition.limits,
    showReasoning: definition.showReasoning,
    showToolInput: definition.showToolInput,
    metadata: row.metadata,
    endUser: viewEndUser(row),
    leaseExpiresAt: leaseExpiresAt.toISOString(),
    deadlineAt: row.turnDeadline?.toISOString() ?? null,
  };
}

/** As a model would get them. The summary is part of the last pinned message: it is no message of its own. */
function messagesOf({ transcript, compaction }: Loaded<unknown>): Message[] {
  if (!compaction) return transcript.map(viewForWorker);
  const { pinned, rest } = splitPinned(transcript, compaction.from);
  const text = { type: 'text' as const, text: summaryText(compaction.summary) };
  const head = pinned.map((entry, index) =>
    index === pinned.length - 1 ? { ...entry, content: [...entry.content, text] } : entry,
  );
  return [...head, ...rest].map(viewForWorker);
}

/** A program would take a call of a provider for one of the model's, which needs a result from it. */
function viewForWorker(entry: TranscriptEntry): Message {
  const content = entry.content.filter((part) => !('by' in part));
  return viewEntry(content.length === entry.content.length ? entry : { ...entry, content });
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
