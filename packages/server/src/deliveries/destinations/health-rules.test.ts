import { expect, test } from 'vitest';
import {
  afterFailure,
  afterSuccess,
  awaitsProbe,
  type Health,
  healthy,
  severityOf,
  wasLongOutage,
} from './health-rules.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const start = new Date('2026-01-01T00:00:00.000Z');
const later = (ms: number) => new Date(start.getTime() + ms);

function fail(health: Health, more: Partial<Parameters<typeof afterFailure>[1]> = {}): Health {
  return afterFailure(health, {
    lane: 'a',
    at: start,
    isProbe: false,
    retryAfterMs: 0,
    error: 'timeout',
    status: null,
    ...more,
  });
}

/** The health after this many failures in a row of two lanes. */
function failed(count: number): Health {
  let health = healthy;
  for (let n = 0; n < count; n += 1) health = fail(health, { lane: n % 2 ? 'a' : 'b' });
  return health;
}

test('four failures in a row change nothing; after the fifth all deliveries wait for one attempt 30 s later', () => {
  expect(awaitsProbe(failed(4))).toBe(false);
  expect(failed(5).probeAt).toEqual(later(30_000));
  expect(awaitsProbe(failed(5))).toBe(true);
  expect(awaitsProbe(failed(5), 'c')).toBe(true);
});

test('an accepted attempt resets the count of failures', () => {
  const between = fail(afterSuccess(failed(4)));
  expect(between.failures).toBe(1);
  expect(afterSuccess(failed(9))).toMatchObject({ failures: 0, probeAt: null, failingSince: null });
});

test('probes follow after 30 s, doubling up to 15 min', () => {
  let health = failed(5);
  const waits = [health.probeAt!.getTime() - start.getTime()];
  for (let n = 0; n < 7; n += 1) {
    const at = health.probeAt!;
    health = fail(health, { at, isProbe: true });
    waits.push(health.probeAt!.getTime() - at.getTime());
  }
  expect(waits.map((ms) => ms / 1000)).toEqual([30, 60, 120, 240, 480, 900, 900, 900]);
});

test('attempts in flight when probing began do not postpone the probe', () => {
  let health = failed(5);
  for (let n = 0; n < 200; n += 1) health = fail(health, { at: later(15_000) });
  expect(health.probeAt).toEqual(later(30_000));
  expect(health.failures).toBe(5);
});

test('a receiver may ask for a longer wait', () => {
  expect(fail(failed(4), { retryAfterMs: HOUR_MS }).probeAt).toEqual(later(HOUR_MS));
  expect(fail(failed(5), { retryAfterMs: HOUR_MS }).probeAt).toEqual(later(HOUR_MS));
  expect(fail(failed(5), { retryAfterMs: 1 }).probeAt).toEqual(later(30_000));
});

test('if only one lane fails, only that one waits for a probe; if another fails too, all do', () => {
  let health = healthy;
  for (let n = 0; n < 5; n += 1) health = fail(health);
  expect(awaitsProbe(health, 'a')).toBe(true);
  expect(awaitsProbe(health, 'b')).toBe(false);
  expect(awaitsProbe(health)).toBe(false);
  health = fail(health, { lane: 'b' });
  expect(awaitsProbe(health)).toBe(true);
  expect(health.probeAt).toEqual(later(30_000));
});

test('a day of failures degrades the destination, five days disable it', () => {
  const health = failed(5);
  expect(severityOf(health, later(24 * HOUR_MS - 1))).toBe('failing');
  expect(severityOf(health, later(24 * HOUR_MS))).toBe('degraded');
  expect(severityOf(health, later(5 * 24 * HOUR_MS))).toBe('disabled');
});

test('failures far apart are not one long failure', () => {
  const at = later(26 * HOUR_MS);
  const health = fail(failed(5), { at });
  expect(health.failingSince).toEqual(at);
  expect(fail(failed(5), { at: later(24 * HOUR_MS) }).failingSince).toEqual(start);
});

test('pending retries are rescheduled only after a long failure', () => {
  expect(wasLongOutage(failed(5), later(15 * MINUTE_MS - 1))).toBe(false);
  expect(wasLongOutage(failed(5), later(15 * MINUTE_MS))).toBe(true);
  expect(wasLongOutage(healthy, later(HOUR_MS))).toBe(false);
});
