// Webhooks through the client of a whole service.
import { ConflictError, NotFoundError } from '@signalbox/client';
import sql from 'sql-template-tag';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createReceiver, type Receiver } from '../support/receiver.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let receiver: Receiver;

beforeAll(async () => {
  service = await startTestService();
  receiver = await createReceiver();
  await service.client.webhookSubscriptions.create({ environment: 'production', url: receiver.url });
});

afterAll(async () => {
  await service.stop();
  await receiver.close();
});

const tested = (key: string) =>
  service.fetch('/api/v1/webhook_subscriptions/production/test', {
    method: 'POST',
    headers: { 'Idempotency-Key': key },
  });

test('a delivery can be resent, and a session recovered from a cursor', async () => {
  const { client } = service;
  const { agentId } = await client.agents.create({ name: 'A', model: 'scripted/x' });
  const { sessionId } = await client.sessions.open({ agentId, environment: 'production', input: 'hello' });
  for await (const envelope of client.sessions.stream(sessionId)) {
    if (envelope.chunks.some((chunk) => chunk.type === 'session.status' && chunk.status === 'idle')) break;
  }
  const [first] = await receiver.first(1);
  const { deliveries } = client.webhookSubscriptions;
  await expect.poll(async () => (await deliveries.get('production', first!.deliveryId)).status).toBe('succeeded');
  expect(await deliveries.resend('production', first!.deliveryId)).toMatchObject({ deliveryId: first!.deliveryId });
  await expect.poll(async () => (await deliveries.get('production', first!.deliveryId)).attempts.length).toBe(2);

  const before = receiver.received.length;
  const subscription = await client.webhookSubscriptions.recover('production', {
    sessionId,
    cursor: first!.envelope.cursor,
  });
  expect(subscription).toMatchObject({ environment: 'production', status: 'enabled' });
  await client.webhookSubscriptions.recover('production', { since: new Date(0).toISOString() });
  await expect
    .poll(() => receiver.received.slice(before).some(({ previousCursor }) => previousCursor === ''))
    .toBe(true);
  const types = new Set((await client.events.list({ limit: 100 })).data.map(({ type }) => type));
  expect(types).toContain('webhook_delivery.resent');
  expect(types).toContain('webhook_delivery.recovered');
});

test('a recovery without a starting point, or with two, is refused', async () => {
  const { client } = service;
  await expect(client.webhookSubscriptions.test('staging')).rejects.toBeInstanceOf(NotFoundError);
  await expect(
    client.webhookSubscriptions.recover('staging', { since: new Date(0).toISOString() }),
  ).rejects.toBeInstanceOf(NotFoundError);
  for (const body of [
    {},
    { since: 'yesterday' },
    { sessionId: 'ses_x' },
    { since: new Date(0), cursor: 'turn_1:seq_1' },
  ]) {
    const refused = await service.fetch('/api/v1/webhook_subscriptions/production/recover', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
    expect(refused.status).toBe(400);
  }
});

test('twenty concurrent test requests with one idempotency key send one test', async () => {
  const gate = Promise.withResolvers<number>();
  receiver.received.length = 0;
  receiver.respond = () => gate.promise;
  const answers = Promise.all(Array.from({ length: 20 }, () => tested('once')));
  await receiver.first(1);
  // The record is stored before the effect: after a crash here it is unknown whether the test was sent.
  const kept = await service.db.query(sql`select 1 from idempotency_records where idempotency_key = 'once'`);
  expect(kept).toHaveLength(1);
  // Stored while the test is in progress, not when it ends.
  expect((await tested('once')).status).toBe(409);
  gate.resolve(200);
  const statuses = (await answers).map(({ status }) => status);
  expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(1);
  expect(statuses.filter((status) => status !== 200 && status !== 409)).toEqual([]);
  const again = await tested('once');
  expect(again.headers.get('Idempotent-Replayed')).toBe('true');
  expect(await again.json()).toMatchObject({ attempt: { status: 200, attempt: 1 } });
  expect(receiver.received).toHaveLength(1);
  receiver.respond = () => 200;
});

test('a test whose outcome is unknown after a crash is not sent again with its key', async () => {
  receiver.received.length = 0;
  expect((await tested('crashed')).status).toBe(200);
  await service.db.query(sql`
    update idempotency_records set status = null, body = null
    where organization_id is not null and idempotency_key = 'crashed'`);
  const refused = await tested('crashed');
  expect(refused.status).toBe(409);
  expect(await refused.json()).toMatchObject({ code: 'idempotency_in_progress' });
  expect(receiver.received).toHaveLength(1);
});

test('a test that could not be sent leaves its key unused', async () => {
  const missing = () =>
    service.fetch('/api/v1/webhook_subscriptions/staging/test', {
      method: 'POST',
      headers: { 'Idempotency-Key': 'missing' },
    });
  expect((await missing()).status).toBe(404);
  const again = await missing();
  expect([again.status, again.headers.get('Idempotent-Replayed')]).toEqual([404, 'true']);
  await service.db.query(sql`update webhook_subscriptions set sealed_secret = ''::bytea`);
  expect((await tested('broken')).status).toBe(500);
  const rows = await service.db.query(sql`select 1 from idempotency_records where idempotency_key = 'broken'`);
  expect(rows).toEqual([]);
});

test('a recovery is refused if too many wait', async () => {
  const { client } = service;
  await client.webhookSubscriptions.update('production', { status: 'paused' });
  await service.db.query(sql`
    insert into webhook_recoveries (organization_id, webhook_subscription_id, recovery_id, since, after_session_id, created_at)
    select organization_id, webhook_subscription_id, gen_random_uuid(), now(), webhook_subscription_id, now()
    from webhook_subscriptions, generate_series(1, 1000)`);
  await expect(
    client.webhookSubscriptions.recover('production', { since: new Date(0).toISOString() }),
  ).rejects.toBeInstanceOf(ConflictError);
});
