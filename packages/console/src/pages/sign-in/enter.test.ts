import { expect, test } from 'vitest';
import { consolePath } from './enter.ts';

test.each([
  '//evil.example/',
  '///evil.example/',
  'https://evil.example/',
  'HTTPS:evil.example',
  '/\\evil.example',
  '\\\\evil.example',
  '/%2F/evil.example',
  '/\t/evil.example',
  '\t//evil.example',
  'evil.example',
  '@evil.example',
  'javascript:alert(1)',
  '',
])('after signing in, %j leads to a page of the console', (from) => {
  const { origin, pathname } = new URL(consolePath(from), 'https://signalbox.example');
  expect([origin, pathname.startsWith('/console/')]).toEqual(['https://signalbox.example', true]);
});

test('after signing in, the page that was asked for opens, with its filters; the first page if there is none', () => {
  expect(consolePath('/org_1/sessions?status=idle#end')).toBe('/console/org_1/sessions?status=idle#end');
  expect(consolePath(undefined)).toBe('/console/');
});
