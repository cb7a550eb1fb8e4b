// Approvals and interrupts on a whole service, as integrators use them: through the client.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  BadRequestError,
  type Chunk,
  ConflictError,
  NotFoundError,
  PermissionError,
  type Tool,
} from '@signalbox/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTestDatabase } from '../support/postgres.ts';
import { startTestService, type TestService } from '../support/service.ts';

/** The refunds that the shop received. */
const refunded: unknown[] = [];
const shop = createServer(async (request, response) => {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  refunded.push(JSON.parse(Buffer.concat(parts).toString()));
  response.setHeader('content-type', 'application/json').end('{"done":true}');
});

let service: TestService;
beforeAll(async () => {
  await once(shop.listen(0, '127.0.0.1'), 'listening');
  service = await startTestService();
});
afterAll(() => {
  shop.closeAllConnections();
  shop.close();
});

const refund = (): Tool => ({
  type: 'http',
  name: 'refund',
  description: 'Pays money back.',
  inputSchema: {
    type: 'object',
    properties: { order: { type: 'string' }, cents: { type: 'integer', minimum: 1 } },
    required: ['order', 'cents'],
    additionalProperties: false,
  },
  request: {
    method: 'POST',
    url: `http://127.0.0.1:${(shop.address() as AddressInfo).port}/refunds`,
    body: { order: '{{input.order}}', cents: '{{input.cents}}' },
  },
});

/** Opens a session whose agent requests this refund and then reports the result. */
async function openRefund(environment = 'production', on = service): Promise<string> {
  const toolCalls = [{ name: 'refund', input: { order: '1042', cents: 9900 } }];
  const { agentId } = await on.client.agents.create({
    name: 'Support',
    model: {
      provider: 'scripted',
      model: 'support',
      settings: { script: [{ toolCalls }, { text: 'Refunded: {{lastToolResult}}' }] },
    },
    tools: [refund()],
  });
  const { sessionId } = await on.client.sessions.open({ agentId, environment, input: 'Money back!' });
  return sessionId;
}

/** Streams the session until a chunk matches; returns all chunks up to that one. */
async function until(sessionId: string, condition: (chunk: Chunk) => boolean, on = service): Promise<Chunk[]> {
  const all: Chunk[] = [];
  for await (const { chunks } of on.client.sessions.stream(sessionId)) {
    all.push(...chunks);
    if (chunks.some(condition)) break;
  }
  return all;
}

const is = (status: string) => (chunk: Chunk) => chunk.type === 'session.status' && chunk.status === status;

async function pendingOf(sessionId: string, on = service): Promise<string> {
  await until(sessionId, is('waiting'), on);
  const { data } = await on.client.approvals.list({ sessionId, status: 'pending' });
  return data[0]!.operationId;
}

describe('approvals', () => {
  test('the tool’s server gets the edited input of an approval, which records the integrator’s own user', async () => {
    const { client } = service;
    const sessionId = await openRefund();
    const operationId = await pendingOf(sessionId);
    const input = { order: '1042', cents: 4900 };
    const approval = await client.approvals.approve(operationId, { input, reason: 'Half of it', onBehalfOf: 'maria' });
    expect(approval).toMatchObject({
      status: 'approved',
      input: { order: '1042', cents: 9900 },
      editedInput: input,
      reason: 'Half of it',
      resolvedBy: { type: 'api_key', name: 'Test', onBehalfOf: 'maria' },
    });
    expect(await client.approvals.get(operationId)).toEqual(approval);
    const chunks = await until(sessionId, is('idle'));
    expect(refunded.at(-1)).toEqual(input);
    expect(chunks.find(({ type }) => type === 'tool.call')).toMatchObject({ input });
    const { data } = await client.sessions.messages(sessionId);
    expect(data.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
    expect(data[2]!.content).toMatchObject([{ type: 'tool_result', input, output: { done: true } }]);
    const events = await client.events.list({ sessionId, type: 'approval.resolved' });
    expect(events.data[0]).toMatchObject({ actor: { type: 'api_key' }, changes: { input: [approval.input, input] } });
  });

  test('an approval with an input that the tool refuses fails with the wrong part of the input', async () => {
    const { client } = service;
    const operationId = await pendingOf(await openRefund());
    const wrong = await client.approvals
      .approve(operationId, { input: { order: '1042', cents: 0 } })
      .catch((error: unknown) => error);
    expect(wrong).toBeInstanceOf(BadRequestError);
    expect(wrong).toMatchObject({
      code: 'invalid_request',
      errors: [{ path: 'input', message: expect.stringContaining('cents') }],
    });
    expect((await client.approvals.get(operationId)).status).toBe('pending');
    // The types allow neither.
    await expect(client.approvals.deny(operationId, { input: {} } as object)).rejects.toThrow(BadRequestError);
    await expect(client.approvals.deny(operationId, { scope: 'session' } as object)).rejects.toThrow(BadRequestError);
    await client.approvals.deny(operationId);
  });

  test('an approval is decided once, by a key with the permission to write, by its own id', async () => {
    const { client } = service;
    const sessionId = await openRefund();
    const operationId = await pendingOf(sessionId);
    const { secret } = await client.keys.create({ name: 'reader', permission: 'read' });
    const reader = service.clientWith(secret!);
    expect((await reader.approvals.get(operationId)).status).toBe('pending');
    await expect(reader.approvals.approve(operationId)).rejects.toThrow(PermissionError);
    await client.approvals.deny(operationId, { reason: 'Not after 30 days.' });
    expect((await client.approvals.deny(operationId, { reason: 'Why not' })).reason).toBe('Not after 30 days.');
    const second = await client.approvals.approve(operationId).catch((error: unknown) => error);
    expect(second).toBeInstanceOf(ConflictError);
    expect(second).toMatchObject({ code: 'approval_already_resolved' });
    await expect(client.approvals.approve('op_01hzzzzzzzzzzzzzzzzzzzzzzz')).rejects.toThrow(NotFoundError);
    await expect(client.approvals.approve(sessionId)).rejects.toThrow(NotFoundError);
    const chunks = await until(sessionId, is('idle'));
    const refused = chunks.filter(({ type }) => type === 'tool.call' || type === 'tool.result');
    expect(refused).toMatchObject([
      { type: 'tool.call', tool: 'refund', notRun: true },
      { type: 'tool.result', notRun: true, error: expect.stringContaining('denied this call') },
    ]);
    const [call, result] = refused as { toolCallId: string }[];
    expect(result!.toolCallId).toBe(call!.toolCallId);
    expect(chunks.find(({ type }) => type === 'approval.resolved')).toMatchObject({ toolCallId: call!.toolCallId });
    expect(chunks.find(({ type }) => type === 'message.chunk')).toMatchObject({ delta: 'Refunded:' });
  });

  test.each<[string, object]>([
    ['a reason with NUL', { reason: 'a\0b' }],
    ['half a character', { onBehalfOf: '\ud800' }],
    ['an empty reason', { reason: '' }],
    ['too long a reason', { reason: 'x'.repeat(2_001) }],
    ['too long a user name', { onBehalfOf: 'x'.repeat(201) }],
    ['an input with NUL', { input: { order: '\0', cents: 1 } }],
    ['an input named like a prototype', { input: JSON.parse('{"order":"1","cents":1,"__proto__":{"cents":2}}') }],
    ['an input nested too deeply', { input: JSON.parse(`${'['.repeat(200)}${']'.repeat(200)}`) }],
    ['an unknown scope', { scope: 'organization' }],
    ['a decision that only the service takes', { decision: 'expired' }],
    ['an unknown field', { extra: 1 }],
  ])('%s is refused and leaves the approval pending', async (_, nonsense) => {
    const operationId = await pendingOf(await openRefund());
    const { status } = await service.fetch(`/api/v1/approvals/${operationId}/resolve`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ decision: 'approved', ...nonsense }),
    });
    expect(status).toBe(400);
    expect((await service.client.approvals.get(operationId)).status).toBe('pending');
  });

  test('the inbox lists pending approvals of all sessions, oldest first, until they are decided', async () => {
    const { client } = service;
    await client.environments.create({ name: 'shop' });
    const sessions: string[] = [];
    while (sessions.length < 3) {
      sessions.push(await openRefund('shop'));
      await until(sessions.at(-1)!, is('waiting'));
    }
    const inbox = async () => {
      const found: string[] = [];
      for await (const { sessionId } of client.approvals.list({ environment: 'shop', status: 'pending', limit: 1 })) {
        found.push(sessionId);
      }
      return found;
    };
    expect(await inbox()).toEqual(sessions);
    await client.approvals.deny(await pendingOf(sessions[1]!));
    expect(await inbox()).toEqual([sessions[0], sessions[2]]);
  });
});

/** Opens a session whose first model response takes longer than any test. */
async function openEndless(on = service): Promise<string> {
  const { agentId } = await on.client.agents.create({
    name: 'Talker',
    model: {
      provider: 'scripted',
      model: 'talker',
      settings: { script: [{ text: 'word '.repeat(4_000), tokenDelayMs: 100 }, { text: 'Yes?' }] },
    },
  });
  const { sessionId } = await on.client.sessions.open({ agentId, environment: 'production', input: 'Talk' });
  await until(sessionId, (chunk) => chunk.type === 'message.chunk', on);
  return sessionId;
}

describe('interrupts and steering', () => {
  test('a turn is interrupted during its text; a second interrupt changes nothing', async () => {
    const { client } = service;
    const sessionId = await openEndless();
    await client.sessions.interrupt(sessionId);
    const chunks = await until(sessionId, is('idle'));
    expect(chunks.at(-2)).toMatchObject({ type: 'turn.completed', stopReason: 'interrupted' });
    const session = await client.sessions.interrupt(sessionId);
    expect(session).toMatchObject({ status: 'idle', stopReason: 'interrupted' });
    const text = chunks.map((chunk) => (chunk.type === 'message.chunk' ? chunk.delta : '')).join('');
    const { data } = await client.sessions.messages(sessionId);
    expect(data.at(-1)).toMatchObject({ role: 'assistant', content: [{ type: 'text', text }] });

    await client.sessions.close(sessionId);
    await expect(client.sessions.interrupt(sessionId)).rejects.toThrow(ConflictError);
  });

  test('steering ends the turn, and the new message has its turn before the queued ones', async () => {
    const { client } = service;
    const sessionId = await openEndless();
    await client.sessions.sendMessage(sessionId, { content: 'queued' });
    const { messageId } = await client.sessions.sendMessage(sessionId, { content: 'Stop', onBusy: 'steer' });
    await until(sessionId, is('idle'));
    const { data } = await client.sessions.messages(sessionId);
    const users = data.filter(({ role }) => role === 'user');
    expect(users.map(({ content }) => content)).toMatchObject([
      [{ text: 'Talk' }],
      [{ text: 'Stop' }],
      [{ text: 'queued' }],
    ]);
    expect(users[1]!.messageId).toBe(messageId);
  });

  test('the node that runs a turn receives the approval and the interrupt that a node without sessions accepts', async () => {
    const database = await createTestDatabase();
    const api = await startTestService({ database, config: { roles: new Set(['api']) } });
    const runtime = await startTestService({ database, config: { roles: new Set(['runtime']) } });
    const refundSession = await openRefund('production', api);
    await api.client.approvals.approve(await pendingOf(refundSession, api));
    await until(refundSession, is('idle'), api);
    expect(refunded.at(-1)).toEqual({ order: '1042', cents: 9900 });
    const endless = await openEndless(api);
    await api.client.sessions.interrupt(endless);
    const chunks = await until(endless, is('idle'), api);
    expect(chunks.at(-2)).toMatchObject({ type: 'turn.completed', stopReason: 'interrupted' });
    await runtime.stop();
    await api.stop();
    await database.drop();
  });
});
