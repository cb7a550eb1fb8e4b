// A turn that waits, and the times that end a wait: approvals expire, and a turn has a deadline.
import { firstExpiry, waitingForOf } from '../../sessions/state/operations.ts';
import { sessionEvent } from '../../sessions/state/session.ts';
import { waitingPatch } from '../../sessions/state/status.ts';
import { TurnStopped } from '../turn/stop-turn.ts';
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
