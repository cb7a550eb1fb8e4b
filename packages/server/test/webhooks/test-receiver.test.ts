// The built-in test receiver, which shows webhooks without a receiver of one's own.
import { NotFoundError, UnprocessableError, webhooks } from '@signalbox/client';
import { type Envelope, testReceiverUrl } from '@signalbox/contract';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { readAssignment } from '../../src/deliveries/destinations/assignments.ts';
import { headersOf } from '../../src/deliveries/destinations/signing.ts';
import { egressFor } from '../../src/deliveries/test-receiver.ts';
import { formatId } from '../../src/lib/ids.ts';
import { version } from '../../src/lib/version.ts';
import { listDeliveries } from '../../src/webhooks/deliveries.ts';
import { listReceivedWebhooks } from '../../src/webhooks/received-webhooks.ts';
import {
  deleteWebhookSubscription,
  getWebhookSubscription,
  rotateWebhookSecret,
} from '../../src/webhooks/subscriptions.ts';
import { testWebhookSubscription } from '../../src/webhooks/test-envelope.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { append, createWorld, status, text, type World } from '../support/webhooks.ts';

const production = { env: 'production' };

describe('through the client', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startTestService();
  });
  afterAll(() => service.stop());

  test('the chunks of a session arrive, signed as integrators verify it, and the delivery has succeeded', async () => {
    const { client } = service;
    const { webhookSubscriptions } = client;
    const created = await webhookSubscriptions.create({ environment: 'production', url: testReceiverUrl });
    expect((await webhookSubscriptions.received('production')).data).toEqual([]);
    expect(await webhookSubscriptions.test('production')).toMatchObject({
      status: 200,
      responseBody: '{"received":true,"verified":true}',
    });
    const model = { provider: 'scripted' as const, model: 'x', settings: { script: [{ text: 'Hello' }] } };
    const { agentId } = await client.agents.create({ name: 'A', model });
    const { sessionId } = await client.sessions.open({
      agentId,
      environment: 'production',
      input: 'go',
      closeOnIdle: true,
    });
    const received = async () => (await webhookSubscriptions.received('production', { limit: 100 })).data;
    await expect.poll(async () => JSON.stringify(await received())).toContain('completed');
    const [last, ...others] = await received();
    const envelope = await webhooks.verify(last!.body, last!.headers, [created.signingSecret!]);
    expect(envelope).toMatchObject({ sessionId, environment: 'production' });
    expect(others.at(-1)).toMatchObject({ attempt: 1, verified: true, truncated: false });
    expect(others.at(-1)!.body).toContain('ses_test');
    const delivery = async () => webhookSubscriptions.deliveries.get('production', last!.deliveryId);
    await expect.poll(async () => (await delivery()).status).toBe('succeeded');
    expect((await delivery()).attempts).toMatchObject([
      { attempt: 1, status: 200, error: null, responseBody: '{"received":true,"verified":true}' },
    ]);
    expect((await webhookSubscriptions.get('production')).confirmedSecretVersion).toBe(1);

    const first = await webhookSubscriptions.received('production', { limit: 1 });
    expect([first.data, first.hasMore]).toEqual([[last], true]);
    expect((await first.nextPage()).data[0]).toEqual(others[0]);

    // A session is deleted with all of its data, including received webhooks.
    await client.sessions.delete(sessionId);
    expect((await received()).map(({ body }) => JSON.parse(body).sessionId)).toEqual(['ses_test']);
  });

  test('no other url without https is accepted', async () => {
    const { webhookSubscriptions } = service.client;
    for (const url of [
      'signalbox:test-receiver/',
      'signalbox:test-receiver?x=1',
      'signalbox:test-receiver#',
      'SIGNALBOX:test-receiver',
      'signalbox:Test-Receiver',
      ' signalbox:test-receiver',
      'signalbox://test-receiver',
      'signalbox:other',
      'file:///etc/passwd',
    ]) {
      const refused = webhookSubscriptions.create({ environment: 'staging', url });
      await expect(refused, url).rejects.toBeInstanceOf(UnprocessableError);
    }
    // It is not an address, so nothing else that takes a url accepts it.
    const tool = { type: 'http' as const, name: 't', description: 't', inputSchema: { type: 'object' } };
    const request = { method: 'POST' as const, url: testReceiverUrl };
    const agent = service.client.agents.create({ name: 'A', model: 'scripted/x', tools: [{ ...tool, request }] });
    await expect(agent).rejects.toMatchObject({ errors: [{ path: expect.stringMatching(/url$/) }] });
  });

  test('only callers that may read the environment see what it received', async () => {
    const { client } = service;
    await expect(client.webhookSubscriptions.received('staging')).rejects.toBeInstanceOf(NotFoundError);
    const { secret } = await client.keys.create({ name: 'S', permission: 'read', environments: ['staging'] });
    const limited = service.clientWith(secret!).webhookSubscriptions;
    await expect(limited.received('production')).rejects.toMatchObject({ status: 403 });
    const reader = await client.keys.create({ name: 'R', permission: 'read' });
    const seen = await service.clientWith(reader.secret!).webhookSubscriptions.received('production');
    expect(seen.data.length).toBeGreaterThan(0);
  });
});

describe('as a destination', () => {
  let world: World;
  beforeEach(async () => {
    world = await createWorld();
  });
  afterEach(() => world.end());

  const received = async (organizationId?: string) =>
    (await listReceivedWebhooks(world.context(organizationId), { ...production, limit: 100 })).data;
  const subscription = async () => (await readAssignment(world.platform, world.organizationId, 'production'))!;

  async function post(
    change: (headers: Record<string, string>) => object = () => ({}),
    body = '{}',
    signedAt = world.clock.now(),
  ) {
    const assignment = await subscription();
    const headers = headersOf({
      deliveryId: 'whd_01k9xq3v7gf3pbt8zn5e6m2r4c',
      attempt: 1,
      previousCursor: '',
      body: Buffer.from(body),
      now: signedAt,
      signer: assignment.secret,
      secrets: [assignment.secret],
      version,
    });
    return egressFor(assignment, world.platform).request({
      url: testReceiverUrl,
      method: 'POST',
      headers: { ...headers, ...change(headers) },
      body: Buffer.from(body),
      timeoutMs: 1_000,
      maxResponseBytes: 1_000,
    });
  }

  test('a rotation in its grace period, and one without, lose nothing', async () => {
    await world.subscribe(testReceiverUrl);
    const context = world.context();
    await world.node();
    const session = await world.session();
    const versions = async () => (await received()).map(({ headers }) => headers['x-service-secret-version']);
    await append(world, session, [status('running')]);
    await world.advanceUntil(async () => (await versions()).length === 1);
    await rotateWebhookSecret(context, { ...production, gracePeriodSeconds: 3600 });
    await append(world, session, [status('waiting')]);
    await world.advanceUntil(async () => (await versions()).length === 2);
    expect(await versions()).toEqual(['2', '1']);
    const confirmed = async () =>
      (await getWebhookSubscription(context, production)).webhookSubscription.confirmedSecretVersion;
    await world.advanceUntil(async () => (await confirmed()) === 2);
    await rotateWebhookSecret(context, { ...production, gracePeriodSeconds: 0 });
    await append(world, session, [status('completed')]);
    await world.advanceUntil(async () => (await versions())[0] === '3');
    await world.advanceUntil(async () => (await confirmed()) === 3);
    const statuses = async () => (await listDeliveries(context, production)).data.map((one) => one.status).join();
    await world.advanceUntil(async () => (await statuses()) === 'succeeded,succeeded,succeeded');
    expect((await received()).filter(({ verified }) => !verified)).toEqual([]);
    // The test of a subscription reaches it too.
    expect((await testWebhookSubscription(context, production)).attempt.status).toBe(200);
  });

  test('unsigned, changed and old requests are refused and shown as not verified', async () => {
    await world.subscribe(testReceiverUrl);
    const answer = async (...given: Parameters<typeof post>) => {
      const response = await post(...given);
      return [response.status, response.body.toString()];
    };
    expect(await answer()).toEqual([200, '{"received":true,"verified":true}']);
    const refused = [401, '{"received":true,"verified":false}'];
    const hex = (text: string) => ({ 'x-service-signature': text });
    expect(
      await answer((headers) => hex(headers['x-service-signature']!.replace(/^./, (c) => (c === '0' ? '1' : '0')))),
    ).toEqual(refused);
    expect(await answer(() => hex(''))).toEqual(refused);
    const seconds = (n: number) => new Date(world.clock.now().getTime() + n * 1000);
    for (const n of [-301, 301]) expect(await answer(undefined, '{}', seconds(n))).toEqual(refused);
    expect((await answer(undefined, '{}', seconds(-299)))[0]).toBe(200);
    expect(await answer(() => ({ 'x-service-timestamp': 'now' }))).toEqual(refused);
    expect((await received()).map(({ verified }) => verified)).toEqual([false, true, false, false, false, false, true]);
  });

  test('the latest hundred requests are stored, complete up to 64 KiB, and deleted with the subscription', async () => {
    await world.subscribe(testReceiverUrl);
    await world.subscribe(testReceiverUrl, {}, world.strangerId);
    for (let n = 0; n < 6; n += 1)
      await Promise.all(Array.from({ length: 20 }, (_, i) => post(undefined, `${n * 20 + i}`)));
    const page = await listReceivedWebhooks(world.context(), { ...production, limit: 100 });
    expect(page.page.hasMore).toBe(false);
    const bodies = page.data.map(({ body }) => Number(body));
    expect(bodies.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, n) => n + 20));
    await post(undefined, 'x'.repeat(70_000));
    const [big] = await received();
    expect([big!.body.length, big!.truncated, big!.verified]).toEqual([65_536, true, true]);
    expect(await received(world.strangerId)).toEqual([]);

    const gone = await subscription();
    await deleteWebhookSubscription(world.context(), production);
    await world.subscribe(testReceiverUrl);
    expect(await received()).toEqual([]);
    // Deliveries in flight for the previous subscription do not appear in the list of the new one.
    const late = { url: testReceiverUrl, method: 'POST', body: '{}', timeoutMs: 1, maxResponseBytes: 1 };
    expect((await egressFor(gone, world.platform).request(late)).status).toBe(401);
    expect(await received()).toEqual([]);
  });

  test('the text of each of several sessions arrives in order', async () => {
    await world.subscribe(testReceiverUrl);
    await world.node();
    const sessions = await Promise.all(Array.from({ length: 5 }, () => world.session()));
    for (const [n, words] of [
      ['a', 'b'],
      ['c', 'd'],
      ['e', 'f'],
    ].entries()) {
      for (const session of sessions) await append(world, session, [...words.map(text), status('running')]);
      await world.advanceUntil(async () => (await received()).length === sessions.length * (n + 1));
    }
    const all = (await received()).toReversed();
    for (const session of sessions) {
      const sessionId = formatId('ses', session.sessionId);
      const own = all.filter(({ body }) => JSON.parse(body).sessionId === sessionId);
      const envelopes = own.map(({ body }): Envelope => JSON.parse(body));
      const chunks = envelopes.flatMap((one) => one.chunks);
      expect(chunks.map((chunk) => ('delta' in chunk ? chunk.delta : '.')).join('')).toBe('ab.cd.ef.');
      expect(chunks.map(({ seq }) => seq)).toEqual(chunks.map((_, n) => n + 1));
      expect(own.map(({ headers }) => headers['x-service-previous-cursor'])).toEqual([
        '',
        ...envelopes.slice(0, -1).map(({ cursor }) => cursor),
      ]);
    }
  });
});
