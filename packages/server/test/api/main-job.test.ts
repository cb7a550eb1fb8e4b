// The main job, end to end over the wire: an agent on a provider's API runs in a session, waits for an approval, calls a tool with
// a secret, streams, and is sent by signed webhook and logged.
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Chunk, type Envelope, webhooks } from '@signalbox/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type OpenAiServer, refuse, respond, startOpenAiServer } from '../support/openai-server.ts';
import { startTestService, type TestService, watchSecret } from '../support/service.ts';
import { outline } from '../support/session-world.ts';

const providerKey = 'provider-key-9f8e7d6c5b4a';
const bankToken = 'bank-token-1a2b3c4d5e6f';

let service: TestService;
let provider: OpenAiServer;
let bank: Server;
const transfers: { headers: IncomingHttpHeaders; body: unknown; path: string }[] = [];
let hooks: Server;
const pushed: Envelope[] = [];
const delivered = Promise.withResolvers<void>();

const portOf = (server: Server) => (server.address() as AddressInfo).port;
const listening = (server: Server) => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));

beforeAll(async () => {
  watchSecret(providerKey);
  watchSecret(bankToken);
  service = await startTestService();
  provider = await startOpenAiServer();
  bank = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    transfers.push({
      headers: request.headers,
      body: JSON.parse(Buffer.concat(parts).toString()),
      path: request.url ?? '',
    });
    // A careless server that repeats what it receives.
    response
      .setHeader('content-type', 'application/json')
      .end(JSON.stringify({ ok: true, auth: request.headers.authorization }));
  });
  await listening(bank);

  const { client } = service;
  await client.environments.secrets.set('production', 'MODEL_KEY', {
    value: providerKey,
    allowedHosts: [provider.host],
  });
  await client.environments.secrets.set('production', 'BANK_TOKEN', {
    value: bankToken,
    allowedHosts: [`127.0.0.1:${portOf(bank)}`],
  });
  let receiver: ReturnType<typeof webhooks.receiver>;
  hooks = createServer((request, response) => void receiver.node(request, response));
  await listening(hooks);
  const { signingSecret } = await client.webhookSubscriptions.create({
    environment: 'production',
    url: `http://127.0.0.1:${portOf(hooks)}/hook`,
    chunkTypes: [
      'message.chunk',
      'session.status',
      'tool.call',
      'tool.result',
      'approval.requested',
      'approval.resolved',
      'turn.completed',
    ],
  });
  receiver = webhooks.receiver({
    secrets: signingSecret!,
    onChunks(envelope) {
      pushed.push(envelope);
      if (envelope.chunks.some((chunk) => chunk.type === 'session.status' && chunk.status === 'completed'))
        delivered.resolve();
    },
  });
});
afterAll(async () => {
  await service.stop();
  await provider.close();
  bank.close();
  hooks.close();
});

async function createAgent() {
  return service.client.agents.create({
    name: 'Teller',
    instructions: 'You move money.',
    model: { provider: 'openai-compatible', model: 'any', baseUrl: provider.url, apiKeySecret: 'MODEL_KEY' },
    tools: [
      {
        type: 'http',
        name: 'transfer',
        description: 'Moves money',
        inputSchema: {
          type: 'object',
          required: ['to', 'cents'],
          properties: { to: { type: 'string' }, cents: { type: 'integer' } },
        },
        request: {
          method: 'POST',
          url: `http://127.0.0.1:${portOf(bank)}/accounts/{{input.to}}/transfers`,
          headers: { authorization: 'Bearer {{secrets.BANK_TOKEN}}' },
          body: { cents: '{{input.cents}}', note: 'to {{input.to}}' },
        },
      },
    ],
  });
}

test('open, stream, approve, call, complete; pushed, signed, verified and logged', async () => {
  const { client } = service;
  provider.next(
    refuse(429, { headers: { 'retry-after': '0' } }),
    respond({ text: ['Moving ', 'it.'], toolCalls: [{ name: 'transfer', arguments: { to: 'a/b c', cents: 1250 } }] }),
    respond({ text: ['Done, ', '12.50.'] }),
  );
  const { agentId } = await createAgent();
  const { sessionId } = await client.sessions.open({
    agentId,
    environment: 'production',
    input: 'Pay',
    closeOnIdle: true,
  });

  const streamed: Chunk[] = [];
  for await (const { chunks } of client.sessions.stream(sessionId)) {
    streamed.push(...chunks);
    for (const chunk of chunks) {
      // Only once it waits: a decision that arrives before the session has parked lets it continue without ever being `waiting`.
      const awaited = chunk.type === 'session.status' ? (chunk.waitingFor?.operationIds ?? []) : [];
      for (const operationId of awaited) await client.approvals.approve(operationId, { onBehalfOf: 'ann' });
    }
  }
  await delivered.promise;

  const words = outline(streamed).filter((word) => !word.startsWith('"'));
  expect(words).toEqual([
    'running',
    'approval.requested',
    'waiting',
    'approval.resolved approved',
    'running',
    'tool.call',
    'tool.result',
    'turn.completed endTurn',
    'completed',
  ]);
  const said = streamed.flatMap((chunk) => (chunk.type === 'message.chunk' ? [chunk.delta] : [])).join('');
  expect(said).toBe('Moving it.Done, 12.50.');

  expect(transfers).toHaveLength(1);
  const { operationId } = streamed.find((chunk) => chunk.type === 'approval.requested') as { operationId: string };
  expect(transfers[0]).toMatchObject({
    path: '/accounts/a%2Fb%20c/transfers',
    headers: { authorization: `Bearer ${bankToken}`, 'idempotency-key': operationId },
    body: { cents: 1250, note: 'to a/b c' },
  });
  // The secret that the tool's server repeated reached neither the stream nor the model.
  const result = streamed.find(({ type }) => type === 'tool.result');
  expect(result).toMatchObject({ output: { ok: true, auth: 'Bearer [secret BANK_TOKEN]' } });
  expect(JSON.stringify(provider.requests.map(({ body }) => body))).not.toContain(bankToken);
  expect(provider.requests.every(({ headers }) => headers.authorization === `Bearer ${providerKey}`)).toBe(true);

  // The subscription does not name the chunks with which a response begins.
  const named = streamed.filter(({ type }) => type !== 'step.started' && type !== 'message.started');
  expect(pushed.flatMap(({ chunks }) => chunks)).toEqual(named);
  const events = (await client.events.list({ order: 'asc', sessionId })).data.map(({ type }) => type);
  expect(events).toEqual([
    'session.created',
    'approval.requested',
    'session.waiting',
    'approval.resolved',
    'session.completed',
  ]);
  const { usage } = await client.sessions.get(sessionId);
  expect(usage).toMatchObject({ steps: 2, toolCalls: 1 });
});

test('a provider’s stream that breaks is retried, and clients that apply resets see no break', async () => {
  provider.next(respond({ text: ['Half ', 'a '], end: 'reset' }), respond({ text: ['Whole.'] }));
  const { agentId } = await createAgent();
  const { sessionId } = await service.client.sessions.open({
    agentId,
    environment: 'production',
    input: 'x',
    closeOnIdle: true,
  });
  let said: { seq: number; delta: string }[] = [];
  for await (const { chunks } of service.client.sessions.stream(sessionId)) {
    for (const chunk of chunks) {
      if (chunk.type === 'message.chunk') said.push(chunk);
      if (chunk.type === 'message.reset') said = said.filter(({ seq }) => seq < chunk.fromSeq);
    }
  }
  expect(said.map(({ delta }) => delta).join('')).toBe('Whole.');
});

test('a provider that refuses the key fails the session with advice, and without the key', async () => {
  provider.next(refuse(401, { body: { error: { message: `bad key ${providerKey}`, code: 'invalid_api_key' } } }));
  const { agentId } = await createAgent();
  const { sessionId } = await service.client.sessions.open({
    agentId,
    environment: 'production',
    input: 'x',
    closeOnIdle: true,
  });
  for await (const { chunks } of service.client.sessions.stream(sessionId)) void chunks;
  const { status, error } = await service.client.sessions.get(sessionId);
  expect({ status, code: error?.code }).toEqual({ status: 'failed', code: 'model_key_rejected' });
  expect(JSON.stringify(error)).not.toContain(providerKey);
});

test('a key whose host is not allowed is never sent there', async () => {
  const before = provider.requests.length;
  await service.client.environments.secrets.set('staging', 'MODEL_KEY', {
    value: providerKey,
    allowedHosts: ['api.example.com'],
  });
  const { agentId } = await createAgent();
  const { sessionId } = await service.client.sessions.open({
    agentId,
    environment: 'staging',
    input: 'x',
    closeOnIdle: true,
  });
  for await (const { chunks } of service.client.sessions.stream(sessionId)) void chunks;
  const { status, error } = await service.client.sessions.get(sessionId);
  expect({ status, code: error?.code }).toEqual({ status: 'failed', code: 'model_not_allowed' });
  expect(error?.message).toContain('MODEL_KEY');
  expect(provider.requests).toHaveLength(before);
});
