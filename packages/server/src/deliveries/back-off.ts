// What a response means, and when a delivery is retried.

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** The wait before each retry: short at first, to bridge a restart, then long enough for a night or a weekend; three days in total. */
export const retryDelaysMs: readonly number[] = [
  5 * SECOND_MS,
  30 * SECOND_MS,
  2 * MINUTE_MS,
  10 * MINUTE_MS,
  30 * MINUTE_MS,
  HOUR_MS,
  2 * HOUR_MS,
  4 * HOUR_MS,
  8 * HOUR_MS,
  12 * HOUR_MS,
  24 * HOUR_MS,
  24 * HOUR_MS,
];

// Spreads the retries of deliveries that failed together.
const JITTER = 0.1;

/** The longest `Retry-After` that is respected. */
export const maxRetryAfterMs = 24 * HOUR_MS;

/**
 * - `accepted`: the receiver has the delivery.
 * - `gone`: the receiver wants no further deliveries (410).
 * - `refused`: the receiver rejected the signature or the body (400, 401, 403).
 * - `failed`: anything else, including redirects.
 */
export type Verdict = 'accepted' | 'gone' | 'refused' | 'failed';

export function verdictOf(status: number): Verdict {
  if (status >= 200 && status < 300) return 'accepted';
  if (status === 410) return 'gone';
  return status === 400 || status === 401 || status === 403 ? 'refused' : 'failed';
}

/** The error code that an attempt with this status shows; null if it was accepted. */
export function errorOfStatus(status: number): 'redirect' | 'status' | null {
  if (verdictOf(status) === 'accepted') return null;
  return status >= 300 && status < 400 ? 'redirect' : 'status';
}

/**
 * How long to wait before the next retry; undefined after the last one. `retries` is how many waits were used already, `random` is 0
 * up to 1, `floorMs` is the receiver's `Retry-After`.
 */
export function deliveryRetryDelayMs(retries: number, random: number, floorMs = 0): number | undefined {
  const delay = retryDelaysMs[retries];
  return delay === undefined ? undefined : Math.max(Math.ceil(delay * (1 + JITTER * random)), floorMs);
}

/** The wait that the `Retry-After` of a 429 or 503 asks for, in seconds or as a date; 0 if there is none. */
export function retryAfterMs(status: number, header: string | string[] | undefined, now: Date): number {
  if ((status !== 429 && status !== 503) || typeof header !== 'string') return 0;
  const text = header.trim();
  const ms = /^\d+$/.test(text) ? Number(text) * SECOND_MS : httpDate(text) - now.getTime();
  return Number.isNaN(ms) ? 0 : Math.min(Math.max(ms, 0), maxRetryAfterMs);
}

// `Date.parse` alone would read "5" as a month of 2001.
function httpDate(text: string): number {
  return /^[A-Z][a-z]{2,8},? .*\d\d:\d\d:\d\d/.test(text) ? Date.parse(text) : Number.NaN;
}
