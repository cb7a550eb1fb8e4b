// What the row of a Session says in each of its statuses, beside the status itself: when a worker of the service has something to
// do for it, and how much of the turn's time there is.
import type { WaitingFor } from '@signalbox/contract';
import sql, { type Sql } from 'sql-template-tag';
import type { SessionRow } from './session.ts';

/** While it waits the turn's time stands still; the first deadline of an approval is when a worker looks at it. */
export function waitingPatch(waitingFor: WaitingFor, turnLeftMs: number | null): Sql[] {
  return [
    sql`status = 'waiting'`,
    sql`waiting_for = ${JSON.stringify(waitingFor)}`,
    sql`runnable_at = ${waitingFor.expiresAt && new Date(waitingFor.expiresAt)}`,
    sql`turn_deadline = null`,
    sql`turn_left_ms = ${turnLeftMs}`,
  ];
}

/** All that it waited for has come. */
export function resumedPatch(turnLeftMs: number | null, now: Date): Sql[] {
  return [
    sql`status = 'running'`,
    sql`waiting_for = null`,
    sql`runnable_at = ${now}`,
    sql`turn_deadline = ${turnLeftMs === null ? null : new Date(now.getTime() + turnLeftMs)}`,
    sql`turn_left_ms = null`,
  ];
}

/** No turn is under way; nothing is to be done until a message comes. */
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

/** It has ended; a parent is still to hear of it. */
export function endPatch({ parentSessionId }: Pick<SessionRow, 'parentSessionId'>, now: Date): Sql[] {
  return [...idlePatch(), sql`ended_at = ${now}`, ...(parentSessionId ? [sql`parent_due = true`] : [])];
}
