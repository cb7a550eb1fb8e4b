// Which key is sent to which server. Requests do not leave the machine: a fake egress records them.
import { generateKeyPairSync } from 'node:crypto';
import { type Model, ownProvider } from '@signalbox/contract';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { OrganizationEgress } from '../../src/egress/egress.ts';
import type { EgressRequest } from '../../src/egress/exchange.ts';
import { deleteSecret, setSecret } from '../../src/environments/secrets.ts';
import type { Clock } from '../../src/lib/clock.ts';
import type { ModelCall, ModelFailure } from '../../src/models/model/model.ts';
import { createModels } from '../../src/models/models.ts';
import { anthropic } from '../../src/models/providers/anthropic.ts';
import { createChatReader } from '../../src/models/providers/chat-events.ts';
import { google } from '../../src/models/providers/google.ts';
import { openai } from '../../src/models/providers/openai.ts';
import { openConnection } from '../../src/models/providers/provider-connection.ts';
import type { ProviderKeys } from '../../src/vault/provider-keys.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { createTestPlatform, type TestPlatform } from '../support/platform.ts';

const SECRET = 'key-of-the-environment';
const OPERATOR_KEY = 'key-of-the-operator';
const operatorKeys: ProviderKeys = {
  OPENAI_API_KEY: OPERATOR_KEY,
  ANTHROPIC_API_KEY: OPERATOR_KEY,
  GOOGLE_GENERATIVE_AI_API_KEY: OPERATOR_KEY,
};

let base: TestPlatform;
let requests: { url: string; headers: Headers; body: string }[];
let egress: OrganizationEgress;

beforeAll(async () => {
  base = await createTestPlatform();
});
afterAll(() => base.close());
beforeEach(() => {
  requests = [];
  egress = {
    ...base.platform.egress.of(base.organizationId),
    fetch: async (input, init) => {
      requests.push({ url: String(input), headers: new Headers(init?.headers), body: String(init?.body) });
      return new Response('{}', { status: 500 });
    },
  };
});
afterEach(() => vi.unstubAllEnvs());

/** With the egress of the test. */
const asks = (keys: ProviderKeys, clock: Clock = base.platform.clock) => {
  const platform = { ...base.platform, clock, egress: { ...base.platform.egress, of: () => egress } };
  return createModels(platform, keys);
};

async function failureOf(config: Model, keys: ProviderKeys = operatorKeys, ask = asks(keys)): Promise<ModelFailure> {
  const call: ModelCall = {
    organizationId: base.organizationId,
    sessionId: 'ses_1',
    environment: 'production',
    config,
    instructions: '',
    tools: [],
    limits: { maxOutputTokens: null },
    outputSchema: null,
    transcript: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }],
    callsBefore: 0,
  };
  return await ask(call, new AbortController().signal)
    .next()
    .then(
      () => expect.unreachable(),
      (failure) => failure,
    );
}

/** Everything that was sent, in any header or other part of a request. */
const sent = () => requests.map(({ url, headers, body }) => [url, ...[...headers].flat(), body].join('\n')).join('\n');

const providers = [
  { ...openai, name: 'openai', header: `Bearer ` },
  { ...anthropic, name: 'anthropic', header: '' },
  { ...google, name: 'google', header: '' },
] as const;

describe.each(providers)('$name', ({ name, keyHeader, header }) => {
  const { baseUrl, keyName } = ownProvider(name)!;
  const host = new URL(baseUrl).host;
  const config: Model = { provider: name, model: 'a-model' };
  const set = (secret: string, value: string, ...allowedHosts: string[]) =>
    setSecret(base.ctx, { env: 'production', name: secret, value, allowedHosts });
  afterEach(async () => {
    for (const secret of [keyName, 'OTHER']) {
      await deleteSecret(base.ctx, { env: 'production', name: secret }).catch(() => {});
    }
  });

  test('is called at its own server with the environment’s secret for its key', async () => {
    await set(keyName, SECRET, host);
    expect(await failureOf(config)).toMatchObject({ httpStatus: 500 });
    expect(requests).toHaveLength(1);
    expect(new URL(requests[0]!.url).origin).toBe(new URL(baseUrl).origin);
    expect(requests[0]!.url.startsWith(`${baseUrl}/`)).toBe(true);
    expect(requests[0]!.headers.get(keyHeader[0])).toBe(header + SECRET);
  });

  test('is called with the secret that the agent names', async () => {
    await set(keyName, 'not-this', host);
    await set('OTHER', SECRET, host);
    await failureOf({ ...config, apiKeySecret: 'OTHER' });
    expect(requests[0]!.headers.get(keyHeader[0])).toBe(header + SECRET);
    expect(sent()).not.toContain('not-this');
  });

  test('gets the operator’s key if the environment has no secret', async () => {
    await failureOf(config);
    await failureOf({ ...config, baseUrl });
    await failureOf({ ...config, apiKeySecret: keyName });
    expect(requests.map(({ headers }) => headers.get(keyHeader[0]))).toEqual(Array(3).fill(header + OPERATOR_KEY));
  });

  test.each([
    ['another host', `https://${host}.example.com/v1`],
    ['a name below its own', `https://x.${host}/v1`],
    ['plain http', baseUrl.replace('https:', 'http:')],
    ['another port', baseUrl.replace(host, `${host}:8443`)],
    ['its name as a user', `https://${host}@example.com/v1`],
  ])('with %s is never given the operator’s key', async (_title, elsewhere) => {
    await failureOf({ ...config, baseUrl: elsewhere });
    expect(sent()).not.toContain(OPERATOR_KEY);
    expect(requests[0]?.headers.has(keyHeader[0]) ?? false).toBe(false);
    const failure = await failureOf({ ...config, baseUrl: elsewhere, apiKeySecret: keyName });
    expect(failure).toMatchObject({ code: 'model_key_missing', retryable: false });
    expect(sent()).not.toContain(OPERATOR_KEY);
  });

  test('gets the environment’s secret only at hosts that the secret allows', async () => {
    await set(keyName, SECRET, 'gateway.example.com');
    await failureOf({ ...config, baseUrl: 'https://gateway.example.com/v1' });
    expect(requests[0]!.headers.get(keyHeader[0])).toBe(header + SECRET);
    requests.length = 0;
    for (const baseUrl of [undefined, 'https://elsewhere.example.com/v1']) {
      const failure = await failureOf({ ...config, ...(baseUrl && { baseUrl }) });
      expect(failure).toMatchObject({ code: 'model_not_allowed', retryable: false });
      expect(failure.message).toContain(keyName);
      expect(failure.message).not.toContain(SECRET);
    }
    // The operator's key is not used instead.
    expect(requests).toEqual([]);
  });

  test('is not called without a key, and the failure says which secret to set', async () => {
    const failure = await failureOf(config, {});
    expect(failure).toMatchObject({ code: 'model_key_missing', retryable: false });
    expect(failure.message).toBe(`The environment production has no secret ${keyName}, the key for the agent’s model`);
    expect(requests).toEqual([]);
  });

  test('that rejects the key is reported with the name of the secret and of its environment', async () => {
    const rejecting = (status: number, error: object) => async () =>
      new Response(JSON.stringify({ error }), { status, headers: { 'content-type': 'application/json' } });
    const errors: [number, object, string][] = [
      [401, { type: 'authentication_error', message: SECRET }, 'model_key_rejected'],
      [403, { type: 'permission_error' }, 'model_key_rejected'],
      [400, { status: 'INVALID_ARGUMENT', details: [{ reason: 'API_KEY_INVALID' }] }, 'model_key_rejected'],
      [403, { code: 'unsupported_country_region_territory' }, 'model_rejected'],
      [400, { status: 'INVALID_ARGUMENT', details: [{ reason: 'OTHER' }] }, 'model_rejected'],
    ];
    await set(keyName, SECRET, host);
    for (const [status, error, code] of errors) {
      egress = { ...egress, fetch: rejecting(status, error) };
      const failure = await failureOf(config);
      expect(failure).toMatchObject({ code, retryable: false, httpStatus: status });
      expect(failure.message).not.toContain(SECRET);
      if (code !== 'model_key_rejected') continue;
      expect(failure.message).toContain(`rejected the secret ${keyName} of the environment production: HTTP ${status}`);
    }
    await deleteSecret(base.ctx, { env: 'production', name: keyName });
    egress = { ...egress, fetch: rejecting(401, {}) };
    expect((await failureOf(config)).message).toContain(`rejected the operator’s ${keyName}`);
  });

  test('that is another server and requires a key is reported as a missing key', async () => {
    egress = { ...egress, fetch: async () => new Response('{}', { status: 401 }) };
    const failure = await failureOf({ ...config, baseUrl: 'https://gateway.example.com/v1' });
    expect(failure).toMatchObject({ code: 'model_key_missing', retryable: false });
    expect(failure.message).toContain('model.apiKeySecret');
  });

  test('is not called with another provider’s key', async () => {
    for (const other of Object.keys(operatorKeys).filter((key) => key !== keyName)) {
      const failure = await failureOf({ ...config, apiKeySecret: other });
      expect(failure).toMatchObject({ code: 'model_key_missing' });
    }
    expect(requests).toEqual([]);
  });

  test('reads no environment variables of the service by itself', async () => {
    for (const variable of ['OPENAI', 'ANTHROPIC', 'GOOGLE_GENERATIVE_AI', 'GEMINI', 'GOOGLE']) {
      vi.stubEnv(`${variable}_API_KEY`, 'key-of-the-shell');
      vi.stubEnv(`${variable}_BASE_URL`, 'https://shell.example.com/v1');
    }
    vi.stubEnv('ANTHROPIC_AUTH_TOKEN', 'key-of-the-shell');
    expect(await failureOf(config, {})).toMatchObject({ code: 'model_key_missing' });
    await failureOf({ ...config, baseUrl: 'https://gateway.example.com/v1' }, {});
    await failureOf(config);
    expect(requests.map(({ url }) => new URL(url).host)).toEqual(['gateway.example.com', host]);
    expect(sent()).not.toContain('key-of-the-shell');
  });
});

/** Clouds, in which each customer has servers. */
const clouds = [
  {
    name: 'azure',
    keyName: 'AZURE_OPENAI_API_KEY',
    baseUrl: 'https://acme.openai.azure.com/openai/v1',
    another: 'https://mallory.openai.azure.com/openai/v1',
    header: ['api-key', SECRET],
  },
  {
    name: 'vertex',
    keyName: 'GOOGLE_VERTEX_API_KEY',
    baseUrl: 'https://aiplatform.googleapis.com/v1/publishers/google',
    another:
      'https://us-central1-aiplatform.googleapis.com/v1/projects/mallory/locations/us-central1/publishers/google',
    header: ['x-goog-api-key', SECRET],
  },
  {
    name: 'bedrock',
    keyName: 'AWS_BEARER_TOKEN_BEDROCK',
    baseUrl: 'https://bedrock-runtime.us-east-1.amazonaws.com',
    another: 'https://bedrock-runtime.us-west-2.amazonaws.com',
    header: ['authorization', `Bearer ${SECRET}`],
  },
] as const;

describe.each(clouds)('$name', ({ name, keyName, baseUrl, another, header }) => {
  const config = { provider: name, model: 'a-model', baseUrl } satisfies Model;
  const set = (...allowedHosts: string[]) =>
    setSecret(base.ctx, { env: 'production', name: keyName, value: SECRET, allowedHosts });
  afterEach(() => deleteSecret(base.ctx, { env: 'production', name: keyName }).catch(() => {}));

  test('gets the environment’s key in its own header, and no other', async () => {
    await set(new URL(baseUrl).host);
    expect(await failureOf(config)).toMatchObject({ httpStatus: 500 });
    expect(requests).toHaveLength(1);
    expect(requests[0]!.url.startsWith(`${baseUrl}/`)).toBe(true);
    const { headers } = requests[0]!;
    expect(headers.get(header[0])).toBe(header[1]);
    const names = ['authorization', 'api-key', 'x-api-key', 'x-goog-api-key'];
    expect(names.filter((other) => headers.has(other))).toEqual([header[0]]);
  });

  test('of another customer never gets the key', async () => {
    await set(new URL(baseUrl).host);
    for (const url of [another, 'https://gateway.example.com/v1'])
      expect(await failureOf({ ...config, baseUrl: url })).toMatchObject({ code: 'model_not_allowed' });
    expect(requests).toEqual([]);
  });

  test('needs a key of the environment: the operator lends none', async () => {
    vi.stubEnv(keyName, OPERATOR_KEY);
    const keys: ProviderKeys = { ...operatorKeys, ...{ [keyName]: OPERATOR_KEY } };
    const failure = await failureOf(config, keys);
    expect(failure).toMatchObject({ code: 'model_key_missing', retryable: false });
    expect(failure.message).toContain(`production has no secret ${keyName}`);
    expect(requests).toEqual([]);
  });
});

describe('an access key', () => {
  const host = 'bedrock-runtime.us-east-1.amazonaws.com';
  const config = { provider: 'bedrock', model: 'a-model', baseUrl: `https://${host}` } satisfies Model;
  const env = { env: 'production', name: 'AWS_BEARER_TOKEN_BEDROCK' };
  const set = (...allowedHosts: string[]) =>
    setSecret(base.ctx, {
      ...env,
      value: JSON.stringify({ AccessKeyId: 'AKIAACME', SecretAccessKey: 'not-to-be-sent', SessionToken: 'session' }),
      allowedHosts,
    });
  afterEach(() => deleteSecret(base.ctx, env).catch(() => {}));

  test('is sent nowhere: it signs the request for its region', async () => {
    await set(host);
    vi.stubEnv('AWS_REGION', 'eu-west-1');
    expect(await failureOf(config)).toMatchObject({ httpStatus: 500 });
    const { headers } = requests[0]!;
    expect(headers.get('authorization')).toMatch(/^AWS4-HMAC-SHA256 Credential=AKIAACME\/\d{8}\/us-east-1\/bedrock\//);
    expect(headers.get('x-amz-security-token')).toBe('session');
    expect(sent()).not.toContain('not-to-be-sent');
  });

  test('can’t sign for a server whose region is unknown', async () => {
    await set('gateway.example.com');
    const failure = await failureOf({ ...config, baseUrl: 'https://gateway.example.com' });
    expect(failure).toMatchObject({ code: 'model_not_allowed', message: expect.stringContaining('REGION') });
    expect(requests).toEqual([]);
  });
});

describe('the key of a service account', () => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const account = { type: 'service_account', client_email: 'agent@acme.iam', private_key: pem };
  const host = 'us-central1-aiplatform.googleapis.com';
  const baseUrl = `https://${host}/v1/projects/acme/locations/us-central1/publishers/google`;
  const config = { provider: 'vertex', model: 'gemini', baseUrl } satisfies Model;
  const env = { env: 'production', name: 'GOOGLE_VERTEX_API_KEY' };
  const set = (more: object, ...allowedHosts: string[]) =>
    setSecret(base.ctx, { ...env, value: JSON.stringify({ ...account, ...more }, null, 2), allowedHosts });
  let tokenRequests: EgressRequest[];
  let tokenResponse: { status: number; body: object };
  beforeEach(() => {
    tokenRequests = [];
    tokenResponse = { status: 200, body: { access_token: 'ya29.token', expires_in: 3600 } };
    egress = {
      ...egress,
      request: async (request) => {
        tokenRequests.push(request);
        const { status, body } = tokenResponse;
        return { status, headers: {}, body: Buffer.from(JSON.stringify(body)), truncated: false };
      },
    };
  });
  afterEach(() => deleteSecret(base.ctx, env).catch(() => {}));

  test('is sent nowhere: its token is', async () => {
    await set({}, host);
    expect(await failureOf(config)).toMatchObject({ httpStatus: 500 });
    expect(tokenRequests.map(({ url }) => url)).toEqual(['https://oauth2.googleapis.com/token']);
    expect(requests[0]!.headers.get('authorization')).toBe('Bearer ya29.token');
    expect(requests[0]!.headers.has('x-goog-api-key')).toBe(false);
    const all = sent() + JSON.stringify(tokenRequests);
    for (const line of pem.split('\n').slice(1, -2)) expect(all).not.toContain(line);
  });

  test.each([
    ['https://evil.example.com/token'],
    ['https://oauth2.googleapis.com.example.com/token'],
    ['http://oauth2.googleapis.com/token'],
    ['https://oauth2.googleapis.com/token?to=me'],
    ['http://169.254.169.254/token'],
  ])('gets no token at %s, which its secret does not allow', async (token_uri) => {
    await set({ token_uri }, host);
    const failure = await failureOf(config);
    expect(failure).toMatchObject({ code: 'model_not_allowed', message: expect.stringContaining('token_uri') });
    expect([requests, tokenRequests]).toEqual([[], []]);
  });

  test('needs a project in the base URL', async () => {
    await set({}, 'aiplatform.googleapis.com');
    const failure = await failureOf({ ...config, baseUrl: 'https://aiplatform.googleapis.com/v1/publishers/google' });
    expect(failure).toMatchObject({
      code: 'model_not_allowed',
      message: expect.stringContaining('/projects/PROJECT/'),
    });
    expect([requests, tokenRequests]).toEqual([[], []]);
  });

  test.each<[number, object, string, boolean]>([
    [
      400,
      { error: 'invalid_grant', error_description: 'account agent@acme.iam not found' },
      'model_key_rejected',
      false,
    ],
    [401, { error: { status: 'agent@acme.iam' } }, 'model_key_rejected', false],
    [302, {}, 'model_key_rejected', false],
    [429, {}, 'model_unavailable', true],
    [503, { error: 'internal_failure' }, 'model_unavailable', true],
    [200, { access_token: 'two words' }, 'model_protocol', true],
  ])('that gets %i %j fails the call, and shows nothing of the account', async (status, body, code, retryable) => {
    await set({}, host);
    tokenResponse = { status, body };
    const failure = await failureOf(config);
    expect(failure).toMatchObject({ code, retryable });
    expect(`${failure.message} ${JSON.stringify(failure)}`).not.toMatch(/acme|PRIVATE/);
    expect(requests).toEqual([]);
  });

  test('whose token is refused before its time gets another with the next call', async () => {
    await set({}, host);
    const clock = createManualClock();
    const ask = asks(operatorKeys, clock);
    expect(await failureOf(config, operatorKeys, ask)).toMatchObject({ httpStatus: 500 });
    await clock.advance(60_000);
    egress = { ...egress, fetch: async () => new Response('{"error":{"status":"UNAUTHENTICATED"}}', { status: 401 }) };
    const failure = await failureOf(config, operatorKeys, ask);
    expect(failure).toMatchObject({ code: 'model_unavailable', retryable: true, httpStatus: 401 });
    // This one was just requested: another would be refused as well.
    const second = await failureOf(config, operatorKeys, ask);
    expect(second).toMatchObject({ code: 'model_key_rejected', retryable: false, httpStatus: 401 });
    expect(tokenRequests).toHaveLength(2);
  });
});

test('a request to another server than the one for the key is not sent', async () => {
  const connection = openConnection(
    { egress, clock: base.platform.clock },
    {
      baseUrl: new URL('https://api.example.com/v1'),
      keyHeader: ['authorization', 'Bearer '],
      key: { name: 'KEY', value: SECRET, label: 'the key' },
      reader: createChatReader,
      withoutParameters: [],
      refusal: {},
    },
    new AbortController().signal,
  );
  await expect(connection.fetch('https://files.example.com/v1/chat')).rejects.toMatchObject({
    code: 'model_not_allowed',
  });
  connection.close();
  expect(requests).toEqual([]);
});
