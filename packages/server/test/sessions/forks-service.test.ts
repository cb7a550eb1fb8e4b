// Forks through the API: who may open them, how often, and what streams, webhooks, workers and the event log have of them.
import type { Chunk } from '@signalbox/client';
import sql from 'sql-template-tag';
import { beforeAll, expect, test } from 'vitest';
import { uuidOf } from '../../src/lib/ids.ts';
import { send } from '../support/raw.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});

const until = (sessionId: string, status: string) =>
  expect.poll(async () => (await service.client.sessions.get(sessionId)).status).toBe(status);

async function conversation(more: { environment?: string; agentId?: string } = {}): Promise<string> {
  const { client } = service;
  const { environment = 'production' } = more;
  const agentId = more.agentId ?? (await client.agents.create({ name: 'Echo', model: 'scripted/echo' })).agentId;
  const { sessionId } = await client.sessions.open({ agentId, environment, input: 'one' });
  await until(sessionId, 'idle');
  return sessionId;
}

test('a fork needs write, in the environment of the session and the organization of the key', async () => {
  const origin = await conversation();
  const { client } = service;
  const keyed = async (key: Parameters<typeof client.keys.create>[0]) =>
    service.clientWith((await client.keys.create(key)).secret!).sessions.fork(origin);
  await expect(keyed({ name: 'r', permission: 'read' })).rejects.toMatchObject({ code: 'insufficient_permission' });
  await expect(keyed({ name: 's', permission: 'write', environments: ['staging'] })).rejects.toMatchObject({
    code: 'insufficient_permission',
  });
  expect(await keyed({ name: 'p', permission: 'write', environments: ['production'] })).toMatchObject({
    forkedFrom: { sessionId: origin, turn: 1 },
  });
});

test('a repeated request with the same idempotency key opens one fork', async () => {
  const origin = await conversation();
  const options = { idempotencyKey: 'fork once' };
  const params = { input: 'again' };
  const [a, b] = [
    await service.client.sessions.fork(origin, params, options),
    await service.client.sessions.fork(origin, params, options),
  ];
  expect(b.sessionId).toBe(a.sessionId);
  expect((await service.client.sessions.list({ forkedFromSessionId: origin })).data).toHaveLength(1);
});

test('the forks of a session are listed page by page, newest first', async () => {
  const origin = await conversation();
  const forks: string[] = [];
  for (const input of ['a', 'b', 'c']) {
    forks.unshift((await service.client.sessions.fork(origin, { input })).sessionId);
  }
  const listed: string[] = [];
  for await (const { sessionId } of service.client.sessions.list({ forkedFromSessionId: origin, limit: 1 })) {
    listed.push(sessionId);
  }
  expect(listed).toEqual(forks);
});

test('the event log has the fork and what it continues', async () => {
  const origin = await conversation();
  const { sessionId } = await service.client.sessions.fork(origin);
  const { data } = await service.client.events.list({ type: 'session.forked', sessionId });
  expect(data).toMatchObject([
    { resource: { type: 'session', id: sessionId }, changes: { forkedFrom: [null, { sessionId: origin, turn: 1 }] } },
  ]);
});

test('a stream of a fork has its own turns, live and from the beginning, also if it was opened before the first', async () => {
  const { client } = service;
  const { sessionId } = await client.sessions.fork(await conversation());
  expect(await client.sessions.chunks(sessionId)).toMatchObject({ data: [], hasMore: false });
  const live = client.sessions.stream(sessionId);
  const chunks: Chunk[] = [];
  const reading = (async () => {
    for await (const envelope of live) chunks.push(...envelope.chunks);
  })();
  await client.sessions.sendMessage(sessionId, { content: 'two' });
  await until(sessionId, 'idle');
  await client.sessions.close(sessionId);
  await reading;
  expect(chunks.map(({ turn, type }) => `${turn} ${type}`)).toEqual([
    '2 session.status',
    '2 step.started',
    '2 message.started',
    '2 message.chunk',
    '2 turn.completed',
    '2 session.status',
    '2 session.status',
  ]);
  const listed = (await client.sessions.chunks(sessionId)).data.flatMap((envelope) => envelope.chunks);
  expect(listed).toEqual(chunks);
});

test('a fork that ends before its first turn has a journal that ends, and can be forked', async () => {
  const { client } = service;
  const { sessionId } = await client.sessions.fork(await conversation());
  await client.sessions.close(sessionId);
  const chunks: Chunk[] = [];
  for await (const envelope of client.sessions.stream(sessionId)) chunks.push(...envelope.chunks);
  expect(chunks).toMatchObject([{ type: 'session.status', status: 'completed' }]);
  expect((await client.sessions.turns(sessionId)).data).toEqual([]);
  const again = await client.sessions.fork(sessionId, { input: 'two' });
  await until(again.sessionId, 'idle');
  expect((await client.sessions.messages(again.sessionId)).data).toHaveLength(4);
});

test('webhooks of a fork begin with its own first chunk, and recovery sends those of its own journal', async () => {
  const { client } = service;
  await client.webhookSubscriptions.create({ environment: 'staging', url: 'signalbox:test-receiver' });
  const origin = await conversation({ environment: 'staging' });
  const idle = await client.sessions.fork(origin);
  const { sessionId } = await client.sessions.fork(origin, { input: 'two' });
  await until(sessionId, 'idle');
  const deliveriesOf = async (id: string) =>
    (await client.webhookSubscriptions.deliveries.list('staging', { sessionId: id, status: 'succeeded' })).data;
  await expect.poll(async () => (await deliveriesOf(sessionId)).length).toBeGreaterThan(0);
  const first = (await deliveriesOf(sessionId)).at(-1)!;
  expect(first.previousCursor).toBeNull();
  await expect.poll(async () => (await deliveriesOf(sessionId))[0]!.cursor).toMatch(/^turn_2:/);

  const before = (await deliveriesOf(sessionId)).length;
  for (const id of [idle.sessionId, sessionId])
    await client.webhookSubscriptions.recover('staging', { sessionId: id, cursor: 'turn_0:seq_0' });
  await expect.poll(async () => (await deliveriesOf(sessionId)).length).toBeGreaterThan(before);
  expect(await deliveriesOf(idle.sessionId)).toEqual([]);
  const due = await service.db.query(sql`
    select 1 from sessions where session_id = ${uuidOf('ses', idle.sessionId)} and delivery_due`);
  expect(due).toEqual([]);
});

test('a worker gets the inherited messages with its turn', async () => {
  const { client } = service;
  const { agentId } = await client.agents.create({ name: 'W', model: { provider: 'worker', queue: 'forks' } });
  const { sessionId: origin } = await client.sessions.open({ agentId, environment: 'production', input: 'one' });
  const work = async (text: string) => {
    const turn = (await client.workers.claim({ queue: 'forks', waitSeconds: 10 }))!;
    await client.workers.append(turn.workerTurnId, { deltas: [text] });
    await client.workers.complete(turn.workerTurnId, {});
    await until(turn.sessionId, 'idle');
    return turn;
  };
  await work('first');
  const { sessionId } = await client.sessions.fork(origin, { input: 'two' });
  const turn = await work('second');
  expect(turn).toMatchObject({ sessionId, turn: 2 });
  expect(turn.messages.map(({ turn, role }) => `${turn} ${role}`)).toEqual(['1 user', '1 assistant', '2 user']);
});

test('a turn that is out of range, or no number, is refused', async () => {
  const origin = await conversation();
  for (const atTurn of [-1, 1.5, 2 ** 31, '1', null]) {
    const request = { key: service.adminKey, body: { atTurn } };
    const { status } = await send(service.url, 'POST', `/sessions/${origin}/fork`, request);
    expect(status, String(atTurn)).toBe(400);
  }
  await expect(service.client.sessions.fork(origin, { atTurn: 2 ** 31 - 1 })).rejects.toMatchObject({
    code: 'not_found',
  });
});
