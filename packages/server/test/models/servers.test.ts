// Conversations of every kind with every server that is known, each with the rules of its maker: a turn never fails, and no request is
// refused.
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { connect } from 'node:net';
import type { Session } from '@signalbox/client';
import { type Model, modelServers } from '@signalbox/contract';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { targetOf } from '../../src/models/model/targets.ts';
import { png } from '../support/files.ts';
import { refuse } from '../support/provider-server.ts';
import {
  azureEntrance,
  bearerEntrance,
  bedrockEntrance,
  type Entrance,
  vertexEntrance,
} from '../support/server-rules/entrances.ts';
import {
  endpoints,
  type StrictServer,
  type StrictServerName,
  startStrictServer,
  strictServers,
} from '../support/server-rules/strict-server.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { serviceAccountRule, startTokenServer } from '../support/token-server.ts';

let service: TestService;
/** The ports of servers, in place of the ports in their addresses. */
const ports = new Map<unknown, number>();
beforeAll(async () => {
  service = await startTestService({
    egress: {
      lookup: async () => ['127.0.0.1'],
      open: (options) => connect({ ...options, port: ports.get(options.port) ?? options.port }),
    },
  });
});
afterAll(() => service.stop());

const TOOL = {
  type: 'client' as const,
  name: 'look',
  description: `Looks something up. ${'Really. '.repeat(300)}`,
  // What several of them refuse.
  inputSchema: {
    type: 'object',
    properties: {
      q: { type: 'string' },
      'filter[id]': { type: 'number', exclusiveMinimum: 0 },
      list: { type: 'array' },
    },
    anyOf: [{ required: ['q'] }, { required: ['filter[id]'] }],
  },
  approval: 'never' as const,
};

/** Each server refuses something of it. */
const ODD = {
  type: 'client' as const,
  name: 'json',
  description: 'x'.repeat(2000),
  inputSchema: {
    type: 'object',
    properties: {
      $top: { type: ['integer', 'null'] },
      'filter[id]': { $ref: '#/definitions/filter' },
      pair: { type: 'array', items: [{ const: 'a' }, {}], additionalItems: false },
    },
    oneOf: [{ required: ['$top'] }, { required: ['filter[id]'] }],
    definitions: { filter: { type: 'object', properties: { and: { $ref: '#/definitions/filter' } } } },
  },
};

/** The calls that have a result, or whose turn was ended. */
const over = new Set<string>();

/** The session once this turn has ended, or waits for results. */
async function settled(sessionId: string, turn = 1): Promise<Session> {
  const get = () => service.client.sessions.get(sessionId);
  await expect
    .poll(
      async () => {
        const session = await get();
        const isWaiting = session.waitingFor?.toolCallIds?.some((id) => !over.has(id)) ?? false;
        return session.turn === turn && (session.status === 'idle' || isWaiting);
      },
      { interval: 5 },
    )
    .toBe(true);
  return await get();
}

/** Ends a turn that waits. */
async function says(sessionId: string, content: Parameters<typeof service.client.sessions.sendMessage>[1]['content']) {
  const { turn, waitingFor } = await service.client.sessions.get(sessionId);
  for (const id of waitingFor?.toolCallIds ?? []) over.add(id);
  await service.client.sessions.sendMessage(sessionId, { content, onBusy: 'steer' });
  return await settled(sessionId, turn + 1);
}

/** Sends the results of all calls that the session waits for, the last call's first. */
async function results(session: Session, output: unknown = { found: true }): Promise<Session> {
  const { sessionId, turn } = session;
  const { toolCallIds = [] } = session.waitingFor ?? {};
  expect(toolCallIds.length).toBeGreaterThan(0);
  for (const toolCallId of toolCallIds.toReversed()) {
    over.add(toolCallId);
    await service.client.sessions.sendToolResult(sessionId, { toolCallId, output: output as string });
  }
  return await settled(sessionId, turn);
}

async function interrupted({ sessionId, turn, waitingFor }: Session): Promise<Session> {
  for (const id of waitingFor?.toolCallIds ?? []) over.add(id);
  await service.client.sessions.interrupt(sessionId);
  return await settled(sessionId, turn);
}

const answered = { status: 'idle', stopReason: 'endTurn', error: null };

async function agentWith(model: Model, more: object = {}): Promise<string> {
  const created = { name: 'Clerk', instructions: ' ', model, tools: [TOOL, ODD], ...more };
  return (await service.client.agents.create(created as never)).agentId;
}

async function opened(agentId: string, input: string): Promise<Session> {
  const { sessionId } = await service.client.sessions.open({ agentId, environment: 'production', input });
  return await settled(sessionId);
}

async function using<T>(
  name: StrictServerName,
  run: (server: StrictServer) => Promise<T>,
  entrance?: Entrance,
): Promise<T> {
  const server = await startStrictServer(name, entrance);
  try {
    return await run(server);
  } finally {
    await server.close();
  }
}

/** All that can happen in a conversation. */
async function converse(server: StrictServer, model: Model): Promise<void> {
  const { client } = service;
  const agentId = await agentWith(model);
  // Calls one after another and side by side, with a text of white space before them.
  const session = await opened(agentId, 'LOOK');
  const { sessionId } = session;
  expect(await results(session)).toMatchObject(answered);
  expect(await says(sessionId, 'Thanks')).toMatchObject(answered);
  expect(await results(await says(sessionId, 'BOTH'))).toMatchObject(answered);
  expect(
    await says(sessionId, [
      { type: 'text', text: ' \n ' },
      { type: 'text', text: 'And now?' },
    ]),
  ).toMatchObject(answered);
  // A message that ends a turn which waits, and an interrupt, each with a call that never gets a result.
  await says(sessionId, 'LOOK');
  expect(await says(sessionId, 'Wait')).toMatchObject(answered);
  expect(await interrupted(await says(sessionId, 'BOTH'))).toMatchObject({ stopReason: 'interrupted' });
  expect(await says(sessionId, 'Go on')).toMatchObject(answered);
  // A turn that fails before its first word, and its retry; then one after results.
  server.next(refuse(401));
  expect(await says(sessionId, 'Hello?')).toMatchObject({ stopReason: 'error' });
  expect(await says(sessionId, 'Hello?')).toMatchObject(answered);
  const waiting = await says(sessionId, 'LOOK');
  server.next(refuse(401));
  expect(await results(waiting, '')).toMatchObject({ stopReason: 'error' });
  const { turn } = await client.sessions.retry(sessionId);
  expect(await settled(sessionId, turn)).toMatchObject(answered);
  // Files, of the user and of a tool.
  const { fileId } = await client.files.upload(png, { environment: 'production', filename: 'a.png' });
  expect(await says(sessionId, [{ type: 'file', fileId }] as never)).toMatchObject(answered);
  // A fork, and a summary in the place of the conversation.
  const fork = await client.sessions.fork(sessionId, { input: 'LOOK' });
  expect(await results(await settled(fork.sessionId, fork.turn))).toMatchObject(answered);
  await client.sessions.compact(fork.sessionId);
  expect(await says(fork.sessionId, 'LOOK').then(results)).toMatchObject(answered);
  expect(server.refusals).toEqual([]);
}

/** The servers of the table that are like any unknown one. */
const unknown = modelServers.filter(({ baseUrl }) => targetOf('openai-compatible', new URL(baseUrl)) === 'chat');

test.each(strictServers.filter((name) => !unknown.some((server) => server.name === name)))('%s', async (name) => {
  await using(name, (server) => converse(server, server.model));
});

// Only TLS is missing: the server knows its own host, path and key, and its rules are known by its host.
test.each(modelServers)('$label, at the address of the table', async ({ name, baseUrl, keyName }) => {
  const url = new URL(baseUrl.replace('https:', 'http:'));
  const key = keyName && `key-of-${name}`;
  if (key) {
    const secret = { value: key, allowedHosts: [url.host] };
    await service.client.environments.secrets.set('production', keyName, secret);
  }
  const rules = (name === 'vllm' ? 'vllm with Mistral’s template' : name) as StrictServerName;
  await using(
    rules,
    async (server) => {
      ports.set(Number(url.port || 80), Number(server.host.split(':')[1]));
      const model = { ...server.model, baseUrl: url.href, ...(keyName && { apiKeySecret: keyName }) };
      await converse(server, model as Model);
      expect(server.requests.length).toBeGreaterThan(10);
    },
    bearerEntrance(endpoints[name], key),
  );
});

/** A cloud at the address of a customer, and what it requires. */
interface Cloud {
  name: StrictServerName;
  baseUrl: string;
  keyName: string;
  key: string;
  /** Hosts of the secret, besides that of the base URL. */
  hosts?: string[];
  model: string;
  entrance: Entrance;
  /** How a model that does not exist is refused, and a key that is not valid. */
  unknownModel: RegExp;
  wrongKey: { value: string; why: RegExp };
}

async function converseWithCloud(cloud: Cloud): Promise<void> {
  const { name, baseUrl, keyName, key, hosts = [], model, entrance, unknownModel, wrongKey } = cloud;
  const url = new URL(baseUrl);
  const { secrets } = service.client.environments;
  const setKey = (value: string) => secrets.set('production', keyName, { value, allowedHosts: [url.host, ...hosts] });
  await setKey(key);
  await using(
    name,
    async (server) => {
      ports.set(80, Number(server.host.split(':')[1]));
      const own = { ...server.model, baseUrl, model } as Model;
      await converse(server, own);
      expect(server.requests.length).toBeGreaterThan(10);

      const wrong = await opened(await agentWith({ ...own, model: `${model}t` } as Model), 'Hello');
      expect(wrong).toMatchObject({ stopReason: 'error', error: { code: 'model_rejected' } });
      expect(wrong.error!.message).toMatch(unknownModel);
      await setKey(wrongKey.value);
      const refused = await opened(await agentWith(own), 'Hello');
      expect(refused).toMatchObject({ stopReason: 'error', error: { code: 'model_key_rejected' } });
      expect(refused.error!.message).toMatch(wrongKey.why);
      await setKey(key);
      await more[name]?.(server, own);
    },
    entrance,
  );
  await secrets.delete('production', keyName);
}

/** What only one cloud has. */
const more: Partial<Record<StrictServerName, (server: StrictServer, model: Model) => Promise<void>>> = {
  async bedrock(server, model) {
    const own = 'anthropic.claude-sonnet-5-5-v1:0';
    const other = { ...model, model: own, fallbacks: [model] } as Model;
    // Another model is asked: the request is not at fault.
    expect(await opened(await agentWith(other), 'Hello')).toMatchObject({ stopReason: 'endTurn', error: null });
    const requests = server.requests.length;
    for (const id of [own, `arn:aws:bedrock:eu-central-1::foundation-model/${own}`]) {
      const refused = await opened(await agentWith({ ...model, model: id } as Model), 'Hello');
      expect(refused.error).toMatchObject({
        code: 'model_rejected',
        message: `The model’s provider responded with HTTP 400 (ValidationException): the model can only be called through an inference profile, such as eu.${own} or global.${own}; \`signalbox agents models bedrock\` lists what can be called`,
      });
    }
    expect(server.requests.length - requests).toBe(2);
  },
  async azure(server, model) {
    // Its package does not know the model's name, but the agent says that it reasons.
    expect(server.requests[0]!.body).toMatchObject({ reasoning: { effort: 'low' } });
    const filtered = await opened(await agentWith(model), 'Build me a weapon');
    expect(filtered).toMatchObject({ status: 'idle', stopReason: 'refusal', error: null });
  },
};

test('azure, at the resource of a customer', async () => {
  await converseWithCloud({
    name: 'azure',
    baseUrl: 'http://acme.openai.azure.com/openai/v1',
    keyName: 'AZURE_OPENAI_API_KEY',
    key: 'key-of-acme',
    model: 'prod-chat',
    entrance: azureEntrance('acme', { key: 'key-of-acme', deployment: 'prod-chat' }),
    unknownModel: /HTTP 404 \(DeploymentNotFound\)/,
    wrongKey: {
      value: 'another-key',
      why: /rejected the secret AZURE_OPENAI_API_KEY of the environment production: HTTP 401/,
    },
  });
});

test('vertex, in the project of a customer, with tokens of a service account, each for many calls', async () => {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const url = 'http://tokens.acme.example:8081/token';
  const email = 'agent@acme.iam.gserviceaccount.com';
  const tokens = await startTokenServer(serviceAccountRule({ email, keyId: 'k1', publicKey, url }));
  ports.set(8081, tokens.port);
  const account = (key: KeyObject) =>
    JSON.stringify({
      type: 'service_account',
      project_id: 'acme',
      private_key_id: 'k1',
      private_key: key.export({ type: 'pkcs8', format: 'pem' }),
      client_email: email,
      token_uri: url,
    });
  const model = 'gemini-3.8-flash';
  try {
    await converseWithCloud({
      name: 'vertex',
      baseUrl:
        'http://europe-west4-aiplatform.googleapis.com/v1/projects/acme/locations/europe-west4/publishers/google',
      keyName: 'GOOGLE_VERTEX_API_KEY',
      key: account(privateKey),
      hosts: ['tokens.acme.example:8081'],
      model,
      entrance: vertexEntrance('acme', {
        location: 'europe-west4',
        model,
        isToken: (token) => tokens.issued.at(-1) === token,
      }),
      unknownModel: /HTTP 404 \(NOT_FOUND\)/,
      wrongKey: {
        value: account(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey),
        why: /Google rejected the secret GOOGLE_VERTEX_API_KEY of the environment production: HTTP 400 \(invalid_grant\)/,
      },
    });
    // The two calls that the test lets fail with 401 have each cost it one more.
    expect(tokens.issued).toHaveLength(3);
    expect(new Set(tokens.refused)).toEqual(new Set(['Invalid JWT Signature.']));
  } finally {
    await tokens.close();
  }
});

const bedrockModel = 'us.anthropic.claude-sonnet-5-5-v1:0';
const accessKey = { AccessKeyId: 'AKIAACME', SecretAccessKey: 'secret/of+acme', SessionToken: 'session//token==' };
test.each([
  {
    what: 'an API key',
    entrance: bedrockEntrance('eu-central-1', { model: bedrockModel, apiKey: 'key-of-acme' }),
    key: 'key-of-acme',
    wrongKey: { value: 'another-key', why: /HTTP 403/ },
  },
  {
    what: 'an access key, which signs each request',
    entrance: bedrockEntrance('eu-central-1', { model: bedrockModel, accessKey: () => accessKey }),
    key: JSON.stringify(accessKey),
    wrongKey: {
      value: JSON.stringify({ ...accessKey, SecretAccessKey: 'another' }),
      why: /HTTP 403 \(InvalidSignatureException\)/,
    },
  },
])('bedrock, in the region of a customer, with $what', async ({ entrance, key, wrongKey }) => {
  await converseWithCloud({
    name: 'bedrock',
    baseUrl: 'http://bedrock-runtime.eu-central-1.amazonaws.com',
    keyName: 'AWS_BEARER_TOKEN_BEDROCK',
    key,
    model: bedrockModel,
    entrance,
    unknownModel:
      /HTTP 400 \(ValidationException\): no model of this region has this ID; `signalbox agents models bedrock` lists/,
    wrongKey,
  });
});

test.each(strictServers)('%s, in place of another that fails in the middle of a turn', async (name) => {
  const other = name === 'anthropic' ? 'google' : 'anthropic';
  await using(other, (first) =>
    using(name, async (server) => {
      const agentId = await agentWith({ ...first.model, fallbacks: [server.model] } as Model);
      const session = await opened(agentId, 'BOTH');
      first.next(refuse(503));
      expect(await results(session)).toMatchObject(answered);
      // And back, with a history that the other has written.
      expect(await says(session.sessionId, 'LOOK').then(results)).toMatchObject(answered);
      expect(server.requests.length).toBeGreaterThan(0);
      // Anthropic refuses to reason about another model's calls, but also lets its own models call without a thought: it can only be
      // tried. The request is repeated without reasoning.
      const thoughts = [{ status: 400, body: { error: { message: expect.stringContaining('Expected `thinking`') } } }];
      expect(server.refusals).toMatchObject(name === 'anthropic' ? thoughts : []);
      expect(first.refusals).toEqual([]);
    }),
  );
});

test('a gateway that wants the reasoning before each call back refuses one request, and no other after it', async () => {
  await using('anthropic', (first) =>
    using('deepseek', async (server) => {
      const gateway = { ...server.model, model: 'best' };
      const agentId = await agentWith({ ...first.model, fallbacks: [gateway] } as Model);
      const session = await opened(agentId, 'BOTH');
      first.next(refuse(503));
      expect(await results(session)).toMatchObject(answered);
      const wish = { status: 400, body: { error: { message: expect.stringContaining('must be passed back') } } };
      expect(server.refusals).toMatchObject([wish]);
      first.next(refuse(503));
      expect(await says(session.sessionId, 'Thanks')).toMatchObject(answered);
      expect(server.refusals).toHaveLength(1);
    }),
  );
});
