// Sessions whose step crashes the process that runs it. The next process would crash too, and the one after it. Each claim from a
// dead node is therefore counted on the session's row (`crashes`), and after three of them the turn fails instead of running again.
//
// A process that crashes has many active sessions, and the crash counts for all of them. To protect the others, a session whose
// step has met two crashes is a suspect, and a node runs one suspect at a time: the third crash shows which session it was.
//
// A session that a node releases (a restart, a deployment) is not claimed from a dead node, and the end of the step resets the
// count. A process that was only paused for longer than its lease is alive: when it finds that it lost the session, it removes
// its own count.
import sql, { type Sql } from 'sql-template-tag';
import type { SessionRow } from '../../session-rows/session.ts';
import { TurnStopped } from '../../turn/stop-turn.ts';
import type { TurnEvent } from '../../turn/turn.ts';

const MAX_CRASHES = 3;
const SUSPICIOUS_CRASHES = MAX_CRASHES - 1;

type SessionAt = Pick<SessionRow, 'organizationId' | 'sessionId' | 'epoch'>;

/** Why the turn is not run again; undefined if it is. */
export function crashFailure(
  { crashes }: Pick<SessionRow, 'crashes'>,
  maxCrashes = MAX_CRASHES,
): TurnStopped | undefined {
  if (crashes < maxCrashes) return undefined;
  const message = `The service crashed ${crashes} times while running this step, so the turn was ended.`;
  return new TurnStopped('error', { code: 'step_crashed', message });
}

export function isSuspect({ crashes }: Pick<SessionRow, 'crashes'>): boolean {
  return crashes === SUSPICIOUS_CRASHES;
}

/** Whether the model call or the step is over, so that what runs next is something else. */
export function endsCrashCount({ type }: TurnEvent): boolean {
  return ['responded', 'compacted', 'stepEnded', 'repair', 'wait', 'modelUnavailable', 'end', 'fail'].includes(type);
}

/** For the update that claims rows of `sessions s`. Workers that died with a worker turn (`queue`) do not count. */
export function countCrash(dead: readonly string[]): Sql {
  return sql`crashes = s.crashes
    + case when s.node_id = any(${[...dead]}::uuid[]) and s.queue is null and s.status = 'running' then 1 else 0 end`;
}

/** For a node that lost this session and is alive: the claim that took it counted a crash that did not happen. */
export function uncountCrash({ organizationId, sessionId, epoch }: SessionAt): Sql {
  return sql`
    update sessions set crashes = crashes - 1
    where organization_id = ${organizationId} and session_id = ${sessionId}
      and epoch > ${epoch} and crashes > 0 and ended_at is null`;
}

/** The values that decide whether a session will be a suspect. */
type Counted = Pick<SessionRow, 'crashes' | 'nodeId'>;

/** All but those that will be suspects once claimed, and the first of those unless one is active already. */
export function limitToOneSuspect<C extends Counted>(
  candidates: readonly C[],
  dead: readonly string[],
  hasSuspect: boolean,
): C[] {
  const willBe = ({ crashes, nodeId }: C) =>
    isSuspect({ crashes: crashes + (nodeId !== null && dead.includes(nodeId) ? 1 : 0) });
  const first = hasSuspect ? undefined : candidates.find(willBe);
  return candidates.filter((candidate) => candidate === first || !willBe(candidate));
}

/** For a query of the rows of dead nodes: all but those that will be suspects once they are claimed. */
export const notSuspicious: Sql = sql`crashes <> ${SUSPICIOUS_CRASHES - 1}`;
