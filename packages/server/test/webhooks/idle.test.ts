// The cost of a poll depends on what is due, and an unreachable server of one organization does not affect the others.
import sql, { type Sql } from 'sql-template-tag';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import type { Db } from '../../src/db/db.ts';
import { createShards } from '../../src/db/shards.ts';
import { createDueSearch, SEARCH_PAGE_SIZE } from '../../src/deliveries/destinations/due-subscriptions.ts';
import { createDispatcher, type Dispatcher } from '../../src/deliveries/dispatcher.ts';
import { newUuid } from '../../src/lib/ids.ts';
import { installShards, shardedDb } from '../support/lost-server.ts';
import { costOf, listenTo } from '../support/plans.ts';
import { append, createWorld, status, type World } from '../support/webhooks.ts';

let world: World;
let dispatcher: Dispatcher | undefined;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(async () => {
  await dispatcher?.stop();
  dispatcher = undefined;
  await world.end();
});

/** Starts a dispatcher as another node on this database. */
async function start(db: Db, shards = createShards(db)): Promise<void> {
  const nodeId = newUuid();
  await world.db.query(sql`
    insert into nodes (node_id, lease_expires_at) values (${nodeId}, now() + interval '1 day')`);
  const platform = { ...world.platform, db, shards };
  dispatcher = createDispatcher(platform, { nodeId, version: '0.0.0', random: () => 0, graceMs: 0 });
  dispatcher.start();
}

async function areHeld(): Promise<boolean> {
  const free = await world.db.query(sql`select 1 from webhook_subscriptions where node_id is null`);
  return free.length === 0;
}

/** An organization with a subscription for its production environment. */
async function organization(url: string): Promise<string> {
  const id = newUuid();
  await world.db.batch([
    sql`insert into organizations (organization_id, name, created_at) values (${id}, 'Test', now())`,
    sql`
      insert into environments (organization_id, name, environment_id, created_at)
      values (${id}, 'production', ${newUuid()}, now())`,
  ]);
  await world.subscribe(url, {}, id);
  return id;
}

test('a poll of 200 idle subscriptions needs as many statements and rows as a poll of 10', async () => {
  const heard = listenTo(world.db);
  let count = 0;
  async function pollOf(subscriptions: number): Promise<Sql[]> {
    for (; count < subscriptions; count += 1) await organization('https://example.com/');
    await world.advanceUntil(areHeld);
    heard.statements.length = 0;
    const starts = () =>
      heard.statements.flatMap(({ text }, n) => (/from nodes w where w\.delivers/.test(text) ? n : []));
    // The work after the claims ends before the second poll.
    await world.advanceUntil(() => starts().length >= 4);
    return heard.statements.slice(starts()[2], starts()[3]);
  }
  await start(heard.db);
  const few = await pollOf(10);
  const many = await pollOf(200);
  expect(few.length).toBeGreaterThan(1);
  expect(many.map(({ text }) => text)).toEqual(few.map(({ text }) => text));
  const rowsOf = async (statements: readonly Sql[]) =>
    Promise.all(statements.map(async (one) => (await costOf(world.db, one, { asIfLarge: true })).rows));
  expect(await rowsOf(many)).toEqual(await rowsOf(few));
  // The node's own row in nodes.
  expect((await rowsOf(many)).reduce((sum, rows) => sum + rows, 0)).toBe(1);
});

test('a search finds subscriptions after one with a large backlog, by pages of a limited number of entries', async () => {
  const ids = [newUuid(), newUuid(), newUuid()].toSorted();
  const insert = (subscriptionId: string, sessions: number) => sql`
    insert into sessions (organization_id, session_id, agent_id, environment, status, close_on_idle, metadata, delivery_due,
      delivery_subscription_id, created_at, updated_at)
    select a.organization_id, gen_random_uuid(), a.agent_id, 'production', 'idle', false, '{}', true, ${subscriptionId}::uuid,
      now(), now() from agents a cross join generate_series(1, ${sessions}::int) where a.organization_id = ${world.organizationId}`;
  await world.db.batch([insert(ids[0]!, 20 * SEARCH_PAGE_SIZE), insert(ids[1]!, SEARCH_PAGE_SIZE), insert(ids[2]!, 1)]);
  const { db, statements } = listenTo(world.db);
  const shards = createShards(db);
  await shards.find([]);
  const before = statements.length;
  const search = createDueSearch(shards, world.clock);
  expect([...(await search())].toSorted()).toEqual(ids);
  expect(statements.length - before).toBeLessThanOrEqual(5);
  // The search starts from the beginning again.
  expect([...(await search())].toSorted()).toEqual(ids);
});

test.each(['fails', 'hangs'] as const)(
  'while the server of one organization %s, deliveries of another continue without wake-ups; its own follow afterwards',
  async (how) => {
    const receiver = await world.receiver();
    const [near, far] = [world.organizationId, world.strangerId];
    for (const id of [near, far]) await world.subscribe(receiver.url, {}, id);
    await installShards(world.db, [far]);
    const db = await shardedDb(world.db);
    await start(db, createShards(db, world.platform));
    await world.advanceUntil(areHeld);
    const sessions = [await world.session(), await world.session({ organizationId: far })];
    db.lose([far], how);
    onTestFinished(db.find);
    for (const session of sessions) await append(world, session, [status()], { isQuiet: true });
    const passUntil = (count: number) => world.clock.passUntil(() => receiver.received.length >= count);
    await passUntil(1);
    await append(world, sessions[0]!, [status()], { isQuiet: true });
    await passUntil(2);
    expect(new Set(receiver.received.map(({ envelope }) => envelope.sessionId)).size).toBe(1);
    db.find();
    await passUntil(3);
  },
);
