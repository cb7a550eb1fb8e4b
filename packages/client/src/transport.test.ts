import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { inspect } from 'node:util';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { apiKey, clientOf, json, problem, serve, timeoutMs } from '../test/fake-service.ts';
import {
  AuthenticationError,
  BadRequestError,
  ConflictError,
  ConnectionError,
  NotFoundError,
  PermissionError,
  RateLimitError,
  ServerError,
  Signalbox,
  SignalboxError,
  type Sleep,
  TimeoutError,
  UnprocessableError,
} from './index.ts';
import { version } from './version.ts';

const key = { keyId: 'key_1', name: 'a' };

describe('a call', () => {
  test('sends the bearer token, the client’s name and, for a POST, JSON and an idempotency key', async () => {
    const { client, seen } = await clientOf((response) => json(response, 201, { apiKey: key }), {
      userAgent: 'mine/2',
    });
    expect(await client.keys.create({ name: 'a', permission: 'read' })).toEqual(key);
    const [request] = seen;
    expect(request).toMatchObject({ method: 'POST', url: '/api/v1/api_keys' });
    expect(JSON.parse(request!.body)).toEqual({ name: 'a', permission: 'read' });
    expect(request!.headers).toMatchObject({
      authorization: `Bearer ${apiKey}`,
      'content-type': 'application/json',
      'user-agent': `mine/2 signalbox-client/${version}`,
      'idempotency-key': expect.stringMatching(/^[0-9a-f]{32}$/),
    });
  });

  test('of a user in a browser sends organization, CSRF token and cookie, and neither bearer token nor name', async () => {
    const inits: RequestInit[] = [];
    const client = new Signalbox({
      session: { organizationId: 'org_1', csrfToken: 'token' },
      baseUrl: 'http://localhost:4500',
      fetch: async (_, init) => {
        inits.push(init!);
        return Response.json({ apiKey: key });
      },
    });
    await client.keys.get('key_1');
    const [init] = inits;
    expect(init).toMatchObject({ credentials: 'same-origin' });
    expect(init!.headers).toEqual({
      accept: 'application/json',
      'x-signalbox-organization': 'org_1',
      'x-signalbox-csrf': 'token',
    });
    expect(inspect(client, { depth: 9, showHidden: true })).not.toContain('token');
    const both = { apiKey, session: { organizationId: 'org_1', csrfToken: 'token' } };
    expect(() => new Signalbox(both as never)).toThrow('not both');
  });

  test('without a body sends no content type, and a GET no idempotency key', async () => {
    const { client, seen } = await clientOf((response) => json(response, 200, { apiKey: key }));
    await client.sessions.interrupt('ses_1');
    await client.keys.get('key_1');
    expect(seen.map(({ headers }) => headers['content-type'])).toEqual([undefined, undefined]);
    expect(seen[1]!.headers['idempotency-key']).toBeUndefined();
  });

  test('writes filters as the API expects them and omits undefined ones', async () => {
    const { client, seen } = await clientOf((response) =>
      json(response, 200, { data: [], page: { hasMore: false, nextCursor: '' } }),
    );
    await client.sessions.list({ status: 'idle', metadata: { 'a&b': 'c d' }, environment: undefined });
    await client.sessions.chunks('ses_1', { types: ['tool.call', 'session.status'], cursor: 'turn_1:seq_2' });
    const [sessions, chunks] = seen.map(({ url }) => new URL(url, 'http://x'));
    expect([...sessions!.searchParams]).toEqual([
      ['status', 'idle'],
      ['metadata[a&b]', 'c d'],
    ]);
    expect(Object.fromEntries(chunks!.searchParams)).toEqual({
      types: 'tool.call,session.status',
      cursor: 'turn_1:seq_2',
    });
  });

  test('can’t be redirected to another path by an identifier', async () => {
    const { client, seen } = await clientOf((response) => json(response, 200, {}));
    await client.keys.delete('../agents?x#y');
    expect(seen[0]!.url).toBe('/api/v1/api_keys/..%2Fagents%3Fx%23y');
    for (const id of ['', '.', '..', undefined as unknown as string]) {
      await expect(client.keys.delete(id)).rejects.toThrow(TypeError);
    }
    expect(seen).toHaveLength(1);
  });

  test('accepts a baseUrl with or without a trailing slash, a path or /api/v1', async () => {
    const { url, seen } = await clientOf((response) => json(response, 200, {}));
    for (const suffix of ['', '/', '/api/v1', '/api/v1/', '/box/']) {
      await new Signalbox({ apiKey, baseUrl: url + suffix }).me();
    }
    expect(seen.map((request) => request.url)).toEqual([...Array(4).fill('/api/v1/me'), '/box/api/v1/me']);
    for (const baseUrl of ['ftp://x', 'nonsense', 'http://u:p@x', 'http://x?a', 'http://x#a']) {
      expect(() => new Signalbox({ apiKey, baseUrl })).toThrow(TypeError);
    }
  });

  test('uses the fetch it was given', async () => {
    const asked: string[] = [];
    const fetch: typeof globalThis.fetch = async (url) => {
      asked.push(String(url));
      return Response.json({ permission: 'read' });
    };
    expect(await new Signalbox({ apiKey, fetch }).me()).toEqual({ permission: 'read' });
    expect(asked).toEqual(['http://127.0.0.1:4500/api/v1/me']);
  });
});

describe('an error', () => {
  test.each([
    [400, 'invalid_request', BadRequestError],
    [401, 'token_expired', AuthenticationError],
    [403, 'insufficient_permission', PermissionError],
    [404, 'not_found', NotFoundError],
    [409, 'conflict', ConflictError],
    [413, 'payload_too_large', SignalboxError],
    [422, 'url_not_allowed', UnprocessableError],
    [429, 'rate_limited', RateLimitError],
    [500, 'internal_error', ServerError],
    [503, 'unavailable', ServerError],
  ])('%i %s has status, code, requestId and its class', async (status, code, ErrorClass) => {
    const errors = [{ path: 'name', message: 'must be a string' }];
    const { client } = await clientOf((response) => problem(response, status, code, {}, { errors }));
    const error = await client.me({ maxRetries: 0 }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ErrorClass);
    expect(error).toBeInstanceOf(SignalboxError);
    expect(error).toMatchObject({
      name: ErrorClass.name,
      status,
      code,
      requestId: 'req_1',
      detail: `It is ${code}.`,
      errors,
    });
    expect((error as SignalboxError).headers.get('x-request-id')).toBe('req_1');
    expect((error as Error).message).toBe(`${status} ${code}: It is ${code}.; name: must be a string (req_1)`);
  });

  test('of a proxy, a wrong address or a redirect says that the response is not from the service', async () => {
    const { client, seen } = await clientOf((response, _, number) => {
      if (number === 0) response.writeHead(502).end('<h1>Bad gateway</h1>');
      else if (number === 1) response.writeHead(200).end('<h1>Welcome</h1>');
      else response.writeHead(301, { location: 'https://elsewhere.example/' }).end();
    });
    const attempt = () => client.me({ maxRetries: 0 }).catch((thrown: unknown) => thrown);
    expect(await attempt()).toMatchObject({ status: 502, code: 'unexpected_response', requestId: null });
    expect(await attempt()).toMatchObject({ status: 200, code: 'unexpected_response' });
    expect(await attempt()).toMatchObject({ status: 301, detail: expect.stringContaining('elsewhere.example') });
    expect(seen).toHaveLength(3);
  });

  test('without a response has status 0 and the reason', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    const client = new Signalbox({ apiKey, baseUrl: `http://127.0.0.1:${port}`, maxRetries: 0 });
    const error = await client.me().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error).toMatchObject({ status: 0, code: 'connection_error', requestId: null });
    expect((error as Error).message).toMatch(/http:\/\/127\.0\.0\.1:\d+ can't be reached.*ECONNREFUSED/);
    const named = new Signalbox({ apiKey, baseUrl: `http://localhost:${port}`, maxRetries: 0 });
    await expect(named.me()).rejects.toThrow(/http:\/\/localhost:\d+ can't be reached.*ECONNREFUSED/);
  });

  test('is thrown after the timeout, and the request is aborted', async () => {
    const arrived = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<void>();
    const sleep: Sleep = () => arrived.promise;
    const { client } = await clientOf(
      (response) => {
        response.on('close', ended.resolve);
        arrived.resolve();
      },
      { sleep, maxRetries: 0 },
    );
    const error = await client.me({ timeoutMs: 50 }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(TimeoutError);
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error).toMatchObject({ status: 0, code: 'timeout', detail: 'No response within 50 ms' });
    await ended.promise;
  });

  test('of the caller’s own signal is the signal’s reason, before, during and between attempts', async () => {
    const controller = new AbortController();
    const reason = new Error('enough');
    const { client, seen, pauses } = await clientOf((_, __, number) => {
      if (number === 0) controller.abort(reason);
    });
    await expect(client.me({ signal: controller.signal })).rejects.toBe(reason);
    await expect(client.me({ signal: controller.signal })).rejects.toBe(reason);
    expect([seen.length, pauses.length]).toEqual([1, 0]);

    const between = new AbortController();
    const away = await clientOf((response) => problem(response, 503, 'unavailable'), {
      sleep: (ms, signal) =>
        new Promise((_, reject) => {
          signal?.addEventListener('abort', () => reject(signal.reason));
          if (ms !== timeoutMs) between.abort(reason);
        }),
    });
    await expect(away.client.me({ signal: between.signal })).rejects.toBe(reason);
    expect(away.seen).toHaveLength(1);
  });
});

describe('the API key', () => {
  test('is in no error and in no printed or serialized client', async () => {
    const { client } = await clientOf((response) => problem(response, 401, 'invalid_token'));
    const errors = [
      await client.me().catch((thrown: unknown) => thrown),
      await new Signalbox({ apiKey, baseUrl: 'http://127.0.0.1:1', maxRetries: 0 })
        .me()
        .catch((thrown: unknown) => thrown),
    ];
    for (const thing of [client, client.keys, client.sessions.stream('ses_1'), client.keys.list(), ...errors]) {
      expect(inspect(thing, { depth: 20, showHidden: true, getters: true })).not.toContain(apiKey);
      expect(JSON.stringify(thing)).not.toContain(apiKey);
    }
  });

  test('and the URL come from the environment, unless they are given', async () => {
    const { url, seen } = await serve((response) => json(response, 200, { permission: 'read' }));
    vi.stubEnv('SIGNALBOX_API_KEY', 'sbk_of_the_environment');
    vi.stubEnv('SIGNALBOX_URL', url);
    onTestFinished(() => void vi.unstubAllEnvs());
    await new Signalbox().me();
    await new Signalbox({ apiKey }).me();
    expect(seen.map(({ headers }) => headers.authorization)).toEqual([
      'Bearer sbk_of_the_environment',
      `Bearer ${apiKey}`,
    ]);
    vi.stubEnv('SIGNALBOX_URL', 'http://127.0.0.1:1');
    await new Signalbox({ baseUrl: url }).me();
    expect(seen).toHaveLength(3);
    vi.stubEnv('SIGNALBOX_URL', '');
    vi.stubEnv('SIGNALBOX_PORT', new URL(url).port);
    await new Signalbox().me();
    expect(seen).toHaveLength(4);
    // As Kubernetes sets it for a service called signalbox.
    vi.stubEnv('SIGNALBOX_PORT', 'tcp://10.0.0.1:4380');
    const fetch = () => Promise.reject(new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') }));
    await expect(new Signalbox({ fetch, maxRetries: 0 }).me()).rejects.toThrow(
      /^connection_error: The service at http:\/\/127\.0\.0\.1:4500 can't .* ECONNREFUSED\. If it is elsewhere, set SIGNALBOX_URL/,
    );
    await expect(new Signalbox({ baseUrl: url, fetch, maxRetries: 0 }).me()).rejects.toThrow(/ECONNREFUSED$/);
    vi.stubEnv('SIGNALBOX_API_KEY', '');
    expect(() => new Signalbox({ baseUrl: url })).toThrow('set the environment variable SIGNALBOX_API_KEY');
  });

  test('is not looked for where there is no environment', () => {
    vi.stubGlobal('process', undefined);
    onTestFinished(() => void vi.unstubAllGlobals());
    expect(() => new Signalbox()).toThrow('apiKey is missing');
  });

  test('is refused, without being shown, if it is not valid in a header', () => {
    for (const bad of ['', 'sbk_a b', 'sbk_a\n', 'sbk_é', 7 as unknown as string]) {
      expect(() => new Signalbox({ apiKey: bad })).toThrow(/^apiKey must be/);
    }
  });
});
