import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  deliveryRetryDelayMs,
  errorOfStatus,
  maxRetryAfterMs,
  retryAfterMs,
  retryDelaysMs,
  verdictOf,
} from './back-off.ts';

const now = new Date('2026-01-01T00:00:00.000Z');

test('a retry follows after the wait of the schedule and at most a tenth later', () => {
  fc.assert(
    fc.property(
      fc.nat(retryDelaysMs.length - 1),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (n, r) => {
        const delay = deliveryRetryDelayMs(n, r)!;
        expect(delay).toBeGreaterThanOrEqual(retryDelaysMs[n]!);
        expect(delay).toBeLessThanOrEqual(Math.ceil(retryDelaysMs[n]! * 1.1));
      },
    ),
  );
});

test('there are at most twelve retries', () => {
  expect(retryDelaysMs).toHaveLength(12);
  expect(deliveryRetryDelayMs(12, 0)).toBeUndefined();
  expect(deliveryRetryDelayMs(12, 0, 60_000)).toBeUndefined();
});

test('the Retry-After of a receiver is a minimum', () => {
  expect(deliveryRetryDelayMs(0, 0, 60_000)).toBe(60_000);
  expect(deliveryRetryDelayMs(3, 0, 60_000)).toBe(retryDelaysMs[3]);
});

describe('Retry-After', () => {
  test('is read as seconds and as a date', () => {
    expect(retryAfterMs(429, '120', now)).toBe(120_000);
    expect(retryAfterMs(503, ' 7 ', now)).toBe(7_000);
    expect(retryAfterMs(503, 'Thu, 01 Jan 2026 00:01:00 GMT', now)).toBe(60_000);
  });

  test('is respected up to a day, and ignored if it is in the past', () => {
    expect(retryAfterMs(429, '99999999', now)).toBe(maxRetryAfterMs);
    expect(retryAfterMs(429, '9'.repeat(400), now)).toBe(maxRetryAfterMs);
    expect(retryAfterMs(429, 'Fri, 01 Jan 2100 00:00:00 GMT', now)).toBe(maxRetryAfterMs);
    expect(retryAfterMs(429, 'Thu, 01 Jan 1970 00:00:00 GMT', now)).toBe(0);
  });

  test('is ignored with another status, or if it is invalid', () => {
    expect(retryAfterMs(500, '120', now)).toBe(0);
    for (const header of ['', '-5', '1.5', 'soon', '5 minutes', undefined, ['1', '2']]) {
      expect(retryAfterMs(429, header, now), String(header)).toBe(0);
    }
    fc.assert(fc.property(fc.string(), (header) => Number.isFinite(retryAfterMs(429, header, now))));
  });
});

test('only 2xx is accepted, and a redirect is a failure', () => {
  fc.assert(
    fc.property(fc.integer({ min: 100, max: 599 }), (status) => {
      expect(verdictOf(status) === 'accepted').toBe(status >= 200 && status < 300);
      expect(errorOfStatus(status) === null).toBe(status >= 200 && status < 300);
    }),
  );
  expect([400, 401, 403].map(verdictOf)).toEqual(['refused', 'refused', 'refused']);
  expect(verdictOf(410)).toBe('gone');
  expect(verdictOf(302)).toBe('failed');
  expect(errorOfStatus(302)).toBe('redirect');
  expect(errorOfStatus(500)).toBe('status');
});
