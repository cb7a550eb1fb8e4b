// Identities from the metadata services of clouds, which are servers that refuse what the real ones refuse.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CLIENT } from '../../../test/support/clouds.ts';
import { createManualClock, type ManualClock } from '../../../test/support/manual-clock.ts';
import {
  APP_HEADER,
  type MetadataServices,
  POD_TOKEN,
  startMetadataServices,
  TASK_PATH,
} from '../../../test/support/metadata-services.ts';
import type { Log } from '../../lib/log.ts';
import { type IdentityVariables, parseCloudIdentities } from '../../vault/cloud-identities.ts';
import { createIdentities, type Identities } from './identities.ts';
import { type MachineCloud, readMachineCloud } from './machine.ts';
import { createMetadata, type Metadata } from './metadata.ts';

const directory = mkdtempSync(join(tmpdir(), 'signalbox-metadata-'));
afterAll(() => rmSync(directory, { recursive: true }));
const fileOf = (name: string, content: string) => {
  const path = join(directory, name);
  writeFileSync(path, content);
  return path;
};

const LISTED = 'org_01k2j8z5w3e9r7t1y6v4q0m8n2';
const { organizationId } = parseCloudIdentities(`${LISTED}/production`, {}).environments[0]!;
const baseUrls = {
  azure: 'https://acme.openai.azure.com/openai/v1',
  bedrock: 'https://bedrock-runtime.eu-central-1.amazonaws.com',
  vertex: 'https://aiplatform.googleapis.com/v1/projects/acme/locations/global/publishers/google',
};
type Cloud = keyof typeof baseUrls;

let clock: ManualClock;
let services: MetadataServices;
let logged: string[];
/** Connections that were tried. */
let tried: string[];
const open: Metadata[] = [];
beforeEach(async () => {
  clock = createManualClock();
  services = await startMetadataServices({ now: () => clock.now().getTime() });
  logged = [];
  tried = [];
});
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
  await services.close();
});

function identitiesWith(variables: IdentityVariables, machine?: MachineCloud): Identities {
  const listed = parseCloudIdentities(`${LISTED}/production,${LISTED}/staging`, variables);
  const metadata = createMetadata(listed.variables, {
    clock,
    open(options) {
      tried.push(`${options.host}:${options.port}`);
      return services.open(options);
    },
  });
  open.push(metadata);
  const egress = {
    request: async () => ({ status: 500, body: Buffer.from('of a server of tokens'), headers: {} }),
  } as never;
  const log = { warn: (fields: { problem: string }) => logged.push(fields.problem) } as unknown as Log;
  return createIdentities(listed, { egress, metadata, clock, log, machine: async () => machine });
}

const key = (identities: Identities, cloud: Cloud, baseUrl = baseUrls[cloud], environment = 'production') =>
  identities.keyFor(cloud, {
    organizationId,
    environment,
    name: 'KEY',
    baseUrl: new URL(baseUrl),
    missing: `${environment} has no key`,
  })!;

const instance = { AWS_EC2_METADATA_SERVICE_ENDPOINT: 'http://169.254.169.254' };
const pod = (file = fileOf('pod', POD_TOKEN)) => ({
  AWS_CONTAINER_CREDENTIALS_FULL_URI: 'http://169.254.170.23/v1/credentials',
  AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: file,
});
const web = { AWS_WEB_IDENTITY_TOKEN_FILE: '/nowhere', AWS_ROLE_ARN: 'arn:aws:iam::123456789012:role/web' };

const session = (address: string) => [
  `PUT ${address}/latest/api/token`,
  `GET ${address}/latest/meta-data/iam/security-credentials/`,
  `GET ${address}/latest/meta-data/iam/security-credentials/acme-agents`,
];
const GOOGLE_PATH = '/computeMetadata/v1/instance/service-accounts/default/token';
const AZURE_REQUEST = 'GET 169.254.169.254/metadata/identity/oauth2/token';
const POD_REQUEST = ['GET 169.254.170.23/v1/credentials'];

test.each<[string, Cloud, IdentityVariables, MachineCloud | undefined, string[]]>([
  ['an instance of EC2', 'bedrock', {}, 'aws', session('169.254.169.254')],
  ['one that only a setting tells of', 'bedrock', instance, undefined, session('169.254.169.254')],
  [
    'one in a network of IPv6',
    'bedrock',
    { AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE: 'IPv6' },
    'aws',
    session('fd00:ec2::254'),
  ],
  [
    'an address before the mode',
    'bedrock',
    { AWS_EC2_METADATA_SERVICE_ENDPOINT: 'http://[fd00:ec2::254]/', AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE: 'IPv4' },
    'aws',
    session('fd00:ec2::254'),
  ],
  [
    'a task of ECS on an instance',
    'bedrock',
    { AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: TASK_PATH },
    'aws',
    [`GET 169.254.170.2${TASK_PATH}`],
  ],
  ['a pod of EKS on an instance', 'bedrock', pod(), 'aws', POD_REQUEST],
  [
    'a pod of EKS in a network of IPv6',
    'bedrock',
    { ...pod(), AWS_CONTAINER_CREDENTIALS_FULL_URI: 'http://[fd00:ec2::23]/v1/credentials' },
    'aws',
    ['GET fd00:ec2::23/v1/credentials'],
  ],
  [
    'a relative address before a full one',
    'bedrock',
    { ...pod(), AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: TASK_PATH },
    undefined,
    [`GET 169.254.170.2${TASK_PATH}`],
  ],
  [
    'the file of a token before the token',
    'bedrock',
    { ...pod(), AWS_CONTAINER_AUTHORIZATION_TOKEN: 'old' },
    undefined,
    POD_REQUEST,
  ],
  ['a machine of Google Cloud', 'vertex', {}, 'google', [`GET 169.254.169.254${GOOGLE_PATH}`]],
  [
    'a pod in a sandbox',
    'vertex',
    { GCE_METADATA_HOST: 'metadata.google.internal' },
    undefined,
    [`GET 169.254.169.254${GOOGLE_PATH}`],
  ],
  [
    'a machine of Google Cloud with IPv6',
    'vertex',
    { GCE_METADATA_HOST: '[fd20:ce::254]:80' },
    'google',
    [`GET fd20:ce::254${GOOGLE_PATH}`],
  ],
  ['a machine of Azure', 'azure', {}, 'azure', [AZURE_REQUEST]],
  ['a machine of Azure with an identity of a user', 'azure', { AZURE_CLIENT_ID: CLIENT }, 'azure', [AZURE_REQUEST]],
  [
    'a pod that only a setting tells of',
    'azure',
    { AZURE_POD_IDENTITY_AUTHORITY_HOST: 'http://169.254.169.254/' },
    undefined,
    [AZURE_REQUEST],
  ],
  [
    'an endpoint without its header, as of Azure Arc, before none',
    'azure',
    { IDENTITY_ENDPOINT: 'http://localhost:40342/metadata/identity/oauth2/token' },
    'azure',
    [AZURE_REQUEST],
  ],
])('%s has a key', async (_what, cloud, variables, machine, requests) => {
  const { value } = await key(identitiesWith(variables, machine), cloud);
  const last = services.issued.at(-1)!;
  expect(value).toBe(typeof last === 'string' ? last : last.SessionToken);
  expect([services.requests, services.refused, logged]).toEqual([requests, [], []]);
});

test.each<[string, IdentityVariables]>([
  ['of the system', {}],
  ['of a user', { AZURE_CLIENT_ID: CLIENT }],
])('an app of Azure gets a token of its identity %s until its end', async (_whose, client) => {
  const endpoint = `http://localhost:${services.localPort}/msi/token`;
  const identities = identitiesWith({ IDENTITY_ENDPOINT: endpoint, IDENTITY_HEADER: APP_HEADER, ...client }, 'azure');
  const { value } = await key(identities, 'azure');
  await clock.advance(3_200_000);
  expect((await key(identities, 'azure')).value).toBe(value);
  await clock.advance(200_000);
  expect((await key(identities, 'azure')).value).not.toBe(value);
  expect(services.requests).toEqual(['GET localhost/msi/token', 'GET localhost/msi/token']);
});

test('a server of keys on this machine is asked with its token, at its own port only', async () => {
  const variables = {
    AWS_CONTAINER_CREDENTIALS_FULL_URI: `http://127.0.0.1:${services.localPort}/v1/credentials`,
    AWS_CONTAINER_AUTHORIZATION_TOKEN: POD_TOKEN,
  };
  const listed = parseCloudIdentities(`${LISTED}/production`, variables);
  const metadata = createMetadata(listed.variables, { clock });
  open.push(metadata);
  const service = { name: 'It', label: 'x', unreachable: 'do this' };
  const url = `http://127.0.0.1:${services.localPort}/v1/credentials`;
  const headers = { Authorization: POD_TOKEN };
  expect((await metadata.request(service, { method: 'GET', url, headers })).status).toBe(200);
  for (const other of ['http://127.0.0.1:1/', 'http://127.0.0.2:80/', 'http://10.0.0.1/', 'http://169.254.169.253/'])
    await expect(metadata.request(service, { method: 'GET', url: other, headers })).rejects.toThrow('is not allowed');
});

test.each<[string, Cloud, IdentityVariables, MachineCloud | undefined, RegExp]>([
  ['no setting and no machine of AWS', 'bedrock', {}, undefined, /^neither AWS_WEB_IDENTITY_TOKEN_FILE nor .*=http/],
  ['a machine of Google', 'bedrock', {}, 'google', /not known to be an instance of EC2/],
  ['a service that is turned off', 'bedrock', { AWS_EC2_METADATA_DISABLED: 'true', ...instance }, 'aws', /^neither/],
  [
    'a web identity on an instance',
    'bedrock',
    { ...web, ...pod() },
    'aws',
    /^AWS_WEB_IDENTITY_TOKEN_FILE can’t be read/,
  ],
])('with %s, no metadata service is asked', async (_what, cloud, variables, machine, problem) => {
  await expect(key(identitiesWith(variables, machine), cloud)).rejects.toMatchObject({ code: 'model_key_missing' });
  expect(logged).toEqual([expect.stringMatching(problem)]);
  expect([tried, services.requests]).toEqual([[], []]);
});

test.each<Cloud>(['bedrock', 'azure', 'vertex'])(
  'an environment that is not listed gets none from %s, and nothing is asked',
  async (cloud) => {
    const identities = identitiesWith({ ...instance, ...pod(), GCE_METADATA_HOST: '169.254.169.254' }, 'azure');
    await expect(key(identities, cloud, baseUrls[cloud], 'other')).rejects.toMatchObject({
      code: 'model_key_missing',
      message: expect.stringContaining('the operator does not allow it'),
    });
    expect([tried, logged]).toEqual([[], []]);
  },
);

describe('a service that', () => {
  test.each<[string, MetadataServices['mode'], Cloud, IdentityVariables, MachineCloud | undefined, RegExp, boolean]>([
    [
      'can’t be connected to',
      'away',
      'bedrock',
      instance,
      undefined,
      /^The metadata service of EC2 does not respond .*--http-put-response-hop-limit 2/,
      true,
    ],
    ['is behind too many hops', 'hops', 'bedrock', {}, 'aws', /does not respond .*hop limit must be 2/, true],
    ['has no role', 'bare', 'bedrock', {}, 'aws', /HTTP 404: attach a role to the instance/, false],
    ['is turned off', 403, 'bedrock', {}, 'aws', /HTTP 403: it is turned off for this instance/, false],
    [
      'can’t assume the role',
      'invalid',
      'bedrock',
      {},
      'aws',
      /no valid key of its role: check .*trust policy$/,
      false,
    ],
    ['fails', 500, 'bedrock', {}, 'aws', /^The metadata service of EC2 gave no token for .*: HTTP 500$/, true],
    ['limits requests', 429, 'bedrock', {}, 'aws', /HTTP 429$/, true],
    ['is not there', 'away', 'bedrock', pod(), undefined, /credentials server .*EKS Pod Identity Agent/, true],
    [
      'refuses the pod',
      'usual',
      'bedrock',
      pod(fileOf('old', 'old')),
      undefined,
      /HTTP 403: check AWS_CONTAINER_/,
      false,
    ],
    [
      'knows no such task',
      'usual',
      'bedrock',
      { AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: '/v2/x' },
      undefined,
      /HTTP 400$/,
      false,
    ],
    [
      'is not Google’s',
      'other',
      'vertex',
      {},
      'google',
      /^The metadata server of Google Cloud responded with no token$/,
      true,
    ],
    [
      'has no account',
      'bare',
      'vertex',
      {},
      'google',
      /HTTP 404: give the instance, or the pod.* service account of Google$/,
      false,
    ],
    ['refuses the pod', 403, 'vertex', {}, 'google', /HTTP 403: .*workloadIdentityUser/, false],
    ['is blocked', 'away', 'vertex', {}, 'google', /does not respond .*which must allow 169\.254\.169\.254$/, true],
    [
      'has no identity',
      'bare',
      'azure',
      {},
      'azure',
      /HTTP 400 \(invalid_request\): assign it a managed identity/,
      false,
    ],
    ['has no such identity', 'usual', 'azure', { AZURE_CLIENT_ID: 'other' }, 'azure', /set AZURE_CLIENT_ID/, false],
    ['is updated', 410, 'azure', {}, 'azure', /^The metadata service of Azure gave no token for .*HTTP 410$/, true],
    ['is updated soon', 404, 'azure', {}, 'azure', /HTTP 404$/, true],
    ['is blocked', 'away', 'azure', {}, 'azure', /does not respond .*which must allow 169\.254\.169\.254$/, true],
    [
      'has no app',
      'usual',
      'azure',
      { IDENTITY_ENDPOINT: 'http://127.0.0.1:1/', IDENTITY_HEADER: 'x' },
      undefined,
      /check IDENTITY_ENDPOINT$/,
      true,
    ],
    ['gets no token', 'usual', 'bedrock', pod('/nowhere'), undefined, /_TOKEN_FILE can’t be read \(ENOENT\)$/, false],
  ])(
    '%s (%s) is described for the operator only',
    async (_what, mode, cloud, variables, machine, problem, retryable) => {
      services.mode = mode;
      const identities = identitiesWith(variables, machine);
      const failure = await key(identities, cloud).catch((error) => error);
      expect([failure.code, failure.retryable]).toEqual([
        retryable ? 'model_unavailable' : 'model_key_missing',
        retryable,
      ]);
      expect(failure.message).toBe(
        'production has no key, and the service’s own identity, which the operator allows it to use instead, could not be had',
      );
      expect(logged).toEqual([expect.stringMatching(problem)]);
      expect(logged[0]).not.toMatch(/acme|1234|session-|issued/);
    },
  );

  test('does not respond is left alone for ten seconds', async () => {
    services.mode = 'away';
    const identities = identitiesWith(instance);
    for (const _ of ['first', 'second', 'third']) await key(identities, 'bedrock').catch(() => {});
    expect(tried).toEqual(['169.254.169.254:80']);
    services.mode = 'usual';
    await clock.advance(10_001);
    await key(identities, 'bedrock');
    expect(services.issued).toHaveLength(1);
  });
});

test('one key serves all regions and calls, and is replaced five minutes before its end', async () => {
  const identities = identitiesWith({}, 'aws');
  const west = 'https://bedrock-runtime.us-west-2.amazonaws.com';
  const both = () => Promise.all([key(identities, 'bedrock'), key(identities, 'bedrock', west, 'staging')]);
  await both();
  await clock.advance(3_200_000);
  await both();
  expect(services.issued).toHaveLength(1);
  await clock.advance(200_000);
  await both();
  expect(services.issued).toHaveLength(2);
});

const AZURE_QUERY = '?api-version=2018-02-01&resource=https://cognitiveservices.azure.com';
const TTL = { 'X-aws-ec2-metadata-token-ttl-seconds': '60' };
test.each<[number, string, string, Record<string, string>]>([
  [400, 'PUT', '/latest/api/token', {}],
  [400, 'PUT', '/latest/api/token', { 'X-aws-ec2-metadata-token-ttl-seconds': '21601' }],
  [403, 'PUT', '/latest/api/token', { ...TTL, 'X-Forwarded-For': '10.0.0.1' }],
  [401, 'GET', '/latest/meta-data/iam/security-credentials/', {}],
  [401, 'GET', '/latest/meta-data/iam/security-credentials/', { 'X-aws-ec2-metadata-token': 'made-up' }],
  [400, 'GET', '/v1/credentials', {}],
  [403, 'GET', '/v1/credentials', { Authorization: 'another' }],
  [403, 'GET', GOOGLE_PATH, {}],
  [403, 'GET', GOOGLE_PATH, { 'Metadata-Flavor': 'Google', 'X-Forwarded-For': '10.0.0.1' }],
  [400, 'GET', `/metadata/identity/oauth2/token${AZURE_QUERY}`, {}],
  [400, 'GET', `/metadata/identity/oauth2/token${AZURE_QUERY}`, { Metadata: 'true', 'X-Forwarded-For': '10.0.0.1' }],
  [401, 'GET', '/msi/token?api-version=2019-08-01&resource=https://cognitiveservices.azure.com', {}],
])('the services of these tests refuse with %d: %s %s with %j', async (status, method, path, headers) => {
  const response = await fetch(`http://127.0.0.1:${services.localPort}${path}`, { method, headers });
  expect(response.status).toBe(status);
  expect(services.issued).toEqual([]);
});

test.each<[MachineCloud | undefined, Record<string, string>]>([
  ['aws', { sys_vendor: 'Amazon EC2\n' }],
  ['aws', { sys_vendor: 'Xen', bios_version: '4.11.amazon\n' }],
  ['google', { sys_vendor: 'Google\n', bios_version: 'Google' }],
  ['azure', { sys_vendor: 'Microsoft Corporation\n', chassis_asset_tag: '7783-7084-3265-9085-8269-3286-77\n' }],
  [undefined, { sys_vendor: 'Microsoft Corporation\n', chassis_asset_tag: '1234' }],
  [undefined, { sys_vendor: 'Xen', bios_version: '4.11' }],
  [undefined, { sys_vendor: 'Googleplex' }],
  [undefined, {}],
])('a machine of %s says %j', async (cloud, firmware) => {
  const at = join(directory, 'dmi');
  rmSync(at, { recursive: true, force: true });
  mkdirSync(at);
  for (const [name, text] of Object.entries(firmware)) writeFileSync(join(at, name), text);
  expect(await readMachineCloud(at)).toBe(cloud);
});
