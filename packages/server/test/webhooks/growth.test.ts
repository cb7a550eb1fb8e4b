// What deliveries cost: the size of a row that is stored for weeks, and what a page of them reads.
import sql, { type Sql } from 'sql-template-tag';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Db } from '../../src/db/db.ts';
import { type Delivery, type FinishedDelivery, newDelivery } from '../../src/deliveries/delivery.ts';
import { type Assignment, claimSubscriptions, findClaimable } from '../../src/deliveries/destinations/assignments.ts';
import { advanceMany } from '../../src/deliveries/progress.ts';
import type { StoredAttempt } from '../../src/deliveries/stored-attempt.ts';
import type { Context } from '../../src/lib/context.ts';
import { newUuid } from '../../src/lib/ids.ts';
import { listDeliveries } from '../../src/webhooks/deliveries.ts';
import { countingUse } from '../support/table-use.ts';
import { contentOf, createWorld, type World } from '../support/webhooks.ts';

const SESSIONS = 200;
const DELIVERIES_OF_EACH = 50;
// The promise is 1 kB; this leaves room for a longer response of the receiver.
const MAX_BYTES = 768;

let world: World;
let assignment: Assignment;
beforeAll(async () => {
  world = await createWorld();
  await world.db.query(sql`alter table sessions set (autovacuum_enabled = false)`);
  await world.subscribe('https://example.com/');
  const nodeId = newUuid();
  await world.db.query(sql`
    insert into nodes (node_id, lease_expires_at) values (${nodeId}, now() + interval '1 hour')`);
  [assignment] = (await claimSubscriptions(
    world.platform,
    nodeId,
    (
      await findClaimable(world.platform, nodeId)
    ).rows,
  )) as [Assignment];
  const ids = Array.from({ length: SESSIONS }, () => newUuid());
  await world.db.query(sql`
    insert into sessions (organization_id, session_id, agent_id, environment, status, turn, next_seq, close_on_idle, metadata,
      delivery_due, delivery_subscription_id, delivered_turn, created_at, updated_at)
    select a.organization_id, id, a.agent_id, 'production', 'idle', 1, 1000, false, '{}', true,
      ${assignment.webhookSubscriptionId}::uuid, 1, now(), now()
    from agents a join unnest(${ids}::uuid[]) as made(id) on true where a.organization_id = ${world.organizationId}`);
  let done: (FinishedDelivery | undefined)[] = ids.map(() => undefined);
  for (let seq = 0; seq < DELIVERIES_OF_EACH; seq += 1) {
    const inputs = ids.map((sessionId, n) => {
      const next = deliveryOf(sessionId, seq);
      return { epoch: assignment.epoch, after: next.from, next, done: done[n] };
    });
    expect(await advanceMany(world.db, assignment, inputs, world.clock.now())).toEqual(ids.map(() => true));
    done = inputs.map(({ next }) => ({ delivery: next, attempts: [accepted()], through: next.to }));
  }
  await advanceMany(
    world.db,
    assignment,
    done.map((one) => ({ done: one! })),
    world.clock.now(),
  );
});
afterAll(() => world.end());

function deliveryOf(sessionId: string, seq: number): Delivery {
  const previousCursor = seq === 0 ? '' : `turn_1:seq_${seq}`;
  return newDelivery(sessionId, contentOf(assignment, seq, world.clock.now()), previousCursor);
}

/** An attempt with response 200, as attempt.ts stores it. */
function accepted(): StoredAttempt {
  return {
    attempt: 1,
    at: world.clock.now().toISOString(),
    durationMs: 12,
    status: 200,
    error: null,
    responseBody: '{"ok":true}',
    secretVersion: 1,
    sent: { hex: 'ab'.repeat(32), standard: `v1,${'A'.repeat(43)}=`, version: '0.1.0' },
  };
}

test('acknowledging deliveries does not read all sessions for each, also if the database has no statistics', async () => {
  const rows = await world.db.query<{ id: string }>(sql`select session_id as id from sessions order by session_id`);
  const ids = rows.map(({ id }) => id);
  for (let seq = DELIVERIES_OF_EACH; seq < DELIVERIES_OF_EACH + 8; seq += 1) {
    const db = countingUse(world.db, ['sessions']);
    const next = ids.map((id) => deliveryOf(id, seq));
    const inputs = next.map((one) => ({ epoch: assignment.epoch, after: one.from, next: one, done: undefined }));
    expect(await advanceMany(db, assignment, inputs, world.clock.now())).toEqual(ids.map(() => true));
    const done = next.map((delivery) => ({ done: { delivery, attempts: [accepted()], through: delivery.to } }));
    expect(await advanceMany(db, assignment, done, world.clock.now())).toEqual(ids.map(() => true));
    // Versions of a row that vacuum has not removed are counted as well.
    expect(db.uses.reduce((sum, { sessions }) => sum + sessions.read, 0)).toBeLessThan((SESSIONS * SESSIONS) / 2);
  }
});

test('an accepted delivery takes less than 1 kB including its indexes', async () => {
  const [{ count, bytes } = { count: 0, bytes: 0 }] = await world.db.query<{ count: number; bytes: number }>(sql`
    select (select count(*)::int from webhook_deliveries where status = 'succeeded') as count,
      pg_total_relation_size('webhook_deliveries')::int as bytes`);
  expect(count).toBeGreaterThanOrEqual(SESSIONS * DELIVERIES_OF_EACH);
  expect(bytes / count).toBeLessThanOrEqual(MAX_BYTES);
});

test.each(['pending', 'exhausted', 'cancelled'] as const)(
  'a page of %s deliveries reads few rows, however many were accepted after them',
  async (status) => {
    // Older than all the accepted ones.
    const deliveryId = '00000000-0000-7000-8000-000000000001';
    const [table, more, values] =
      status === 'pending'
        ? [sql`pending_deliveries`, sql`created_at`, sql`now()`]
        : [
            sql`webhook_deliveries`,
            sql`created_at, status, attempts, attempt_count, finished_at`,
            sql`now(), ${status}, '{}', 0, now()`,
          ];
    await world.db.query(sql`
      insert into ${table} (organization_id, webhook_subscription_id, delivery_id, session_id, previous_cursor, from_turn, from_seq,
        to_turn, to_seq, chunk_types, occurred_at, ${more})
      select o.organization_id, ${assignment.webhookSubscriptionId}::uuid, ${deliveryId}::uuid, gen_random_uuid(), '', 1, 0, 1, 1, 's',
        now(), ${values}
      from organizations o where o.organization_id = ${world.organizationId}
      on conflict do nothing`);
    await world.db.query(sql`analyze webhook_deliveries, pending_deliveries`);
    const { page, rowsRead } = await rowsReadBy((context) =>
      listDeliveries(context, { env: 'production', status, limit: 100 }),
    );
    expect(page.data.map((delivery) => delivery.status)).toEqual([status]);
    expect(rowsRead).toBeLessThan(10);
    await world.db.query(sql`delete from ${table} where delivery_id = ${deliveryId}`);
  },
);

/** The number of delivery rows that statements read, including those that a condition then removed. */
async function rowsReadBy<T>(act: (context: Context) => Promise<T>): Promise<{ page: T; rowsRead: number }> {
  const explained: Sql[] = [];
  const { db } = world;
  const listening: Db = {
    ...db,
    query: (statement) => {
      explained.push(statement as Sql);
      return db.query(statement);
    },
  };
  const page = await act({ ...world.context(), db: listening });
  let rowsRead = 0;
  for (const statement of explained) {
    const [row] = await db.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(
      sql`explain (analyze, format json) ${statement}`,
    );
    rowsRead += rowsOf(row!['QUERY PLAN'][0].Plan);
  }
  return { page, rowsRead };
}

interface PlanNode {
  'Relation Name'?: string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  Plans?: PlanNode[];
}

function rowsOf(node: PlanNode): number {
  const own = /deliveries/.test(node['Relation Name'] ?? '')
    ? (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops']
    : 0;
  return own + (node.Plans ?? []).reduce((sum, inner) => sum + rowsOf(inner), 0);
}
