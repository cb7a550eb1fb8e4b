import { expect, test } from 'vitest';
import { canonicalHost, isAllowedHost } from './secrets.ts';

test.each([
  ['API.Example.com', 'api.example.com'],
  ['*.example.com:0443', '*.example.com:443'],
  ['127.1', '127.0.0.1'],
  ['127.0.0.1:4500', '127.0.0.1:4500'],
  ['[0:0:0:0:0:0:0:1]:80', '[::1]:80'],
  ['my_service', 'my_service'],
])('%s is kept as the host of a url is written, and allows one', (given, kept) => {
  const entry = canonicalHost(given);
  expect(entry).toBe(kept);
  expect(isAllowedHost([entry], new URL(`https://${given.replace('*', 'x')}/`))).toBe(true);
});

test.each([
  '999.1.1.1',
  '*.127.0.0.1',
  '*.[::1]',
  '[::g]',
  '[1.2.3.4]',
  'example.com:0',
  'example.com:65536',
  '1.2.3.4.5',
  'example.com/path',
  'user@example.com',
  'example.com#x',
  'example.com?x',
  'example.com\\x',
  '*',
  '**',
  '*.',
  '*.*.example.com',
  'a*.example.com',
])('%s could never allow anything, and is refused', (given) => {
  expect(() => canonicalHost(given, 2)).toThrow(expect.objectContaining({ code: 'invalid_request' }));
  expect(() => canonicalHost(given, 2)).toThrow(/allowedHosts\[2\]/);
});

test.each([
  ['*.example.com', 'https://example.com/'],
  ['*.example.com', 'https://notexample.com/'],
  ['*.example.com', 'https://x.example.com.example.org/'],
  ['*.example.com:8443', 'https://x.example.com/'],
  ['example.com', 'https://x.example.com/'],
  ['example.com:443', 'http://example.com/'],
])('%s allows nothing at %s', (entry, url) => {
  expect(isAllowedHost([entry], new URL(url))).toBe(false);
});
