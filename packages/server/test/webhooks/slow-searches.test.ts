// During a long transaction, such as a backup, the search for due deliveries is slow and therefore repeated less often. Here it is never
// repeated after the first time: everything that needs no lost wake-up is sent all the same.
import sql, { type Sql } from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Db } from '../../src/db/db.ts';
import { createShards } from '../../src/db/shards.ts';
import { createDispatcher, type Dispatcher } from '../../src/deliveries/dispatcher.ts';
import { newUuid } from '../../src/lib/ids.ts';
import { listDeliveries, resendDelivery } from '../../src/webhooks/deliveries.ts';
import { recoverDeliveries } from '../../src/webhooks/recovery.ts';
import { rotateWebhookSecret } from '../../src/webhooks/subscriptions.ts';
import type { Receiver } from '../support/receiver.ts';
import { append, createWorld, status, type TestSession, type World } from '../support/webhooks.ts';

const production = { env: 'production' };

let world: World;
let dispatcher: Dispatcher;
let receiver: Receiver;
let searches: number;
/** Called with each statement before it runs, and with each query after it. */
let before: (statement: Sql) => void;
let after: (statement: Sql) => void;
beforeEach(async () => {
  world = await createWorld();
  receiver = await world.receiver();
  await world.subscribe(receiver.url);
  searches = 0;
  before = () => {};
  after = () => {};
});
afterEach(async () => {
  await dispatcher.stop();
  await world.end();
});

/** Starts a dispatcher, which then has searched. */
async function start(): Promise<void> {
  const nodeId = newUuid();
  await world.db.query(sql`
    insert into nodes (node_id, lease_expires_at) values (${nodeId}, now() + interval '1 day')`);
  const db: Db = {
    ...world.db,
    async query<Row>(statement: Sql) {
      before(statement);
      const rows = await world.db.query<Row>(statement);
      after(statement);
      return rows;
    },
    batch<Row>(statements: readonly Sql[]) {
      for (const statement of statements) before(statement);
      return world.db.batch<Row>(statements);
    },
  };
  const shards = createShards(db);
  const query: typeof shards.query = (what, ...rest) => {
    if (what === 'searching for due deliveries') searches += 1;
    return shards.query(what, ...rest);
  };
  // Each search takes a second, and otherwise no time passes.
  const clock = { ...world.clock, elapsedMs: () => 1_000 * searches };
  const platform = { ...world.platform, db, shards: { ...shards, query }, clock };
  dispatcher = createDispatcher(platform, { nodeId, version: '0.0.0', random: () => 0, graceMs: 0 });
  dispatcher.start();
  // A search may read several pages before anything else happens.
  await world.advanceUntil(() => searches > 0);
}

const received = (count: number) => world.advanceUntil(() => receiver.received.length >= count);

/** A session with a delivery that the receiver accepted. */
async function delivered(): Promise<TestSession> {
  const session = await world.session();
  await append(world, session, [status()]);
  await world.delivered(session);
  return session;
}

/** The delivery of another chunk failed and waits for its retry; the receiver works again. Returns when the retry is due. */
async function failed(session: TestSession): Promise<Date> {
  receiver.respond = () => 503;
  await append(world, session, [status('idle')]);
  const due = () =>
    world.db.query<{ at: Date }>(sql`
      select next_attempt_at as at from pending_deliveries where next_attempt_at is not null`);
  await expect.poll(async () => (await due()).length).toBe(1);
  receiver.respond = () => 200;
  return (await due())[0]!.at;
}

test('a finished delivery that is resent', async () => {
  await start();
  await delivered();
  const [first] = (await listDeliveries(world.context(), { ...production, limit: 10 })).data;
  await resendDelivery(world.context(), { ...production, deliveryId: first!.deliveryId });
  await received(2);
  expect(searches).toBe(1);
});

test('a delivery that waits for its retry and is resent', async () => {
  await start();
  await failed(await delivered());
  const { data } = await listDeliveries(world.context(), { ...production, limit: 10 });
  const { deliveryId } = data.find(({ status }) => status === 'pending')!;
  await resendDelivery(world.context(), { ...production, deliveryId });
  await world.clock.advance(1_000);
  await expect.poll(() => receiver.received.length).toBe(3);
  expect(searches).toBe(1);
});

test('a recovery', async () => {
  await start();
  await delivered();
  await recoverDeliveries(world.context(), { ...production, since: '2025-12-31T00:00:00.000Z' });
  await received(2);
  expect(searches).toBe(1);
});

test('a retry, after a change of the subscription', async () => {
  await start();
  await failed(await delivered());
  await rotateWebhookSecret(world.context(), production);
  await received(3);
  expect(searches).toBe(1);
});

test('a retry that becomes due while due sessions are read', async () => {
  await start();
  const due = await failed(await delivered());
  await world.clock.advance(due.getTime() - world.clock.now().getTime() - 10);
  let isRead = false;
  after = ({ text }) => {
    if (isRead || !text.includes('as redeliveries')) return;
    isRead = true;
    world.clock.leap(20);
  };
  world.platform.wake.publish('journal', undefined as never);
  await expect.poll(() => isRead).toBe(true);
  await received(3);
  expect(searches).toBe(1);
});

test('a session whose statement failed once', async () => {
  await start();
  const session = await delivered();
  let isBroken = false;
  before = ({ text }) => {
    if (isBroken || !text.includes('acknowledged_cursor')) return;
    isBroken = true;
    throw new Error('deadlock detected');
  };
  await append(world, session, [status('idle')]);
  await received(2);
  expect(isBroken).toBe(true);
  expect(searches).toBe(1);
});

test('chunks from before, if due sessions can’t be read when the subscription is claimed and when it is found', async () => {
  await append(world, await world.session(), [status()]);
  let broken = 0;
  before = ({ text }) => {
    if (broken === 2 || !text.includes('as redeliveries')) return;
    broken += 1;
    throw new Error('deadlock detected');
  };
  await start();
  await received(1);
  expect(broken).toBe(2);
  expect(searches).toBe(1);
});

test('600 due retries go out every second, 250 at a time', async () => {
  const [{ id } = { id: '' }] = await world.db.query<{ id: string }>(sql`
    select webhook_subscription_id as id from webhook_subscriptions where organization_id = ${world.organizationId}`);
  // Sessions whose delivery failed on a node that is gone.
  await world.db.query(sql`
    with s as (
      insert into sessions (organization_id, session_id, agent_id, environment, status, turn, next_seq, close_on_idle, metadata,
        delivery_due, delivery_subscription_id, delivered_turn, delivery_id, created_at, updated_at)
      select a.organization_id, gen_random_uuid(), a.agent_id, 'production', 'idle', 1, 2, false, '{}', true, ${id}::uuid, 1,
        gen_random_uuid(), now(), now()
      from agents a cross join generate_series(1, 600) where a.organization_id = ${world.organizationId}
      returning organization_id, session_id, delivery_id),
    d as (
      insert into pending_deliveries (organization_id, webhook_subscription_id, delivery_id, session_id, previous_cursor, from_turn,
        from_seq, to_turn, to_seq, chunk_types, occurred_at, attempt_count, body, next_attempt_at, created_at)
      select s.organization_id, ${id}::uuid, s.delivery_id, s.session_id, '', 1, 0, 1, 1, 's', now(), 1, '{}',
        ${world.clock.now()}::timestamptz, now() from s)
    insert into segments (organization_id, session_id, turn, seq_to, seq_from, body, created_at)
    select s.organization_id, s.session_id, 1, 1, 1, '["x"]', now() from s`);
  await start();
  await received(600);
  // Both pages of the first.
  expect(searches).toBe(2);
});
