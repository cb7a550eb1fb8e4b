import { expect, test } from 'vitest';
import { redirectOf } from './redirect.ts';

const HOME = 'https://a.example.com/mcp?k=1';

test.each([
  ['GET', 301, '/mcp/', 'https://a.example.com/mcp/'],
  ['GET', 302, 'https://a.example.com/b', 'https://a.example.com/b'],
  ['HEAD', 303, 'b?c=1#d', 'https://a.example.com/b?c=1'],
  ['POST', 307, '/mcp/', 'https://a.example.com/mcp/'],
  ['POST', 308, '//a.example.com/b', 'https://a.example.com/b'],
  ['DELETE', 307, 'https://A.example.com:443/b', 'https://a.example.com/b'],
  ['PUT', 308, '', undefined],
  ['POST', 301, '/b', undefined],
  ['POST', 302, '/b', undefined],
  ['POST', 303, '/b', undefined],
  ['GET', 307, 'https://b.example.com/mcp', undefined],
  ['GET', 307, 'https://a.example.com:8443/mcp', undefined],
  ['GET', 307, 'http://a.example.com/mcp', undefined],
  ['GET', 307, '//a.example.com.evil.example/mcp', undefined],
  ['GET', 307, 'https://u:p@a.example.com/mcp', undefined],
  ['GET', 307, 'javascript:alert(1)', undefined],
  ['GET', 307, 'http://[', undefined],
  ['GET', 307, null, undefined],
])('%s with %i to %j is sent to %j', (method, status, location, expected) => {
  expect(redirectOf({ url: HOME, method }, status, location)?.url).toBe(expected);
});

test.each([200, 300, 304, 305, 400])('%i is not a redirect', (status) => {
  expect(redirectOf({ url: HOME, method: 'GET' }, status, '/b')).toBeUndefined();
});

test('a POST that was not processed is sent again after 301 and 302, but not after 303', () => {
  const request = { url: HOME, method: 'POST', isUnprocessed: true };
  const followed = [301, 302, 303].map((status) => redirectOf(request, status, '/b')?.url);
  expect(followed).toEqual(['https://a.example.com/b', 'https://a.example.com/b', undefined]);
});

test('http becomes https on the same host if both have the default port, and only where a secret may go', () => {
  const to = (url: string, location: string, mayReceive = true) =>
    redirectOf({ url, method: 'POST', mayReceive: () => mayReceive }, 308, location)?.url;
  expect(to('http://a.example.com/mcp', 'https://a.example.com/mcp')).toBe('https://a.example.com/mcp');
  expect(to('http://a.example.com/mcp', 'https://a.example.com/mcp', false)).toBeUndefined();
  expect(to('http://a.example.com/mcp', 'https://a.example.com:8443/mcp')).toBeUndefined();
  expect(to('http://a.example.com:8080/mcp', 'https://a.example.com/mcp')).toBeUndefined();
  expect(to('http://a.example.com/mcp', 'https://b.example.com/mcp')).toBeUndefined();
});

test('a refusal shows where the redirect leads, without what may be secret', () => {
  expect(redirectOf({ url: HOME, method: 'GET' }, 302, 'https://u:p@b.example.com/in?token=1#x')).toEqual({
    refusal: 'to another host',
    shown: 'https://b.example.com/in',
  });
});
