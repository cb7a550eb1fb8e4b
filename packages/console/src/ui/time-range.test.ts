import { expect, test, vi } from 'vitest';
import { rangeText, readRange, timesOf } from './time-range.tsx';

const now = Date.parse('2026-11-22T12:00:00Z');
const since = '2026-11-20T08:00:00.000Z';
const until = '2026-11-21T08:00:00.000Z';

test('a range in the URL is a preset or two times, either of which may be absent', () => {
  for (const range of ['1h', '24h', '7d', '30d', `${since}/${until}`, `${since}/`, `/${until}`]) {
    expect(readRange(range)).toBe(range);
  }
  for (const text of ['', '/', '2h', 'toString', since, 'x/y', `${since}/${until}/`, 7, undefined]) {
    expect(readRange(text)).toBe(undefined);
  }
});

test('a preset ends now, and other ranges are the times that they name', () => {
  expect(timesOf('24h', now)).toEqual({ since: '2026-11-21T12:00:00.000Z' });
  expect(timesOf(`${since}/${until}`, now)).toEqual({ since, until });
  expect(timesOf(`/${until}`, now)).toEqual({ until });
});

test('a range is shown in words', () => {
  vi.stubGlobal('localStorage', { getItem: () => null });
  expect(rangeText('7d')).toBe('Last 7 days');
  expect(rangeText(`${since}/`)).toMatch(/^Since .*2026/);
  expect(rangeText(`/${until}`)).toMatch(/^Until .*2026/);
  expect(rangeText(`${since}/${until}`)).toMatch(/2026.* to .*2026/);
});
