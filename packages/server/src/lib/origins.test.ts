import { expect, test } from 'vitest';
import { isAllowedOrigin, problemWithOrigin } from './origins.ts';

test.each([
  'https://app.example.com',
  'https://app.example.com:8443',
  'http://localhost:5173',
  'http://127.0.0.1:3000',
  'http://[::1]:3000',
  'https://*.example.com',
  'https://*.example.com:8443',
  'https://xn--mnchen-3ya.example',
])('%s can be allowed', (entry) => {
  expect(problemWithOrigin(entry)).toBeUndefined();
});

test.each([
  '*',
  'null',
  '',
  'https://',
  'https://*',
  'https://*.com',
  'http://*.example.com',
  'https://app.*.example.com',
  'https://*.*.example.com',
  'https://*example.com',
  'https://*.10.0.0.1',
  'https://app.example.com/',
  'https://app.example.com/chat',
  'https://app.example.com?x',
  'https://app.example.com#x',
  'https://app.example.com:443',
  'https://user@app.example.com',
  'https://App.example.com',
  'https://münchen.example',
  ' https://app.example.com',
  'https://app.example.com\n',
  'file://',
  'javascript:alert(1)',
  'chrome-extension://abcdef',
  'app.example.com',
])('%j cannot be allowed', (entry) => {
  expect(problemWithOrigin(entry)).toMatch(/^must /);
});

test('an origin is allowed only by itself', () => {
  const allowed = ['https://app.example.com', 'http://localhost:5173'];
  for (const origin of allowed) expect(isAllowedOrigin(allowed, origin)).toBe(true);
  for (const origin of [
    'null',
    '',
    'http://app.example.com',
    'https://app.example.com:8443',
    'https://app.example.com.evil.example',
    'https://evil-app.example.com',
    'https://sub.app.example.com',
    'http://localhost',
  ])
    expect(isAllowedOrigin(allowed, origin)).toBe(false);
});

test('a pattern allows the subdomains of its domain, at any depth, and not the domain itself', () => {
  const allowed = ['https://*.example.com'];
  expect(isAllowedOrigin(allowed, 'https://a.example.com')).toBe(true);
  expect(isAllowedOrigin(allowed, 'https://a.b.example.com')).toBe(true);
  for (const origin of [
    'https://example.com',
    'https://.example.com',
    'https://evil.example, https://a.example.com',
    'https://evil.example/.example.com',
    'https://evil.example#.example.com',
    'https://evil.example:443@a.example.com',
    'http://a.example.com',
    'https://a.example.com:8443',
    'https://aexample.com',
    'https://a.example.com.evil.example',
  ])
    expect(isAllowedOrigin(allowed, origin)).toBe(false);
});
