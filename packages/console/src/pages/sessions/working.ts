// How long a session has worked, in the head of its page and in its trace. The service counts the same for the list of sessions.
import type { SessionTurn } from '@signalbox/client';

/**
 * The time in which at least one model or tool ran. A session that waits for an approval, for the result of a `client` tool or for a
 * model that is unavailable does not work.
 */
export function workingMs(turns: readonly SessionTurn[], now: number): number {
  const spans = turns
    .flatMap((turn) => turn.operations)
    .flatMap(({ kind, toolType, status, startedAt, endedAt }) => {
      if (kind === 'approval' || toolType === 'client' || !startedAt || (!endedAt && status !== 'running')) return [];
      return [[Date.parse(startedAt), endedAt ? Date.parse(endedAt) : now] as const];
    })
    .toSorted(([one], [other]) => one - other);
  let [sum, until] = [0, 0];
  for (const [from, to] of spans) {
    sum += Math.max(0, to - Math.max(from, until));
    until = Math.max(until, to);
  }
  return sum;
}
