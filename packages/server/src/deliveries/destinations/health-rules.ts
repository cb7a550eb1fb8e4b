// Decides the health of a destination from the results of attempts, whichever delivery they belong to.
//
//   healthy   the last attempt was accepted, or fewer than 5 in a row failed
//   probed    5 in a row failed: one attempt after 30 s, doubling up to 15 min, until one is accepted
//   degraded  it has failed for a day: an event warns the operators
//   disabled  it has failed for 5 days: nothing more is sent until a caller enables the subscription
//
// What must be sent in order is a lane: the chunks of a session. If all failures are of one lane, the cause may be what it contains, so
// only it is probed and the others continue. These functions
// do no I/O; destination-health.ts stores what they decide.
import { exponentialMs } from '../../lib/back-off.ts';

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const MAX_FAILURES_IN_A_ROW = 5;
const FIRST_PROBE_MS = 30 * SECOND_MS;
const MAX_PROBE_MS = 15 * MINUTE_MS;
// Between two attempts at a failing destination there is at most a day: the longest wait of the retry schedule, or a `Retry-After`.
// After a longer gap it is unknown whether the destination failed in between, so the failure counts from the later attempt.
const MAX_GAP_MS = 25 * HOUR_MS;
const DEGRADED_AFTER_MS = DAY_MS;
const DISABLED_AFTER_MS = 5 * DAY_MS;
// After a shorter failure, retries are due soon enough without rescheduling them.
const LONG_FAILURE_MS = 15 * MINUTE_MS;

export interface Health {
  /** When the first attempt after the last accepted one failed; null if the last one was accepted. */
  failingSince: Date | null;
  lastFailureAt: Date | null;
  /** Failures in a row; attempts that were in flight when probing began don't count. */
  failures: number;
  /** The lane, if only one lane's deliveries failed; null: none or several. */
  failingLane: string | null;
  /** The error and the HTTP status of the last attempt; null if it was accepted or there was no response. */
  lastError: string | null;
  lastStatus: number | null;
  /** When the next probe may be sent; null: no probing, all deliveries may be sent. */
  probeAt: Date | null;
}

/** The health of a destination before the first attempt. */
export const healthy: Health = {
  failingSince: null,
  lastFailureAt: null,
  failures: 0,
  failingLane: null,
  lastError: null,
  lastStatus: null,
  probeAt: null,
};

export interface Failure {
  lane: string;
  at: Date;
  /** The attempt was a probe. */
  isProbe: boolean;
  /** The receiver's `Retry-After`; 0 if it sent none. */
  retryAfterMs: number;
  error: string | null;
  status: number | null;
}

export function afterSuccess({ lastFailureAt }: Health): Health {
  return { ...healthy, lastFailureAt };
}

export function afterFailure(before: Health, { lane, at, isProbe, retryAfterMs, error, status }: Failure): Health {
  const { failingSince, lastFailureAt, probeAt } = before;
  const isGap = lastFailureAt !== null && at.getTime() - lastFailureAt.getTime() > MAX_GAP_MS;
  const isCounted = probeAt === null || isProbe;
  const failures = before.failures + (isCounted ? 1 : 0);
  const after: Health = {
    failingSince: failingSince === null || isGap ? at : failingSince,
    lastFailureAt: at,
    failures,
    failingLane: before.failures === 0 || before.failingLane === lane ? lane : null,
    lastError: error,
    lastStatus: status,
    probeAt,
  };
  if (failures < MAX_FAILURES_IN_A_ROW) return after;
  const delayMs = isCounted ? probeDelayMs(failures) : 0;
  const next = at.getTime() + Math.max(delayMs, retryAfterMs);
  return { ...after, probeAt: new Date(Math.max(next, probeAt?.getTime() ?? 0)) };
}

/** The next delivery of any lane is the probe. */
export function probingAnyLane(health: Health): Health {
  return { ...health, failingLane: null };
}

/** The wait before the next probe after this many failures in a row. */
function probeDelayMs(failures: number): number {
  return exponentialMs(failures - MAX_FAILURES_IN_A_ROW + 1, FIRST_PROBE_MS, MAX_PROBE_MS);
}

/** Whether this lane's deliveries wait for a probe; without a lane: whether all do. */
export function awaitsProbe({ probeAt, failingLane }: Health, lane?: string): boolean {
  return probeAt !== null && (failingLane === null || failingLane === lane);
}

/** Whether the failure was long enough that pending retries should be sent as soon as an attempt is accepted. */
export function wasLongOutage({ failingSince }: Health, now: Date): boolean {
  return failingSince !== null && now.getTime() - failingSince.getTime() >= LONG_FAILURE_MS;
}

/** The state of a destination after a failure. */
export function severityOf({ failingSince }: Health, now: Date): 'failing' | 'degraded' | 'disabled' {
  const forMs = failingSince === null ? 0 : now.getTime() - failingSince.getTime();
  if (forMs >= DISABLED_AFTER_MS) return 'disabled';
  return forMs >= DEGRADED_AFTER_MS ? 'degraded' : 'failing';
}
