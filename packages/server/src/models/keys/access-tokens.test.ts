import { beforeEach, expect, test } from 'vitest';
import { createManualClock, type ManualClock } from '../../../test/support/manual-clock.ts';
import { ModelFailure } from '../model/model.ts';
import { type AccessTokens, createAccessTokens, tokenIn } from './access-tokens.ts';

const HOUR = 3_600_000;
let clock: ManualClock;
let tokens: AccessTokens;
let requests: number;
let isDown: boolean;
beforeEach(() => {
  clock = createManualClock();
  tokens = createAccessTokens(clock);
  requests = 0;
  isDown = false;
});

async function request() {
  requests += 1;
  const value = `token-${requests}`;
  await Promise.resolve();
  if (isDown) throw new ModelFailure('model_unavailable', 'Down', { retryable: true });
  return { value, expiresAt: clock.now().getTime() + HOUR };
}
const get = async (id = 'a') => (await tokens.get(id, request)).value;

test('many calls share one request, and its token until shortly before its end', async () => {
  expect(new Set(await Promise.all(Array.from({ length: 50 }, () => get())))).toEqual(new Set(['token-1']));
  await clock.advance(HOUR - 301_000);
  expect(await get()).toBe('token-1');
  await clock.advance(2_000);
  // One of them requests the next; the others do not wait for it.
  await Promise.all(Array.from({ length: 50 }, () => get()));
  expect([await get(), requests]).toEqual(['token-2', 2]);
});

test('each id has a token of its own', async () => {
  expect([await get('a'), await get('b'), await get('a')]).toEqual(['token-1', 'token-2', 'token-1']);
});

test('a token is used to its end while no other can be had, and is requested once in ten seconds', async () => {
  await get();
  isDown = true;
  await clock.advance(HOUR - 200_000);
  expect([await get(), await get(), await get()]).toEqual(['token-1', 'token-1', 'token-1']);
  expect(requests).toBe(2);
  await clock.advance(10_000);
  expect([await get(), requests]).toEqual(['token-1', 3]);
  await clock.advance(185_000);
  await expect(get()).rejects.toThrow('Down');
  await expect(get()).rejects.toThrow('Down');
  isDown = false;
  expect(await get()).toBe('token-6');
});

test('a token that its server refuses is replaced, unless it is new', async () => {
  const token = await get();
  await clock.advance(20_000);
  expect(tokens.expire('a', token)).toBe(false);
  const second = await get();
  await clock.advance(40_000);
  expect(tokens.expire('a', second)).toBe(true);
  // Another call has seen it too.
  const third = await get();
  expect(tokens.expire('a', second)).toBe(true);
  expect([await get(), third]).toEqual([third, 'token-3']);
});

test('memory is bounded', async () => {
  for (let at = 0; at < 1_100; at += 1) await get(`id-${at}`);
  expect(requests).toBe(1_100);
  expect(await get('id-1099')).toBe('token-1100');
  await get('id-0');
  expect(requests).toBe(1_101);
});

test.each([
  [undefined],
  [null],
  ['token'],
  [{}],
  [{ access_token: '' }],
  [{ access_token: 'a b' }],
  [{ access_token: 7 }],
  [{ access_token: 'a', expires_in: 'soon' }],
  [{ access_token: 'a', expires_in: -1 }],
])('%j is no token', (body) => {
  expect(() => tokenIn(JSON.stringify(body) ?? '', 'Google', 0)).toThrow('Google responded with no token');
});

test('a token has the lifetime that its response names, or an hour', () => {
  expect(tokenIn(JSON.stringify({ access_token: 'a', expires_in: 60 }), 'Google', 5)).toEqual({
    value: 'a',
    expiresAt: 60_005,
  });
  expect(tokenIn(JSON.stringify({ access_token: 'a', expires_in: '60' }), 'Google', 5)).toEqual({
    value: 'a',
    expiresAt: 60_005,
  });
  expect(tokenIn(JSON.stringify({ access_token: 'a' }), 'Google', 5)).toEqual({ value: 'a', expiresAt: HOUR + 5 });
});
