// A turn that is stopped before its end, also with its session: what its operations become (the table is in recovery.ts).
//
// Text that a cancelled model call has shown stays, also in the transcript. What a worker's submission used counts, although the
// turn does not continue with it. Approvals and child sessions of cancelled calls are cancelled with them, and a client's result that
// arrives later is refused.
import type { MessagePart, SessionError, StopReason } from '@signalbox/contract';
import sql, { type Sql } from 'sql-template-tag';
import { cancelledApprovals } from '../approvals/approvals.ts';
import { type EventDraft, type EventSource, recordEvent } from '../events/record.ts';
import type { NewChunk } from '../journal/segment.ts';
import { storableText } from '../lib/text.ts';
import {
  isFinished,
  messageIdOf,
  notRunChunks,
  type Operation,
  resultChunk,
  toolCallIdOf,
  updateOperation,
} from '../session-rows/operations.ts';
import { type SessionRow, sessionEvent } from '../session-rows/session.ts';
import { submittedUsage } from '../session-rows/submission.ts';
import type { ToolOutcome } from '../tools/tool/tool.ts';
import { insertUsage, usagePatch } from '../usage/usage.ts';
import { callsOf, endCall, resultParts } from './calls.ts';
import { afterStop } from './recovery.ts';
import type { TurnState } from './turn.ts';

/** Why a turn is stopped: the reason with which its signal is aborted. */
export class TurnStopped extends Error {
  override readonly name = 'TurnStopped';
  readonly why: Extract<StopReason, 'interrupted' | 'timedOut' | 'error'> | 'cancelled';
  /** Set if `why` is `error`. */
  readonly error: SessionError | undefined;
  constructor(why: Exclude<TurnStopped['why'], 'error'>);
  constructor(why: 'error', error: SessionError);
  constructor(why: TurnStopped['why'], error?: SessionError) {
    super(`The turn is stopped: ${why}`);
    this.why = why;
    this.error = error;
  }
}

/** What ending a stopped turn needs of its state. */
export interface InterruptedTurn extends Pick<TurnState, 'operations' | 'shownText'> {
  transcript: readonly Pick<TurnState['transcript'][number], 'role' | 'content'>[];
}

export interface StopChange {
  items: NewChunk[];
  patch: Sql[];
  statements: Sql[];
  /** Calls whose child sessions must be cancelled. */
  orphans: string[];
  /** For the transcript, in order. */
  entries: { role: 'assistant' | 'tool'; content: MessagePart[]; messageId?: string }[];
}

const WHY: Record<TurnStopped['why'], string> = {
  interrupted: 'The turn was interrupted before this call finished.',
  timedOut: 'The turn timed out before this call finished.',
  cancelled: 'The session was cancelled before this call finished.',
  error: 'The turn failed before this call finished.',
};
const MAY_HAVE_TAKEN_EFFECT = 'It may or may not have taken effect.';

/**
 * Does not change the state, because the session may turn out to be lost, or the change may have to be computed again. Only the
 * usage of a worker's submission is set, which it used in any case, and which the end of the turn shows.
 */
export function stopChange(
  row: SessionRow,
  state: InterruptedTurn,
  outcomes: ReadonlyMap<Operation, ToolOutcome>,
  why: TurnStopped['why'],
  source: EventSource,
  now: Date,
): StopChange {
  const change: StopChange = { items: [], patch: [], statements: [], orphans: [], entries: [] };
  const stopped = new Map(
    state.operations.filter((operation) => !isFinished(operation)).map((operation) => [operation, { ...operation }]),
  );
  const unasked: string[] = [];
  for (const [operation, after] of stopped) {
    const used = submittedUsage(operation);
    if (used) {
      for (const one of [operation, after]) Object.assign(one, used);
      change.patch.push(...usagePatch(used.usage));
      change.statements.push(insertUsage(row, { operationId: operation.operationId, ...used }, now));
    }
    const outcome = outcomes.get(operation);
    if (outcome) endCall(after, outcome);
    else if (afterStop(after) === 'unknown')
      Object.assign(after, { status: 'unknown', error: `${WHY[why]} ${MAY_HAVE_TAKEN_EFFECT}` });
    else Object.assign(after, { status: 'cancelled', error: after.kind === 'tool' ? WHY[why] : null });
    if (after.status === 'unknown') change.statements.push(recordEvent(source, now, outcomeUnknown(row, after)));
    change.statements.push(updateOperation(row, after, now));
    if (operation.kind !== 'tool') continue;
    if (operation.status === 'awaiting_approval') unasked.push(operation.operationId);
    const hasBegun = operation.status !== 'awaiting_approval' && operation.status !== 'ready';
    change.items.push(...(hasBegun ? [resultChunk(after)] : notRunChunks(after)));
    if (operation.status === 'awaiting_session') change.orphans.push(operation.operationId);
  }
  const cancelled = cancelledApprovals(row, unasked, source, now);
  change.items.unshift(...cancelled.chunks);
  change.statements.push(...cancelled.statements);

  const shown = storableText(state.shownText);
  const cut = state.operations.find(({ kind, status }) => kind === 'model' && status === 'pending');
  if (shown !== '') {
    const messageId = cut && { messageId: messageIdOf(cut) };
    change.entries.push({ role: 'assistant', content: [{ type: 'text', text: shown }], ...messageId });
  }
  const step = Math.max(...state.operations.map((operation) => operation.step));
  const calls = callsOf(state.operations, step);
  // The results of earlier steps are in the transcript already.
  if (calls.length > 0) {
    const ended = calls.map((call) => stopped.get(call) ?? call);
    change.entries.push({ role: 'tool', content: resultParts(ended, state.transcript) });
  }
  if ([...stopped.keys()].some(({ kind }) => kind === 'model')) change.patch.push(sql`model_calls = model_calls + 1`);
  return change;
}

/** The event that records that a call may or may not have taken effect. */
export function outcomeUnknown(row: SessionRow, call: Operation): EventDraft {
  return {
    type: 'tool_call.outcome_unknown',
    outcome: 'failure',
    ...sessionEvent(row),
    resource: { type: 'tool_call', id: toolCallIdOf(call) },
    changes: { tool: [null, call.tool] },
  };
}
