import { createHmac } from 'node:crypto';
import { webhooks } from '@signalbox/client';
import sql from 'sql-template-tag';
import { Webhook } from 'standardwebhooks';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { formatId } from '../../src/lib/ids.ts';
import { getDelivery, listDeliveries } from '../../src/webhooks/deliveries.ts';
import {
  createWebhookSubscription,
  deleteWebhookSubscription,
  getWebhookSubscription,
  listWebhookSubscriptions,
  rotateWebhookSecret,
  updateWebhookSubscription,
} from '../../src/webhooks/subscriptions.ts';
import type { Received, Receiver } from '../support/receiver.ts';
import { append, createWorld, status, type TestSession, type World } from '../support/webhooks.ts';

let world: World;
const production = { env: 'production' };

beforeEach(async () => {
  world = await createWorld();
});

afterEach(() => world.end());

const receiverOf = (answer?: Receiver['respond']) => world.receiver(answer);

/** Starts a node and commits a chunk, which was sent once when this resolves. */
async function sendOnce(): Promise<TestSession> {
  const session = await world.session();
  await world.node();
  await append(world, session, [status()]);
  await world.advanceUntil(async () => {
    const { data } = await listDeliveries(world.context(), production);
    return data[0]?.attemptCount === 1;
  }, 0);
  return session;
}

const hours = (count: number) => world.clock.pass(count * 3_600_000, 900_000);

async function events() {
  return await world.db.query<{ type: string; changes: unknown; body: object }>(sql`
    select body->>'type' as type, body->'changes' as changes, body from events_pending
    where organization_id = ${world.organizationId} order by event_id`);
}

const cursorsOf = (received: readonly Received[]) => received.map(({ envelope }) => envelope.cursor);
const seqsOf = (received: readonly Received[]) => received.map(({ envelope }) => envelope.chunks.map(({ seq }) => seq));

/** A receiver that knows some secrets and checks the hex signature, as docs/guides/webhooks.md shows. */
function knowing(...secrets: string[]): Receiver['respond'] {
  return ({ headers, body }) => {
    const signed = `${headers['x-service-timestamp']}.${body}`;
    const signature = headers['x-service-signature'];
    return secrets.some((secret) => createHmac('sha256', secret).update(signed).digest('hex') === signature)
      ? 200
      : 401;
  };
}

describe('creating', () => {
  test('returns the subscription and a secret that nothing else shows', async () => {
    const { webhookSubscription, signingSecret } = await createWebhookSubscription(world.context(), {
      environment: 'production',
      url: 'https://example.com/hook',
    });
    expect(signingSecret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(webhookSubscription).toEqual({
      webhookSubscriptionId: expect.stringMatching(/^whs_/),
      environment: 'production',
      url: 'https://example.com/hook',
      chunkTypes: ['message.chunk', 'session.status', 'tool.call', 'approval.requested', 'approval.resolved'],
      status: 'enabled',
      disabledReason: null,
      secretVersion: 1,
      previousSecretExpiresAt: null,
      confirmedSecretVersion: null,
      createdAt: '2026-01-01T00:00:00.000Z',
      updatedAt: '2026-01-01T00:00:00.000Z',
      lastSuccessAt: null,
      lastFailureAt: null,
      health: {
        state: 'blocked',
        blockedBy: 'no_delivery_node',
        reason: expect.stringContaining('Start one'),
        failingSince: null,
        consecutiveFailures: 0,
        lastError: null,
        lastStatus: null,
        nextProbeAt: null,
        failingSessionId: null,
      },
    });
    expect(await getWebhookSubscription(world.context(), production)).toEqual({ webhookSubscription });
    expect(await listWebhookSubscriptions(world.context(), {})).toMatchObject({ data: [webhookSubscription] });
    const bare = signingSecret!.slice('whsec_'.length);
    for (const { body } of await events()) expect(JSON.stringify(body)).not.toContain(bare);
    const stored = await world.db.query(sql`select webhook_subscriptions::text as row from webhook_subscriptions`);
    expect(JSON.stringify(stored)).not.toContain(Buffer.from(bare).toString('hex'));
  });

  test('refuses a second subscription for the environment, also in concurrent requests', async () => {
    const input = { environment: 'production', url: 'https://example.com/' };
    const outcomes = await Promise.allSettled([1, 2, 3].map(() => createWebhookSubscription(world.context(), input)));
    expect(outcomes.filter(({ status: outcome }) => outcome === 'fulfilled')).toHaveLength(1);
    await expect(createWebhookSubscription(world.context(), input)).rejects.toMatchObject({
      code: 'subscription_exists',
    });
    expect((await events()).map(({ type }) => type)).toEqual(['webhook_subscription.created']);
  });

  test('an unknown environment is 404; a url that is not allowed is 422 without naming an address', async () => {
    const create = (environment: string, url: string) =>
      createWebhookSubscription(world.context(), { environment, url });
    await expect(create('nowhere', 'https://example.com/')).rejects.toMatchObject({ code: 'not_found' });
    for (const url of [
      'http://10.0.0.1/',
      'https://10.0.0.1/',
      'https://u:p@example.com/',
      'https://[::ffff:10.0.0.1]/',
    ]) {
      const refusal = await create('production', url).catch((error: unknown) => error);
      expect(refusal).toMatchObject({ code: 'url_not_allowed', errors: [{ path: 'url' }] });
      expect(String(refusal)).not.toMatch(/10\.0|private|range/);
    }
    expect(await events()).toEqual([]);
  });

  test('a new subscription inherits nothing from a deleted one, and misses nothing that is committed afterwards', async () => {
    const receiver = await receiverOf();
    const [old, open, untouched] = [await world.session(), await world.session(), await world.session()];
    await world.subscribe(receiver.url);
    await world.node();
    await append(world, old, [status()]);
    await world.delivered(old);
    await append(world, open, [status()]);
    await world.delivered(open);
    await updateWebhookSubscription(world.context(), { ...production, status: 'paused' });
    await append(world, open, [status()]);
    await deleteWebhookSubscription(world.context(), production);
    await append(world, open, [status()]);
    await append(world, untouched, [status()]);
    receiver.received.length = 0;

    await world.subscribe(receiver.url);
    await hours(1);
    expect(receiver.received).toEqual([]);
    for (const session of [old, open, untouched]) await append(world, session, [status()]);
    await world.delivered(old, open, untouched);
    expect(cursorsOf(receiver.received).toSorted()).toEqual(['turn_1:seq_2', 'turn_1:seq_2', 'turn_1:seq_4']);
    expect(seqsOf(receiver.received).toSorted()).toEqual([[2], [2], [4]]);
    // This receiver has acknowledged nothing yet, whatever the previous one had.
    expect(receiver.received.map(({ previousCursor }) => previousCursor)).toEqual(['', '', '']);
  });

  test('a transaction that locks a session does not delay the creation, and its chunks are delivered', async () => {
    const receiver = await receiverOf();
    const session = await world.session();
    await append(world, session, [status()]);
    await world.node();
    const began = Promise.withResolvers<void>();
    const go = Promise.withResolvers<void>();
    const appending = world.db.transaction(async (tx) => {
      await tx.query(sql`
        select 1 from sessions where organization_id = ${session.organizationId} and session_id = ${session.sessionId}
        for no key update`);
      began.resolve();
      await go.promise;
    });
    await began.promise;
    await world.subscribe(receiver.url);
    go.resolve();
    await appending;
    await append(world, session, [status()]);
    await world.delivered(session);
    expect(cursorsOf(receiver.received)).toEqual(['turn_1:seq_2']);
    expect(seqsOf(receiver.received)).toEqual([[2]]);
  });
});

describe('changing', () => {
  test('a paused subscription keeps its chunks and sends them in order when it is enabled', async () => {
    const receiver = await receiverOf();
    await world.subscribe(receiver.url);
    const session = await world.session();
    await world.node();
    await updateWebhookSubscription(world.context(), { ...production, status: 'paused' });
    await append(world, session, [status()]);
    await append(world, session, [status()]);
    await hours(1);
    expect(receiver.received).toEqual([]);
    await updateWebhookSubscription(world.context(), { ...production, status: 'enabled' });
    await world.delivered(session);
    expect(cursorsOf(receiver.received)).toEqual(['turn_1:seq_2']);
    expect((await events()).slice(1, 3)).toMatchObject([
      { type: 'webhook_subscription.updated', changes: { status: ['enabled', 'paused'] } },
      { type: 'webhook_subscription.enabled', changes: { status: ['paused', 'enabled'] } },
    ]);
  });

  test('a chunk committed during a change is sent without waiting for the poll', async () => {
    const receiver = await receiverOf();
    await world.subscribe(receiver.url);
    const sessions = await Promise.all(Array.from({ length: 5 }, () => world.session()));
    await world.node();
    for (let round = 0; round < 30; round += 1) {
      const chunkTypes = round % 2 === 0 ? (['session.status'] as const) : (['session.status', 'tool.call'] as const);
      await Promise.all([
        updateWebhookSubscription(world.context(), { ...production, chunkTypes: [...chunkTypes] }),
        ...sessions.map((session) => append(world, session, [status()])),
      ]);
      // The clock does not move, so no poll runs.
      await world.delivered(...sessions);
    }
    expect(receiver.received.length).toBeGreaterThanOrEqual(150);
  });

  test('a new url gets everything that is sent from then on, including retries', async () => {
    const [before, after] = [await receiverOf(() => 500), await receiverOf()];
    await world.subscribe(before.url);
    await sendOnce();
    await updateWebhookSubscription(world.context(), { ...production, url: after.url });
    await world.advanceUntil(() => after.received.length === 1);
    expect(after.received[0]!.body).toBe(before.received[0]!.body);
    expect(before.received).toHaveLength(1);
  });

  test('an update without a difference changes nothing, nor does a url that is not allowed', async () => {
    await world.subscribe('https://example.com/');
    const before = await getWebhookSubscription(world.context(), production);
    await world.clock.advance(1_000);
    const same = { ...production, url: 'https://example.com/', status: 'enabled' as const };
    expect(await updateWebhookSubscription(world.context(), same)).toEqual(before);
    await expect(
      updateWebhookSubscription(world.context(), { ...production, url: 'https://127.0.0.2/', status: 'paused' }),
    ).rejects.toMatchObject({ code: 'url_not_allowed' });
    expect(await getWebhookSubscription(world.context(), production)).toEqual(before);
    expect(await events()).toHaveLength(1);
  });
});

describe('deleting', () => {
  test('stops sending, and drops pending retries', async () => {
    const receiver = await receiverOf(() => 500);
    await world.subscribe(receiver.url);
    const session = await sendOnce();
    const { deleted } = await deleteWebhookSubscription(world.context(), production);
    expect(deleted).toBe(true);
    receiver.respond = () => 200;
    await append(world, session, [status()]);
    await hours(48);
    expect(receiver.received).toHaveLength(1);
    for (const call of [getWebhookSubscription, deleteWebhookSubscription, rotateWebhookSecret, listDeliveries]) {
      await expect(call(world.context(), production)).rejects.toMatchObject({ code: 'not_found' });
    }
  });

  test('ignores the response to a delivery in flight', async () => {
    const gate = Promise.withResolvers<number>();
    const receiver = await receiverOf(() => gate.promise);
    await world.subscribe(receiver.url);
    const session = await world.session();
    const { dispatcher } = await world.node();
    await append(world, session, [status()]);
    await receiver.first(1);
    await deleteWebhookSubscription(world.context(), production);
    gate.resolve(200);
    await dispatcher.stop();
    const [row] = await world.db.query(sql`
      select s.delivered_seq as seq, (select count(*)::int from webhook_deliveries) as over from sessions s`);
    expect(row).toEqual({ seq: 0, over: 0 });
  });
});

describe('another organization', () => {
  test('its subscription of the same environment is never changed, shown or sent to', async () => {
    const [ours, theirs] = [await receiverOf(), await receiverOf()];
    const session = await world.session();
    const foreign = await world.session({ organizationId: world.strangerId });
    const staging = await world.session({ environment: 'staging' });
    await world.subscribe(ours.url);
    await world.subscribe(theirs.url, {}, world.strangerId);
    await world.node();
    for (const each of [session, foreign, staging]) await append(world, each, [status()]);
    await world.delivered(session, foreign);
    expect(ours.received.map(({ envelope }) => envelope.sessionId)).toEqual([formatId('ses', session.sessionId)]);
    expect(theirs.received.map(({ envelope }) => envelope.sessionId)).toEqual([formatId('ses', foreign.sessionId)]);
    const { deliveryId } = theirs.received[0]!;
    await expect(getDelivery(world.context(), { ...production, deliveryId })).rejects.toMatchObject({
      code: 'not_found',
    });

    await deleteWebhookSubscription(world.context(), production);
    await append(world, foreign, [status()]);
    await world.delivered(foreign);
    expect(theirs.received).toHaveLength(2);
    await expect(getWebhookSubscription(world.context(), production)).rejects.toMatchObject({ code: 'not_found' });
  });
});

describe('rotation', () => {
  async function rotated(gracePeriodSeconds?: number) {
    const input = gracePeriodSeconds === undefined ? production : { ...production, gracePeriodSeconds };
    return await rotateWebhookSecret(world.context(), input);
  }
  async function confirmed() {
    return (await getWebhookSubscription(world.context(), production)).webhookSubscription.confirmedSecretVersion;
  }

  test('returns the new secret and the end of the grace period, by default a day later', async () => {
    const first = await world.subscribe('https://example.com/');
    const second = await rotated();
    expect(second).toEqual({
      signingSecret: expect.stringMatching(/^whsec_/),
      secretVersion: 2,
      previousSecretExpiresAt: '2026-01-02T00:00:00.000Z',
    });
    expect(second.signingSecret).not.toBe(first);
    expect(await rotated(0)).toMatchObject({ secretVersion: 3, previousSecretExpiresAt: null });
    const { changes } = (await events()).at(-1)!;
    expect(changes).toEqual({ secretVersion: [2, 3] });
  });

  test('a receiver that knows the old secret, the new one or both loses nothing and waits for no retry', async () => {
    const receiver = await receiverOf();
    const old = await world.subscribe(receiver.url);
    receiver.respond = knowing(old);
    const session = await world.session();
    await world.node();
    await append(world, session, [status()]);
    await world.delivered(session);
    const { signingSecret } = await rotated();

    await append(world, session, [status()]);
    await world.delivered(session);
    expect(await confirmed()).toBe(1);
    receiver.respond = knowing(signingSecret!);
    await append(world, session, [status()]);
    await world.delivered(session);
    receiver.respond = knowing(old, signingSecret!);
    await append(world, session, [status()]);
    await world.delivered(session);

    expect(await confirmed()).toBe(2);
    const { data } = await listDeliveries(world.context(), production);
    expect(data.map(({ status: outcome }) => outcome)).toEqual(Array(4).fill('succeeded'));
    const known = await Promise.all(
      data.toReversed().map(async ({ deliveryId }) => {
        const { webhookDelivery } = await getDelivery(world.context(), { ...production, deliveryId });
        return webhookDelivery.attempts.map((attempt) => [attempt.attempt, attempt.secretVersion, attempt.status]);
      }),
    );
    expect(known).toEqual([
      [[1, 1, 200]],
      // The new secret is refused; the old one follows at once, and is tried first for a minute.
      [
        [1, 2, 401],
        [2, 1, 200],
      ],
      [
        [1, 1, 401],
        [2, 2, 200],
      ],
      [[1, 2, 200]],
    ]);
    expect((await events()).filter(({ type }) => type.endsWith('secret_confirmed'))).toHaveLength(2);
  });

  test('in the grace period the Standard Webhooks library and the client accept with either secret', async () => {
    const receiver = await receiverOf();
    const old = await world.subscribe(receiver.url);
    const { signingSecret } = await rotated();
    // Both libraries compare the timestamp with the real time.
    await world.clock.advance(Date.now() - world.clock.now().getTime() - 1_000);
    const { signingSecret: newest } = await rotated();
    const session = await world.session();
    await world.node();
    await append(world, session, [status()]);
    await world.delivered(session);
    const { body, headers } = receiver.received[0]!;
    for (const secret of [signingSecret!, newest!]) {
      new Webhook(secret).verify(body, headers as Record<string, string>);
    }
    expect(await webhooks.verify(body, headers, [newest!])).toMatchObject({ event: 'session.chunks' });
    // At most two secrets are valid: the first is not, even though its grace period would not have ended.
    expect(() => new Webhook(old).verify(body, headers as Record<string, string>)).toThrow();
  });

  test('a refusal with both secrets costs one retry', async () => {
    const receiver = await receiverOf(() => 401);
    await world.subscribe(receiver.url);
    await rotated();
    const session = await world.session();
    await world.node();
    await append(world, session, [status()]);
    await world.advanceUntil(async () => {
      const { data } = await listDeliveries(world.context(), production);
      return data[0]?.attemptCount === 2;
    }, 0);
    const { data } = await listDeliveries(world.context(), production);
    expect(data[0]).toMatchObject({ status: 'pending', nextAttemptAt: '2026-01-01T00:00:05.000Z' });
    expect(receiver.received.map(({ headers }) => headers['x-service-secret-version'])).toEqual(['2', '1']);
  });

  test('after the grace period nothing is signed with the old secret', async () => {
    const receiver = await receiverOf();
    const old = await world.subscribe(receiver.url);
    receiver.respond = knowing(old);
    const session = await world.session();
    await world.node();
    await append(world, session, [status()]);
    await world.delivered(session);
    await rotated(60);
    await append(world, session, [status()]);
    await world.delivered(session);
    await world.clock.advance(60_000);
    receiver.received.length = 0;
    await append(world, session, [status()]);
    await world.advanceUntil(() => receiver.received.length >= 4);
    for (const { headers } of receiver.received) {
      expect(headers['x-service-secret-version']).toBe('2');
      expect(headers['webhook-signature']).not.toContain(' ');
    }
    expect((await getWebhookSubscription(world.context(), production)).webhookSubscription).toMatchObject({
      previousSecretExpiresAt: null,
    });
  });

  test('without a grace period the old secret is invalid at once', async () => {
    const receiver = await receiverOf();
    const old = await world.subscribe(receiver.url);
    const session = await world.session();
    await world.node();
    await append(world, session, [status()]);
    await world.delivered(session);
    const { signingSecret } = await rotated(0);
    await append(world, session, [status()]);
    await world.delivered(session);
    const [, { headers, body }] = receiver.received as [Received, Received];
    const signed = `${headers['x-service-timestamp']}.${body}`;
    const hex = (secret: string) => createHmac('sha256', secret).update(signed).digest('hex');
    expect(headers['x-service-signature']).toBe(hex(signingSecret!));
    expect(headers['x-service-signature']).not.toBe(hex(old));
    expect(headers['webhook-signature']).not.toContain(' ');
  });
});
