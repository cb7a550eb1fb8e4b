// Waiting that ends.
import { EgressError } from '../../egress/errors.ts';

export interface Deadline {
  /** Aborted when the time is up (its reason is an `EgressError`), or as one of the signals is. */
  readonly signal: AbortSignal;
  /** To be called when it is over before. */
  end(): void;
}

export function startDeadline(seconds: number, ...signals: AbortSignal[]): Deadline {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(new EgressError('timeout', `not done in ${seconds} s`)), seconds * 1000);
  return { signal: AbortSignal.any([late.signal, ...signals]), end: () => clearTimeout(timer) };
}

/** What the promise comes to, or the signal's reason, whichever is first. */
export async function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
