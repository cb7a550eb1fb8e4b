// Subscriptions are shared between the nodes that deliver, whenever these come and go.
import sql from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { newUuid } from '../../src/lib/ids.ts';
import { nodeFor } from '../../src/webhooks/sending/shares.ts';
import { append, createWorld, status, type TestSession, type World } from '../support/webhooks.ts';

const SUBSCRIPTIONS = 40;

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(() => world.end());

/** How many each node holds. */
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

test('each node of three has about a third, and one that leaves moves nothing between the others', () => {
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

test('a node that joins gets its share from one that lives, and one that leaves gives it back; every chunk arrives in order', async () => {
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
  // At 40 by chance, fewer than 8 or more than 32 would be one run in 20,000.
  await world.advanceUntil(async () => {
    await appendAll();
    const [a, b] = [(await countByNode()).get(first.nodeId) ?? 0, (await countByNode()).get(second.nodeId) ?? 0];
    return a + b === SUBSCRIPTIONS && b >= 8 && b <= 32;
  });
  await appendAll();
  // Nodes of tests stop without grace, which cuts off what is on its way.
  await delivered();
  await second.dispatcher.stop();
  await world.db.query(sql`delete from nodes where node_id = ${second.nodeId}`);
  await world.advanceUntil(async () => (await countByNode()).get(first.nodeId) === SUBSCRIPTIONS);
  await appendAll();
  await delivered();

  const bySession = Map.groupBy(receiver.received, ({ envelope }) => envelope.sessionId);
  expect(bySession.size).toBe(SUBSCRIPTIONS);
  for (const received of bySession.values()) {
    // Each follows the one that was acknowledged before it: nothing is missing, nothing comes twice.
    expect(received.map(({ previousCursor }) => previousCursor)).toEqual([
      '',
      ...received.slice(0, -1).map(({ envelope }) => envelope.cursor),
    ]);
  }
});

test('what a node that stops held is the share of others at once, though the node lives on', async () => {
  const receiver = await world.receiver();
  await world.subscribe(receiver.url);
  await world.subscribe(receiver.url, { environment: 'staging' });
  const first = await world.node();
  await world.advanceUntil(async () => (await countByNode()).get(first.nodeId) === 2);
  await first.dispatcher.stop();
  const ids = await world.db.query<{ id: string }>(
    sql`select webhook_subscription_id as id from webhook_subscriptions`,
  );
  // One of whom the subscriptions are no share while the first is counted.
  let nodeId = newUuid();
  while (ids.some(({ id }) => nodeFor(id, [first.nodeId, nodeId]) === nodeId)) nodeId = newUuid();
  await world.node({ nodeId });
  await world.advanceUntil(async () => (await countByNode()).get(nodeId) === 2);
});
