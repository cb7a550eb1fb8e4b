import { expect, test } from 'vitest';
import { createRedaction } from './redact.ts';
import { REMOVED, storedResponse } from './stored-response.ts';

const secret = 'sk_live_9f/8a+b7c=d6';
const redact = createRedaction({ SHOP_KEY: secret });
const stored = (headers: Record<string, string | string[]>, body?: string) =>
  storedResponse({ status: 200, headers }, 2, redact, body);
const halves = [secret.slice(0, 9), secret.slice(9)] as const;

test.each([
  ['as it is', secret],
  ['percent-encoded', encodeURIComponent(secret)],
  ['as JSON', JSON.stringify({ key: secret })],
  ['with escaped slashes', secret.replaceAll('/', '\\/')],
  ['in base64', Buffer.from(secret).toString('base64')],
  ['in base64 for URLs', Buffer.from(secret).toString('base64url')],
  ['in hex', Buffer.from(secret).toString('hex')],
  ['as the password of basic authentication', `Basic ${Buffer.from(`shop:${secret}`).toString('base64')}`],
  ['as the user of basic authentication', `Basic ${Buffer.from(`${secret}:`).toString('base64')}`],
  ['within a longer base64 text', Buffer.from(`{"a":1,"key":"${secret}","b":2}`).toString('base64')],
])('a header or body that a server echoes has no secret: %s', (_, echo) => {
  const text = JSON.stringify(stored({ 'x-echo': echo, link: `<https://shop.test/?k=${echo}>` }, `<pre>${echo}</pre>`));
  expect(text).toContain('[secret SHOP_KEY]');
  for (const form of [secret, encodeURIComponent(secret), Buffer.from(secret).toString('hex')])
    expect(text).not.toContain(form);
  expect(text).not.toContain(Buffer.from(secret).toString('base64').slice(3, -6));
});

test('headers that usually carry a credential have no value', () => {
  const names = [
    'set-cookie',
    'authorization',
    'proxy-authorization',
    'x-api-key',
    'x-auth-token',
    'x-session-id',
    'x-csrf',
  ];
  const { headers } = stored(Object.fromEntries(names.map((name) => [name, 'created-by-the-server'])));
  expect(headers).toEqual(names.map((name) => [name, REMOVED]));
});

test('a secret that is split over headers is in none of them', () => {
  expect(JSON.stringify(stored({ 'x-1': halves[0], 'x-2': halves[1] }))).not.toContain(halves[1]);
  expect(JSON.stringify(stored({ 'x-1': [...halves] }))).not.toContain(halves[0]);
  expect(stored({ 'x-1': 'a', 'x-2': 'b' }).headers).toEqual([
    ['x-1', 'a'],
    ['x-2', 'b'],
  ]);
});

test('the name of a header has no secret', () => {
  expect(
    JSON.stringify(
      storedResponse({ status: 200, headers: { hunter2abc: '1' } }, 0, createRedaction({ K: 'hunter2abc' })),
    ),
  ).toContain('[secret K]');
});

test('what is stored of a response is limited', () => {
  const headers = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`x-${index}`, 'v'.repeat(5000)]));
  const { headers: kept, body } = stored(headers, 'b'.repeat(1_000_000));
  expect(kept).toHaveLength(64);
  expect(kept[0]![1].length).toBeLessThan(1100);
  expect(body).toHaveLength(16 * 1024);
});
