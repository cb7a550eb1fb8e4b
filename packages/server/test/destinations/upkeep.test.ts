// What becomes of old deliveries to destinations, and of their secrets when the master key is replaced or lost.
import { randomBytes } from 'node:crypto';
import sql from 'sql-template-tag';
import { expect, test } from 'vitest';
import { dropDestinationDeliveries } from '../../src/destinations/retention.ts';
import { uuidOf } from '../../src/lib/ids.ts';
import { replaceDestinationSecrets, resealDestinations } from '../../src/operator/destination-secrets.ts';
import { createVault } from '../../src/vault/vault.ts';
import { createReceiver } from '../support/receiver.ts';
import { startTestService } from '../support/service.ts';

test('old deliveries go, secrets are sealed again under a new key, and are replaced when the key is lost', async () => {
  const oldKey = randomBytes(32);
  const service = await startTestService({ config: { masterKeys: [oldKey] } });
  const receiver = await createReceiver();
  const { client, db } = service;
  const organizationId = uuidOf('org', service.organizationId);
  const { destination } = await client.destinations.create({
    ...{ name: 'A', type: 'webhook', url: receiver.url, eventTypes: ['agent.*'], headers: { 'X-Key': 'key_4711' } },
  });
  const { destinationId } = destination;
  await client.agents.create({ name: 'A', model: 'scripted/x' });
  const count = async () => (await client.destinations.deliveries(destinationId, { status: 'succeeded' })).data.length;
  await expect.poll(count).toBe(1);
  const drop = (before: Date) => dropDestinationDeliveries(db, organizationId, before, new AbortController().signal);
  await drop(new Date(0));
  expect(await count()).toBe(1);
  await drop(new Date(Date.now() + 86_400_000));
  expect(await count()).toBe(0);

  const sealed = () => db.query(sql`select sealed_secret, sealed_headers, status from destinations`);
  const before = await sealed();
  const vault = createVault([randomBytes(32), oldKey]);
  expect(await resealDestinations(db, vault, organizationId, () => {})).toEqual([]);
  const after = await sealed();
  expect(after).not.toEqual(before);
  await replaceDestinationSecrets(db, vault, { organizationId, name: destinationId } as never);
  expect(await client.destinations.get(destinationId)).toMatchObject({ status: 'paused', headerNames: [] });
  await service.stop();
  await receiver.close();
});
