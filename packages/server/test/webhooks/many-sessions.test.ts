// With many sessions in its environment, a subscription is created and deleted in constant time, and none of them is locked or
// rewritten.
import { channel } from 'node:diagnostics_channel';
import sql from 'sql-template-tag';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newUuid } from '../../src/lib/ids.ts';
import { clearSessions, deletedSubscriptions } from '../../src/webhooks/retention.ts';
import {
  createWebhookSubscription,
  deleteWebhookSubscription,
  updateWebhookSubscription,
} from '../../src/webhooks/subscriptions.ts';
import { listenTo } from '../support/plans.ts';
import { append, createWorld, status, type World } from '../support/webhooks.ts';

const SESSIONS = 20_000;
const production = { env: 'production' };

let world: World;
beforeAll(async () => {
  world = await createWorld();
  await world.db.query(sql`
    insert into sessions (organization_id, session_id, agent_id, environment, status, turn, next_seq, close_on_idle, metadata,
      created_at, updated_at)
    select a.organization_id, gen_random_uuid(), a.agent_id, 'production', 'idle', 1, 3, false, '{}', now(), now()
    from agents a cross join generate_series(1, ${SESSIONS}) where a.organization_id = ${world.organizationId}`);
});
afterAll(() => world.end());

/** The versions of all rows; any write to a row changes its version. */
async function versions(): Promise<string> {
  const [row] = await world.db.query<{ text: string }>(sql`
    select md5(string_agg(ctid::text || xmin::text || xmax::text, ',' order by session_id)) as text from sessions`);
  return row!.text;
}

async function countDue(): Promise<number> {
  const [row] = await world.db.query<{ count: number }>(sql`
    select count(*)::int as count from sessions where delivery_due`);
  return row!.count;
}

/** The statements on sessions while `act` runs. */
async function statementsOnSessions(act: () => Promise<unknown>): Promise<string[]> {
  const found: string[] = [];
  const hear = (text: unknown) => {
    if (/\b(sessions|webhook_deliveries)\b/.test(String(text))) found.push(String(text));
  };
  const statements = channel('signalbox.statement');
  statements.subscribe(hear);
  await act().finally(() => statements.unsubscribe(hear));
  return found;
}

test('creating, changing and deleting a subscription reads, locks and writes none of 20,000 sessions', async () => {
  const before = await versions();
  const receiver = await world.receiver();
  const found = await statementsOnSessions(async () => {
    await world.subscribe(receiver.url);
    await updateWebhookSubscription(world.context(), { ...production, chunkTypes: ['session.status'] });
    await deleteWebhookSubscription(world.context(), production);
  });
  expect(found).toEqual([]);
  expect(await versions()).toBe(before);
});

test('a session in an environment without a subscription is never due', async () => {
  const session = await world.session();
  await append(world, session, [status()]);
  await append(world, session, [status()]);
  expect(await countDue()).toBe(0);
});

test('chunks can be appended to a session while a subscription is being created, and later ones are delivered', async () => {
  const receiver = await world.receiver();
  const [quiet, open] = [await world.session(), await world.session()];
  for (const session of [quiet, open]) await append(world, session, [status()]);
  await world.node();
  const { db } = world;
  await db.transaction(async (tx) => {
    const input = { environment: 'production', url: receiver.url };
    await createWebhookSubscription({ ...world.context(), db: tx }, input);
    // On another connection: it waits for no lock, and commits before the subscription.
    await append(world, open, [status()]);
  });
  await append(world, open, [status()]);
  await world.advanceUntil(async () => (await countDue()) === 0);
  const arrived = receiver.received.map(({ envelope, previousCursor }) => ({
    cursor: envelope.cursor,
    seqs: envelope.chunks.map(({ seq }) => seq),
    previousCursor,
  }));
  expect(arrived).toEqual([{ cursor: 'turn_1:seq_3', seqs: [3], previousCursor: '' }]);
  await deleteWebhookSubscription(world.context(), production);
});

test('chunks that waited for a deleted subscription are cleared in batches, and none that wait for another', async () => {
  const receiver = await world.receiver();
  const { db, organizationId } = world;
  await world.subscribe(receiver.url, { environment: 'staging' });
  const [other] = await db.query<{ id: string }>(sql`select webhook_subscription_id as id from webhook_subscriptions`);
  await db.query(sql`
    update sessions set delivery_due = true, delivery_id = gen_random_uuid(), delivery_subscription_id = ${newUuid()}
    where next_seq = 3 and turn = 1`);
  const staging = await world.session({ environment: 'staging' });
  await updateWebhookSubscription(world.context(), { env: 'staging', status: 'paused' });
  await append(world, staging, [status()]);
  expect(await countDue()).toBeGreaterThan(SESSIONS);

  const [gone, ...more] = await deletedSubscriptions(db, organizationId);
  expect(more).toEqual([]);
  expect(gone).not.toBe(other!.id);
  const of = { organizationId, webhookSubscriptionId: gone! };
  const heard = listenTo(db);
  await clearSessions(heard.db, of, new AbortController().signal);
  expect(heard.statements.length).toBeGreaterThan(SESSIONS / 1_000);
  expect(await deletedSubscriptions(db, organizationId)).toEqual([]);
  expect(await countDue()).toBe(1);
});
