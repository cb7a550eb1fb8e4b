// The columns of a session row that depend on its status: when a node has something to do for it, and how much of the turn's
// time is left.
import type { SessionError, WaitingFor } from '@signalbox/contract';
import sql, { type Sql } from 'sql-template-tag';
import type { SessionRow } from './session.ts';

/** `error`: how the last call of the models failed, or why it is not made yet. */
export function waitingForModel(retryAt: Date, { code, message }: Pick<SessionError, 'code' | 'message'>): WaitingFor {
  const none = { operationIds: [], toolCallIds: [], sessionIds: [], expiresAt: null };
  return { type: 'model', ...none, retryAt: retryAt.toISOString(), error: { code, message } };
}

/**
 * The turn's time does not run while the session waits. A node claims it again at the first deadline of an approval, or when the
 * models are to be called again.
 */
export function waitingPatch(waitingFor: WaitingFor, turnLeftMs: number | null): Sql[] {
  const until = waitingFor.retryAt ?? waitingFor.expiresAt;
  return [
    sql`status = 'waiting'`,
    sql`waiting_for = ${JSON.stringify(waitingFor)}`,
    sql`runnable_at = ${until && new Date(until)}`,
    sql`turn_deadline = null`,
    sql`turn_left_ms = ${turnLeftMs}`,
  ];
}

/** The session has everything that it waited for. */
export function resumedPatch(turnLeftMs: number | null, now: Date): Sql[] {
  return [
    sql`status = 'running'`,
    sql`waiting_for = null`,
    sql`runnable_at = ${now}`,
    sql`turn_deadline = ${turnLeftMs === null ? null : new Date(now.getTime() + turnLeftMs)}`,
    sql`turn_left_ms = null`,
  ];
}

/** No turn is running; nothing is to be done until the next message. */
export function idlePatch(): Sql[] {
  return [
    sql`waiting_for = null`,
    sql`runnable_at = null`,
    sql`queue = null`,
    sql`stop = null`,
    sql`turn_deadline = null`,
    sql`turn_left_ms = null`,
  ];
}

/** The session has ended; if it has a parent, the result has to be reported to it. */
export function endPatch({ parentSessionId }: Pick<SessionRow, 'parentSessionId'>, now: Date): Sql[] {
  return [...idlePatch(), sql`ended_at = ${now}`, ...(parentSessionId ? [sql`parent_due = true`] : [])];
}
