// What callers can request: a test, a resent delivery, and a recovery since a time or after a cursor.
import { webhooks } from '@signalbox/client';
import sql from 'sql-template-tag';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createDb } from '../../src/db/db.ts';
import { MAX_RECOVERING } from '../../src/deliveries/rewind.ts';
import { formatId, newUuid } from '../../src/lib/ids.ts';
import { getDelivery, listDeliveries, resendDelivery } from '../../src/webhooks/deliveries.ts';
import { recoverDeliveries } from '../../src/webhooks/recovery.ts';
import {
  createWebhookSubscription,
  deleteWebhookSubscription,
  getWebhookSubscription,
  rotateWebhookSecret,
  updateWebhookSubscription,
} from '../../src/webhooks/subscriptions.ts';
import { testWebhookSubscription } from '../../src/webhooks/test-envelope.ts';
import type { Received, Receiver } from '../support/receiver.ts';
import { append, createWorld, status, type TestSession, text, toolResult, type World } from '../support/webhooks.ts';

let world: World;
const production = { env: 'production' };

beforeEach(async () => {
  world = await createWorld();
});

afterEach(() => world.end());

const receiverOf = (answer?: Receiver['respond']) => world.receiver(answer);

const idOf = ({ sessionId }: TestSession) => formatId('ses', sessionId);
const cursorsOf = (received: readonly Received[]) => received.map(({ envelope }) => envelope.cursor);
const of = (received: readonly Received[], session: TestSession) =>
  received.filter(({ envelope }) => envelope.sessionId === idOf(session));

async function deliveries() {
  return (await listDeliveries(world.context(), { ...production, limit: 100 })).data;
}

async function shown(deliveryId: string) {
  return (await getDelivery(world.context(), { ...production, deliveryId })).webhookDelivery;
}

async function lastEvent() {
  const [row] = await world.db.query<{ body: object }>(
    sql`select body from events_pending order by event_id desc limit 1`,
  );
  return row!.body;
}

/** Waits until no recovery is left and everything is delivered. */
async function recovered(...those: TestSession[]): Promise<void> {
  await world.advanceUntil(async () => {
    const waiting = await world.db.query(sql`select 1 from webhook_recoveries`);
    return waiting.length === 0 && (await world.isDelivered(...those));
  }, 250);
}

describe('a test', () => {
  test('sends one signed envelope of a fictional session at once, and returns the attempt', async () => {
    const receiver = await receiverOf(() => ({ status: 200, body: 'hello' }));
    const secret = await world.subscribe(receiver.url);
    // The libraries compare the timestamp with the real time.
    await world.clock.advance(Date.now() - world.clock.now().getTime());
    const { attempt } = await testWebhookSubscription(world.context(), production);
    expect(attempt).toMatchObject({ attempt: 1, status: 200, error: null, secretVersion: 1, responseBody: 'hello' });
    const [{ body, headers }] = receiver.received as [Received];
    const envelope = await webhooks.verify(body, headers, [secret]);
    expect(envelope).toMatchObject({ sessionId: 'ses_test', environment: 'production', cursor: 'turn_1:seq_1' });
    expect(headers['x-service-previous-cursor']).toBe('');
    expect(await deliveries()).toEqual([]);
    const { webhookSubscription } = await getWebhookSubscription(world.context(), production);
    expect(webhookSubscription).toMatchObject({ confirmedSecretVersion: 1, lastSuccessAt: null });
  });

  test('reaches a receiver that only knows the previous secret, and shows that it refused the new one', async () => {
    const receiver = await receiverOf(({ headers }) => (headers['x-service-secret-version'] === '1' ? 200 : 401));
    await world.subscribe(receiver.url);
    await rotateWebhookSecret(world.context(), production);
    const { attempt } = await testWebhookSubscription(world.context(), production);
    expect(attempt).toMatchObject({ attempt: 2, status: 200, secretVersion: 1 });
    expect(receiver.received).toHaveLength(2);
  });

  test('reports its failure, works while the subscription is paused, and does not affect the health of the destination', async () => {
    const receiver = await receiverOf(() => 500);
    await world.subscribe(receiver.url);
    await updateWebhookSubscription(world.context(), { ...production, status: 'paused' });
    for (let n = 0; n < 6; n += 1) {
      const { attempt } = await testWebhookSubscription(world.context(), production);
      expect(attempt).toMatchObject({ status: 500, error: 'status' });
    }
    const [row] = await world.db.query<{ failures: number }>(sql`select failures from webhook_subscriptions`);
    expect(row!.failures).toBe(0);
    await expect(testWebhookSubscription(world.context(), { env: 'staging' })).rejects.toMatchObject({
      code: 'not_found',
    });
  });
});

describe('a delivery that is resent', () => {
  test('has the same id and bytes, and continues the numbers of its attempts', async () => {
    const receiver = await receiverOf();
    await world.subscribe(receiver.url);
    const session = await world.session();
    await world.node();
    await append(world, session, [status(), text('a'), toolResult()]);
    await world.delivered(session);
    await append(world, session, [status()]);
    await world.delivered(session);
    // Its content was stored and does not depend on the current filter.
    await updateWebhookSubscription(world.context(), { ...production, chunkTypes: ['session.status'] });
    const { deliveryId } = receiver.received[0]!;
    const { webhookDelivery } = await resendDelivery(world.context(), { ...production, deliveryId });
    expect(webhookDelivery).toMatchObject({ deliveryId, status: 'succeeded' });
    expect(await lastEvent()).toMatchObject({
      type: 'webhook_delivery.resent',
      resource: { type: 'webhook_delivery', id: deliveryId },
      sessionId: idOf(session),
      agentId: expect.stringMatching(/^agt_/),
    });
    await world.advanceUntil(async () => (await shown(deliveryId)).attemptCount === 2);
    expect(receiver.received).toHaveLength(3);
    expect(receiver.received[2]).toMatchObject({ deliveryId, attempt: 2, body: receiver.received[0]!.body });
    expect(await shown(deliveryId)).toMatchObject({ status: 'succeeded', nextAttemptAt: null });
    // The order of the session's own deliveries is unchanged.
    await append(world, session, [status()]);
    await world.delivered(session);
    expect(receiver.received[3]!.previousCursor).toBe('turn_1:seq_4');
  });

  test('succeeds if it had been given up; if it fails again, its status stays and it is not sent a third time', async () => {
    const receiver = await receiverOf(() => 500);
    await world.subscribe(receiver.url);
    const session = await world.session();
    await world.node();
    await append(world, session, [status()]);
    await world.advanceUntil(async () => (await deliveries())[0]?.attemptCount === 1, 0);
    await world.db.query(sql`update pending_deliveries set retries = 12`);
    await world.advanceUntil(async () => (await deliveries())[0]?.status === 'exhausted');
    const { deliveryId } = receiver.received[0]!;
    await resendDelivery(world.context(), { ...production, deliveryId });
    await world.advanceUntil(async () => (await shown(deliveryId)).attemptCount === 3);
    expect(await shown(deliveryId)).toMatchObject({ status: 'exhausted', nextAttemptAt: null });
    receiver.respond = () => 200;
    await resendDelivery(world.context(), { ...production, deliveryId });
    await world.advanceUntil(async () => (await shown(deliveryId)).status === 'succeeded');
    expect(receiver.received.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4]);
    expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1);
  });

  test('is sent at once if it waits for a retry, and the deliveries after it follow', async () => {
    const receiver = await receiverOf(() => ({ status: 503, headers: { 'retry-after': '36000' } }));
    await world.subscribe(receiver.url);
    const session = await world.session();
    await world.node();
    await append(world, session, [status()]);
    await world.advanceUntil(async () => (await deliveries())[0]?.attemptCount === 1, 0);
    await append(world, session, [status()]);
    receiver.respond = () => 200;
    const { deliveryId } = receiver.received[0]!;
    await resendDelivery(world.context(), { ...production, deliveryId });
    await world.advanceUntil(() => world.isDelivered(session));
    expect(world.clock.now().getTime()).toBeLessThan(Date.parse('2026-01-01T01:00:00.000Z'));
    expect(cursorsOf(receiver.received)).toEqual(['turn_1:seq_1', 'turn_1:seq_1', 'turn_1:seq_2']);
  });

  test('survives a restart, and is never in flight together with another delivery of its session', async () => {
    const receiver = await receiverOf();
    await world.subscribe(receiver.url);
    const session = await world.session();
    const { dispatcher } = await world.node();
    await append(world, session, [status()]);
    await world.delivered(session);
    const gate = Promise.withResolvers<number>();
    receiver.respond = () => gate.promise;
    const { deliveryId } = receiver.received[0]!;
    await resendDelivery(world.context(), { ...production, deliveryId });
    await world.advanceUntil(() => receiver.received.length === 2);
    await append(world, session, [status()]);
    const stopped = dispatcher.stop();
    await world.clock.advance(1);
    await stopped;
    receiver.respond = () => 200;
    gate.resolve(200);
    await world.node();
    await world.advanceUntil(
      async () => (await world.isDelivered(session)) && (await shown(deliveryId)).attemptCount === 2,
    );
    expect(of(receiver.received, session).filter(({ deliveryId: id }) => id === deliveryId)).toHaveLength(3);
    expect(receiver.received.filter(({ envelope }) => envelope.cursor === 'turn_1:seq_2')).toHaveLength(1);
  });

  test('of another organization, environment or id is not found', async () => {
    const receiver = await receiverOf();
    await world.subscribe(receiver.url);
    await world.subscribe(receiver.url, { environment: 'staging' });
    await world.subscribe(receiver.url, {}, world.strangerId);
    const session = await world.session();
    await world.node();
    await append(world, session, [status()]);
    await world.delivered(session);
    const { deliveryId } = receiver.received[0]!;
    for (const refused of [
      () => resendDelivery(world.context(world.strangerId), { ...production, deliveryId }),
      () => resendDelivery(world.context(), { env: 'staging', deliveryId }),
      () => resendDelivery(world.context(), { ...production, deliveryId: formatId('whd', newUuid()) }),
    ]) {
      await expect(refused()).rejects.toMatchObject({ code: 'not_found' });
    }
  });
});

describe('recover after a cursor', () => {
  test('sends all chunks after it again, in order and chained, and continues with new ones', async () => {
    const receiver = await receiverOf();
    await world.subscribe(receiver.url);
    const [session, other] = [await world.session(), await world.session()];
    await world.node();
    for (let n = 0; n < 4; n += 1) {
      await append(world, session, [status()]);
      await world.delivered(session);
    }
    await append(world, other, [status()]);
    await world.delivered(other);
    receiver.received.length = 0;
    const { webhookSubscription } = await recoverDeliveries(world.context(), {
      ...production,
      sessionId: idOf(session),
      cursor: 'turn_1:seq_2',
    });
    expect(webhookSubscription.environment).toBe('production');
    expect(await lastEvent()).toMatchObject({
      type: 'webhook_delivery.recovered',
      sessionId: idOf(session),
      changes: { cursor: [null, 'turn_1:seq_2'] },
    });
    await recovered(session);
    await append(world, session, [status()]);
    await world.delivered(session);
    expect(of(receiver.received, other)).toEqual([]);
    expect(receiver.received[0]!.previousCursor).toBe('turn_1:seq_2');
    let cursor = 'turn_1:seq_2';
    for (const { previousCursor, envelope } of receiver.received) {
      expect(previousCursor).toBe(cursor);
      cursor = envelope.cursor;
    }
    expect(receiver.received.flatMap(({ envelope }) => envelope.chunks.map(({ seq }) => seq))).toEqual([3, 4, 5]);
  });

  test('fills the gap left by a delivery that was given up', async () => {
    const receiver = await receiverOf(({ envelope }) => (envelope.cursor === 'turn_1:seq_2' ? 500 : 200));
    await world.subscribe(receiver.url);
    const session = await world.session();
    await world.node();
    await append(world, session, [status()]);
    await world.delivered(session);
    await append(world, session, [status()]);
    await world.advanceUntil(async () => (await deliveries())[0]?.nextAttemptAt != null, 0);
    await world.db.query(sql`update pending_deliveries set retries = 12`);
    await append(world, session, [status()]);
    await world.advanceUntil(() => world.isDelivered(session));
    expect(receiver.received.at(-1)!.previousCursor).toBe('turn_1:seq_1');
    receiver.respond = () => 200;
    await recoverDeliveries(world.context(), { ...production, sessionId: idOf(session), cursor: 'turn_1:seq_1' });
    await recovered(session);
    const last = receiver.received.at(-1)!;
    expect(last.previousCursor).toBe('turn_1:seq_1');
    expect(last.envelope.chunks.map(({ seq }) => seq)).toEqual([2, 3]);
  });

  test('replaces a delivery in flight, whose response no longer counts, and never skips unsent chunks', async () => {
    const receiver = await receiverOf();
    await world.subscribe(receiver.url);
    const session = await world.session();
    await world.node();
    await append(world, session, [status()]);
    await world.delivered(session);
    const gate = Promise.withResolvers<number>();
    receiver.respond = () => gate.promise;
    await append(world, session, [status()]);
    await receiver.first(2);
    // After everything that was delivered: nothing to do.
    await recoverDeliveries(world.context(), { ...production, sessionId: idOf(session), cursor: 'turn_1:seq_2' });
    const nothingWaits = async () => (await world.db.query(sql`select 1 from webhook_recoveries`)).length === 0;
    await world.advanceUntil(nothingWaits, 250);
    expect((await deliveries()).map(({ status: outcome }) => outcome)).toEqual(['pending', 'succeeded']);
    await recoverDeliveries(world.context(), { ...production, sessionId: idOf(session), cursor: 'turn_0:seq_0' });
    await world.advanceUntil(nothingWaits, 250);
    expect(receiver.received).toHaveLength(2);
    receiver.respond = () => 200;
    gate.resolve(200);
    await recovered(session);
    const again = receiver.received.slice(2);
    expect(again[0]!.previousCursor).toBe('');
    expect(again.flatMap(({ envelope }) => envelope.chunks.map(({ seq }) => seq))).toEqual([1, 2]);
    expect((await deliveries()).map(({ status: outcome }) => outcome)).toEqual(['succeeded', 'cancelled', 'succeeded']);
  });

  test.each([
    ['is accepted', 200, 0],
    ['fails', 500, 0],
    ['fails for the last time', 500, 12],
  ])('stores the attempt that it did not wait for, if that %s', async (_title, answer, retries) => {
    const receiver = await receiverOf(() => 500);
    await world.subscribe(receiver.url);
    const session = await world.session();
    await world.node();
    await append(world, session, [status()]);
    await world.advanceUntil(async () => (await deliveries())[0]?.nextAttemptAt != null, 0);
    await world.db.query(sql`update pending_deliveries set retries = ${retries}`);
    const gate = Promise.withResolvers<number>();
    receiver.respond = () => gate.promise;
    await world.advanceUntil(() => receiver.received.length === 2);
    const { deliveryId } = receiver.received[0]!;
    await recoverDeliveries(world.context(), { ...production, sessionId: idOf(session), cursor: 'turn_0:seq_0' });
    await world.advanceUntil(async () => (await shown(deliveryId)).status === 'cancelled', 250);
    expect(await shown(deliveryId)).toMatchObject({ attemptCount: 1 });
    receiver.respond = () => 200;
    gate.resolve(answer);
    await recovered(session);
    expect(await shown(deliveryId)).toMatchObject({
      status: 'cancelled',
      attemptCount: 2,
      attempts: [
        { attempt: 1, status: 500 },
        { attempt: 2, status: answer },
      ],
    });
    expect((await deliveries()).map(({ status: outcome }) => outcome)).toEqual(['succeeded', 'cancelled']);
  });

  test('works with as many concurrent calls as there are connections, because each needs only one', async () => {
    const receiver = await receiverOf();
    await world.subscribe(receiver.url);
    const session = await world.session();
    await world.node();
    await append(world, session, [status()]);
    await world.delivered(session);
    const db = createDb({ url: world.databaseUrl, max: 1 });
    const ctx = { ...world.context(), db };
    await recoverDeliveries(ctx, { ...production, sessionId: idOf(session), cursor: 'turn_0:seq_0' });
    await resendDelivery(ctx, { ...production, deliveryId: receiver.received[0]!.deliveryId });
    await db.close();
  });

  test('refuses invalid input', async () => {
    await world.subscribe('https://example.com/');
    const [session, foreign] = [await world.session(), await world.session({ organizationId: world.strangerId })];
    const staging = await world.session({ environment: 'staging' });
    await append(world, session, [status()]);
    const recover = (sessionId: string, cursor: string) =>
      recoverDeliveries(world.context(), { ...production, sessionId, cursor });
    await expect(recover(idOf(session), 'turn_1:seq_2')).rejects.toMatchObject({ code: 'invalid_cursor' });
    for (const each of [foreign, staging]) {
      await expect(recover(idOf(each), 'turn_0:seq_0')).rejects.toMatchObject({ code: 'not_found' });
    }
    const since = new Date(world.clock.now().getTime() + 1).toISOString();
    await expect(recoverDeliveries(world.context(), { ...production, since })).rejects.toMatchObject({
      code: 'invalid_request',
    });
    await world.db.query(sql`
      insert into webhook_recoveries (organization_id, webhook_subscription_id, recovery_id, session_id, turn, seq,
        after_session_id, created_at)
      select w.organization_id, w.webhook_subscription_id, gen_random_uuid(), ${session.sessionId}, 0, 0, w.webhook_subscription_id,
        now() from webhook_subscriptions w, generate_series(1, 1000)`);
    await expect(recover(idOf(session), 'turn_0:seq_0')).rejects.toMatchObject({ code: 'conflict' });
    await deleteWebhookSubscription(world.context(), production);
    await expect(recover(idOf(session), 'turn_0:seq_0')).rejects.toMatchObject({ code: 'not_found' });
  });
});

describe('recover since a time', () => {
  test('sends every session from its first chunk since that time on, and no other session', async () => {
    const receiver = await receiverOf();
    await world.subscribe(receiver.url);
    const [before, across, after] = [await world.session(), await world.session(), await world.session()];
    const staging = await world.session({ environment: 'staging' });
    await world.node();
    for (const session of [before, across]) await append(world, session, [status()]);
    await world.delivered(before, across);
    await world.clock.advance(60_000);
    const since = world.clock.now().toISOString();
    for (const session of [across, after, staging]) await append(world, session, [status()], { turn: 2 });
    await world.delivered(across, after);
    receiver.received.length = 0;
    await recoverDeliveries(world.context(), { ...production, since });
    await recovered(across, after);
    expect(
      receiver.received.map(({ envelope, previousCursor }) => [envelope.sessionId, previousCursor, envelope.cursor]),
    ).toEqual([
      [idOf(across), 'turn_1:seq_1', 'turn_2:seq_1'],
      [idOf(after), '', 'turn_2:seq_1'],
    ]);
  });

  test('sends a new subscription the chunks from before it', async () => {
    const receiver = await receiverOf();
    const session = await world.session();
    await append(world, session, [status(), status()]);
    await createWebhookSubscription(world.context(), { environment: 'production', url: receiver.url });
    await world.node();
    await recoverDeliveries(world.context(), { ...production, since: '2025-01-01T00:00:00.000Z' });
    await recovered(session);
    expect(receiver.received.flatMap(({ envelope }) => envelope.chunks.map(({ seq }) => seq))).toEqual([1, 2]);
  });

  test('rewinds a few sessions at a time, however many there are, while live deliveries continue', async () => {
    const receiver = await receiverOf();
    await world.subscribe(receiver.url);
    const old = await Promise.all(Array.from({ length: 300 }, () => world.session()));
    const live = await world.session();
    await world.node();
    for (const session of old) await append(world, session, [status()]);
    await world.delivered(...old);
    receiver.received.length = 0;
    let gate = Promise.withResolvers<number>();
    receiver.respond = ({ envelope }) => (envelope.sessionId === idOf(live) ? 200 : gate.promise);
    await recoverDeliveries(world.context(), { ...production, since: '2025-01-01T00:00:00.000Z' });
    await world.advanceUntil(() => receiver.received.length === MAX_RECOVERING, 250);
    for (let n = 0; n < 10; n += 1) {
      await append(world, live, [status()]);
      await world.delivered(live);
    }
    expect(receiver.received).toHaveLength(MAX_RECOVERING + 10);
    expect(receiver.open).toBe(MAX_RECOVERING);
    let most = 0;
    receiver.respond = () => {
      most = Math.max(most, receiver.open);
      return 200;
    };
    gate.resolve(200);
    await recovered(...old);
    expect(most).toBeLessThanOrEqual(MAX_RECOVERING);
    const sent = receiver.received.filter(({ envelope }) => envelope.sessionId !== idOf(live));
    expect(new Set(sent.map(({ envelope }) => envelope.sessionId)).size).toBe(300);
    gate = Promise.withResolvers();
  });

  test('continues after a restart, and waits while the subscription is paused', async () => {
    const receiver = await receiverOf();
    await world.subscribe(receiver.url);
    const sessions = await Promise.all(Array.from({ length: 40 }, () => world.session()));
    const { dispatcher } = await world.node();
    for (const session of sessions) await append(world, session, [status()]);
    await world.delivered(...sessions);
    receiver.received.length = 0;
    await updateWebhookSubscription(world.context(), { ...production, status: 'paused' });
    await recoverDeliveries(world.context(), { ...production, since: '2025-01-01T00:00:00.000Z' });
    await world.clock.pass(20_000);
    expect(receiver.received).toEqual([]);
    const gate = Promise.withResolvers<number>();
    receiver.respond = () => gate.promise;
    await updateWebhookSubscription(world.context(), { ...production, status: 'enabled' });
    await world.advanceUntil(() => receiver.received.length === MAX_RECOVERING, 250);
    const stopped = dispatcher.stop();
    await world.clock.advance(1);
    await stopped;
    receiver.respond = () => 200;
    gate.resolve(200);
    await world.node();
    await recovered(...sessions);
    expect(new Set(receiver.received.map(({ envelope }) => envelope.sessionId)).size).toBe(40);
  });
});
