// Identities from the metadata services of the machine: an agent is answered with one, and no request that a user can cause reaches them.
import type { Signalbox } from '@signalbox/client';
import type { Model } from '@signalbox/contract';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseEgressAllow } from '../../src/egress/policy.ts';
import { parseCloudIdentities } from '../../src/vault/cloud-identities.ts';
import type { AwsKey } from '../support/aws-signature.ts';
import { type Clouds, ofTheIdentity, startClouds } from '../support/clouds.ts';
import { type MetadataServices, startMetadataServices } from '../support/metadata-services.ts';
import { azureEntrance, bedrockEntrance, vertexEntrance } from '../support/server-rules/entrances.ts';
import { type StrictServer, startStrictServer } from '../support/server-rules/strict-server.ts';
import { startTestService, type TestService } from '../support/service.ts';

const claude = 'us.anthropic.claude-sonnet-5-5-v1:0';
const gemini = 'gemini-3.8-flash';
const models = {
  azure: { provider: 'azure', model: 'prod-chat', baseUrl: 'https://acme.openai.azure.com/openai/v1' },
  bedrock: { provider: 'bedrock', model: claude, baseUrl: 'https://bedrock-runtime.eu-central-1.amazonaws.com' },
  vertex: {
    provider: 'vertex',
    model: gemini,
    baseUrl: 'https://europe-west4-aiplatform.googleapis.com/v1/projects/acme/locations/europe-west4/publishers/google',
  },
} as const satisfies Record<string, Model>;
type Cloud = keyof typeof models;
const all = Object.keys(models) as Cloud[];

/** What a name leads to, for the names of tenants. */
const addresses: Record<string, string> = {
  'ec2.example.com': '169.254.169.254',
  'ecs.example.com': '169.254.170.2',
  'eks.example.com': '169.254.170.23',
  'eks6.example.com': 'fd00:ec2::23',
  'ec26.example.com': 'fd00:ec2::254',
  'gce6.example.com': 'fd20:ce::254',
};

let clouds: Clouds;
let metadata: MetadataServices;
let servers: Record<Cloud, StrictServer>;
let first: TestService;
let service: TestService;

beforeAll(async () => {
  clouds = await startClouds();
  metadata = await startMetadataServices({ issued: clouds.issued });
  const isToken = (token: string) => clouds.issued.findLast((one) => typeof one === 'string') === token;
  servers = {
    azure: await startStrictServer('azure', azureEntrance('acme', { deployment: 'prod-chat', isToken })),
    vertex: await startStrictServer(
      'vertex',
      vertexEntrance('acme', { location: 'europe-west4', model: gemini, isToken }),
    ),
    bedrock: await startStrictServer(
      'bedrock',
      bedrockEntrance('eu-central-1', {
        model: claude,
        accessKey: () => clouds.issued.findLast((one): one is AwsKey => typeof one === 'object')!,
      }),
    ),
  };
  for (const cloud of all) clouds.serve(new URL(models[cloud].baseUrl).host, Number(servers[cloud].host.split(':')[1]));
  first = await startTestService({ config: { roles: new Set(['api']) } });
  service = await startTestService({
    database: first.database,
    egress: {
      ...clouds.egress,
      lookup: async (name) => [addresses[name] ?? '127.0.0.1'],
      open: (options) => (options.port === 443 ? clouds.egress.open!(options) : metadata.open(options)),
    },
    config: {
      // Ranges and names of the operator open no metadata service.
      egress: parseEgressAllow('127.0.0.1/32, 169.254.0.0/16, fd00::/8, *.example.com'),
      cloudIdentities: parseCloudIdentities(`${first.organizationId}/production`, {
        AWS_EC2_METADATA_SERVICE_ENDPOINT: 'http://169.254.169.254',
        AZURE_POD_IDENTITY_AUTHORITY_HOST: 'http://169.254.169.254',
        GCE_METADATA_HOST: '169.254.169.254',
      }),
    },
  });
});
afterAll(async () => {
  await service.stop();
  await first.stop();
  for (const server of Object.values(servers)) await server.close();
  await metadata.close();
  await clouds.close();
});

async function opened(environment: string, definition: object, input = 'Hello', client: Signalbox = service.client) {
  const { agentId } = await client.agents.create({ name: 'Clerk', tools: [], ...definition } as never);
  const { sessionId } = await client.sessions.open({ agentId, environment, input });
  const get = () => client.sessions.get(sessionId);
  await expect.poll(async () => (await get()).status, { interval: 5 }).toBe('idle');
  return await get();
}

test.each(all)(
  'an environment that is not listed is refused at %s, and no metadata service is asked',
  async (cloud) => {
    const session = await opened('staging', { model: models[cloud] });
    expect(session.error?.code).toBe('model_key_missing');
    expect(JSON.stringify(session)).not.toMatch(ofTheIdentity);
    expect([metadata.requests, servers[cloud].requests]).toEqual([[], []]);
  },
);

test.each(all)('a listed environment is answered by %s, many calls with one identity', async (cloud) => {
  const before = clouds.issued.length;
  const sessions = await Promise.all(['1', '2'].map(() => opened('production', { model: models[cloud] })));
  for (const session of sessions) expect(session).toMatchObject({ stopReason: 'endTurn', error: null });
  expect([servers[cloud].refusals, metadata.refused]).toEqual([[], []]);
  expect(clouds.issued.length - before).toBe(1);
});

function post(path: string, body: object): Promise<Response> {
  const headers = { 'content-type': 'application/json' };
  return service.fetch(`/api/v1${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
}

test.each<[url: string]>([
  ['http://169.254.169.254/latest/meta-data/'],
  ['https://169.254.169.254/latest/meta-data/'],
  ['http://[::ffff:169.254.169.254]/latest/meta-data/'],
  ['http://2852039166/latest/meta-data/'],
  ['http://169.254.170.2/v2/credentials/x'],
  ['http://169.254.170.23/v1/credentials'],
  ['http://[fd00:ec2::23]/v1/credentials'],
  ['http://[fd00:ec2::254]/latest/meta-data/'],
  ['http://[fd20:ce::254]/computeMetadata/v1/'],
  ...Object.keys(addresses).map((name): [string] => [`http://${name}/latest/meta-data/`]),
])('what a user aims at %s is refused while an identity is used', async (url) => {
  const before = metadata.requests.length;
  const script = [{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Done: {{lastToolResult}}' }];
  const scripted = { provider: 'scripted', model: 'any', settings: { script } };
  const tool = { name: 'look', description: 'Looks.', approval: 'never', inputSchema: { type: 'object' } };
  const headers = { 'X-aws-ec2-metadata-token-ttl-seconds': '60', 'Metadata-Flavor': 'Google', Metadata: 'true' };
  const ways: [object, RegExp][] = [
    [{ model: scripted, tools: [{ ...tool, type: 'http', request: { method: 'PUT', url, headers } }] }, /not allowed/],
    [{ model: scripted, tools: [{ type: 'mcp', name: 'far', url, approval: 'never' }] }, /not allowed|no tool named/],
    [{ model: { provider: 'openai-compatible', model: 'x', baseUrl: url } }, /not allowed/],
  ];
  for (const [definition, words] of ways) {
    // It is refused when it is saved, or by the connection if a name leads there.
    const shown = await opened('production', definition).then(
      async (session) => {
        const messages: unknown[] = [];
        for await (const message of service.client.sessions.messages(session.sessionId)) messages.push(message);
        return JSON.stringify([session, messages]);
      },
      (error: Error) => `not allowed: ${error.message}`,
    );
    expect(shown).toMatch(words);
  }
  const isName = new URL(url).hostname.endsWith('.example.com');
  expect((await post('/webhook_subscriptions', { environment: 'production', url })).status).toBe(isName ? 201 : 422);
  if (isName) {
    expect(await (await post('/webhook_subscriptions/production/test', {})).text()).toMatch(/allowed/);
    await service.fetch('/api/v1/webhook_subscriptions/production', { method: 'DELETE' });
  }
  expect(metadata.requests.slice(before)).toEqual([]);
});

test('in all this, metadata services were asked for the identity only', () => {
  const google = '/computeMetadata/v1/instance/service-accounts/default/token';
  const roles = 'GET 169.254.169.254/latest/meta-data/iam/security-credentials/';
  expect(metadata.requests).toEqual([
    'GET 169.254.169.254/metadata/identity/oauth2/token',
    ...['PUT 169.254.169.254/latest/api/token', roles, `${roles}acme-agents`],
    `GET 169.254.169.254${google}`,
  ]);
  expect(service.logLines.join('\n')).not.toMatch(ofTheIdentity);
});
