// A rotation with three receivers, each of which verifies with an unmodified library from npm: they get the new secret at different
// times, and none loses anything.
import { createHmac } from 'node:crypto';
import { webhooks } from '@signalbox/client';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { getDelivery, listDeliveries } from '../../src/webhooks/deliveries.ts';
import { rotateWebhookSecret } from '../../src/webhooks/subscriptions.ts';
import { createReceiver, type Received, type Receiver } from '../support/receiver.ts';
import { append, createWorld, status, type World } from '../support/webhooks.ts';

type Verify = (secret: string, request: Received) => unknown;

const verifiers: Record<string, Verify> = {
  standardwebhooks: (secret, { body, headers }) =>
    new StandardWebhook(secret).verify(body, headers as Record<string, string>),
  svix: (secret, { body, headers }) => new SvixWebhook(secret).verify(body, headers as Record<string, string>),
  'the client': (secret, { body, headers }) => webhooks.verify(body, headers, [secret]),
};

// Within the tolerance of the libraries, which compare the timestamp with the real time.
const GRACE_SECONDS = 60;

let world: World;
const receivers: Receiver[] = [];

beforeEach(async () => {
  world = await createWorld();
  await world.clock.advance(Date.now() - world.clock.now().getTime());
});

afterEach(async () => {
  await world.end();
  await Promise.all(receivers.splice(0).map((receiver) => receiver.close()));
});

/** A receiver with its own environment or organization, and what it has accepted. */
async function side(verify: Verify, environment: string, organizationId: string) {
  const accepted: Received[] = [];
  const receiver = await createReceiver(async (request) => {
    for (const secret of one.secrets) {
      try {
        await verify(secret, request);
        accepted.push(request);
        return 204;
      } catch {
        // Perhaps the next secret verifies.
      }
    }
    return 401;
  });
  receivers.push(receiver);
  const first = await world.subscribe(receiver.url, { environment }, organizationId);
  const session = await world.session({ organizationId, environment });
  const one = { receiver, accepted, environment, organizationId, session, secrets: [first], first };
  return one;
}

test('receivers that know the old secret, the new one or both lose nothing until the grace period ends', async () => {
  const sides = [
    await side(verifiers.standardwebhooks!, 'production', world.organizationId),
    await side(verifiers.svix!, 'staging', world.organizationId),
    await side(verifiers['the client']!, 'production', world.strangerId),
  ];
  await world.node();
  const sessions = sides.map(({ session }) => session);
  let rounds = 0;
  async function round(): Promise<void> {
    rounds += 1;
    for (const session of sessions) await append(world, session, [status()]);
    await world.delivered(...sessions);
  }
  await round();
  const rotated = [];
  for (const { environment, organizationId } of sides) {
    rotated.push(
      (
        await rotateWebhookSecret(world.context(organizationId), {
          env: environment,
          gracePeriodSeconds: GRACE_SECONDS,
        })
      ).signingSecret!,
    );
  }
  // Every receiver knows only the old secret, then both, then only the new one, each at a different time.
  for (let at = 0; at < 5; at += 1) {
    for (const [index, one] of sides.entries()) {
      const step = at - index;
      one.secrets = step < 1 ? [one.first] : step < 2 ? [one.first, rotated[index]!] : [rotated[index]!];
    }
    await round();
    await world.clock.advance(5_000);
  }
  for (const { accepted, environment, organizationId, receiver } of sides) {
    expect(accepted.map(({ envelope }) => envelope.chunks.map(({ seq }) => seq))).toEqual(
      Array.from({ length: rounds }, (_, n) => [n + 1]),
    );
    const { data } = await listDeliveries(world.context(organizationId), { env: environment });
    expect(data.map(({ status: outcome }) => outcome)).toEqual(Array(rounds).fill('succeeded'));
    // The headers of an attempt in the API are those that were sent, whichever secret signed them.
    for (const { deliveryId } of data) {
      const context = world.context(organizationId);
      const { webhookDelivery } = await getDelivery(context, { env: environment, deliveryId });
      const sent = receiver.received.filter((request) => request.deliveryId === deliveryId);
      expect(sent.map(({ headers }) => headers)).toMatchObject(
        webhookDelivery.attempts.map(({ requestHeaders }) => requestHeaders),
      );
    }
  }

  // After the grace period nothing is signed with the old secret, as every library confirms.
  await world.clock.advance(GRACE_SECONDS * 1_000);
  for (const { receiver } of sides) receiver.received.length = 0;
  await round();
  for (const [index, { receiver, first }] of sides.entries()) {
    const [request] = receiver.received;
    for (const verify of Object.values(verifiers)) {
      await expect((async () => verify(first, request!))()).rejects.toThrow();
      await verify(rotated[index]!, request!);
    }
  }
});

test('a second rotation in the grace period keeps two secrets: nothing is signed with the first one', async () => {
  const receiver = await createReceiver(() => 401);
  receivers.push(receiver);
  const secrets = [await world.subscribe(receiver.url)];
  for (let n = 0; n < 2; n += 1) {
    secrets.push((await rotateWebhookSecret(world.context(), { env: 'production' })).signingSecret!);
  }
  const session = await world.session();
  await world.node();
  await append(world, session, [status()]);
  const requests = await receiver.first(2);
  await world.advanceUntil(async () => {
    const { data } = await listDeliveries(world.context(), { env: 'production' });
    return data[0]?.attemptCount === 2;
  }, 0);
  expect(receiver.received).toHaveLength(2);
  const hexOf = (secret: string, { headers, body }: Received) =>
    createHmac('sha256', secret).update(`${headers['x-service-timestamp']}.${body}`).digest('hex');
  expect(
    requests.map((request) =>
      secrets.map((secret) => hexOf(secret, request) === request.headers['x-service-signature']),
    ),
  ).toEqual([
    [false, false, true],
    [false, true, false],
  ]);
  for (const request of requests) {
    for (const library of [verifiers.standardwebhooks!, verifiers.svix!]) {
      expect(() => library(secrets[0]!, request)).toThrow();
      for (const secret of secrets.slice(1)) library(secret, request);
    }
    expect(String(request.headers['webhook-signature']).split(' ')).toHaveLength(2);
  }
});
