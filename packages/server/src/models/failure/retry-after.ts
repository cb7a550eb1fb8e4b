// How long a provider asks to wait before the next request.
import type { Clock } from '../../lib/clock.ts';
import { isRecord, type ProviderError } from '../model/provider-error.ts';

/** The longest wait that we accept from a provider. More is a mistake. */
const RETRY_AFTER_MAX_MS = 86_400_000;

/** In ms; undefined if the provider sends none, or a value that makes no sense. `isOfRate`: it refuses because of a rate. */
export function retryAfterOf(
  headers: Headers,
  error: ProviderError | undefined,
  isOfRate: boolean,
  clock: Pick<Clock, 'now'>,
): number | undefined {
  const now = clock.now().getTime();
  const ms =
    inMs(headers.get('retry-after-ms')) ??
    untilTime(headers.get('retry-after'), now) ??
    retryDelayIn(error) ??
    // Some providers say with every response when their limits begin anew.
    (isOfRate ? (untilReset(headers, now) ?? untilReset(headersIn(error), now)) : undefined);
  return ms === undefined ? undefined : Math.min(Math.max(0, Math.ceil(ms)), RETRY_AFTER_MAX_MS);
}

function inMs(value: string | null): number | undefined {
  return value !== null && /^\d{1,12}(\.\d+)?$/.test(value) ? Number(value) : undefined;
}

const EPOCH_MS = 1e12;
const EPOCH_SECONDS = 1e9;

/** Seconds, a date, or an epoch in seconds or in milliseconds. */
function untilTime(value: string | null, now: number): number | undefined {
  if (value === null) return undefined;
  if (/^\d{1,15}(\.\d+)?$/.test(value)) {
    const number = Number(value);
    if (number >= EPOCH_MS) return number - now;
    return number >= EPOCH_SECONDS ? number * 1000 - now : number * 1000;
  }
  const at = Date.parse(value);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}

/** Google sends it in the body: `details: [{ "@type": "….RetryInfo", retryDelay: "34s" }]`. */
function retryDelayIn(error: ProviderError | undefined): number | undefined {
  for (const { details } of error?.layers ?? []) {
    for (const detail of Array.isArray(details) ? details : []) {
      const ms = durationMs(isRecord(detail) ? String(detail.retryDelay) : '');
      if (ms !== undefined) return ms;
    }
  }
  return undefined;
}

/** OpenRouter repeats the headers of the provider behind it: `metadata: { headers: { "X-RateLimit-Reset": "…" } }`. */
function headersIn(error: ProviderError | undefined): Headers {
  const headers = new Headers();
  for (const { metadata } of error?.layers ?? []) {
    const given = isRecord(metadata) && isRecord(metadata.headers) ? metadata.headers : {};
    for (const [name, value] of Object.entries(given)) {
      const text = typeof value === 'number' ? String(value) : value;
      if (typeof text === 'string' && /^[\w-]+$/.test(name) && /^[\x20-\x7e]*$/.test(text)) headers.set(name, text);
    }
  }
  return headers;
}

/** Each limit has a time of its own. */
const RESETS: readonly (readonly [reset: string, remaining: string])[] = [
  // OpenAI, Groq.
  ['x-ratelimit-reset-requests', 'x-ratelimit-remaining-requests'],
  ['x-ratelimit-reset-tokens', 'x-ratelimit-remaining-tokens'],
  ...['requests', 'tokens', 'input-tokens', 'output-tokens'].map(
    (limit) => [`anthropic-ratelimit-${limit}-reset`, `anthropic-ratelimit-${limit}-remaining`] as const,
  ),
  // OpenRouter, and gateways like GitHub's.
  ['x-ratelimit-reset', 'x-ratelimit-remaining'],
];

/** When the limits are over that are exhausted. If the server does not say which these are, the first of them. */
function untilReset(headers: Headers, now: number): number | undefined {
  const waits = RESETS.flatMap(([reset, remaining]) => {
    const value = headers.get(reset);
    const ms = durationMs(value ?? '') ?? untilTime(value, now);
    return ms === undefined ? [] : [{ ms, isExhausted: headers.get(remaining)?.trim() === '0' }];
  });
  const exhausted = waits.filter(({ isExhausted }) => isExhausted);
  if (exhausted.length > 0) return Math.max(...exhausted.map(({ ms }) => ms));
  return waits.length > 0 ? Math.min(...waits.map(({ ms }) => ms)) : undefined;
}

const UNITS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds of `34s`, `1m0s`, `6ms`, `1.57s`. */
function durationMs(text: string): number | undefined {
  if (!/^(\d{1,9}(\.\d{1,9})?(ms|s|m|h|d))+$/.test(text)) return undefined;
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)];
  return parts.reduce((sum, [, number, unit]) => sum + Number(number) * UNITS[unit!]!, 0);
}
