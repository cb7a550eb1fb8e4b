// A turn that is stopped before its end, also with its Session: what becomes of what was under way.
//
//   a model call       is cancelled; text that it has shown stays, in the transcript too
//   awaiting approval  is cancelled, and so is the approval
//   a call that runs   is cancelled where it may be repeated; else nobody knows, and that is what the model is told
//   a client's call    is cancelled; a result that comes later is refused
//   a child Session    is cancelled
import type { MessagePart, SessionError, StopReason } from '@signalbox/contract';
import sql, { type Sql } from 'sql-template-tag';
import { cancelledApprovals } from '../../approvals/approvals.ts';
import { type EventDraft, type EventSource, recordEvent } from '../../events/record.ts';
import type { NewChunk } from '../../journal/segment.ts';
import { storableText } from '../../lib/text.ts';
import {
  isFinished,
  notRunChunks,
  type Operation,
  resultChunk,
  toolCallIdOf,
  updateOperation,
} from '../../sessions/state/operations.ts';
import { type SessionRow, sessionEvent } from '../../sessions/state/session.ts';
import type { ToolOutcome } from '../tools/tool.ts';
import { callsOf, resultParts } from './calls.ts';
import { afterStop } from './recovery.ts';
import { thatFit } from './transcript-size.ts';
import { endCall, type TurnState } from './turn.ts';

/** Why a turn is stopped: what its signal is aborted with. */
export class TurnStopped extends Error {
  override readonly name = 'TurnStopped';
  readonly why: Extract<StopReason, 'interrupted' | 'timedOut' | 'error'> | 'cancelled';
  /** What the Session fails with. */
  readonly error: SessionError | undefined;
  constructor(why: Exclude<TurnStopped['why'], 'error'>);
  constructor(why: 'error', error: SessionError);
  constructor(why: TurnStopped['why'], error?: SessionError) {
    super(`The turn is stopped: ${why}`);
    this.why = why;
    this.error = error;
  }
}

/** What a turn was doing, as far as its end has to know. */
export type UnderWay = Pick<TurnState, 'operations' | 'transcript' | 'shownText'>;

export interface StopChange {
  items: NewChunk[];
  patch: Sql[];
  statements: Sql[];
  /** Calls whose child Sessions are to be cancelled. */
  orphans: string[];
  /** For the transcript, in order. */
  entries: { role: 'assistant' | 'tool'; content: MessagePart[] }[];
}

const WHY: Record<TurnStopped['why'], string> = {
  interrupted: 'The turn was interrupted before this call was over.',
  timedOut: 'The turn took too long, and this call was not over.',
  cancelled: 'The session was cancelled before this call was over.',
  error: 'The turn failed before this call was over.',
};
const MAY_HAVE_HAD_ITS_EFFECT = 'It may or may not have had its effect.';

/** From the state as it is now, which stays as it is: the turn may turn out to be another's to end. */
export function stopChange(
  row: SessionRow,
  state: UnderWay,
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
    const outcome = outcomes.get(operation);
    if (outcome) endCall(after, outcome);
    else if (afterStop(after) === 'unknown')
      Object.assign(after, { status: 'unknown', error: `${WHY[why]} ${MAY_HAVE_HAD_ITS_EFFECT}` });
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
  if (shown !== '') change.entries.push({ role: 'assistant', content: [{ type: 'text', text: shown }] });
  const step = Math.max(...state.operations.map((operation) => operation.step));
  const calls = callsOf(state.operations, step);
  // A step whose results the model has heard of has a next one.
  if (calls.length > 0) {
    const ended = calls.map((call) => stopped.get(call) ?? call);
    change.entries.push({ role: 'tool', content: thatFit(state.transcript, resultParts(ended, state.transcript)) });
  }
  if ([...stopped.keys()].some(({ kind }) => kind === 'model')) change.patch.push(sql`model_calls = model_calls + 1`);
  return change;
}

/** Nobody knows whether the call had its effect: people can look it up. */
export function outcomeUnknown(row: SessionRow, call: Operation): EventDraft {
  return {
    type: 'tool_call.outcome_unknown',
    outcome: 'failure',
    ...sessionEvent(row),
    resource: { type: 'tool_call', id: toolCallIdOf(call) },
    changes: { tool: [null, call.tool] },
  };
}
