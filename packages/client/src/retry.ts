/**
 * Which failures are tried again, and when: pure decisions.
 *
 * Only what can't happen twice is repeated: GET, PUT and DELETE by their nature, POST because every call carries an
 * idempotency key that stays the same over its attempts (api.md section 1). PATCH has none: it is repeated only after a
 * 429, which refuses before anything is done.
 */
import { ConnectionError, type SignalboxError } from './errors.ts';

/** Passing states of the service or of a proxy before it. */
const passingStatuses = new Set([408, 429, 500, 502, 503, 504]);

const firstDelayMs = 500;
const longestDelayMs = 8_000;
/** A service that asks for a longer pause than this gets no retry: the caller, not a sleeping call, should decide. */
const longestRetryAfterMs = 60_000;

/** Whether the same request may succeed a moment later. */
export function isPassing(error: SignalboxError): boolean {
  return (
    error instanceof ConnectionError || passingStatuses.has(error.status) || error.code === 'idempotency_in_progress'
  );
}

/**
 * How long to wait before the next attempt; null: there is none.
 *
 * @param attempt counts from 0
 * @param random in [0, 1)
 */
export function retryDelayMs(
  method: string,
  error: SignalboxError,
  attempt: number,
  random: number,
  now: Date,
): number | null {
  if (!isPassing(error) || (method === 'PATCH' && error.status !== 429)) return null;
  const asked = retryAfterMs(error.headers, now);
  if (asked === null) return backoffMs(attempt, random, longestDelayMs);
  return asked > longestRetryAfterMs ? null : asked;
}

/** Doubles with each attempt up to `longestMs`, less up to half by chance, so that many clients don't come back at once. */
export function backoffMs(attempt: number, random: number, longestMs: number): number {
  return Math.min(longestMs, firstDelayMs * 2 ** attempt) * (1 - random / 2);
}

/** `Retry-After` in milliseconds, given as seconds or as a date; null: none, or not readable. */
export function retryAfterMs(headers: Headers, now: Date): number | null {
  const value = headers.get('retry-after');
  if (value === null) return null;
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  const at = Date.parse(value);
  return Number.isNaN(at) ? null : Math.max(0, at - now.getTime());
}
