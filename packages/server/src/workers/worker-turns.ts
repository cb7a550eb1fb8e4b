// Worker turns: a step that a worker runs, a program of the integrator's. It takes the place of the model, or runs client tools.
//
//   offered    The session row has a queue and no `node_id`. The step's model call is `pending`, or calls of `client` tools are
//              `awaiting_result`. → claimed
//   claimed    `node_id` is the worker turn's id, which has a lease in `nodes`. The client calls are `running`. → submitted
//              (`complete`), offered again (`release`), lost (the lease expired, or the turn was stopped or timed out)
//   submitted  The submission is stored in the step's operations, and a node continues the turn.
//
// The turn machine does not distinguish workers from models: it reads a submission (session-rows/submission.ts) as it reads a
// model's response. Tool calls, approvals, budgets and the end of a turn are the same for both.
import { createHash } from 'node:crypto';
import type { Input, Result, WorkerDelta, WorkerTurn } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { modelsOf, readDefinition } from '../agents/read-definition.ts';
import { createSpending } from '../budgets/session-spending.ts';
import type { Tx } from '../db/db.ts';
import { lockEnvironment } from '../environments/environments.ts';
import { commitTransition, Fenced, writeTransition } from '../journal/append.ts';
import { formatCursor, parseCursor } from '../journal/cursor.ts';
import { readSegments } from '../journal/read.ts';
import { chunksOf, type Item } from '../journal/segment.ts';
import { ApiError, invalidField } from '../lib/api-error.ts';
import { type Context, inTransaction, type PoolContext } from '../lib/context.ts';
import { uuidOf } from '../lib/ids.ts';
import { isSameJson } from '../lib/json/same-json.ts';
import { sourceOf } from '../models/response/ran.ts';
import {
  type Operation,
  readOperations,
  resultChunk,
  toolCallIdOf,
  updateOperation,
} from '../session-rows/operations.ts';
import { addRequester } from '../session-rows/requesters.ts';
import { SHOWN_TEXT_MAX_CHARACTERS } from '../session-rows/shown-text.ts';
import { callOfWorker, type Submission, storeSubmission } from '../session-rows/submission.ts';
import { modelName, roundUsd } from '../usage/prices.ts';
import { rareCounts } from '../usage/rare-counts.ts';
import {
  type AppendedSession,
  type ClaimedSession,
  deleteClaimLease,
  endClaimPatch,
  lockClaimedSession,
  readClaimedSession,
  releaseClaim,
  releaseLockedClaim,
  revokeClaim,
  turnLost,
} from './claims.ts';
import { type ClaimRequest, findEarlierClaim, LEASE_SECONDS } from './offers.ts';
import { readClaimedStep, viewWorkerTurn } from './view.ts';

const DEFAULT_WAIT_SECONDS = 20;
/** Between a step that a budget refuses and the next claim: another node may know what was spent so much later (budgets/stops.ts). */
const PAUSE_MS = 1_000;

/**
 * Waits for a step on the queue and claims it. A retry with the same `Idempotency-Key` returns the step that the first request
 * claimed, as long as it is still claimed. 404, 409 `turn_lost`.
 */
export async function claimWorkerTurn(
  ctx: PoolContext,
  input: Input<'claimWorkerTurn'>,
): Promise<Result<'claimWorkerTurn'>> {
  const { queue, environment, turn, waitSeconds = DEFAULT_WAIT_SECONDS } = input;
  if (turn !== undefined && input.sessionId === undefined) throw invalidField('turn', 'needs sessionId');
  // A misspelt environment would never have a step.
  if (environment !== undefined) await inTransaction(ctx, (tx) => lockEnvironment(tx, ctx.organizationId, environment));
  const request: ClaimRequest = {
    organizationId: ctx.organizationId,
    claimId: ctx.idempotencyKey === undefined ? undefined : claimIdOf(ctx, input),
    queue,
    environment,
    agents: ctx.agents,
    sessionId: input.sessionId && uuidOf('ses', input.sessionId),
    turn,
  };
  const { clock, signal = new AbortController().signal } = ctx;
  const until = clock.now().getTime() + waitSeconds * 1000;
  const leftMs = () => Math.max(0, until - clock.now().getTime());
  for (;;) {
    const row =
      (await findEarlierClaim(ctx.db, request)) ??
      (await ctx.offers.claim(request, leftMs(), signal)) ??
      // Meanwhile another node may have given a step to the same request.
      (await findEarlierClaim(ctx.db, request));
    if (!row) return { workerTurn: null };
    const claimed = await readUnlessLost(ctx, row as ClaimedSession, signal);
    if (claimed !== 'refused') return { workerTurn: claimed };
    await clock.sleep(Math.min(PAUSE_MS, leftMs()), signal).catch(() => {});
    if (leftMs() === 0 || signal.aborted) return { workerTurn: null };
  }
}

/**
 * Null if the claim was lost. `refused`: a budget was used up while the step waited in its queue, for hours if no worker runs, so the node
 * that has it now ends the turn.
 */
async function readUnlessLost(
  ctx: PoolContext,
  row: ClaimedSession,
  signal: AbortSignal,
): Promise<WorkerTurn | 'refused' | null> {
  try {
    const step = await readClaimedStep(ctx, row);
    const { modelCall, definition } = step;
    const refusal =
      modelCall.status === 'pending' && (await createSpending(ctx, row).refusal(modelCall, modelsOf(definition)));
    signal.throwIfAborted();
    if (!refusal) return viewWorkerTurn(step);
    await releaseClaim(ctx, row);
    return 'refused';
  } catch (error) {
    // Otherwise the step would be lost until the lease expires.
    await releaseClaim(ctx, row).catch(() => {});
    // An earlier request with the same key may have released it when its client left. There may be another step to claim.
    if (signal.aborted || (error instanceof ApiError && error.code === 'turn_lost')) return null;
    throw error;
  }
}

/** The same id for retries of a claim. Its response is not stored: a claim waits, and its response can be long. */
function claimIdOf(ctx: Context, input: Input<'claimWorkerTurn'>): string {
  const parts = [ctx.organizationId, ctx.callerId, ctx.idempotencyKey, input.queue, input.environment, input.sessionId];
  const hex = createHash('sha256')
    .update(JSON.stringify([...parts, input.turn]))
    .digest('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join('-');
}

/** Renews the lease. 409 `turn_lost`, also if the turn is to stop or has timed out. */
export async function heartbeatWorkerTurn(
  ctx: PoolContext,
  input: Input<'heartbeatWorkerTurn'>,
): Promise<Result<'heartbeatWorkerTurn'>> {
  const workerTurnId = uuidOf('wtn', input.workerTurnId);
  const row = await readClaimedSession(ctx.db, ctx.organizationId, workerTurnId);
  if (row.stop !== null || (row.turnDeadline !== null && row.turnDeadline <= ctx.clock.now())) {
    await revokeClaim(ctx, row);
    throw turnLost();
  }
  const [lease] = await ctx.db.query<{ expiresAt: Date }>(sql`
    insert into nodes as w (node_id, lease_expires_at, reads_tail)
    values (${workerTurnId}, now() + ${LEASE_SECONDS} * interval '1 second', true)
    on conflict (node_id) do update set lease_expires_at = excluded.lease_expires_at
    returning w.lease_expires_at as "expiresAt"`);
  return { leaseExpiresAt: lease!.expiresAt.toISOString() };
}

/** When this resolves, the text is in the journal and on its way to readers. 400 if it is too long; 409 `turn_lost`, `conflict`. */
export async function appendToWorkerTurn(
  ctx: PoolContext,
  input: Input<'appendToWorkerTurn'>,
): Promise<Result<'appendToWorkerTurn'>> {
  const workerTurnId = uuidOf('wtn', input.workerTurnId);
  const row = await readClaimedSession(ctx.db, ctx.organizationId, workerTurnId);
  const { turn, nextSeq } = row;
  const items = await shownItems(ctx, row, input.deltas);
  const after = input.after === undefined ? { turn, seq: nextSeq - 1 } : parseCursor(input.after);
  const cursor = formatCursor({ turn, seq: after.seq + items.length });
  if (items.length === 0) return { cursor };
  const characters = items.reduce((sum, item) => sum + charactersOf(item), 0);
  const appended = sql`s.appended_characters + ${characters}::integer`;
  if (after.turn === turn && after.seq === nextSeq - 1) {
    try {
      await commitTransition(
        ctx,
        { ...row },
        {
          runs: [{ turn, items }],
          isText: true,
          patch: [sql`appended_characters = ${appended}`],
          conditions: [
            sql`${appended} <= ${SHOWN_TEXT_MAX_CHARACTERS}`,
            // Only a model's response has text; client calls have results.
            sql`exists (
            select 1 from operations o
            where o.organization_id = ${row.organizationId} and o.session_id = ${row.sessionId} and o.turn = ${turn}
              and o.kind = 'model' and o.status = 'pending')`,
          ],
          now: ctx.clock.now(),
        },
      );
      return { cursor };
    } catch (error) {
      if (!(error instanceof Fenced)) throw error;
    }
  }
  const current = await readClaimedSession(ctx.db, ctx.organizationId, workerTurnId);
  if (input.after !== undefined && (await isAppended(ctx, current, after, items))) return { cursor };
  const isAtEnd = after.turn === current.turn && after.seq === current.nextSeq - 1;
  if (isAtEnd && current.appendedCharacters + characters > SHOWN_TEXT_MAX_CHARACTERS) throw tooLong(current);
  throw new ApiError(
    'conflict',
    isAtEnd
      ? "This worker turn is for running its pendingCalls; text is only allowed in a model's response."
      : `after: the journal ends at ${formatCursor({ turn: current.turn, seq: current.nextSeq - 1 })}.`,
  );
}

/** A delta of text, reasoning or the input of a call. */
type ShownItem = Extract<Item, string | { delta: string }>;

function charactersOf(item: ShownItem): number {
  return (typeof item === 'string' ? item : item.delta).length;
}

function tooLong({ appendedCharacters }: AppendedSession): ApiError {
  const message = `must leave the response at most ${SHOWN_TEXT_MAX_CHARACTERS} characters long: it has ${appendedCharacters}`;
  return invalidField('deltas', message);
}

/** What is written of the deltas: reasoning and tool input only if the agent shows them. */
async function shownItems(
  ctx: Context,
  { organizationId, agentId, agentVersion, nodeId }: ClaimedSession,
  deltas: readonly WorkerDelta[],
): Promise<ShownItem[]> {
  if (deltas.every((delta) => typeof delta === 'string')) return [...deltas];
  const shows = await readDefinition(ctx.db, organizationId, agentId, agentVersion!);
  return deltas.flatMap((delta): ShownItem[] => {
    if (typeof delta === 'string') return [delta];
    if (delta.type === 'reasoning') {
      return shows.showReasoning ? [{ type: 'reasoning.chunk', delta: delta.delta }] : [];
    }
    const toolCallId = toolCallIdOf({ operationId: callOfWorker(nodeId, delta.index) });
    const chunk = { type: 'tool.input.chunk' as const, toolCallId, toolName: delta.tool, delta: delta.delta };
    return shows.showToolInput ? [chunk] : [];
  });
}

/** Whether an earlier request appended the same text and its response was lost. */
async function isAppended(
  ctx: Context,
  { organizationId, sessionId, turn, nextSeq }: ClaimedSession,
  after: { turn: number; seq: number },
  items: readonly Item[],
): Promise<boolean> {
  if (after.turn !== turn || after.seq + items.length !== nextSeq - 1) return false;
  const segments = await readSegments(ctx.db, organizationId, sessionId, after, items.length);
  const found = segments.flatMap((segment) => chunksOf(segment, after));
  return items.every((item, index) => {
    const wanted = typeof item === 'string' ? { type: 'message.chunk', delta: item } : item;
    return isSameJson(found[index], { ...wanted, turn, seq: after.seq + index + 1 });
  });
}

/** Submits the step's response, or the results of its client tools; a node then continues the turn. 400, 409 `turn_lost`. */
export async function completeWorkerTurn(
  ctx: Context,
  input: Input<'completeWorkerTurn'>,
): Promise<Result<'completeWorkerTurn'>> {
  const workerTurnId = uuidOf('wtn', input.workerTurnId);
  await inTransaction(ctx, async (tx, ctx) => {
    const row = await lockClaimedSession(tx, ctx.organizationId, workerTurnId);
    const operations = await readOperations(tx, row.organizationId, row.sessionId, row.turn);
    const modelCall = operations.find(({ kind, status }) => kind === 'model' && status === 'pending');
    if (modelCall) await submitModelResponse(tx, ctx, row, modelCall, input);
    else await submitToolResults(tx, ctx, row, operations, input);
    await Promise.all([tx.query(deleteClaimLease(workerTurnId)), tx.query(addRequester(ctx, row))]);
    tx.afterCommit(() => ctx.wake.publish('runnable', row));
  });
  return { workerTurnId: input.workerTurnId, completed: true };
}

async function submitModelResponse(
  tx: Tx,
  ctx: Context,
  row: ClaimedSession,
  modelCall: Operation,
  {
    toolCalls = [],
    toolResults,
    providerCalls = [],
    sources = [],
    usage,
    stopReason,
    error,
  }: Input<'completeWorkerTurn'>,
): Promise<void> {
  if (toolResults) throw invalidField('toolResults', 'this worker turn has no pendingCalls');
  if (toolCalls.length > 0 && stopReason !== undefined)
    throw invalidField('stopReason', 'must not be given with toolCalls: the turn continues');
  if (error && (toolCalls.length > 0 || stopReason !== undefined))
    throw invalidField('error', 'must not be given with toolCalls or stopReason');
  if (error && (providerCalls.length > 0 || sources.length > 0))
    throw invalidField('error', 'must not be given with providerCalls or sources: a response that failed is not kept');
  for (const [index, { output, error }] of providerCalls.entries())
    if ((output === undefined) === (error === undefined))
      throw invalidField(`providerCalls[${index}]`, 'must have exactly one of output and error');
  for (const [index, { url, title }] of sources.entries()) {
    if (url !== undefined && sourceOf(url).url === undefined)
      throw invalidField(`sources[${index}].url`, 'must be a URL that begins with http:// or https://');
    if (url === undefined && title === undefined) throw invalidField(`sources[${index}]`, 'must have a url or a title');
  }
  const model = { provider: 'worker', queue: row.queue! } as const;
  const used = {
    inputTokens: usage?.inputTokens ?? 0,
    outputTokens: usage?.outputTokens ?? 0,
    cachedTokens: usage?.cachedTokens ?? 0,
    ...rareCounts(usage ?? {}),
  };
  // Not later, because whatever stops the turn must count it as well.
  const costUsd = usage?.costUsd === undefined ? ctx.prices.costOf(model, used) : roundUsd(usage.costUsd);
  const stored: Submission = {
    workerTurnId: row.nodeId,
    toolCalls,
    ...((providerCalls.length > 0 || sources.length > 0) && { ran: { calls: providerCalls, sources } }),
    stopReason: stopReason ?? 'endTurn',
    usage: used,
    ...(costUsd !== null && { costUsd }),
    model: modelName(model),
    ...(error && { error: { code: error.code ?? 'worker_failed', message: error.message } }),
  };
  const now = ctx.clock.now();
  await Promise.all([
    tx.query(storeSubmission(row, modelCall, stored)),
    writeTransition(ctx, tx, { ...row }, { runs: [], patch: endClaimPatch(now), now }),
  ]);
}

async function submitToolResults(
  tx: Tx,
  ctx: Context,
  row: ClaimedSession,
  operations: readonly Operation[],
  { workerTurnId: _, toolResults = [], ...others }: Input<'completeWorkerTurn'>,
): Promise<void> {
  const [wrong] = Object.keys(others);
  if (wrong !== undefined)
    throw invalidField(wrong, 'this worker turn is for running its pendingCalls: send toolResults');
  const pending = operations.filter(({ kind, status }) => kind === 'tool' && status === 'running');
  const now = ctx.clock.now();
  const ended = pending.map((call): Operation => {
    const given = toolResults.filter(({ toolCallId }) => toolCallId === toolCallIdOf(call));
    const [result] = given;
    if (!result || given.length > 1)
      throw invalidField('toolResults', `must have one result for ${toolCallIdOf(call)}`);
    if ((result.output === undefined) === (result.error === undefined))
      throw invalidField('toolResults', 'each must have exactly one of output and error');
    const { output = null, error = null } = result;
    return { ...call, status: error === null ? 'succeeded' : 'failed', output, error };
  });
  const known = new Set(pending.map(toolCallIdOf));
  const stranger = toolResults.findIndex(({ toolCallId }) => !known.has(toolCallId));
  if (stranger >= 0) throw invalidField(`toolResults[${stranger}].toolCallId`, 'is not one of pendingCalls');
  await Promise.all([
    ...ended.map((call) => tx.query(updateOperation(row, call, now))),
    writeTransition(
      ctx,
      tx,
      { ...row },
      {
        runs: [{ turn: row.turn, items: ended.map(resultChunk) }],
        patch: endClaimPatch(now),
        now,
      },
    ),
  ]);
}

/** Releases the claim, so that the step is offered again. 409 `turn_lost`. */
export async function releaseWorkerTurn(
  ctx: Context,
  input: Input<'releaseWorkerTurn'>,
): Promise<Result<'releaseWorkerTurn'>> {
  await inTransaction(ctx, async (tx, ctx) => {
    const row = await lockClaimedSession(tx, ctx.organizationId, uuidOf('wtn', input.workerTurnId));
    await releaseLockedClaim(tx, ctx, row);
  });
  return { workerTurnId: input.workerTurnId, released: true };
}
