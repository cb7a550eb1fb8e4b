/**
 * Which failures are retried, and when: pure decisions.
 *
 * Only requests that are safe to repeat are retried: GET, PUT and DELETE by their nature, and POST because every call has an
 * idempotency key that stays the same for all of its attempts. A PATCH, and a PUT that only creates, are retried only after a 429,
 * which is sent before the request has any effect.
 */
import { ConnectionError, type SignalboxError } from './errors.ts';

/** Temporary failures of the service or of a proxy in front of it. */
const temporaryStatuses = new Set([408, 429, 500, 502, 503, 504]);

const firstDelayMs = 500;
const longestDelayMs = 8_000;
/** If the service asks for a longer pause than this, there is no retry: the caller should decide, not a sleeping call. */
const longestRetryAfterMs = 60_000;

/** Whether the same request may succeed a little later. */
export function isTemporary(error: SignalboxError): boolean {
  return (
    error instanceof ConnectionError || temporaryStatuses.has(error.status) || error.code === 'idempotency_in_progress'
  );
}

/**
 * How long to wait before the next attempt, in milliseconds; null: do not retry.
 *
 * @param attempt counts from 0
 * @param random in [0, 1)
 */
export function retryDelayMs(
  isRepeatable: boolean,
  error: SignalboxError,
  attempt: number,
  random: number,
  now: Date,
): number | null {
  if (!isTemporary(error) || (!isRepeatable && error.status !== 429)) return null;
  const requestedMs = retryAfterMs(error.headers, now);
  if (requestedMs === null) return backoffMs(attempt, random, longestDelayMs);
  return requestedMs > longestRetryAfterMs ? null : requestedMs;
}

/** Doubles with each attempt up to `longestMs`, minus up to half at random, so that many clients don't return at once. */
export function backoffMs(attempt: number, random: number, longestMs: number): number {
  return Math.min(longestMs, firstDelayMs * 2 ** attempt) * (1 - random / 2);
}

/** `Retry-After` in milliseconds, from seconds or a date; null: absent or unreadable. */
export function retryAfterMs(headers: Headers, now: Date): number | null {
  const value = headers.get('retry-after');
  if (value === null) return null;
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  const at = Date.parse(value);
  return Number.isNaN(at) ? null : Math.max(0, at - now.getTime());
}
