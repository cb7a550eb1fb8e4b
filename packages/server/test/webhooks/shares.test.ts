// Subscriptions are distributed among the delivery nodes, whenever nodes join and leave.
import sql from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { nodeFor } from '../../src/deliveries/destinations/shares.ts';
import { newUuid } from '../../src/lib/ids.ts';
import { append, createWorld, status, type TestSession, type World } from '../support/webhooks.ts';

const SUBSCRIPTIONS = 40;

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(() => world.end());

/** How many subscriptions are assigned to each node. */
async function countByNode(): Promise<Map<string, number>> {
  const rows = await world.db.query<{ id: string; count: number }>(sql`
    select node_id as id, count(*)::int as count from webhook_subscriptions where node_id is not null group by 1`);
  return new Map(rows.map(({ id, count }) => [id, count]));
}

async function delivered(): Promise<void> {
  await world.advanceUntil(async () => {
    const due = await world.db.query(sql`select 1 from sessions where delivery_due`);
    return due.length === 0;
  });
}

test('each of three nodes has about a third, and when one leaves nothing moves between the others', () => {
  const nodes = [newUuid(), newUuid(), newUuid()];
  const ids = Array.from({ length: 3_000 }, () => newUuid());
  const before = ids.map((id) => nodeFor(id, nodes));
  for (const node of nodes) {
    const share = before.filter((one) => one === node).length;
    expect(share).toBeGreaterThan(800);
    expect(share).toBeLessThan(1_200);
  }
  const after = ids.map((id) => nodeFor(id, nodes.slice(1)));
  expect(after.filter((node, n) => node !== before[n] && before[n] !== nodes[0])).toEqual([]);
});

test('a joining node gets its share from a live one, and a leaving node returns it; every chunk arrives in order', async () => {
  const receiver = await world.receiver();
  const sessions: TestSession[] = [];
  for (let n = 0; n < SUBSCRIPTIONS; n += 1) {
    const environment = `e${n}`;
    await world.db.query(sql`
      insert into environments (organization_id, name, environment_id, created_at)
      values (${world.organizationId}, ${environment}, ${newUuid()}, now())`);
    await world.subscribe(receiver.url, { environment });
    sessions.push(await world.session({ environment }));
  }
  const appendAll = () => Promise.all(sessions.map((session) => append(world, session, [status()])));
  const first = await world.node();
  await world.advanceUntil(async () => (await countByNode()).get(first.nodeId) === SUBSCRIPTIONS);
  await appendAll();

  const second = await world.node();
  // With 40 subscriptions, fewer than 8 or more than 32 happen by chance in one of 20,000 runs.
  await world.advanceUntil(async () => {
    await appendAll();
    const [a, b] = [(await countByNode()).get(first.nodeId) ?? 0, (await countByNode()).get(second.nodeId) ?? 0];
    return a + b === SUBSCRIPTIONS && b >= 8 && b <= 32;
  });
  await appendAll();
  // Nodes of tests stop without a grace period, which aborts deliveries in flight.
  await delivered();
  await second.dispatcher.stop();
  await world.db.query(sql`delete from nodes where node_id = ${second.nodeId}`);
  await world.advanceUntil(async () => (await countByNode()).get(first.nodeId) === SUBSCRIPTIONS);
  await appendAll();
  await delivered();

  const bySession = Map.groupBy(receiver.received, ({ envelope }) => envelope.sessionId);
  expect(bySession.size).toBe(SUBSCRIPTIONS);
  for (const received of bySession.values()) {
    // Each delivery follows the one that was acknowledged before it: nothing is missing or repeated.
    expect(received.map(({ previousCursor }) => previousCursor)).toEqual([
      '',
      ...received.slice(0, -1).map(({ envelope }) => envelope.cursor),
    ]);
  }
});

test('the share of a stopping node moves to others at once, while its lease is still valid', async () => {
  const receiver = await world.receiver();
  await world.subscribe(receiver.url);
  await world.subscribe(receiver.url, { environment: 'staging' });
  const first = await world.node();
  await world.advanceUntil(async () => (await countByNode()).get(first.nodeId) === 2);
  await first.dispatcher.stop();
  const ids = await world.db.query<{ id: string }>(
    sql`select webhook_subscription_id as id from webhook_subscriptions`,
  );
  // A node that gets neither subscription while the first node counts.
  let nodeId = newUuid();
  while (ids.some(({ id }) => nodeFor(id, [first.nodeId, nodeId]) === nodeId)) nodeId = newUuid();
  await world.node({ nodeId });
  await world.advanceUntil(async () => (await countByNode()).get(nodeId) === 2);
});
