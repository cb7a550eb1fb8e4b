// A failing destination is probed, degraded and finally disabled, and others are not affected.
import sql from 'sql-template-tag';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { maxStoredAttempts } from '../../src/deliveries/finished-deliveries.ts';
import { formatId } from '../../src/lib/ids.ts';
import { getDelivery, listDeliveries } from '../../src/webhooks/deliveries.ts';
import { getWebhookSubscription, updateWebhookSubscription } from '../../src/webhooks/subscriptions.ts';
import type { Received, Receiver } from '../support/receiver.ts';
import { append, createWorld, status, type TestSession, type World } from '../support/webhooks.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

let world: World;

beforeEach(async () => {
  world = await createWorld();
});

afterEach(() => world.end());

const receiverOf = (answer?: Receiver['respond']) => world.receiver(answer);

const idOf = ({ sessionId }: TestSession) => formatId('ses', sessionId);
const sessions = (count: number) => Promise.all(Array.from({ length: count }, () => world.session()));

/** The texts of a session's chunks, in the order of arrival. */
function seqsOf(received: readonly Received[], session: TestSession): number[] {
  return received
    .filter(({ envelope }) => envelope.sessionId === idOf(session))
    .flatMap(({ envelope }) => envelope.chunks.map(({ seq }) => seq));
}

async function listed() {
  return (await listDeliveries(world.context(), { env: 'production', limit: 100 })).data;
}

async function subscription() {
  return (await getWebhookSubscription(world.context(), { env: 'production' })).webhookSubscription;
}

async function health() {
  const [row] = await world.db.query<{ failures: number; probeAt: Date | null; lastFailureAt: Date | null }>(sql`
    select failures, probe_at as "probeAt", last_failure_at as "lastFailureAt" from webhook_subscriptions where organization_id = ${world.organizationId}`);
  return row!;
}

/** Waits until an attempt has been counted, after which the consequence of its failure is stored. */
async function attempted(count: number): Promise<void> {
  await world.advanceUntil(async () => {
    const counts = (await listed()).map(({ attemptCount }) => attemptCount);
    return counts.reduce((sum, each) => sum + each, 0) >= count;
  }, 0);
}

const pass = (ms: number, leastMs = SECOND_MS) => world.clock.pass(ms, leastMs);

async function eventTypes(): Promise<string[]> {
  const rows = await world.db.query<{ type: string }>(
    sql`select body->>'type' as type from events_pending order by event_id`,
  );
  return rows.map(({ type }) => type);
}

describe('a destination that fails 5 times in a row', () => {
  test('is probed: one attempt after 30 s, doubling up to 15 min; other deliveries wait without using up retries', async () => {
    const receiver = await receiverOf(() => 500);
    await world.subscribe(receiver.url);
    const some = await sessions(12);
    await world.node();
    for (const session of some.slice(0, 5)) await append(world, session, [status()]);
    await receiver.first(5);
    await attempted(5);
    for (const session of some.slice(5)) await append(world, session, [status()]);
    const waits: number[] = [];
    for (let probe = 0; probe < 8; probe += 1) {
      await world.advanceUntil(async () => ((await health()).probeAt ?? 0) > world.clock.now(), 10);
      const { probeAt, lastFailureAt } = await health();
      waits.push((probeAt!.getTime() - lastFailureAt!.getTime()) / SECOND_MS);
      await pass(probeAt!.getTime() - 1 - world.clock.now().getTime(), MINUTE_MS);
      if (world.clock.now() < probeAt!) expect(receiver.received).toHaveLength(5 + probe);
      await world.advanceUntil(() => receiver.received.length === 6 + probe, 50);
      await attempted(6 + probe);
    }
    expect(waits).toEqual([30, 60, 120, 240, 480, 900, 900, 900]);
    // Sessions that have not failed are probed first; none has used more than one of its own attempts.
    const attempts = new Map<string, number>();
    for (const { envelope } of receiver.received) {
      attempts.set(envelope.sessionId, (attempts.get(envelope.sessionId) ?? 0) + 1);
    }
    expect(attempts.size).toBe(12);
    expect(Math.max(...attempts.values())).toBe(2);
  });

  test('gets everything, in order, as soon as a probe is accepted', async () => {
    const receiver = await receiverOf(() => 500);
    await world.subscribe(receiver.url);
    const some = await sessions(20);
    await world.node();
    for (const session of some) await append(world, session, [status()]);
    await attempted(5);
    for (const session of some) await append(world, session, [status()]);
    await pass(2 * HOUR_MS, MINUTE_MS);
    receiver.respond = () => 200;
    const failed = receiver.received.length;
    await world.advanceUntil(() => receiver.received.length > failed, MINUTE_MS);
    // The clock no longer moves: no delivery waits for its own retry.
    await world.delivered(...some);
    for (const session of some) {
      expect(seqsOf(receiver.received.slice(failed), session)).toEqual([1, 2]);
    }
    await world.advanceUntil(async () => (await health()).probeAt === null);
  });

  test('gets all pending retries at once when it works again', async () => {
    const receiver = await receiverOf(() => 500);
    await world.subscribe(receiver.url);
    const some = await sessions(2);
    await world.node();
    for (const session of some) await append(world, session, [status()]);
    await pass(12 * HOUR_MS, MINUTE_MS);
    receiver.respond = () => 200;
    const failed = receiver.received.length;
    await world.advanceUntil(() => receiver.received.length > failed, MINUTE_MS);
    await world.advanceUntil(() => world.isDelivered(...some), 100);
    expect(receiver.received.length - failed).toBe(2);
  });

  test('causes few statements, however much there is to send', async () => {
    const receiver = await receiverOf(() => 500);
    await world.subscribe(receiver.url);
    const some = await sessions(30);
    await world.node();
    for (const session of some) await append(world, session, [status()]);
    await attempted(5);
    await world.advanceUntil(async () => (await health()).probeAt !== null, 100);
    for (const session of some) for (let n = 0; n < 5; n += 1) await append(world, session, [status()]);
    const { length } = receiver.received;
    const reads = world.statementsLike(/from webhook_subscriptions w cross join unnest|^select h\.n|left join nodes/);
    await pass(HOUR_MS, 10 * SECOND_MS);
    // 30 s, 1, 2, 4, 8, 15, 15 min.
    expect(receiver.received.length - length).toBeLessThanOrEqual(8);
    // One read of the subscriptions for each poll, and a few statements for each probe.
    expect(reads.count()).toBeLessThanOrEqual(360 + 8 * 4);
  });

  test('can postpone the probe with Retry-After', async () => {
    const receiver = await receiverOf(() => ({ status: 503, headers: { 'retry-after': '7200' } }));
    await world.subscribe(receiver.url);
    const some = await sessions(6);
    await world.node();
    for (const session of some.slice(0, 5)) await append(world, session, [status()]);
    await attempted(5);
    await append(world, some[5]!, [status()]);
    await pass(2 * HOUR_MS - MINUTE_MS, MINUTE_MS);
    expect(receiver.received).toHaveLength(5);
    await world.advanceUntil(() => receiver.received.length === 6);
  });

  test('is still only probed by the next node that the subscription is assigned to', async () => {
    const receiver = await receiverOf(() => 500);
    await world.subscribe(receiver.url);
    const some = await sessions(40);
    const { dispatcher } = await world.node();
    for (const session of some.slice(0, 5)) await append(world, session, [status()]);
    await attempted(5);
    await dispatcher.stop();
    for (const session of some) await append(world, session, [status()], { isQuiet: true });
    await world.node();
    await pass(29 * SECOND_MS);
    expect(receiver.received).toHaveLength(5);
    await world.advanceUntil(() => receiver.received.length > 5, 100);
    await pass(30 * SECOND_MS);
    expect(receiver.received).toHaveLength(6);
  });

  test('gets everything at once when a caller sets another url', async () => {
    const [before, after] = [await receiverOf(() => 500), await receiverOf()];
    await world.subscribe(before.url);
    const some = await sessions(8);
    await world.node();
    for (const session of some) await append(world, session, [status()]);
    await attempted(5);
    const changedAt = world.clock.now().getTime();
    await updateWebhookSubscription(world.context(), { env: 'production', url: after.url });
    // The delivery that was in flight to the other url follows with its own retry.
    await world.advanceUntil(() => world.isDelivered(...some), 50);
    expect(world.clock.now().getTime() - changedAt).toBeLessThan(30 * SECOND_MS);
    expect(new Set(after.received.map(({ envelope }) => envelope.sessionId)).size).toBe(8);
    await world.advanceUntil(async () => (await health()).failures === 0, 100);
    expect((await health()).probeAt).toBeNull();
  });
});

describe('if the receiver fails for only one session', () => {
  test('the others continue, also while it is probed', async () => {
    const [poison, other] = await sessions(2);
    const receiver = await receiverOf(({ envelope }) => (envelope.sessionId === idOf(poison!) ? 500 : 200));
    await world.subscribe(receiver.url);
    await world.node();
    await append(world, poison!, [status()]);
    for (let count = 1; count <= 9; count += 1) {
      await world.advanceUntil(() => receiver.received.length === count, 10 * SECOND_MS);
      await attempted(count);
    }
    // The last failure is counted up to a second after its attempt, by the clock of the test.
    await world.advanceUntil(async () => (await health()).failures === 9, 100);
    const { failures, probeAt } = await health();
    expect((await subscription()).health).toMatchObject({
      state: 'failing',
      failingSince: expect.any(String),
      consecutiveFailures: failures,
      lastError: 'status',
      lastStatus: 500,
      nextProbeAt: probeAt!.toISOString(),
      failingSessionId: idOf(poison!),
    });
    await append(world, other!, [status()]);
    await world.delivered(other!);
    const [delivery] = (await listed()).filter(({ sessionId }) => sessionId === idOf(poison!));
    // The probes were sent before the retry time, and used up no retry.
    expect(delivery).toMatchObject({ status: 'pending', attemptCount: 9 });
    const [{ retries } = { retries: 0 }] = await world.db.query<{ retries: number }>(sql`
      select retries from pending_deliveries where session_id = ${poison!.sessionId}`);
    expect(retries).toBeLessThan(9);
  });

  test('the number of attempts shown is limited, and their numbers continue', async () => {
    const receiver = await receiverOf(() => 500);
    await world.subscribe(receiver.url);
    const session = await world.session();
    await world.node();
    await append(world, session, [status()]);
    await attempted(1);
    await world.db.query(sql`
      update pending_deliveries set attempt_count = 49, attempts = (
        select array_agg(replace(attempts[1], '"attempt":1,', format('"attempt":%s,', n)) order by n)
        from generate_series(1, 49) n)`);
    await attempted(49);
    for (const count of [50, 51, 52]) {
      await world.advanceUntil(() => receiver.received.length === count - 48);
      await attempted(count);
    }
    const [{ deliveryId } = { deliveryId: '' }] = await listed();
    const { webhookDelivery } = await getDelivery(world.context(), { env: 'production', deliveryId });
    expect(webhookDelivery.attempts).toHaveLength(maxStoredAttempts);
    expect(webhookDelivery.attempts.map(({ attempt }) => attempt)).toEqual(
      Array.from({ length: maxStoredAttempts }, (_, n) => n + 3),
    );
  });
});

describe('a long failure', () => {
  test('records one warning after a day; after five days the subscription is disabled, keeps everything, and catches up later', async () => {
    const receiver = await receiverOf(() => 500);
    await world.subscribe(receiver.url);
    const some = await sessions(6);
    await world.node();
    for (const session of some) await append(world, session, [status()]);
    await attempted(5);
    const started = world.clock.now().getTime();
    const hoursOf = new Map<string, number>();
    await world.clock.passUntil(async () => {
      for (const type of await eventTypes()) {
        if (!hoursOf.has(type)) hoursOf.set(type, (world.clock.now().getTime() - started) / HOUR_MS);
      }
      return (await subscription()).status !== 'enabled';
    }, 6 * HOUR_MS);
    expect(hoursOf.get('webhook_subscription.degraded')).toBeGreaterThanOrEqual(24);
    expect(hoursOf.get('webhook_subscription.degraded')).toBeLessThan(31);
    expect(hoursOf.get('webhook_subscription.disabled')).toBeGreaterThanOrEqual(120);
    expect(hoursOf.get('webhook_subscription.disabled')).toBeLessThan(127);
    expect((await eventTypes()).filter((type) => type === 'webhook_subscription.degraded')).toHaveLength(1);
    expect((await subscription()).health.state).toBe('degraded');
    expect(await subscription()).toMatchObject({ status: 'disabled', disabledReason: 'failing' });

    for (const session of some) await append(world, session, [status()]);
    const { length } = receiver.received;
    await pass(48 * HOUR_MS, HOUR_MS);
    expect(receiver.received).toHaveLength(length);
    receiver.respond = () => 200;
    await updateWebhookSubscription(world.context(), { env: 'production', status: 'enabled' });
    await world.delivered(...some);
    for (const session of some) {
      expect(seqsOf(receiver.received.slice(length), session)).toEqual([1, 2]);
    }
    expect(await eventTypes()).toContain('webhook_subscription.enabled');
    expect((await subscription()).disabledReason).toBeNull();
  });
});

describe('a destination that hangs', () => {
  test('delays neither another organization nor another environment', async () => {
    const gate = Promise.withResolvers<number>();
    const [hanging, staging, foreign] = [await receiverOf(() => gate.promise), await receiverOf(), await receiverOf()];
    await world.subscribe(hanging.url);
    await world.subscribe(staging.url, { environment: 'staging' });
    await world.subscribe(foreign.url, {}, world.strangerId);
    const stuck = await sessions(250);
    const free = [
      await world.session({ environment: 'staging' }),
      await world.session({ organizationId: world.strangerId }),
    ];
    await world.node();
    for (const session of stuck) await append(world, session, [status()]);
    await hanging.first(200);
    for (let round = 0; round < 20; round += 1) {
      for (const session of free) await append(world, session, [status()]);
      // The clock has not moved, and no attempt at the hanging destination has ended.
      await world.delivered(...free);
    }
    expect(staging.received.at(-1)!.envelope.cursor).toBe('turn_1:seq_20');
    expect(foreign.received.at(-1)!.envelope.cursor).toBe('turn_1:seq_20');
    expect(hanging.received).toHaveLength(200);
    gate.resolve(200);
    await world.delivered(...stuck);
  });
});

test('the time of a success is recorded at once, then every 15 s, and when the node stops', async () => {
  const receiver = await receiverOf();
  await world.subscribe(receiver.url);
  const session = await world.session();
  const node = await world.node();
  const recordings = world.statementsLike(/^update webhook_subscriptions w set last_success_at/);
  const recorded = () => subscription().then(({ lastSuccessAt }) => lastSuccessAt);
  const succeed = async () => {
    await append(world, session, [status()]);
    await world.delivered(session);
    return world.clock.now().toISOString();
  };
  const first = await succeed();
  await world.advanceUntil(async () => (await recorded()) !== null, 50);
  expect(await recorded()).toBe(first);
  for (let second = 0; second < 10; second += 1) {
    await succeed();
    await world.clock.advance(SECOND_MS);
  }
  expect(recordings.count()).toBe(1);
  const last = await succeed();
  await world.advanceUntil(async () => (await recorded()) !== first, 50);
  expect(await recorded()).toBe(last);
  const stopped = await succeed();
  await node.dispatcher.stop();
  expect(await recorded()).toBe(stopped);
  expect(recordings.count()).toBe(3);
});

test('the health of 40 destinations is recorded by one statement at a time, not one for each', async () => {
  const receiver = await receiverOf();
  const names = Array.from({ length: 40 }, (_, n) => `e${n}`);
  await world.db.query(sql`
    insert into environments (organization_id, name, environment_id, created_at)
    select o.organization_id, e, gen_random_uuid(), now() from organizations o cross join unnest(${names}::text[]) as e
    where o.organization_id = ${world.organizationId}`);
  for (const environment of names) await world.subscribe(receiver.url, { environment });
  const some = await Promise.all(names.map((environment) => world.session({ environment })));
  await world.node();
  const recordings = world.statementsLike(/^update webhook_subscriptions w set last_success_at/);
  for (const session of some) await append(world, session, [status()]);
  const recorded = () =>
    world.db.execute(sql`
      select 1 from webhook_subscriptions
      where organization_id = ${world.organizationId} and last_success_at is not null`);
  await world.advanceUntil(async () => (await recorded()) === names.length);
  expect(recordings.count()).toBeLessThanOrEqual(names.length / 4);
});
