// Retrying a turn that failed.
//
// The turn keeps its number, its journal continues after its `turn.completed`, and its operations stay as they are. A new model call
// with the next step follows and gets the results of all calls before it. A call that has a result, or whose outcome is unknown,
// does not run again, unless the model requests it once more.
//
// A provider may refuse a request because of one file, message or tool that each later request has as well. So a retry can leave it out.
import { type Input, type Result, type RetryWithout, retryWithoutForToken } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { nextVersion } from '../agents/agents.ts';
import { recordEvent } from '../events/record.ts';
import type { Patch } from '../journal/append.ts';
import { ApiError, invalidField } from '../lib/api-error.ts';
import { type Context, inTransaction } from '../lib/context.ts';
import { newUuid, uuidOf } from '../lib/ids.ts';
import { type LeftOutColumn, viewLeftOut } from '../session-rows/left-out.ts';
import {
  insertOperation,
  newCompaction,
  newModelCall,
  type Operation,
  readOperations,
} from '../session-rows/operations.ts';
import { lockSession, requireOpen, type SessionRow, sessionEvent, viewSession } from '../session-rows/session.ts';
import { insertEntry, type TranscriptEntry } from '../session-rows/transcript.ts';
import { callsOf } from '../turn/calls.ts';
import { running, runOnIdle, runPatch } from './begin-turn.ts';
import { requirePrice } from './budget.ts';
import { requireKnown } from './known-parts.ts';

/**
 * Continues the last turn, which failed. Its time limit starts anew. It runs the version of the agent that a new turn would run,
 * because a corrected agent is the usual reason to retry. `without`: what models do not get from then on;
 * 400 for what the conversation or the agent does not have. 409 `session_ended`, `turn_not_failed`, `agent_archived`, 422 `budget_invalid`.
 */
export async function retrySession(ctx: Context, input: Input<'retrySession'>): Promise<Result<'retrySession'>> {
  return inTransaction(ctx, async (tx, ctx) => {
    const row = await lockSession(tx, ctx.organizationId, uuidOf('ses', input.sessionId));
    requireOpen(row);
    requireFailed(row);
    const { organizationId, sessionId, agentId, turn } = row;
    const version = await nextVersion(tx, row);
    await requirePrice(ctx, tx, { organizationId, agentId, version }, row.budget);
    const [operations, [last]] = await Promise.all([
      readOperations(tx, organizationId, sessionId, turn),
      tx.query<Pick<TranscriptEntry, 'position'>>(sql`
        select position from messages
        where organization_id = ${organizationId} and session_id = ${sessionId} and turn = ${turn}
        order by position desc limit 1`),
    ]);
    const now = ctx.clock.now();
    const items = [running];
    const step = Math.max(...operations.map((operation) => operation.step)) + 1;
    // A turn without a model call was to compact the session (compact.ts).
    const isCompaction = operations.every(({ kind }) => kind !== 'model');
    const fromSeq = row.nextSeq + items.length;
    const next = isCompaction ? newCompaction(turn, step, operations) : newModelCall(turn, step, fromSeq);
    const operation = { ...next, fromSeq, agentVersion: version };
    if (ctx.token) requireOfError(row, input.without);
    const without = await requireKnown(tx, row, version, input.without);
    const leftOut = without ? [...(row.leftOut ?? []), { turn, step, ...without }] : row.leftOut;
    const traceParent = ctx.traceParent ?? row.traceParent;
    const retried = {
      turn,
      run: { turn, items },
      patch: [...runPatch(version, traceParent, now), ...(without ? leftOutPatch(leftOut) : [])],
      statements: [
        ...(isRejected(operations) ? [insertEntry(row, rejection(row, last!.position + 1, now))] : []),
        insertOperation(row, operation, now),
        recordEvent(ctx, now, {
          type: 'session.retried',
          ...sessionEvent(row),
          changes: {
            turn: [null, turn],
            error: [row.error?.code ?? null, null],
            ...(without && { leftOut: [viewLeftOut(row.leftOut), viewLeftOut(leftOut)] }),
          },
        }),
      ],
      traceParent,
      agentVersion: version,
      operations: [...operations, operation],
    };
    const begun = without ? { ...row, leftOut, reportedTokens: null } : row;
    return { session: viewSession(await runOnIdle(tx, ctx, begun, retried, now)) };
  });
}

function requireFailed({ status, stopReason }: SessionRow): void {
  if (status === 'idle' && stopReason === 'error') return;
  const why =
    status === 'idle'
      ? 'Its last turn did not fail. Send a message to start another turn.'
      : 'A turn is in progress. Only the last turn can be retried, after it has failed.';
  throw new ApiError('turn_not_failed', `The session is ${status}. ${why}`);
}

/** An end user decides only about what the provider refuses of the conversation, not about what the agent is and has been sent. */
function requireOfError({ error }: SessionRow, without: RetryWithout = {}): void {
  const allowed = (error && retryWithoutForToken(error)) ?? {};
  for (const field of ['fileIds', 'messageIds', 'tools'] as const) {
    const at = without[field]?.findIndex((name) => !allowed[field]?.includes(name)) ?? -1;
    if (at < 0) continue;
    const why = 'is not in `error.retryWithout`, and a session token can leave out nothing else';
    throw invalidField(`without.${field}[${at}]`, why);
  }
}

function leftOutPatch(leftOut: LeftOutColumn): Patch {
  // How long the last call was says nothing about a call without something of it.
  return [sql`left_out = ${JSON.stringify(leftOut)}`, sql`context_tokens = null`];
}

/** Whether the turn failed because of a response that was complete. */
function isRejected(operations: readonly Operation[]): boolean {
  const last = operations.findLast(({ kind }) => kind === 'model');
  return last?.status === 'succeeded' && callsOf(operations, last.step).length === 0;
}

/** Tells the model why its response was rejected. */
function rejection({ turn, error }: SessionRow, position: number, createdAt: Date): TranscriptEntry {
  const text = `The turn failed with this response: ${error?.message}\nRespond again.`;
  return { turn, position, messageId: newUuid(), role: 'user', content: [{ type: 'text', text }], createdAt };
}
