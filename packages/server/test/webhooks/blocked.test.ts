// What the API shows for a subscription for which nothing can be sent.
import { randomBytes } from 'node:crypto';
import sql from 'sql-template-tag';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { parseEgressAllow } from '../../src/egress/policy.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { createReceiver, type Receiver } from '../support/receiver.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let receiver: Receiver;
let database: TestDatabase;
const masterKeys = [randomBytes(32)];
const start = (config: Partial<Config> = {}) => startTestService({ database, config: { masterKeys, ...config } });

beforeAll(async () => {
  database = await createTestDatabase();
  service = await start();
  receiver = await createReceiver();
  await service.client.webhookSubscriptions.create({ environment: 'production', url: receiver.url });
});

afterAll(async () => {
  await service.stop();
  await database.drop();
  await receiver.close();
});

const healthOf = async ({ client }: TestService = service) =>
  (await client.webhookSubscriptions.get('production')).health;
const listedHealthOf = async ({ client }: TestService = service) =>
  (await client.webhookSubscriptions.list()).data[0]!.health;
const isFree = { state: 'healthy', blockedBy: null, reason: null };

test('is blocked while no live node has the role delivery, and healthy as soon as one has', async () => {
  await expect.poll(() => healthOf()).toMatchObject(isFree);
  const { db } = service;
  await db.execute(sql`
    insert into nodes (node_id, lease_expires_at, delivers) values (gen_random_uuid(), now() - interval '1 s', true)`);
  const other = await start({ roles: new Set(['api', 'runtime'] as const) });
  await service.stop();
  const blocked = { state: 'blocked', blockedBy: 'no_delivery_node', reason: expect.stringContaining('`delivery`') };
  expect(await healthOf(other)).toMatchObject(blocked);
  expect(await listedHealthOf(other)).toMatchObject(blocked);
  service = await start();
  await expect.poll(() => healthOf(other)).toMatchObject(isFree);
  await other.stop();
});

test('is blocked while the signing secret cannot be opened, until it is rotated without a grace period', async () => {
  const { client, db } = service;
  await db.execute(sql`update webhook_subscriptions set sealed_secret = ${randomBytes(80)}, epoch = epoch + 1`);
  const blocked = {
    state: 'blocked',
    blockedBy: 'secret_unreadable',
    reason: expect.stringContaining('SIGNALBOX_MASTER_KEY'),
  };
  expect(await healthOf()).toMatchObject(blocked);
  await client.webhookSubscriptions.rotateSecret('production');
  expect(await healthOf()).toMatchObject(blocked);
  await client.webhookSubscriptions.rotateSecret('production', { gracePeriodSeconds: 0 });
  expect(await healthOf()).toMatchObject(isFree);
});

test('is blocked while the url is no longer allowed', async () => {
  const strict = await start({ egress: parseEgressAllow('') });
  const blocked = {
    state: 'blocked',
    blockedBy: 'url_not_allowed',
    reason: expect.stringContaining('SIGNALBOX_EGRESS_ALLOW'),
  };
  expect(await healthOf(strict)).toMatchObject(blocked);
  expect(await healthOf()).toMatchObject(isFree);
  const url = 'https://example.com/hook';
  expect((await strict.client.webhookSubscriptions.update('production', { url })).health).toMatchObject(isFree);
  await strict.client.webhookSubscriptions.update('production', { status: 'paused' });
  await service.db.execute(sql`
    update webhook_subscriptions set last_error = 'not_allowed', failing_since = now(), failures = 1`);
  expect(await healthOf(strict)).toMatchObject(blocked);
  await strict.stop();
});
