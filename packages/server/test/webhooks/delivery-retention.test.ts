// Old deliveries are deleted, in batches, and only finished ones.
import sql from 'sql-template-tag';
import { v7 } from 'uuid';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { uuidOf } from '../../src/lib/ids.ts';
import { dropDeliveries, dropPending, subscriptionsWithDeliveries } from '../../src/webhooks/retention.ts';
import { listenTo } from '../support/plans.ts';
import { startTestService, type TestService } from '../support/service.ts';

const DAY_MS = 24 * 3600_000;

let service: TestService;
let organizationId: string;
/** Deliveries of an existing subscription, and of a deleted one. */
let subscriptions: [string, string];
beforeAll(async () => {
  // No dispatcher runs in this test.
  service = await startTestService({ config: { roles: new Set(['api']) } });
  organizationId = uuidOf('org', service.organizationId);
  const { webhookSubscription } = await service.client.webhookSubscriptions.create({
    environment: 'production',
    url: 'http://127.0.0.1:1/',
  });
  subscriptions = [uuidOf('whs', webhookSubscription.webhookSubscriptionId), v7()];
});
afterAll(() => service.stop());

interface Made {
  status: 'succeeded' | 'exhausted' | 'cancelled';
  daysOld: number;
  /** Whether it is to be sent again. */
  isAwaited?: boolean;
}

async function make(
  webhookSubscriptionId: string,
  { status, daysOld, isAwaited = false }: Made,
  count = 1,
): Promise<void> {
  const at = new Date(Date.now() - daysOld * DAY_MS);
  const ids = Array.from({ length: count }, () => v7({ msecs: at.getTime() }));
  await service.db.query(sql`
    insert into webhook_deliveries (organization_id, webhook_subscription_id, delivery_id, session_id, previous_cursor, from_turn,
      from_seq, to_turn, to_seq, chunk_types, occurred_at, status, attempts, attempt_count, next_attempt_at, created_at,
      finished_at)
    select o.organization_id, ${webhookSubscriptionId}::uuid, id, gen_random_uuid(), '', 0, 0, 1, 1, 's', ${at}::timestamptz,
      ${status}, '{}', 0, case when ${isAwaited} then now() + interval '1 hour' end, ${at}::timestamptz, ${at}::timestamptz
    from organizations o join unnest(${ids}::uuid[]) as made(id) on o.organization_id = ${organizationId}`);
}

/** Pending for 40 days. */
async function makePending(webhookSubscriptionId: string, count: number): Promise<void> {
  const ids = Array.from({ length: count }, () => v7({ msecs: Date.now() - 40 * DAY_MS }));
  await service.db.query(sql`
    insert into pending_deliveries (organization_id, webhook_subscription_id, delivery_id, session_id, previous_cursor, from_turn,
      from_seq, to_turn, to_seq, chunk_types, occurred_at, created_at)
    select o.organization_id, ${webhookSubscriptionId}::uuid, id, gen_random_uuid(), '', 0, 0, 1, 1, 's', now(), now()
    from organizations o join unnest(${ids}::uuid[]) as made(id) on o.organization_id = ${organizationId}`);
}

async function pending(): Promise<string[]> {
  const rows = await service.db.query<{ id: string }>(sql`
    select webhook_subscription_id as id from pending_deliveries where organization_id = ${organizationId}`);
  return rows.map(({ id }) => id);
}

async function left(webhookSubscriptionId: string): Promise<string[]> {
  const rows = await service.db.query<{ text: string }>(sql`
    select status || case when created_at < now() - interval '30 days' then ', old' else '' end
      || case when next_attempt_at is null then '' else ', awaited' end as text
    from webhook_deliveries where organization_id = ${organizationId}
      and webhook_subscription_id = ${webhookSubscriptionId} order by delivery_id`);
  return rows.map(({ text }) => text);
}

test('only deliveries that finished before the retention period are deleted, including those of deleted subscriptions', async () => {
  const [live, deleted] = subscriptions;
  for (const status of ['succeeded', 'exhausted', 'cancelled'] as const) {
    for (const daysOld of [29, 31]) await make(live, { status, daysOld });
  }
  await makePending(live, 1);
  await makePending(deleted, 1);
  await make(live, { status: 'succeeded', daysOld: 40, isAwaited: true });
  await make(deleted, { status: 'cancelled', daysOld: 31 });
  await make(deleted, { status: 'cancelled', daysOld: 1 });
  expect((await subscriptionsWithDeliveries(service.db, organizationId)).toSorted()).toEqual(subscriptions.toSorted());

  const node = await startTestService({ database: service.database, config: { roles: new Set(['runtime']) } });
  await expect.poll(() => left(deleted)).toEqual(['cancelled']);
  await expect.poll(() => left(live)).toHaveLength(4);
  await expect.poll(pending).toEqual([live]);
  expect((await left(live)).toSorted()).toEqual(['cancelled', 'exhausted', 'succeeded', 'succeeded, old, awaited']);
  await node.stop();
});

test('all of them are deleted, a thousand at a time, while others are deleted with their sessions', async () => {
  const [live, deleted] = subscriptions;
  const of = { organizationId, webhookSubscriptionId: deleted };
  const { signal } = new AbortController();
  const { db, statements } = listenTo(service.db);
  await make(deleted, { status: 'succeeded', daysOld: 400 }, 2_500);
  const before = new Date(Date.now() - 100 * DAY_MS);
  await service.db.transaction(async (tx) => {
    await tx.execute(sql`
      delete from webhook_deliveries d where d.organization_id = ${organizationId} and d.delivery_id in (
        select x.delivery_id from webhook_deliveries x
        where x.organization_id = ${organizationId} and x.webhook_subscription_id = ${deleted}
        order by x.delivery_id offset 400 limit 200)`);
    // Waits for none of them.
    await dropDeliveries(db, of, before, signal);
  });
  expect([statements.length, await left(deleted)]).toEqual([3, ['cancelled']]);
  await makePending(deleted, 1_200);
  await dropPending(db, of, signal);
  expect([statements.length, await pending()]).toEqual([5, [live]]);
});
