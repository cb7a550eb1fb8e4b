// What the answers of a destination, whichever delivery they were given to, say of it.
//
//   healthy   the last attempt was accepted, or fewer than 5 in a row were not
//   probed    5 in a row were not: one attempt every 30 s, doubling to 15 min, until one is accepted
//   degraded  it has failed for a day: someone should hear of it
//   disabled  it has failed for 5 days: nothing more is sent until a person says so
//
// Where all of the failures are of one Session it may be the Session, so that alone is probed and the others go on. These are
// decisions without I/O; standing.ts keeps what they decide.
import { exponentialMs } from '../../lib/back-off.ts';

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const MAX_FAILURES_IN_A_ROW = 5;
const FIRST_PROBE_MS = 30 * SECOND_MS;
const MAX_PROBE_MS = 15 * MINUTE_MS;
// A destination that is attempted again and again has at most a day, of the retry schedule or a `Retry-After`, between two
// attempts. Where there was more, nobody knows that it failed meanwhile.
const MAX_GAP_MS = 25 * HOUR_MS;
const DEGRADED_AFTER_MS = DAY_MS;
const DISABLED_AFTER_MS = 5 * DAY_MS;
// Deliveries that failed in a shorter time have not waited long enough to need hurrying.
const LONG_FAILURE_MS = 15 * MINUTE_MS;

export interface Health {
  /** When the first attempt failed since one was accepted; null: the last was. */
  failingSince: Date | null;
  lastFailureAt: Date | null;
  /** In a row; those that were under way when the probing began are not counted. */
  failures: number;
  /** The one Session whose deliveries failed; null: none, or several. */
  failingSessionId: string | null;
  /** What the last attempt came to, and the HTTP status of its answer; null: it was accepted, or there was no answer. */
  lastError: string | null;
  lastStatus: number | null;
  /** When one may be attempted; null: all may. */
  probeAt: Date | null;
}

/** What is known of a destination that nothing was sent to. */
export const healthy: Health = {
  failingSince: null,
  lastFailureAt: null,
  failures: 0,
  failingSessionId: null,
  lastError: null,
  lastStatus: null,
  probeAt: null,
};

export interface Failure {
  sessionId: string;
  at: Date;
  /** It was sent to see whether the destination is back. */
  isProbe: boolean;
  /** What the receiver asked to wait. */
  retryAfterMs: number;
  error: string | null;
  status: number | null;
}

export function afterSuccess({ lastFailureAt }: Health): Health {
  return { ...healthy, lastFailureAt };
}

export function afterFailure(before: Health, { sessionId, at, isProbe, retryAfterMs, error, status }: Failure): Health {
  const { failingSince, lastFailureAt, probeAt } = before;
  const isGap = lastFailureAt !== null && at.getTime() - lastFailureAt.getTime() > MAX_GAP_MS;
  const isCounted = probeAt === null || isProbe;
  const failures = before.failures + (isCounted ? 1 : 0);
  const after: Health = {
    failingSince: failingSince === null || isGap ? at : failingSince,
    lastFailureAt: at,
    failures,
    failingSessionId: before.failures === 0 || before.failingSessionId === sessionId ? sessionId : null,
    lastError: error,
    lastStatus: status,
    probeAt,
  };
  if (failures < MAX_FAILURES_IN_A_ROW) return after;
  const delayMs = isCounted ? probeDelayMs(failures) : 0;
  const next = at.getTime() + Math.max(delayMs, retryAfterMs);
  return { ...after, probeAt: new Date(Math.max(next, probeAt?.getTime() ?? 0)) };
}

/** Whichever Session has something to send is probed next. */
export function probingAnySession(health: Health): Health {
  return { ...health, failingSessionId: null };
}

/** The wait before the next probe, after so many failures in a row. */
function probeDelayMs(failures: number): number {
  return exponentialMs(failures - MAX_FAILURES_IN_A_ROW + 1, FIRST_PROBE_MS, MAX_PROBE_MS);
}

/** Whether this Session's deliveries wait for a probe; without a Session: whether all do. */
export function awaitsProbe({ probeAt, failingSessionId }: Health, sessionId?: string): boolean {
  return probeAt !== null && (failingSessionId === null || failingSessionId === sessionId);
}

/** Whether what waits for retries should be sent at once now that an attempt was accepted. */
export function wasLongOutage({ failingSince }: Health, now: Date): boolean {
  return failingSince !== null && now.getTime() - failingSince.getTime() >= LONG_FAILURE_MS;
}

/** What has become of a destination that has just failed. */
export function severityOf({ failingSince }: Health, now: Date): 'failing' | 'degraded' | 'disabled' {
  const forMs = failingSince === null ? 0 : now.getTime() - failingSince.getTime();
  if (forMs >= DISABLED_AFTER_MS) return 'disabled';
  return forMs >= DEGRADED_AFTER_MS ? 'degraded' : 'failing';
}
