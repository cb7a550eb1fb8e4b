// A service with a master key that is not the one that sealed the secrets of its database does not start.
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { StartError } from '../src/main.ts';
import { send } from './support/raw.ts';
import { createReceiver } from './support/receiver.ts';
import { startTestService, type TestService } from './support/service.ts';

const oldKey = randomBytes(32);
const newKey = randomBytes(32);
let first: TestService;
beforeAll(async () => {
  first = await startTestService({ config: { masterKeys: [oldKey] } });
});
afterAll(() => first.stop());

const startWith = (...masterKeys: Buffer[]) => startTestService({ database: first.database, config: { masterKeys } });
const put = (service: TestService, name: string) =>
  send(service.url, 'PUT', `/environments/production/secrets/${name}`, {
    key: service.adminKey,
    body: { value: 'a secret value', allowedHosts: ['example.com'] },
  });

test('with another key it starts as long as nothing was sealed', async () => {
  await (await startWith(newKey)).stop();
});

test('once a secret or a signing secret is there, it needs the key that sealed it, which may stand behind a newer one', async () => {
  expect((await put(first, 'TOKEN')).status).toBe(200);
  const refusal = await startWith(newKey).catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(StartError);
  expect((refusal as Error).message).toMatch(/master key.*SIGNALBOX_MASTER_KEY/);

  const both = await startWith(newKey, oldKey);
  // Sealed anew, the last value of the old key is gone.
  expect((await put(both, 'TOKEN')).status).toBe(200);
  await both.stop();
  await (await startWith(newKey)).stop();

  const receiver = await createReceiver();
  const subscribed = await send(first.url, 'POST', '/webhook_subscriptions', {
    key: first.adminKey,
    body: { environment: 'production', url: receiver.url },
  });
  expect(subscribed.status).toBe(201);
  await expect(startWith(newKey)).rejects.toThrow(StartError);
  await expect(startWith(oldKey)).rejects.toThrow(StartError);
  await (await startWith(oldKey, newKey)).stop();
  await receiver.close();
});
