import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { ACCOUNT, accountKey, POOL, ROLE } from '../../../test/support/clouds.ts';
import { createManualClock, type ManualClock } from '../../../test/support/manual-clock.ts';
import type { OrganizationEgress } from '../../egress/egress.ts';
import { EgressError } from '../../egress/errors.ts';
import type { EgressRequest } from '../../egress/exchange.ts';
import type { Log } from '../../lib/log.ts';
import { type IdentityVariables, parseCloudIdentities } from '../../vault/cloud-identities.ts';
import { checkIdentity, createIdentities, type Identities } from './identities.ts';
import type { Metadata } from './metadata.ts';

const directory = mkdtempSync(join(tmpdir(), 'signalbox-identity-'));
afterAll(() => rmSync(directory, { recursive: true }));
const fileOf = (name: string, content: string | object) => {
  const path = join(directory, name);
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
};

const LISTED = 'org_01k2j8z5w3e9r7t1y6v4q0m8n2';
const baseUrls = {
  azure: 'https://acme.openai.azure.com/openai/v1',
  bedrock: 'https://bedrock-runtime.eu-central-1.amazonaws.com',
  vertex: 'https://aiplatform.googleapis.com/v1/projects/acme/locations/global/publishers/google',
};
type Cloud = keyof typeof baseUrls;

let clock: ManualClock;
let requests: EgressRequest[];
let logged: string[];
/** The response to the next requests. */
let respond: (request: EgressRequest) => { status: number; body: string };
beforeEach(() => {
  clock = createManualClock();
  requests = [];
  logged = [];
});

/** No test of this file asks a metadata service. */
const metadata = {} as Metadata;

function identitiesWith(variables: IdentityVariables): Identities {
  const egress = {
    async request(request: EgressRequest) {
      requests.push(request);
      await Promise.resolve();
      const { status, body } = respond(request);
      return { status, body: Buffer.from(body), headers: {}, truncated: false };
    },
  } as unknown as OrganizationEgress;
  const log = { warn: (fields: { problem: string }) => logged.push(fields.problem) } as unknown as Log;
  const listed = parseCloudIdentities(`${LISTED}/production,${LISTED}/staging`, variables);
  return createIdentities(listed, { egress, metadata, clock, log, machine: async () => undefined });
}

const { organizationId } = parseCloudIdentities(`${LISTED}/production`, {}).environments[0]!;
const key = (identities: Identities, cloud: Cloud, environment = 'production', baseUrl = baseUrls[cloud]) =>
  identities.keyFor(cloud, {
    organizationId,
    environment,
    name: 'KEY',
    baseUrl: new URL(baseUrl),
    missing: `${environment} has no key`,
  })!;

const azure = (file: string) => ({
  AZURE_FEDERATED_TOKEN_FILE: file,
  AZURE_TENANT_ID: 'tenant',
  AZURE_CLIENT_ID: 'client',
});
const entraToken = (value: string, seconds = 3600) => ({
  status: 200,
  body: JSON.stringify({ access_token: value, expires_in: seconds }),
});
const formOf = (at: number) => Object.fromEntries(new URLSearchParams(String(requests[at]!.body)));

describe('a token', () => {
  test('is requested once for all, and again shortly before its end with what is then in the file', async () => {
    const file = fileOf('rotating', 'first');
    const identities = identitiesWith(azure(file));
    respond = () => entraToken(`token-${requests.length}`);
    const many = await Promise.all(
      ['production', 'staging', 'production'].map((name) => key(identities, 'azure', name)),
    );
    expect(new Set(many.map(({ value }) => value))).toEqual(new Set(['token-1']));
    writeFileSync(file, 'second\n');
    await clock.advance(3_200_000);
    expect((await key(identities, 'azure')).value).toBe('token-1');
    await clock.advance(200_000);
    await Promise.all([key(identities, 'azure'), key(identities, 'azure')]);
    expect((await key(identities, 'azure')).value).toBe('token-2');
    expect(requests.map((_, at) => formOf(at).client_assertion)).toEqual(['first', 'second']);
  });

  test('that its server refuses before its time is replaced by the next call', async () => {
    const identities = identitiesWith(azure(fileOf('refused', 'first')));
    respond = () => entraToken(`token-${requests.length}`);
    const first = await key(identities, 'azure');
    await clock.advance(60_000);
    expect(first.expire?.()).toBe(true);
    expect((await key(identities, 'azure')).value).toBe('token-2');
  });

  test.each([
    ['https://acme.openai.azure.us/openai/v1', 'https://cognitiveservices.azure.us/.default'],
    ['https://acme.services.ai.azure.com/openai/v1', 'https://cognitiveservices.azure.com/.default'],
    ['https://acme.openai.azure.cn/openai/v1', 'https://cognitiveservices.azure.cn/.default'],
  ])('for %s has the audience of its cloud', async (baseUrl, scope) => {
    const host = { AZURE_AUTHORITY_HOST: 'https://login.example.us/' };
    const identities = identitiesWith({ ...azure(fileOf('audience', 'first')), ...host });
    respond = () => entraToken('token');
    await key(identities, 'azure', 'production', baseUrl);
    expect(formOf(0).scope).toBe(scope);
    expect(requests[0]!.url).toBe('https://login.example.us/tenant/oauth2/v2.0/token');
  });

  test.each([
    [{}, 'https://sts.eu-central-1.amazonaws.com/'],
    [{ AWS_DEFAULT_REGION: 'us-gov-west-1' }, 'https://sts.us-gov-west-1.amazonaws.com/'],
    [{ AWS_REGION: 'cn-north-1', AWS_DEFAULT_REGION: 'us-west-2' }, 'https://sts.cn-north-1.amazonaws.com.cn/'],
  ])('of AWS with %j is requested at %s', async (region, url) => {
    const file = fileOf('aws', 'first');
    respond = () => ({ status: 200, body: '' });
    const identities = identitiesWith({ AWS_WEB_IDENTITY_TOKEN_FILE: file, AWS_ROLE_ARN: ROLE, ...region });
    await expect(key(identities, 'bedrock')).rejects.toMatchObject({ code: 'model_unavailable' });
    expect(requests[0]!.url).toBe(url);
    expect(logged).toEqual(['AWS STS responded with no token']);
  });

  test.each([
    [{ type: 'text' }, 'subject'],
    [undefined, 'subject'],
    [
      { type: 'json', subject_token_field_name: 'id_token' },
      { id_token: 'subject', other: 1 },
    ],
  ])('of a workload at Google is read in the format %j', async (format, content) => {
    const credentials = fileOf('external.json', {
      type: 'external_account',
      audience: POOL,
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      token_url: 'https://sts.googleapis.com/v1/token',
      credential_source: { file: fileOf('subject', content), ...(format && { format }) },
    });
    respond = () => entraToken('token');
    expect((await key(identitiesWith({ GOOGLE_APPLICATION_CREDENTIALS: credentials }), 'vertex')).value).toBe('token');
    expect(formOf(0)).toMatchObject({ audience: POOL, subject_token: 'subject' });
  });

  test('of a service account is requested with its key, and needs a project', async () => {
    const pem = accountKey.privateKey.export({ type: 'pkcs8', format: 'pem' });
    const account = { type: 'service_account', client_email: ACCOUNT, private_key: pem };
    const credentials = { GOOGLE_APPLICATION_CREDENTIALS: fileOf('account.json', account) };
    const identities = identitiesWith(credentials);
    respond = () => entraToken('token');
    const made = await key(identities, 'vertex');
    expect(
      await made.headers?.({ method: 'POST', url: new URL(baseUrls.vertex), headers: new Headers(), body: '' }),
    ).toEqual({
      authorization: 'Bearer token',
    });
    expect(requests[0]!.url).toBe('https://oauth2.googleapis.com/token');
    const express = 'https://aiplatform.googleapis.com/v1/publishers/google';
    await expect(key(identities, 'vertex', 'production', express)).rejects.toMatchObject({
      code: 'model_not_allowed',
      message: expect.stringContaining('/projects/PROJECT/'),
    });
  });
});

test.each<[string, Cloud, IdentityVariables, object | undefined, RegExp, boolean]>([
  ['nothing is set', 'azure', {}, undefined, /^neither AZURE_FEDERATED_TOKEN_FILE nor /, false],
  ['nothing is set', 'bedrock', {}, undefined, /^neither AWS_WEB_IDENTITY_TOKEN_FILE nor /, false],
  ['nothing is set', 'vertex', {}, undefined, /^GOOGLE_APPLICATION_CREDENTIALS is not set, /, false],
  ['the file is not there', 'azure', azure('/nowhere/token'), undefined, /_FILE can’t be read \(ENOENT\)$/, false],
  ['the file is a folder', 'azure', azure(directory), undefined, /_FILE can’t be read \(EISDIR\)$/, false],
  ['the file is empty', 'azure', azure(fileOf('empty', '\n')), undefined, /has no token in it$/, false],
  [
    'it is down',
    'azure',
    azure(fileOf('t', 't')),
    { status: 503, body: 'tenant' },
    /gave no token .*: HTTP 503$/,
    true,
  ],
  ['it limits', 'azure', azure(fileOf('t', 't')), { status: 429, body: '{}' }, /HTTP 429$/, true],
  [
    'there is a proxy',
    'azure',
    azure(fileOf('t', 't')),
    { status: 200, body: '<html>' },
    /responded with no token$/,
    true,
  ],
  [
    'it refuses',
    'azure',
    azure(fileOf('t', 't')),
    { status: 400, body: '{"error":"acme"}' },
    /HTTP 400 \(acme\)$/,
    false,
  ],
  ['there is no way', 'azure', azure(fileOf('t', 't')), new EgressError('connect', 'x'), /could not be called/, true],
  ['JSON is broken', 'vertex', { GOOGLE_APPLICATION_CREDENTIALS: fileOf('x', '{') }, undefined, /has neither/, false],
  [
    'a program has the token',
    'vertex',
    {
      GOOGLE_APPLICATION_CREDENTIALS: fileOf('program.json', {
        type: 'external_account',
        audience: POOL,
        subject_token_type: 't',
        token_url: 'https://sts.googleapis.com/v1/token',
        credential_source: { executable: { command: 'secret' } },
      }),
    },
    undefined,
    /credential_source with a file, the only one supported$/,
    false,
  ],
])(
  'if %s, users of %s learn that there is no key, and the operator what is wrong',
  async (_why, cloud, variables, response, problem, retryable) => {
    respond = () => {
      if (response instanceof Error) throw response;
      return response as ReturnType<typeof respond>;
    };
    const identities = identitiesWith(variables);
    const failures = await Promise.all(
      ['production', 'staging'].map((environment) => key(identities, cloud, environment).catch((error) => error)),
    );
    expect(failures.map(({ code, message }) => [code, message])).toEqual(
      ['production', 'staging'].map((environment) => [
        retryable ? 'model_unavailable' : 'model_key_missing',
        `${environment} has no key, and the service’s own identity, which the operator allows it to use instead, could not be had`,
      ]),
    );
    expect(failures.map((failure) => failure.retryable)).toEqual([retryable, retryable]);
    expect(logged).toEqual([expect.stringMatching(problem)]);
  },
);

test.each(['production2', 'prod', 'Production', ''])(
  'the environment %j is not one that is listed',
  async (environment) => {
    const identities = identitiesWith(azure(fileOf('t', 't')));
    await expect(key(identities, 'azure', environment)).rejects.toMatchObject({
      code: 'model_key_missing',
      message: `${environment} has no key, and the operator does not allow it to use the service’s own identity instead`,
    });
    expect([requests, logged]).toEqual([[], []]);
  },
);

test('the doctor requests a token as calls do', async () => {
  respond = () => entraToken('token');
  const egress = { request: async () => ({ status: 200, body: Buffer.from(respond({} as never).body) }) } as never;
  const listed = (file: string) => parseCloudIdentities(`${LISTED}/production`, azure(file));
  await checkIdentity('azure', listed(fileOf('t', 't')), { egress, metadata, clock });
  await expect(checkIdentity('azure', listed('/nowhere'), { egress, metadata, clock })).rejects.toThrow(
    'can’t be read (ENOENT)',
  );
});

test('other providers have no identities', () => {
  expect(identitiesWith({}).keyFor('openai', {} as never)).toBeUndefined();
});
