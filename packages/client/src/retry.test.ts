import { describe, expect, test } from 'vitest';
import { clientOf, json, problem } from '../test/fake-service.ts';
import { ConnectionError, SignalboxError } from './index.ts';
import { backoffMs, retryAfterMs, retryDelayMs } from './retry.ts';

const now = new Date('2026-01-01T00:00:00Z');

describe('a temporary failure', () => {
  test.each([408, 429, 500, 502, 503, 504])('with status %i is retried', async (status) => {
    const { client, seen, pauses } = await clientOf((response, _, number) => {
      if (number < 2) problem(response, status, 'unavailable');
      else json(response, 200, { permission: 'read' });
    });
    expect(await client.me()).toEqual({ permission: 'read' });
    expect([seen.length, pauses.length]).toEqual([3, 2]);
  });

  test('of the connection is retried, before the response and in the middle of it', async () => {
    const { client, seen } = await clientOf((response, _, number) => {
      if (number === 0) response.destroy();
      else if (number === 1) {
        response.writeHead(200, { 'content-length': '100' }).write('{"half":');
        response.flushHeaders();
        response.socket?.destroy();
      } else json(response, 200, { permission: 'read' });
    });
    expect(await client.me()).toEqual({ permission: 'read' });
    expect(seen).toHaveLength(3);
  });

  test('is thrown after the last retry; a call can set its own number of retries', async () => {
    const { client, seen } = await clientOf((response) => problem(response, 503, 'unavailable'));
    await expect(client.me()).rejects.toMatchObject({ status: 503 });
    expect(seen).toHaveLength(3);
    await expect(client.me({ maxRetries: 0 })).rejects.toMatchObject({ status: 503 });
    expect(seen).toHaveLength(4);
  });
});

describe('a request that is safe to repeat', () => {
  test('a POST is retried with the same idempotency key; another call has another key', async () => {
    const { client, seen } = await clientOf((response, _, number) => {
      if (number === 0) response.destroy();
      else if (number === 1) problem(response, 409, 'idempotency_in_progress');
      else json(response, 200, { apiKey: {} });
    });
    await client.keys.rotate('key_1');
    await client.keys.rotate('key_1');
    const keys = seen.map(({ headers }) => headers['idempotency-key']);
    expect(new Set(keys.slice(0, 3)).size).toBe(1);
    expect(keys[3]).not.toBe(keys[0]);
  });

  test('a POST keeps the caller’s idempotency key', async () => {
    const { client, seen } = await clientOf((response, _, number) => {
      if (number === 0) response.destroy();
      else json(response, 200, { apiKey: {} });
    });
    await client.keys.rotate('key_1', {}, { idempotencyKey: 'mine' });
    expect(seen.map(({ headers }) => headers['idempotency-key'])).toEqual(['mine', 'mine']);
  });

  test('PUT and DELETE are retried', async () => {
    const { client, seen } = await clientOf((response, _, number) => {
      if (number % 2 === 0) response.destroy();
      else json(response, 200, { secret: {} });
    });
    await client.environments.secrets.set('production', 'TOKEN', { value: 'v', allowedHosts: ['a.example'] });
    await client.environments.secrets.delete('production', 'TOKEN');
    expect(seen.map(({ method }) => method)).toEqual(['PUT', 'PUT', 'DELETE', 'DELETE']);
  });

  test('PATCH is not retried, unless it was refused before it had an effect', async () => {
    const { client, seen } = await clientOf((response, _, number) => {
      if (number === 0) response.destroy();
      else if (number === 1) problem(response, 503, 'unavailable');
      else if (number === 2) problem(response, 429, 'rate_limited');
      else json(response, 200, { agent: { version: 2 } });
    });
    await expect(client.agents.update('agt_1', { name: 'b' })).rejects.toThrow(ConnectionError);
    await expect(client.agents.update('agt_1', { name: 'b' })).rejects.toMatchObject({ status: 503 });
    expect(await client.agents.update('agt_1', { name: 'b' })).toEqual({ version: 2 });
    expect(seen).toHaveLength(4);
  });

  test('a PUT that only creates is not retried either: the first attempt may have created it', async () => {
    const { client, seen } = await clientOf((response, _, number) => {
      if (number === 0) response.destroy();
      else if (number === 1) problem(response, 429, 'rate_limited');
      else json(response, 200, { budget: { name: 'monthly' } });
    });
    const create = () => client.budgets.create('monthly', { limitUsd: 1, period: 'month' });
    await expect(create()).rejects.toThrow(ConnectionError);
    expect(await create()).toEqual({ name: 'monthly' });
    expect(seen.map(({ headers }) => headers['if-none-match'])).toEqual(['*', '*', '*']);
  });

  test.each([
    [400, 'invalid_request'],
    [401, 'invalid_token'],
    [403, 'insufficient_permission'],
    [404, 'not_found'],
    [409, 'conflict'],
    [409, 'idempotency_conflict'],
    [422, 'url_not_allowed'],
  ])('%i %s is final', async (status, code) => {
    const { client, seen } = await clientOf((response) => problem(response, status, code));
    await expect(client.keys.rotate('key_1')).rejects.toMatchObject({ status, code });
    expect(seen).toHaveLength(1);
  });
});

describe('the pause', () => {
  test('doubles up to 8 s, minus up to half at random', () => {
    expect([0, 1, 2, 3, 4, 5, 50].map((attempt) => backoffMs(attempt, 0, 8000))).toEqual([
      500, 1000, 2000, 4000, 8000, 8000, 8000,
    ]);
    expect(backoffMs(1, 0.5, 8000)).toBe(750);
    expect(backoffMs(1, 0.999999, 8000)).toBeGreaterThan(500);
  });

  test('is that of Retry-After, in seconds or as a date', async () => {
    const { client, pauses } = await clientOf((response, _, number) => {
      if (number < 2) problem(response, 429, 'rate_limited', { 'retry-after': String(7 + number) });
      else json(response, 200, {});
    });
    await client.me();
    expect(pauses).toEqual([7000, 8000]);

    const after = (value: string) => retryAfterMs(new Headers({ 'retry-after': value }), now);
    expect(after('0')).toBe(0);
    expect(after('Thu, 01 Jan 2026 00:00:30 GMT')).toBe(30_000);
    expect(after('Wed, 31 Dec 2025 00:00:00 GMT')).toBe(0);
    expect(after('soon')).toBeNull();
  });

  test('of more than a minute is left to the caller', () => {
    const error = (seconds: string) =>
      new SignalboxError({
        status: 503,
        code: 'unavailable',
        detail: '',
        headers: new Headers({ 'retry-after': seconds }),
      });
    expect(retryDelayMs(true, error('60'), 0, 0, now)).toBe(60_000);
    expect(retryDelayMs(true, error('61'), 0, 0, now)).toBeNull();
    expect(retryDelayMs(true, error('soon'), 0, 0, now)).toBe(500);
  });
});
