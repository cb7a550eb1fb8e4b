// Destinations over HTTP: who may do what, what is refused, and what is never shown.
import type { CreateDestination, CreateKey, Signalbox } from '@signalbox/client';
import { maxDestinations } from '@signalbox/contract';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { arrived } from '../support/destinations.ts';
import { createReceiver, type Receiver } from '../support/receiver.ts';
import { startTestService, type TestService, watchSecret } from '../support/service.ts';

const KEY = 'key_of_the_receiver_47110815';

let service: TestService;
let client: Signalbox;
let receiver: Receiver;
beforeAll(async () => {
  watchSecret(KEY);
  service = await startTestService();
  client = service.client;
  receiver = await createReceiver();
});
afterAll(async () => {
  await service.stop();
  await receiver.close();
});

const input = (more: Partial<CreateDestination> = {}): CreateDestination => ({
  ...{ name: 'Test', type: 'webhook', eventTypes: ['agent.*'], url: receiver.url },
  ...more,
});
const keyWith = async (fields: Partial<CreateKey>) => {
  const { secret } = await client.keys.create({ name: 'k', ...fields } as CreateKey);
  return service.clientWith(secret!);
};
const refused = { code: 'insufficient_permission' };

test('a record arrives by itself; a test arrives at once, also while it is paused, and neither shows the headers', async () => {
  const { destination, signingSecret } = await client.destinations.create(
    input({ headers: { Authorization: `Bearer ${KEY}`, constructor: 'a name like any other' } }),
  );
  const { destinationId } = destination;
  expect(signingSecret).toMatch(/^whsec_/);
  expect(destination).toMatchObject({
    status: 'enabled',
    headerNames: ['authorization', 'constructor'],
    environment: null,
  });
  const { agentId } = await client.agents.create({ name: 'A', model: 'scripted/x' });
  await receiver.first(1);
  expect(arrived(receiver)[0]).toMatchObject({ type: 'agent.created', resource: { id: agentId } });
  expect(receiver.received[0]!.headers).toMatchObject({
    authorization: `Bearer ${KEY}`,
    constructor: 'a name like any other',
  });

  await client.destinations.update(destinationId, { status: 'paused' });
  receiver.received.length = 0;
  const attempt = await client.destinations.test(destinationId);
  expect(attempt).toMatchObject({ status: 200, error: null });
  expect(JSON.stringify(attempt)).not.toContain(KEY);
  expect(arrived(receiver)).toMatchObject([{ type: 'agent.created', sequence: 0, resource: { type: 'test' } }]);
  const { data } = await client.destinations.deliveries(destinationId);
  expect(data).toMatchObject([{ eventCount: 1, resource: { type: 'agent', id: agentId }, previousSequence: null }]);
  const delivery = await client.destinations.delivery(destinationId, data[0]!.deliveryId);
  expect(JSON.parse(delivery.requestBody!)).toMatchObject({ event: 'organization.events' });
  expect((await client.destinations.rotateSecret(destinationId)).secretVersion).toBe(2);
  expect(await client.destinations.get(destinationId)).toMatchObject({ confirmedSecretVersion: 1, secretVersion: 2 });
  await client.destinations.delete(destinationId);
  await expect(client.destinations.get(destinationId)).rejects.toMatchObject({ code: 'not_found' });
});

test.each<[string, Partial<CreateDestination>, object]>([
  ['a type of record that does not exist', { eventTypes: ['session.flew'] }, { code: 'invalid_request' }],
  ['a group without types', { eventTypes: ['sessions.*'] }, { code: 'invalid_request' }],
  ['a pattern in the middle', { eventTypes: ['session.*.x'] }, { code: 'invalid_request' }],
  ['no types', { eventTypes: [] }, { code: 'invalid_request' }],
  ['a private address', { url: 'https://10.0.0.1/' }, { code: 'url_not_allowed', errors: [{ path: 'url' }] }],
  ['user info in the url', { url: 'https://u:p@example.com/' }, { code: 'url_not_allowed' }],
  ['the built-in receiver of subscriptions', { url: 'signalbox:test-receiver' }, { code: 'invalid_request' }],
  ['an environment that does not exist', { environment: 'nowhere' }, { code: 'not_found' }],
  ['an agent that does not exist', { agentIds: ['agt_01k9xq3v7gf3pbt8zn5e6m2r4c'] }, { code: 'not_found' }],
  ...['X-Service-Signature', 'Webhook-Id', 'HOST', 'content-type', 'Transfer-Encoding', 'User-Agent'].map(
    (name): [string, Partial<CreateDestination>, object] => [
      `the header ${name}`,
      { headers: { [name]: KEY } },
      { code: 'invalid_request', errors: [{ path: `headers.${name}` }] },
    ],
  ),
  ['a header with a line break', { headers: { 'X-A': `a\r\n${KEY}: 1` } }, { code: 'invalid_request' }],
  ['a name that is none', { headers: { 'X A': KEY } }, { code: 'invalid_request' }],
  ['a name given twice', { headers: { 'X-A': KEY, 'x-a': KEY } }, { code: 'invalid_request' }],
])('is refused with %s, and the error has no value of a header', async (_, more, problem) => {
  const error: unknown = await client.destinations.create(input(more)).catch((caught: unknown) => caught);
  expect(error).toMatchObject(problem);
  expect(JSON.stringify(error) + String(error)).not.toContain(KEY);
});

test('needs three scopes to change anything; reading needs less', async () => {
  const { destination } = await client.destinations.create(input());
  const { destinationId } = destination;
  const needed = ['webhooks:write', 'sessions:read', 'events:read'] as const;
  for (const missing of needed) {
    const limited = await keyWith({ scopes: needed.filter((scope) => scope !== missing) });
    for (const call of [
      () => limited.destinations.create(input()),
      () => limited.destinations.update(destinationId, { name: 'x' }),
      () => limited.destinations.test(destinationId),
      () => limited.destinations.recover(destinationId, { from: 1 }),
      () => limited.destinations.rotateSecret(destinationId),
    ]) {
      await expect(call()).rejects.toMatchObject({ ...refused, message: expect.stringContaining(missing) });
    }
  }
  const writer = await keyWith({ scopes: [...needed] });
  await writer.destinations.update(destinationId, { name: 'Another' });
  const reader = await keyWith({ scopes: ['agents:read'] });
  expect(await reader.destinations.get(destinationId)).toMatchObject({ name: 'Another' });
  await expect(Promise.resolve(reader.destinations.deliveries(destinationId))).rejects.toMatchObject(refused);
  await client.destinations.delete(destinationId);
});

test('is closed to keys that are limited to agents', async () => {
  const { destination } = await client.destinations.create(input());
  const { agentId } = await client.agents.create({ name: 'B', model: 'scripted/x' });
  const limited = await keyWith({ scopes: ['agents:read', 'events:read', 'sessions:read'], agents: [agentId] });
  await expect(Promise.resolve(limited.destinations.list())).rejects.toMatchObject(refused);
  await expect(limited.destinations.get(destination.destinationId)).rejects.toMatchObject(refused);
  await expect(Promise.resolve(limited.destinations.deliveries(destination.destinationId))).rejects.toMatchObject(
    refused,
  );
  await client.destinations.delete(destination.destinationId);
});

test('a key that is limited to environments has those that name one of them, and no other', async () => {
  const all = (await client.destinations.create(input())).destination;
  const staging = (await client.destinations.create(input({ environment: 'staging' }))).destination;
  const limited = await keyWith({ permission: 'write', environments: ['production'] });
  const own = (await limited.destinations.create(input())).destination;
  expect(own.environment).toBe('production');
  await expect(limited.destinations.create(input({ environment: 'staging' }))).rejects.toMatchObject(refused);
  const both = await keyWith({ permission: 'write', environments: ['production', 'staging'] });
  await expect(both.destinations.create(input())).rejects.toMatchObject(refused);
  expect((await limited.destinations.list()).data.map(({ destinationId }) => destinationId)).toEqual([
    own.destinationId,
  ]);
  for (const { destinationId } of [all, staging]) {
    for (const call of [
      () => limited.destinations.get(destinationId),
      () => limited.destinations.update(destinationId, { name: 'Mine' }),
      () => limited.destinations.test(destinationId),
      () => limited.destinations.recover(destinationId, { from: 1 }),
      () => limited.destinations.rotateSecret(destinationId),
      () => limited.destinations.delete(destinationId),
      async () => limited.destinations.deliveries(destinationId),
    ]) {
      await expect(call()).rejects.toMatchObject(refused);
    }
  }
  await expect(client.environments.delete('staging')).rejects.toMatchObject({ code: 'conflict' });
  for (const { destinationId } of [all, staging, own]) await client.destinations.delete(destinationId);
});

test('an organization has at most a hundred', async () => {
  const before = (await client.destinations.list({ limit: 100 })).data.length;
  const rest = Array.from({ length: maxDestinations - before }, () => client.destinations.create(input()));
  await Promise.all(rest);
  await expect(client.destinations.create(input())).rejects.toMatchObject({ code: 'conflict' });
});
