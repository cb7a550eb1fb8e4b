// A turn that waits, and the times that end a wait: approvals expire, a model is called again, and a turn has a deadline.

import sql from 'sql-template-tag';
import type { NewChunk } from '../journal/segment.ts';
import { firstExpiry, type Operation, updateOperation, waitingForOf } from '../session-rows/operations.ts';
import { sessionEvent } from '../session-rows/session.ts';
import { resumedPatch, waitingForModel, waitingPatch } from '../session-rows/status.ts';
import { TurnStopped } from '../turn/stop-turn.ts';
import type { TurnEvent } from '../turn/turn.ts';
import { agentEvent, type TurnContext } from './turn-context.ts';

/** Parks the session: from then on it is only a row. False, and nothing is written, if something arrived meanwhile. */
export async function parkTurn(context: TurnContext, now: Date): Promise<boolean> {
  const { session, deadline } = context;
  const { operations } = context.state;
  const waitingFor = waitingForOf(operations);
  if (!waitingFor) throw new Error('A turn waits for nothing');
  const leftMs = deadline.getTime() - now.getTime();
  const change = {
    items: [{ type: 'session.status' as const, status: 'waiting' as const, waitingFor }],
    patch: waitingPatch(waitingFor, leftMs),
    statements: [agentEvent(context, { type: 'session.waiting', ...sessionEvent(session.row) })],
  };
  return session.commitAndRelease(change, operations);
}

/**
 * Parks the session before a model call: until its models are called again, or a limit of its environment lets it call its model. The
 * same as above.
 */
export async function parkForModel(
  context: TurnContext,
  event: Extract<TurnEvent, { type: 'modelUnavailable' | 'modelLimited' }>,
): Promise<boolean> {
  const { modelCall, failure } = event;
  // A call that waits for a limit is not an attempt. It has no event: a busy environment would have one for most of its calls.
  const { isAttempt, isFirst, until } =
    event.type === 'modelLimited'
      ? { isAttempt: false, isFirst: false, until: event.until }
      : { isAttempt: modelCall.kind === 'model', isFirst: event.isFirst, until: event.retryAt };
  const waitingFor = waitingForModel(until, failure);
  const { session, deadline, platform } = context;
  const { row, head } = session;
  const now = platform.clock.now();
  const fromSeq = modelCall.fromSeq!;
  const items: NewChunk[] = [
    ...(head.nextSeq > fromSeq ? [{ type: 'message.reset' as const, fromSeq }] : []),
    { type: 'session.status', status: 'waiting', waitingFor },
  ];
  const stored: Operation = { ...modelCall, fromSeq: head.nextSeq + items.length };
  const change = {
    items,
    patch: [
      ...waitingPatch(waitingFor, deadline.getTime() - now.getTime()),
      ...(isAttempt ? [sql`model_calls = model_calls + 1`] : []),
    ],
    statements: [
      updateOperation(row, stored, now),
      // One event for an outage, however often the models are called during it.
      ...(isFirst ? [agentEvent(context, { type: 'session.waiting', ...sessionEvent(row) })] : []),
    ],
  };
  return session.commitAndRelease(change, context.state.operations);
}

/** Shows that a session that waited for its models calls them again. */
export async function resumeForModel({ session, state, platform: { clock } }: TurnContext): Promise<void> {
  const { row, head } = session;
  const now = clock.now();
  const left = row.turnLeftMs;
  const unanswered = state.operations.filter(({ kind, status }) => kind !== 'tool' && status === 'pending');
  const resumed: NewChunk = { type: 'session.status', status: 'running', waitingFor: null };
  for (const operation of unanswered) operation.fromSeq = head.nextSeq + 1;
  await session.commit({
    items: [resumed],
    patch: resumedPatch(left, now),
    statements: unanswered.map((operation) => updateOperation(row, operation, now)),
  });
  Object.assign(row, {
    status: 'running',
    waitingFor: null,
    turnDeadline: left === null ? null : new Date(now.getTime() + left),
  });
}

/** Wakes the active session when the first of its approvals expires. */
export async function wakeAtExpiry({ session, state, platform }: TurnContext, signal: AbortSignal): Promise<void> {
  const { clock } = platform;
  const expiry = firstExpiry(state.operations);
  if (!expiry) return;
  const leftMs = () => expiry.getTime() - clock.now().getTime();
  // Timers may be a little early.
  while (leftMs() > 0 && !signal.aborted) await clock.sleep(leftMs(), signal).catch(() => {});
  if (!signal.aborted) session.wake();
}

/** Stops the turn at its deadline, unless `signal` is aborted first. */
export function stopAtDeadline(
  { deadline, platform: { clock } }: TurnContext,
  turn: AbortController,
  signal: AbortSignal,
): void {
  clock.sleep(deadline.getTime() - clock.now().getTime(), signal).then(
    () => turn.abort(new TurnStopped('timedOut')),
    () => {},
  );
}
