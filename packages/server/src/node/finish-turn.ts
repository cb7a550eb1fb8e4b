// How a turn ends: normally, stopped, or with its session.
import type { SessionError } from '@signalbox/contract';
import sql, { type Sql } from 'sql-template-tag';
import { currentVersion } from '../agents/agents.ts';
import { EXPIRED, expiredApprovals } from '../approvals/approvals.ts';
import type { Spending } from '../budgets/session-spending.ts';
import { Fenced } from '../journal/append.ts';
import type { Appender } from '../journal/appender.ts';
import type { NewChunk } from '../journal/segment.ts';
import { endOfSegments } from '../journal/tail.ts';
import { OVER } from '../lib/aborted.ts';
import { ApiError } from '../lib/api-error.ts';
import { formatId } from '../lib/ids.ts';
import { readQueuedMessage } from '../session-rows/inbox.ts';
import {
  messageIdOf,
  notRunChunks,
  type Operation,
  type PricedUsage,
  updateOperation,
} from '../session-rows/operations.ts';
import { lockSession, sessionEvent } from '../session-rows/session.ts';
import { endPatch, idlePatch } from '../session-rows/status.ts';
import { submittedUsage } from '../session-rows/submission.ts';
import { insertEntry, type TranscriptEntry } from '../session-rows/transcript.ts';
import { type BegunTurn, beginTurn } from '../sessions/begin-turn.ts';
import { cancelNow } from '../sessions/end-session.ts';
import { cancelChildren, publishStop } from '../sessions/stop.ts';
import type { ToolOutcome } from '../tools/tool/tool.ts';
import { stopChange, type TurnStopped } from '../turn/stop-turn.ts';
import type { TurnEnd, TurnEvent } from '../turn/turn.ts';
import { insertUsage, usagePatch } from '../usage/usage.ts';
import type { Change } from './active-session.ts';
import { recordTurnEnd } from './telemetry.ts';
import {
  agentEvent,
  agentSource,
  logTurn,
  nextEntry,
  type TurnContext,
  turnUsage,
  voidedText,
} from './turn-context.ts';

/** This node has ended the session: it must not write to it any more, although no other node has claimed it. */
export class SessionEnded extends Fenced {}

/** What a turn's last transition changes besides its end. `entries` are for the transcript. */
export interface LastChange extends Change {
  entries?: (Pick<TranscriptEntry, 'role' | 'content'> & { messageId?: string })[];
}

/** The next turn, as the database has it already. */
export interface NextTurn {
  beginning: BegunTurn;
  agentVersion: number;
  transcript: TranscriptEntry[];
}

// How long aborted tools have to return a result. After that, the outcome of their calls is unknown.
const STOP_GRACE_MS = 500;

/**
 * Ends the turn in the same transaction as the change, which also begins the turn of the next message, makes the session idle or
 * ends it. `changeNow` is called again if something arrived in the meantime.
 */
export async function endTurn(
  context: TurnContext,
  appender: Appender,
  end: TurnEnd,
  changeNow: (now: Date) => LastChange,
): Promise<NextTurn | undefined> {
  const { session, platform } = context;
  const before = context.position;
  const { stopReason } = end;
  const why = stopReason === 'error' ? { error: end.error } : {};
  while (true) {
    if (session.row.stop === 'cancel') return endWithSession(context, appender);
    const now = platform.clock.now();
    context.position = before;
    const { entries = [], ...change } = changeNow(now);
    const stored = entries.map(({ messageId, ...entry }) => nextEntry(context, entry, now, messageId));
    const usage = turnUsage(context);
    const output = stopReason !== 'error' && end.output !== undefined ? { output: end.output } : {};
    const lastMessageId =
      entries.findLast(({ role }) => role === 'assistant')?.messageId ?? lastResponse(context.state.operations);
    const message = lastMessageId === undefined ? {} : { messageId: formatId('msg', lastMessageId) };
    const completed: NewChunk = { type: 'turn.completed', stopReason, usage, ...message, ...output, ...why };
    const whole = {
      ...change,
      items: [...(change.items ?? []), completed],
      statements: [
        ...(change.statements ?? []),
        ...stored.map((entry) => insertEntry(session.row, entry)),
        ...(stopReason === 'error' ? [turnFailed(context, end.error)] : []),
      ],
    };
    if (session.queued().length > 0) {
      const next = await beginNext(context, whole, end, now);
      if (next) return { ...next, transcript: [...stored, next.beginning.entry] };
    } else if (await endWithoutNext(context, whole, end, now)) {
      return undefined;
    }
  }
}

/** The message of the last model call that has a response. */
function lastResponse(operations: readonly Operation[]): string | undefined {
  const last = operations.findLast(({ kind, status }) => kind === 'model' && status === 'succeeded');
  return last && messageIdOf(last);
}

/** Ends a turn that fails. Text that its last model call has shown is void if the call failed, or its response was rejected. */
export async function failTurn(
  context: TurnContext,
  appender: Appender,
  spending: Spending,
  { error, asked, voidFrom, spent }: Extract<TurnEvent, { type: 'fail' }>,
): Promise<NextTurn | undefined> {
  const { row, head } = context.session;
  if (voidFrom) await appender.take(head); // text that was never shown needs no reset
  const items = voidFrom ? voidedText(head, voidFrom) : [];
  const { operations } = context.state;
  const step = Math.max(...operations.map((operation) => operation.step));
  const calls = operations.filter((operation) => operation.kind !== 'tool' && operation.step === step);
  // If a compaction fails, the model call that it was for has not started.
  for (const call of calls) if (call.status === 'pending') call.status = 'cancelled';
  const over = calls.filter(({ status }) => status !== 'succeeded');
  const used = spent && usedBy(spent.modelCall, spending.add(spent.model, spent.usage));
  return endTurn(context, appender, { stopReason: 'error', error }, (now) => ({
    items,
    patch: [...(asked ? [sql`model_calls = model_calls + 1`] : []), ...(used ? usagePatch(used.usage) : [])],
    statements: [
      ...over.map((call) => updateOperation(row, call, now)),
      ...(used ? [insertUsage(row, used, now)] : []),
    ],
  }));
}

function usedBy(modelCall: Operation, usage: PricedUsage) {
  modelCall.usage = usage;
  return { operationId: modelCall.operationId, model: modelCall.model!, usage };
}

type WholeChange = Change & { items: NewChunk[] };

/** With the code alone: the message of a worker is its program's own text, and records are kept unchanged. */
function turnFailed(context: TurnContext, { code }: SessionError): Sql {
  const { row } = context.session;
  return agentEvent(context, {
    type: 'turn.failed',
    outcome: 'failure',
    ...sessionEvent(row),
    changes: { turn: [null, row.turn], error: [null, code] },
  });
}

/** A session that is to end with its turn ends as `failed` if the turn did. Any other is idle, and its turn can be retried. */
async function endWithoutNext(context: TurnContext, change: WholeChange, end: TurnEnd, now: Date): Promise<boolean> {
  const { session, platform, state } = context;
  const { row } = session;
  const { stopReason } = end;
  const error = stopReason === 'error' ? end.error : undefined;
  const ended = row.closing || row.closeOnIdle;
  const status = !ended ? 'idle' : error ? 'failed' : 'completed';
  const last: Change = {
    ...change,
    items: [...change.items, { type: 'session.status', status, waitingFor: null, stopReason, ...(error && { error }) }],
    patch: [
      ...(change.patch ?? []),
      sql`status = ${status}`,
      sql`stop_reason = ${stopReason}`,
      ...(error ? [sql`error = ${JSON.stringify(error)}`] : []),
      ...(ended ? endPatch(row, now) : idlePatch()),
    ],
    statements: [
      ...(change.statements ?? []),
      agentEvent(context, {
        type: `session.${status}`,
        outcome: status === 'failed' ? 'failure' : 'success',
        ...sessionEvent(row),
        ...(status === 'failed' && error && { changes: { error: [null, error.code] } }),
      }),
    ],
  };
  if (!(await session.commitAndRelease(last, state.operations))) return false;
  logTurn(context, end, status, row.turn);
  if (ended) platform.analytics.count(row, error ? 'sessionsFailed' : 'sessionsCompleted');
  if (ended && row.parentSessionId) platform.wake.publish('child', row);
  return true;
}

async function beginNext(context: TurnContext, change: WholeChange, end: TurnEnd, now: Date) {
  const { session, platform, state } = context;
  const { row } = session;
  const { turn } = row;
  const next = session.queued()[0]!;
  const agentVersion = row.pinnedVersion ?? (await newestVersion(context));
  const message = await readQueuedMessage(platform.db, row, next.inboxId);
  const beginning = beginTurn(row, turn + 1, message, agentVersion, now);
  const begun = {
    items: change.items,
    next: beginning.run,
    patch: [...(change.patch ?? []), ...beginning.patch],
    statements: [...(change.statements ?? []), ...beginning.statements],
  };
  if (!(await session.commitAndBegin(begun, state.operations))) return undefined;
  row.traceParent = beginning.traceParent;
  logTurn(context, end, 'running', turn);
  return { beginning, agentVersion };
}

/** A message that was accepted gets its turn, even if the agent has been archived since. */
async function newestVersion({ platform: { db }, session: { row } }: TurnContext): Promise<number> {
  return currentVersion(db, row.organizationId, row.agentId).catch((error) => {
    if (error instanceof ApiError && error.code === 'agent_archived') return row.agentVersion!;
    throw error;
  });
}

/** Ends a turn that is stopped, with the results that its tools still return. */
export async function endStoppedTurn(
  context: TurnContext,
  appender: Appender,
  spending: Spending,
  { why, error }: TurnStopped,
): Promise<NextTurn | undefined> {
  if (why === 'cancelled') return endWithSession(context, appender);
  const { session, platform, state } = context;
  const outcomes = await collectLateResults(context);
  const children = state.operations.flatMap(({ status, childSessionId }) =>
    status === 'awaiting_session' && childSessionId ? [childSessionId] : [],
  );
  const submitted = state.operations.flatMap((operation) => submittedUsage(operation) ?? []);
  const end: TurnEnd = why === 'error' ? { stopReason: why, error: error! } : { stopReason: why };
  const followed = await endTurn(context, appender, end, (now) => {
    const { orphans, ...change } = stopChange(session.row, state, outcomes, why, agentSource(context), now);
    const left = orphans.length > 0 ? [cancelChildren(session.row, now, orphans)] : [];
    return { ...change, statements: [...change.statements, ...left] };
  });
  // For the budget of the next turn.
  for (const { usage } of submitted) spending.count(usage);
  if (state.operations.some(({ kind, status }) => kind === 'model' && status === 'pending')) state.modelCalls += 1;
  publishStop(platform.wake, session.row.organizationId, children);
  return followed;
}

/** Results of calls that were aborted, except of those that ignore it. */
async function collectLateResults({ platform: { clock }, state }: TurnContext): Promise<Map<Operation, ToolOutcome>> {
  const outcomes = new Map<Operation, ToolOutcome>();
  const results = [...state.underWay].map(async ([call, outcome]) => outcomes.set(call, await outcome));
  const over = new AbortController();
  await Promise.race([Promise.allSettled(results), clock.sleep(STOP_GRACE_MS, over.signal).catch(() => {})]);
  over.abort(OVER);
  return new Map(outcomes);
}

/** Cancels the session. */
async function endWithSession(context: TurnContext, appender: Appender): Promise<undefined> {
  await cancelActive(context, appender, []);
}

/**
 * Cancels the active session because the approvals of its `late` calls have expired. False, and nothing is changed, if something
 * arrived first: it may be a decision, from a node whose clock is behind this one's.
 */
export function cancelForExpired(
  context: TurnContext,
  appender: Appender,
  late: readonly Operation[],
): Promise<boolean> {
  return cancelActive(context, appender, late);
}

async function cancelActive(context: TurnContext, appender: Appender, late: readonly Operation[]): Promise<boolean> {
  const { session, platform } = context;
  const { row, head } = session;
  const unseen = await appender.take(head); // will not be shown
  const isDone = await platform.db.transaction(async (tx) => {
    const current = await lockSession(tx, row.organizationId, row.sessionId);
    if (current.epoch !== head.epoch || current.nextSeq !== endOfSegments(head)) throw new Fenced();
    if (late.length > 0 && (current.inbox !== session.queued().length || current.stop)) return false;
    const now = platform.clock.now();
    const ids = late.map(({ operationId }) => operationId);
    const expired = expiredApprovals(current, ids, now);
    const denied = late.map((call): Operation => ({ ...call, status: 'denied', error: EXPIRED }));
    const updates = denied.map((call) => updateOperation(current, call, now));
    await Promise.all([...expired.statements, ...updates].map((statement) => tx.query(statement)));
    await cancelNow(tx, { ...platform, ...agentSource(context) }, current, [
      ...expired.chunks,
      ...denied.flatMap(notRunChunks),
    ]);
    return true;
  });
  if (isDone) recordTurnEnd(context, 'cancelled');
  else head.pending.unshift(...unseen);
  return isDone;
}
