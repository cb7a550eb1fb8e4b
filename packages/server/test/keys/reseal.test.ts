// Secrets after the master key was replaced, and after it was lost.
import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { ask } from '../../../embedded-postgres/test/support/ask.ts';
import { type Config, readConfig } from '../../src/config/config.ts';
import { createDb } from '../../src/db/db.ts';
import { openSecrets } from '../../src/environments/secrets.ts';
import { uuidOf } from '../../src/lib/ids.ts';
import { deleteUnreadableOnHost, listUnreadableOnHost, resealOnHost } from '../../src/operator/sealed-secrets.ts';
import { createVault } from '../../src/vault/vault.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { startTestService, type TestService } from '../support/service.ts';

vi.setConfig({ testTimeout: 60_000 });

const [oldKey, newKey, otherKey] = [randomBytes(32), randomBytes(32), randomBytes(32)];
const quiet = () => {};
// More than two batches.
const SECRETS = 230;

let database: TestDatabase;
let first: TestService;
let organizationId: string;
beforeAll(async () => {
  database = await createTestDatabase();
  first = await startTestService({ database, config: { masterKeys: [oldKey] } });
  organizationId = uuidOf('org', first.organizationId)!;
  const { environments, webhookSubscriptions } = first.client;
  for (let n = 0; n < SECRETS; n += 1)
    await environments.secrets.set('production', `SECRET_${n}`, {
      value: `secret value ${n}`,
      allowedHosts: ['a.example'],
    });
  for (const environment of ['production', 'staging'])
    await webhookSubscriptions.create({ environment, url: 'https://127.0.0.1:9/' });
  await webhookSubscriptions.rotateSecret('staging', { gracePeriodSeconds: 3600 });
});
afterAll(async () => {
  await first.stop();
  await database.drop();
});

const configWith = (...keys: Buffer[]): Config =>
  readConfig(
    {},
    { DATABASE_URL: database.url, SIGNALBOX_MASTER_KEY: keys.map((key) => key.toString('hex')).join(',') },
  );
const startWith = (...masterKeys: Buffer[]) => startTestService({ database, config: { masterKeys } });

async function readAll(key: Buffer): Promise<string[]> {
  const names = Array.from({ length: SECRETS }, (_, n) => `SECRET_${n}`);
  const db = createDb({ url: database.url, max: 1 });
  const secrets = await openSecrets({ db, vault: createVault([key]) }, organizationId, 'production', names);
  await db.close();
  return [...secrets.values()].map(({ value }) => value).toSorted();
}

test('secrets are sealed under the new key while nodes serve, also after an interruption, and the old key can be removed', async () => {
  await expect(resealOnHost(configWith(newKey, oldKey), quiet)).rejects.toThrow(/restart every node with it/);
  await expect(resealOnHost(configWith(otherKey), quiet)).rejects.toThrow(
    /newest master key is not in SIGNALBOX_MASTER_KEY/,
  );
  const nodes = [await startWith(newKey, oldKey), await startWith(newKey, oldKey)];
  const before = await readAll(oldKey);

  let batches = 0;
  const interrupted = resealOnHost(configWith(newKey, oldKey), () => {
    batches += 1;
    if (batches === 2) throw new Error('interrupted');
  });
  await expect(interrupted).rejects.toThrow('interrupted');
  await expect(startWith(newKey)).rejects.toThrow(/none of the configured master keys can decrypt/);

  // A node sets a secret anew between the read and the write of its batch: the new value stays. It is one of those that are left.
  const newValue = createVault([newKey]).seal(
    'environment_secret',
    [organizationId, 'production', 'SECRET_9'],
    'set meanwhile',
  );
  const setter = new Client({ connectionString: database.url });
  await setter.connect();
  await setter.query('begin');
  await setter.query(`update environment_secrets set sealed_value = $1 where name = 'SECRET_9'`, [newValue]);
  const resealing = resealOnHost(configWith(newKey, oldKey), quiet);
  const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
    and query like '%update environment_secrets%'`;
  await expect.poll(() => ask(database.url, waiting)).toHaveLength(1);
  await setter.query('commit');
  await setter.end();
  const result = await resealing;
  expect(result.unreadable).toEqual([]);
  expect(result.resealed).toBeLessThan(SECRETS);
  expect(await resealOnHost(configWith(newKey, oldKey), quiet)).toEqual({ resealed: 0, unreadable: [] });
  expect(await readAll(newKey)).toEqual(
    before.map((value) => (value === 'secret value 9' ? 'set meanwhile' : value)).toSorted(),
  );
  for (const node of nodes) await node.stop();
  const after = await startWith(newKey);
  for (const environment of ['production', 'staging'])
    expect((await after.client.webhookSubscriptions.get(environment)).health.blockedBy).toBe(null);
  await after.stop();
});

test('after the master key was lost, unreadable secrets are listed, and deleted so that the service starts; the rest stays', async () => {
  const config = configWith(otherKey);
  await expect(startWith(otherKey)).rejects.toThrow(/does not have the master key/);
  const found = await listUnreadableOnHost(config);
  expect(found).toHaveLength(SECRETS + 2);
  expect(found[0]).toEqual({ organizationId, environment: 'production', kind: 'environment_secret', name: 'SECRET_0' });
  expect(await listUnreadableOnHost(configWith(newKey))).toEqual([]);
  // A node that still has the key could read them.
  await expect(deleteUnreadableOnHost(config)).rejects.toThrow(/Nodes are running/);
  await first.stop();
  // Its lease, and those of the nodes of the other test.
  await ask(database.url, 'delete from nodes');
  expect(await deleteUnreadableOnHost(config)).toEqual(found);
  expect(await listUnreadableOnHost(config)).toEqual([]);

  const after = await startWith(otherKey);
  expect((await after.client.environments.secrets.list('production')).data).toEqual([]);
  const subscription = await after.client.webhookSubscriptions.get('production');
  expect(subscription).toMatchObject({ status: 'paused', secretVersion: 2, health: { blockedBy: null } });
  const { data } = await after.client.events.list({ type: 'environment_secret.deleted', limit: 1 });
  expect(data[0]).toMatchObject({ actor: { type: 'system' }, environment: 'production' });
  expect(await after.client.events.verify()).toMatchObject({ ok: true });
  // The owner rotates it and enables the subscription.
  const { secretVersion } = await after.client.webhookSubscriptions.rotateSecret('production', {
    gracePeriodSeconds: 0,
  });
  expect(secretVersion).toBe(3);
  await after.client.webhookSubscriptions.update('production', { status: 'enabled' });
  await after.stop();
});
