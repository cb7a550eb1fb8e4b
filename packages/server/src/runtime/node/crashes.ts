// Sessions whose step ends the process that runs it. Whatever the reason is, the next process would end too, and the one after it:
// so the ends are counted on the Session's row (`crashes`), by each claim from a worker that died, and after three of them the
// turn fails instead of being run once more.
//
// A process has many Sessions when it ends, and counts for all of them. So that no other pays for it, a Session whose step has
// met two such ends is a suspect, and a worker runs one suspect at a time: the third end shows which one it was.
//
// A Session that a worker gives back (a restart, a deployment) is not claimed from a dead worker; and what a step comes to ends
// the count. A process that only stood still for longer than its lease is alive: when it finds that it lost the Session, it
// takes its own count back.
import sql, { type Sql } from 'sql-template-tag';
import type { SessionRow } from '../../sessions/state/session.ts';
import { TurnStopped } from '../turn/stop-turn.ts';
import type { TurnEvent } from '../turn/turn.ts';

const MAX_CRASHES = 3;
const SUSPICIOUS_CRASHES = MAX_CRASHES - 1;

type SessionAt = Pick<SessionRow, 'organizationId' | 'sessionId' | 'epoch'>;

/** Why the turn is not run once more; undefined if it is. */
export function crashFailure(
  { crashes }: Pick<SessionRow, 'crashes'>,
  maxCrashes = MAX_CRASHES,
): TurnStopped | undefined {
  if (crashes < maxCrashes) return undefined;
  const message = `The service ended ${crashes} times while it ran this step of the turn, so it does not run it once more.`;
  return new TurnStopped('error', { code: 'step_crashed', message });
}

export function isSuspect({ crashes }: Pick<SessionRow, 'crashes'>): boolean {
  return crashes === SUSPICIOUS_CRASHES;
}

/** Whether what runs next is something else than what ran before: a model call is over, or the step is. */
export function endsCrashCount({ type }: TurnEvent): boolean {
  return ['responded', 'stepEnded', 'repair', 'wait', 'end', 'fail'].includes(type);
}

/** For the update that claims rows of `sessions s`. Programs that died with a worker turn (`queue`) are not the service. */
export function countCrash(dead: readonly string[]): Sql {
  return sql`crashes = s.crashes
    + case when s.node_id = any(${[...dead]}::uuid[]) and s.queue is null and s.status = 'running' then 1 else 0 end`;
}

/** For a worker that lost this Session and lives: the claim that took it counted a crash that was none. */
export function uncountCrash({ organizationId, sessionId, epoch }: SessionAt): Sql {
  return sql`
    update sessions set crashes = crashes - 1
    where organization_id = ${organizationId} and session_id = ${sessionId}
      and epoch > ${epoch} and crashes > 0 and ended_at is null`;
}

/** What of a Session tells whether it will be a suspect. */
type Counted = Pick<SessionRow, 'crashes' | 'nodeId'>;

/** All but those that will be suspects once they are claimed, and the first of those unless one is held already. */
export function withOneSuspect<C extends Counted>(
  candidates: readonly C[],
  dead: readonly string[],
  hasSuspect: boolean,
): C[] {
  const willBe = ({ crashes, nodeId }: C) =>
    isSuspect({ crashes: crashes + (nodeId !== null && dead.includes(nodeId) ? 1 : 0) });
  const first = hasSuspect ? undefined : candidates.find(willBe);
  return candidates.filter((candidate) => candidate === first || !willBe(candidate));
}

/** Of rows that dead workers held: all but those that will be suspects once they are claimed. */
export const notSuspicious: Sql = sql`crashes <> ${SUSPICIOUS_CRASHES - 1}`;
