// How a turn ends: normally, stopped, or with its session.
import type { SessionStatus, StopReason } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { currentVersion } from '../../agents/agents.ts';
import { EXPIRED, expiredApprovals } from '../../approvals/approvals.ts';
import type { EventDraft } from '../../events/record.ts';
import { Fenced } from '../../journal/append.ts';
import type { Appender } from '../../journal/appender.ts';
import type { NewChunk } from '../../journal/segment.ts';
import { OVER } from '../../lib/aborted.ts';
import { ApiError } from '../../lib/api-error.ts';
import { type BegunTurn, beginTurn } from '../../sessions/begin-turn.ts';
import { cancelNow } from '../../sessions/end-session.ts';
import { readQueuedMessage } from '../../sessions/state/inbox.ts';
import { notRunChunks, type Operation, updateOperation } from '../../sessions/state/operations.ts';
import { lockSession, sessionEvent } from '../../sessions/state/session.ts';
import { endPatch, idlePatch } from '../../sessions/state/status.ts';
import { insertEntry, type TranscriptEntry } from '../../sessions/state/transcript.ts';
import { cancelChildren, publishStop } from '../../sessions/stop.ts';
import type { ToolOutcome } from '../tools/tool.ts';
import { stopChange, type TurnStopped } from '../turn/stop-turn.ts';
import type { TurnEnd } from '../turn/turn.ts';
import type { Change } from './active-session.ts';
import { recordTurnEnd } from './telemetry.ts';
import { agentEvent, agentSource, logTurn, nextEntry, type TurnContext, turnUsage } from './turn-context.ts';

/** This node has ended the session: it must not write to it any more, although no other node has claimed it. */
export class SessionEnded extends Fenced {}

/** What a turn's last transition changes besides its end. `entries` are for the transcript. */
export interface LastChange extends Change {
  entries?: Pick<TranscriptEntry, 'role' | 'content'>[];
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
  { stopReason, output }: TurnEnd,
  changeNow: (now: Date) => LastChange,
): Promise<NextTurn | undefined> {
  const { session, platform } = context;
  const before = context.position;
  while (true) {
    if (session.row.stop === 'cancel') return endWithSession(context, appender);
    const now = platform.clock.now();
    context.position = before;
    const { entries = [], ...change } = changeNow(now);
    const stored = entries.map((entry) => nextEntry(context, entry, now));
    const usage = turnUsage(context);
    const completed: NewChunk = { type: 'turn.completed', stopReason, usage, ...(output !== undefined && { output }) };
    const whole = {
      ...change,
      items: [...(change.items ?? []), completed],
      statements: [...(change.statements ?? []), ...stored.map((entry) => insertEntry(session.row, entry))],
    };
    if (session.queued().length > 0 && stopReason !== 'error') {
      const next = await beginNext(context, whole, stopReason, now);
      if (next) return { ...next, transcript: [...stored, next.beginning.entry] };
    } else if (await endWithoutNext(context, whole, stopReason, now)) {
      return undefined;
    }
  }
}

type WholeChange = Change & { items: NewChunk[] };

async function endWithoutNext(
  context: TurnContext,
  change: WholeChange,
  stopReason: StopReason,
  now: Date,
): Promise<boolean> {
  const { session, platform, state } = context;
  const { row } = session;
  const status: SessionStatus =
    stopReason === 'error' ? 'failed' : row.closing || row.closeOnIdle ? 'completed' : 'idle';
  const ended = status !== 'idle';
  const last: Change = {
    ...change,
    items: [...change.items, { type: 'session.status', status, waitingFor: null, stopReason }],
    patch: [
      ...(change.patch ?? []),
      sql`status = ${status}`,
      sql`stop_reason = ${stopReason}`,
      ...(ended ? endPatch(row, now) : idlePatch()),
    ],
    statements: [
      ...(change.statements ?? []),
      agentEvent(context, {
        type: `session.${status}` as EventDraft['type'],
        outcome: status === 'failed' ? 'failure' : 'success',
        ...sessionEvent(row),
      }),
    ],
  };
  if (!(await session.commitAndRelease(last, state.operations))) return false;
  logTurn(context, stopReason, status, row.turn);
  if (ended && row.parentSessionId) platform.wake.publish('child', row);
  return true;
}

async function beginNext(context: TurnContext, change: WholeChange, stopReason: StopReason, now: Date) {
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
  logTurn(context, stopReason, 'running', turn);
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
  { why, error }: TurnStopped,
): Promise<NextTurn | undefined> {
  if (why === 'cancelled') return endWithSession(context, appender);
  const { session, platform, state } = context;
  const outcomes = await collectLateResults(context);
  const children = state.operations.flatMap(({ status, childSessionId }) =>
    status === 'awaiting_session' && childSessionId ? [childSessionId] : [],
  );
  const followed = await endTurn(context, appender, { stopReason: why }, (now) => {
    const { orphans, ...change } = stopChange(session.row, state, outcomes, why, agentSource(context), now);
    const left = orphans.length > 0 ? [cancelChildren(session.row, now, orphans)] : [];
    const failed = error ? [sql`error = ${JSON.stringify(error)}`] : [];
    return { ...change, patch: [...change.patch, ...failed], statements: [...change.statements, ...left] };
  });
  if (state.operations.some(({ status }) => status === 'pending')) state.modelCalls += 1;
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
    if (current.epoch !== head.epoch || current.nextSeq !== head.nextSeq) throw new Fenced();
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
