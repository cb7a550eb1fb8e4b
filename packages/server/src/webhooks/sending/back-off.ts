// What an answer means, and when a delivery is sent again.

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** The waits before each retry: short ones for a restart, long ones for a night and a weekend; three days in all. */
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

// Spreads what failed together, so that it does not come back together.
const JITTER = 0.1;

/** A receiver may put a retry off, but not for ever. */
export const maxRetryAfterMs = 24 * HOUR_MS;

/**
 * - `accepted`: the receiver has it.
 * - `gone`: it wants nothing more (410).
 * - `refused`: it did not take the signature, or the body.
 * - `failed`: anything else, redirects included.
 */
export type Verdict = 'accepted' | 'gone' | 'refused' | 'failed';

export function verdictOf(status: number): Verdict {
  if (status >= 200 && status < 300) return 'accepted';
  if (status === 410) return 'gone';
  return status === 400 || status === 401 || status === 403 ? 'refused' : 'failed';
}

/** The class of error of an answer, as the attempt shows it. */
export function errorOfStatus(status: number): 'redirect' | 'status' | null {
  if (verdictOf(status) === 'accepted') return null;
  return status >= 300 && status < 400 ? 'redirect' : 'status';
}

/**
 * How long to wait, or undefined after the last retry. `retries`: how many waits were used already; `random`: 0 up to 1;
 * `floorMs`: what the receiver asked for.
 */
export function retryDelayMs(retries: number, random: number, floorMs = 0): number | undefined {
  const delay = retryDelaysMs[retries];
  return delay === undefined ? undefined : Math.max(Math.ceil(delay * (1 + JITTER * random)), floorMs);
}

/** What `Retry-After` of a 429 or 503 asks for, as seconds or as a date; 0 where it asks for nothing. */
export function retryAfterMs(status: number, header: string | string[] | undefined, now: Date): number {
  if ((status !== 429 && status !== 503) || typeof header !== 'string') return 0;
  const text = header.trim();
  const ms = /^\d+$/.test(text) ? Number(text) * SECOND_MS : httpDate(text) - now.getTime();
  return Number.isNaN(ms) ? 0 : Math.min(Math.max(ms, 0), maxRetryAfterMs);
}

// `Date.parse` alone would take "5" for a month of 2001.
function httpDate(text: string): number {
  return /^[A-Z][a-z]{2,8},? .*\d\d:\d\d:\d\d/.test(text) ? Date.parse(text) : Number.NaN;
}
