// A time limit as an abort signal.
import { EgressError } from '../../egress/errors.ts';
import { OVER } from '../../lib/aborted.ts';
import type { Clock } from '../../lib/clock.ts';

export interface Deadline {
  /** Aborted when the time is up (its reason is an `EgressError`), or when one of the given signals is. */
  readonly signal: AbortSignal;
  /** Call it when the work is done, to stop the timer. */
  end(): void;
}

export function startDeadline(clock: Clock, seconds: number, ...signals: AbortSignal[]): Deadline {
  const late = new AbortController();
  const over = new AbortController();
  clock.sleep(seconds * 1000, over.signal).then(
    () => late.abort(new EgressError('timeout', `not finished within ${seconds} s`)),
    () => {},
  );
  return { signal: AbortSignal.any([late.signal, ...signals]), end: () => over.abort(OVER) };
}
