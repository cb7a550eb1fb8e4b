// A call never keeps one connection to the database while it waits for another: as many such calls as there are connections would
// wait for one another, and block the node.
import { type Route, type RouteName, routes } from '@signalbox/contract';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Browser } from '../support/browser.ts';
import { join, setUp } from '../support/people.ts';
import { send } from '../support/raw.ts';
import { createReceiver, type Receiver } from '../support/receiver.ts';
import { startTestService, type TestService } from '../support/service.ts';

describe('a node whose pool has one connection', () => {
  let service: TestService;
  let receiver: Receiver;
  let owner: Browser;
  const called = new Set<RouteName>();
  let calls = 0;

  beforeAll(async () => {
    service = await startTestService({ maxConnections: 1 });
    receiver = await createReceiver();
    owner = await setUp(service);
  });
  afterAll(async () => {
    await service.stop();
    await receiver.close();
  });

  /** With an Idempotency-Key, so that a POST runs in the transaction of its record. */
  // biome-ignore lint/suspicious/noExplicitAny: responses of every shape
  async function call(name: RouteName, input: Record<string, unknown> = {}): Promise<any> {
    const route: Route = routes[name];
    const body = { ...input };
    const path = route.path.replaceAll(/\{(\w+)\}/g, (_, param: string) => {
      const value = String(body[param]);
      delete body[param];
      return value;
    });
    calls += 1;
    const headers = { 'idempotency-key': `call ${calls}` };
    const given = route.body ? body : undefined;
    const { status, text, json } = await (route.byPerson
      ? owner.api(route.method, path, given, headers)
      : send(service.url, route.method, path, {
          key: service.adminKey,
          headers,
          ...(given && { body: given }),
        }));
    expect(status, `${name}: ${text}`).toBe(route.status);
    called.add(name);
    return json;
  }

  const agentWith = async (script: object[], more: object = {}): Promise<string> => {
    const model = { provider: 'scripted', model: 'x', settings: { script } };
    return (await call('createAgent', { name: 'Agent', model, ...more })).agent.agentId;
  };
  const open = async (agentId: string, more: object = {}): Promise<string> =>
    (await call('openSession', { agentId, environment: 'production', input: 'go', ...more })).session.sessionId;
  const until = (sessionId: string, status: string) =>
    expect.poll(async () => (await service.client.sessions.get(sessionId)).status).toBe(status);

  test('completes every change of API keys, environments and secrets', async () => {
    const { keyId } = (await call('createKey', { name: 'key', permission: 'read' })).apiKey;
    await call('updateKey', { keyId, name: 'renamed' });
    await call('rotateKey', { keyId, gracePeriodSeconds: 60 });
    await call('deleteOldSecret', { keyId });
    await call('deleteKey', { keyId });
    await call('createEnvironment', { name: 'short' });
    await call('updateEnvironment', {
      env: 'short',
      keepSessionsDays: 30,
      modelLimits: [{ model: '*', requestsPerMinute: 5 }],
    });
    await call('setBudget', { budgetName: 'daily', limitUsd: 5, period: 'day' });
    await call('deleteBudget', { budgetName: 'daily' });
    await call('setSecret', { env: 'short', name: 'TOKEN', value: 'a secret', allowedHosts: ['example.com'] });
    await call('deleteSecret', { env: 'short', name: 'TOKEN' });
    await call('deleteEnvironment', { env: 'short' });
  });

  test('completes every change of agents, sessions, approvals and schedules', async () => {
    const helper = await agentWith([{ text: 'done' }]);
    const tool = { type: 'agent', name: 'helper', description: 'Helps.', agentId: helper };
    const agentId = await agentWith([{ toolCalls: [{ name: 'helper', input: { message: 'help' } }] }, {}], {
      tools: [tool],
    });
    await call('updateAgent', { agentId, expectedVersion: 1, name: 'renamed', tools: [tool] });
    const sessionId = await open(agentId);
    await until(sessionId, 'idle');
    await call('updateSession', { sessionId, metadata: { a: 'b' } });
    await call('sendMessage', { sessionId, content: 'more' });
    await call('forkSession', { sessionId, atTurn: 1, agentVersion: 1, input: 'other' });
    await call('interruptSession', { sessionId });
    await until(sessionId, 'idle');
    await call('compactSession', { sessionId });
    await until(sessionId, 'idle');
    await call('createSessionToken', { sessionId, scopes: ['read'] });
    const { share } = await call('createSessionShare', { sessionId });
    await call('deleteSessionShare', { sessionId, shareId: share.shareId });
    await call('closeSessions', { sessionIds: [sessionId] });
    await call('cancelSessions', { sessionIds: [sessionId] });
    await call('closeSession', { sessionId: await open(helper) });
    await call('deleteSession', { sessionId });

    const failing = await open(
      await agentWith([{ text: 'no' }, { text: 'no' }, { text: '{}' }], { outputSchema: { type: 'object' } }),
    );
    await until(failing, 'idle');
    await call('retrySession', { sessionId: failing });
    await until(failing, 'idle');

    const client = { type: 'client', name: 'ask', description: 'Asks.', inputSchema: { type: 'object' } };
    const asking = await agentWith([{ toolCalls: [{ name: 'ask', input: {} }] }, {}], { tools: [client] });
    const asked = await open(asking);
    await until(asked, 'waiting');
    await call('sendToolResult', { sessionId: asked, toolCallId: await toolCallOf(asked), output: 'yes' });
    await until(asked, 'idle');
    await call('cancelSession', { sessionId: asked });

    const paying = await agentWith([{ toolCalls: [{ name: 'ask', input: {} }] }, {}], {
      tools: [{ ...client, approval: 'always' }],
    });
    const paid = await open(paying);
    await until(paid, 'waiting');
    const [approval] = (await service.client.approvals.list({ sessionId: paid })).data;
    await call('resolveApproval', { operationId: approval!.operationId, decision: 'denied' });
    await until(paid, 'idle');
    await call('resolveApprovals', { operationIds: [approval!.operationId], decision: 'denied' });

    const schedule = { agentId, environment: 'production', input: 'go', cron: '0 0 1 1 *' };
    const { scheduleId } = (await call('createSchedule', schedule)).schedule;
    await call('updateSchedule', { scheduleId, agentId: helper, input: 'again' });
    await call('runSchedule', { scheduleId });
    await call('deleteSchedule', { scheduleId });
    await call('archiveAgent', { agentId });
  });

  async function toolCallOf(sessionId: string): Promise<string> {
    const { data } = await service.client.sessions.chunks(sessionId, { limit: 100 });
    return data.flatMap(({ chunks }) =>
      chunks.flatMap((chunk) => ('toolCallId' in chunk ? [chunk.toolCallId] : [])),
    )[0]!;
  }

  test('completes every change of end users', async () => {
    const agentId = await agentWith([{ text: 'hello' }]);
    const endUser = { id: 'user_1', name: 'Nia' };
    await call('createEndUserToken', { agentId, environment: 'production', endUser, scopes: ['open'] });
    const sessionId = await open(agentId, { endUser });
    await call('eraseEndUser', { endUserId: endUser.id });
    await expect
      .poll(() =>
        service.client.sessions.get(sessionId).then(
          () => 'there',
          () => 'gone',
        ),
      )
      .toBe('gone');
  });

  test('completes every change of files', async () => {
    const uploaded = await service.fetch('/api/v1/files?environment=production', { method: 'POST', body: 'text' });
    expect(uploaded.status).toBe(201);
    called.add('uploadFile');
    const { file } = (await uploaded.json()) as { file: { fileId: string } };
    await call('deleteFile', { fileId: file.fileId });
  });

  test('completes every change of worker turns', async () => {
    const { agentId } = (await call('createAgent', { name: 'W', model: { provider: 'worker', queue: 'q' } })).agent;
    const sessionId = await open(agentId);
    const claimed = async () =>
      (await call('claimWorkerTurn', { queue: 'q', environment: 'production', sessionId })).workerTurn.workerTurnId;
    const first = await claimed();
    await call('heartbeatWorkerTurn', { workerTurnId: first });
    await call('appendToWorkerTurn', { workerTurnId: first, deltas: ['text'] });
    await call('releaseWorkerTurn', { workerTurnId: first });
    await call('completeWorkerTurn', { workerTurnId: await claimed() });
    await until(sessionId, 'idle');
  });

  test('completes what authors of agents ask for', async () => {
    const request = { method: 'GET', url: `${service.url}/healthz` };
    const tool = { type: 'http', name: 'look', description: '', inputSchema: {}, request };
    await call('testTool', { env: 'production', tool });
    await call('listMcpTools', { env: 'production', server: { type: 'mcp', name: 'crm', url: `${service.url}/mcp` } });
  });

  test('completes every change of webhook subscriptions', async () => {
    const env = 'production';
    await call('createWebhookSubscription', { environment: env, url: receiver.url });
    await call('updateWebhookSubscription', { env, chunkTypes: ['session.status'] });
    await call('rotateWebhookSecret', { env });
    await call('testWebhookSubscription', { env });
    await open(await agentWith([{ text: 'hello' }]));
    const [, delivered] = await receiver.first(2);
    const { deliveryId } = delivered!;
    await call('resendDelivery', { env, deliveryId });
    await call('recoverDeliveries', { env, since: new Date(0).toISOString() });
    await call('recoverDeliveries', { env, sessionId: delivered!.envelope.sessionId, cursor: 'turn_1:seq_1' });
    await call('deleteWebhookSubscription', { env });
  });

  test('completes every change of destinations', async () => {
    const hook = { type: 'webhook', eventTypes: ['webhook_subscription.*'], url: receiver.url };
    const { destinationId } = (await call('createDestination', { name: 'Audit', ...hook })).destination;
    await call('updateDestination', { destinationId, name: 'Audits' });
    await call('rotateDestinationSecret', { destinationId });
    await call('testDestination', { destinationId });
    await call('recoverDestination', { destinationId, from: 1 });
    await call('deleteDestination', { destinationId });
  });

  test('completes every change of people and the organization', async () => {
    const { invitationId } = (await call('createInvitation', { role: 'member', email: 'a@example.com' })).invitation;
    await call('deleteInvitation', { invitationId });
    const { userId } = (await join(owner, service, 'Nia')).account!.user!;
    await call('updateMember', { userId, role: 'admin' });
    await call('resetPassword', { userId });
    await call('removeMember', { userId });
    await call('updateOrganization', { name: 'Renamed' });
    await call('setOrganization', { allowedOrigins: ['https://app.example.com'] });
  });

  test('completes each changing route of the contract in one of these tests', () => {
    const changes = Object.entries<Route>(routes).filter(([, { method }]) => method !== 'GET');
    expect(changes.map(([name]) => name).filter((name) => !called.has(name as RouteName))).toEqual([]);
  });
});

test('100 agents that name an agent can be created at once, while other calls get their responses', async () => {
  const service = await startTestService();
  const { agentId } = await service.client.agents.create({ name: 'Helper', model: 'scripted/x' });
  const tools = [{ type: 'agent', name: 'helper', description: 'Helps.', agentId }];
  const created = Array.from({ length: 100 }, (_, index) =>
    send(service.url, 'POST', '/agents', {
      key: service.adminKey,
      headers: { 'idempotency-key': `agent ${index}` },
      body: { name: `Agent ${index}`, model: 'scripted/x', tools },
    }),
  );
  const read = send(service.url, 'GET', `/agents/${agentId}`, { key: service.adminKey });
  expect((await read).status).toBe(200);
  expect(new Set((await Promise.all(created)).map(({ status }) => status))).toEqual(new Set([201]));
  await service.stop();
});
