import { afterEach, expect, test, vi } from 'vitest';
import { instantOf, localOf } from './local-time.ts';

afterEach(() => vi.unstubAllGlobals());

function choose(zone: string): void {
  vi.stubGlobal('localStorage', { getItem: () => JSON.stringify({ zone }) });
}

test.each([
  ['UTC', '2026-11-27T09:30:15', '2026-11-27T09:30:15.000Z'],
  ['Asia/Tokyo', '2026-11-27T09:30:15', '2026-11-27T00:30:15.000Z'],
  ['Asia/Kolkata', '2026-11-27T02:00:00', '2026-11-26T20:30:00.000Z'],
  ['America/New_York', '2026-07-01T20:00:00', '2026-07-02T00:00:00.000Z'],
  ['America/New_York', '2026-12-31T20:00:00', '2027-01-01T01:00:00.000Z'],
  // An hour after the clocks went forward, and an hour before they went back.
  ['Europe/Berlin', '2026-03-29T03:30:00', '2026-03-29T01:30:00.000Z'],
  ['Europe/Berlin', '2026-10-25T01:30:00', '2026-10-24T23:30:00.000Z'],
  // Shown twice: the first one.
  ['Europe/Berlin', '2026-10-25T02:30:00', '2026-10-25T00:30:00.000Z'],
])('in %s, %s on an input is %s, and back', (zone, local, instant) => {
  choose(zone);
  expect(instantOf(local)).toBe(instant);
  expect(localOf(instant)).toBe(local);
});

test('a time without seconds is accepted, and one that the clocks skip is as much later', () => {
  choose('Europe/Berlin');
  expect(instantOf('2026-11-27T09:30')).toBe('2026-11-27T08:30:00.000Z');
  expect(instantOf('2026-03-29T02:30')).toBe('2026-03-29T01:30:00.000Z');
});

test('no time, and what is not one, have no instant and no value', () => {
  choose('Asia/Tokyo');
  for (const text of ['', 'tomorrow', '2026-13-01T00:00']) expect(instantOf(text)).toBe(undefined);
  for (const text of [undefined, 'tomorrow']) expect(localOf(text)).toBe('');
});
