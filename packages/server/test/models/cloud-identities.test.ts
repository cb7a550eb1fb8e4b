// The machine's own identities at clouds: who gets a key from them, and that nobody else learns anything of them. The clouds are servers
// at their own names, over TLS, which check tokens, audiences and signatures.
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Signalbox } from '@signalbox/client';
import { type Model, usualKeyName } from '@signalbox/contract';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { parseCloudIdentities } from '../../src/vault/cloud-identities.ts';
import type { AwsKey } from '../support/aws-signature.ts';
import { LISTED } from '../support/bedrock-lists.ts';
import { ACCOUNT, CLIENT, type Clouds, ofTheIdentity, POOL, ROLE, startClouds, TENANT } from '../support/clouds.ts';
import { addOrganization } from '../support/organization.ts';
import { azureEntrance, bedrockEntrance, vertexEntrance } from '../support/server-rules/entrances.ts';
import { type StrictServer, startStrictServer } from '../support/server-rules/strict-server.ts';
import { startTestService, type TestService, watchSecret } from '../support/service.ts';

const directory = mkdtempSync(join(tmpdir(), 'signalbox-identities-'));
const tokenFile = join(directory, 'token-of-acme-project');
const googleFile = join(directory, 'google-of-acme-project.json');
const claude = 'us.anthropic.claude-sonnet-5-5-v1:0';
const gemini = 'gemini-3.8-flash';

let clouds: Clouds;
let servers: Record<'azure' | 'bedrock' | 'vertex', StrictServer>;
/** Without identities: it only receives requests. */
let first: TestService;
let service: TestService;
let spans = '';
const collector = createServer(async (request, response) => {
  for await (const chunk of request) spans += chunk;
  response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
});

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

beforeAll(async () => {
  clouds = await startClouds();
  const isToken = (token: string) => clouds.issued.findLast((one) => typeof one === 'string') === token;
  servers = {
    azure: await startStrictServer('azure', azureEntrance('acme', { deployment: 'prod-chat', isToken })),
    bedrock: await startStrictServer(
      'bedrock',
      bedrockEntrance('eu-central-1', {
        model: claude,
        accessKey: () => clouds.issued.findLast((one): one is AwsKey => typeof one === 'object')!,
      }),
    ),
    vertex: await startStrictServer(
      'vertex',
      vertexEntrance('acme', { location: 'europe-west4', model: gemini, isToken }),
    ),
  };
  for (const cloud of all) clouds.serve(new URL(models[cloud].baseUrl).host, Number(servers[cloud].host.split(':')[1]));
  writeFileSync(tokenFile, `${clouds.token}\n`);
  const external = {
    type: 'external_account',
    audience: POOL,
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    token_url: 'https://sts.googleapis.com/v1/token',
    service_account_impersonation_url: `https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/${ACCOUNT}:generateAccessToken`,
    credential_source: { file: tokenFile, format: { type: 'text' } },
  };
  writeFileSync(googleFile, JSON.stringify(external));
  watchSecret(clouds.token);
  await once(collector.listen(0, '127.0.0.1'), 'listening');
  first = await startTestService({ config: { roles: new Set(['api']) } });
  const listed = `${first.organizationId}/production, ${first.organizationId}/missing`;
  service = await startTestService({
    database: first.database,
    egress: clouds.egress,
    config: {
      otlpEndpoint: `http://127.0.0.1:${(collector.address() as AddressInfo).port}`,
      otlpContent: true,
      cloudIdentities: parseCloudIdentities(listed, {
        AZURE_FEDERATED_TOKEN_FILE: tokenFile,
        AZURE_TENANT_ID: TENANT,
        AZURE_CLIENT_ID: CLIENT,
        AWS_WEB_IDENTITY_TOKEN_FILE: tokenFile,
        AWS_ROLE_ARN: ROLE,
        AWS_REGION: 'eu-central-1',
        GOOGLE_APPLICATION_CREDENTIALS: googleFile,
      }),
    },
  });
});
afterEach(() => {
  clouds.outage = undefined;
});
afterAll(async () => {
  await service.stop();
  await first.stop();
  collector.closeAllConnections();
  collector.close();
  for (const server of Object.values(servers)) await server.close();
  await clouds.close();
  rmSync(directory, { recursive: true });
});

async function agentOf(client: Signalbox, model: Model, tools: object[] = []): Promise<string> {
  return (await client.agents.create({ name: 'Clerk', model, tools } as never)).agentId;
}

async function settled(client: Signalbox, sessionId: string) {
  const get = () => client.sessions.get(sessionId);
  await expect.poll(async () => (await get()).status, { interval: 5 }).toBe('idle');
  return await get();
}

async function opened(environment: string, model: Model, client = service.client) {
  const agentId = await agentOf(client, model);
  const { sessionId } = await client.sessions.open({ agentId, environment, input: 'Hello' });
  return await settled(client, sessionId);
}

/** Everything that users and other systems can see of a session and its organization. */
async function shown(client: Signalbox, sessionId: string): Promise<string> {
  const parts: unknown[] = [await client.sessions.get(sessionId)];
  for await (const message of client.sessions.messages(sessionId)) parts.push(message);
  for await (const { operations, ...turn } of client.sessions.turns(sessionId)) {
    parts.push(turn);
    for (const { operationId } of operations) parts.push(await client.sessions.operation(sessionId, operationId));
  }
  for await (const event of client.sessions.stream(sessionId, { untilIdle: true } as never)) {
    parts.push(event);
    if (/"type":"turn\.(completed|failed)"/.test(JSON.stringify(event))) break;
  }
  for await (const event of client.events.list()) parts.push(event);
  const metrics = await (await service.fetch('/metrics')).text();
  expect(metrics).toContain('signalbox_model_calls_total');
  return JSON.stringify(parts) + metrics;
}

const answered = { status: 'idle', stopReason: 'endTurn', error: null };
const refusal = (environment: string, cloud: Cloud) => ({
  stopReason: 'error',
  error: {
    code: 'model_key_missing',
    message: `The environment ${environment} has no secret ${usualKeyName(cloud)}, the key for the agent’s model, and the operator does not allow it to use the service’s own identity instead`,
  },
});

test('the start names listed environments that do not exist', () => {
  const warned = service.logLines
    .map((line) => JSON.parse(line))
    .filter(({ level, entry }) => level === 'warn' && entry);
  expect(warned.map(({ entry }) => entry)).toEqual([`${first.organizationId}/missing`]);
});

test.each(all)(
  'an environment that is not listed is refused at %s, and nothing of the identity is shown',
  async (cloud) => {
    const session = await opened('staging', models[cloud]);
    expect(session).toMatchObject(refusal('staging', cloud));
    expect(await shown(service.client, session.sessionId)).not.toMatch(ofTheIdentity);
    expect([servers[cloud].requests, clouds.issued, clouds.refused]).toEqual([[], [], []]);
  },
);

test('an environment of another organization is refused, also if it has the name of a listed one', async () => {
  const other = service.clientWith(await addOrganization(service, 'Other'));
  for (const cloud of all) {
    const session = await opened('production', models[cloud], other);
    expect(session).toMatchObject(refusal('production', cloud));
    expect(await shown(other, session.sessionId)).not.toMatch(ofTheIdentity);
  }
  expect(clouds.issued).toEqual([]);
});

test('a child session and a schedule of an environment that is not listed are refused', async () => {
  const { client } = service;
  const askedId = await agentOf(client, models.azure);
  const script = [{ toolCalls: [{ name: 'ask', input: { input: 'Hello' } }] }, { text: 'Done: {{lastToolResult}}' }];
  const asking = { provider: 'scripted', model: 'any', settings: { script } } as Model;
  const tool = { type: 'agent', name: 'ask', description: 'Asks.', agentId: askedId, approval: 'never' };
  const parentId = await agentOf(client, asking, [tool]);
  const { sessionId } = await client.sessions.open({ agentId: parentId, environment: 'staging', input: 'Go' });
  await settled(client, sessionId);
  const { data: children } = await client.sessions.list({ parentSessionId: sessionId });
  expect(children).toHaveLength(1);
  expect(children[0]!.error).toMatchObject(refusal('staging', 'azure').error);

  const { scheduleId } = await client.schedules.create({
    agentId: askedId,
    environment: 'staging',
    cron: '0 9 1 1 *',
    input: 'Hello',
  });
  const { sessionId: ran } = await client.schedules.run(scheduleId);
  await expect
    .poll(async () => (await client.sessions.get(ran!)).error, { interval: 5 })
    .toMatchObject(refusal('staging', 'azure').error);
  expect(await shown(client, sessionId)).not.toMatch(ofTheIdentity);
  expect(clouds.issued).toEqual([]);
});

test('an agent that names another secret, or another server, does not get the identity', async () => {
  const own = await opened('production', { ...models.azure, apiKeySecret: 'OUR_KEY' });
  expect(own.error).toMatchObject({
    code: 'model_key_missing',
    message: expect.stringMatching(/no secret OUR_KEY, the key for the agent’s model$/),
  });
  const elsewhere = await opened('production', { ...models.azure, baseUrl: servers.azure.url });
  expect(elsewhere.error).toMatchObject({ code: 'model_rejected' });
  expect(servers.azure.requests.splice(0).map(({ headers }) => headers.authorization)).toEqual([undefined]);
  servers.azure.refusals.length = 0;
  expect(clouds.issued).toEqual([]);
});

test.each<[Cloud, RegExp]>([
  ['azure', /^Entra rejected the workload identity: HTTP 401 \(invalid_client, AADSTS700024\)$/],
  ['bedrock', /^AWS STS rejected the role of AWS_ROLE_ARN: HTTP 400 \(ExpiredTokenException\)$/],
  ['vertex', /^Google rejected the identity of GOOGLE_APPLICATION_CREDENTIALS: HTTP 400 \(invalid_grant\)$/],
])('an identity that %s refuses is described in the operator’s log only', async (cloud, problem) => {
  const { token } = clouds;
  clouds.token = 'another-token';
  const session = await opened('production', models[cloud]);
  clouds.token = token;
  const name = usualKeyName(cloud);
  expect(session.error).toEqual({
    code: 'model_key_missing',
    message: `The environment production has no secret ${name}, the key for the agent’s model, and the service’s own identity, which the operator allows it to use instead, could not be had`,
  });
  expect(await shown(service.client, session.sessionId)).not.toMatch(ofTheIdentity);
  const logged = service.logLines
    .map((line) => JSON.parse(line))
    .filter((line) => line.provider === cloud && line.problem);
  expect(logged.map((line) => line.problem)).toEqual([expect.stringMatching(problem)]);
  expect(clouds.refused.splice(0)).toHaveLength(1);
  expect(clouds.issued).toEqual([]);
});

test.each(all)('a listed environment without a key is answered by %s, many calls with one token', async (cloud) => {
  const before = clouds.issued.length;
  const sessions = await Promise.all(['1', '2', '3'].map(() => opened('production', models[cloud])));
  expect(sessions).toMatchObject([answered, answered, answered]);
  expect(await opened('production', models[cloud])).toMatchObject(answered);
  expect(servers[cloud].refusals).toEqual([]);
  // One for all; a token of a workload at Google is exchanged a second time.
  expect(clouds.issued.length - before).toBe(cloud === 'vertex' ? 2 : 1);
  expect(clouds.refused).toEqual([]);
});

test('a list of models is requested with the identity, or refused without it', async () => {
  const { client } = service;
  const { provider, baseUrl } = models.bedrock;
  const refused = await client.agents.models('staging', { provider, baseUrl });
  expect(refused.problem).toEqual(refusal('staging', 'bedrock').error);
  const listed = await client.agents.models('production', { provider, baseUrl });
  expect([listed.problem, listed.models.map(({ model, displayName }) => [model, displayName])]).toEqual([null, LISTED]);
});

test('what a cloud refuses after all names neither the role nor the account', async () => {
  const model = { ...models.bedrock, model: 'anthropic.claude-unknown' };
  servers.bedrock.next((response) => {
    response.writeHead(403, {
      'content-type': 'application/json',
      'x-amzn-errortype': 'AccessDeniedException:http://x',
    });
    response.end(JSON.stringify({ message: `User: ${ROLE}/x is not authorized to perform: bedrock:InvokeModel` }));
  });
  const session = await opened('production', model);
  expect(session.error).toEqual({
    code: 'model_key_rejected',
    message: 'The model’s provider rejected the service’s own identity: HTTP 403 (AccessDeniedException)',
  });
  expect(await shown(service.client, session.sessionId)).not.toMatch(ofTheIdentity);
});

test('no trace and no row shows anything of an identity', async () => {
  for (const secret of clouds.issued.flatMap((one) => (typeof one === 'string' ? [one] : Object.values(one))))
    watchSecret(secret);
  await service.stop();
  expect(spans).toContain('bedrock');
  expect(spans).not.toMatch(ofTheIdentity);
});
