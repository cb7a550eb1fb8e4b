import { afterEach, expect, test, vi } from 'vitest';
import { pointLabel } from './analytics-time.ts';

afterEach(() => vi.unstubAllGlobals());

const at = '2026-11-26T22:30:00.000Z';

test.each([
  ['Asia/Tokyo', 'minute', '7:30'],
  ['Asia/Tokyo', 'hour', 'Fri'],
  ['America/New_York', 'minute', '5:30'],
  ['America/New_York', 'hour', 'Thu'],
  // Named, because it is not the browser's.
  ['Asia/Tokyo', 'hour', 'GMT+9'],
  // The service counts days of UTC.
  ['Asia/Tokyo', 'day', 'Nov 26'],
] as const)('a person in %s sees the %s of a point in a chart as %s', (zone, step, text) => {
  vi.stubGlobal('localStorage', { getItem: () => JSON.stringify({ style: 'relative', zone }) });
  vi.stubGlobal('navigator', { languages: ['en-US'] });
  expect(pointLabel({ at }, step)).toContain(text);
});
