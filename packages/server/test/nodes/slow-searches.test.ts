// During a long transaction, such as a backup, searches are slow and therefore repeated less often. Here a search is not repeated at
// all: what a node can read by its key, or was notified of, does not wait for it.
import sql, { type Sql } from 'sql-template-tag';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { DatabaseUnavailable, type Db, type Tx } from '../../src/db/db.ts';
import { createShards } from '../../src/db/shards.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { newUuid, uuidOf } from '../../src/lib/ids.ts';
import { createDeadNodeSearch } from '../../src/node/claims/dead-nodes.ts';
import type { Platform } from '../../src/platform.ts';
import { cancelSession } from '../../src/sessions/end-session.ts';
import { sendMessage } from '../../src/sessions/messages.ts';
import { childOf, openFamily } from '../support/family.ts';
import { answering, byModel, createWorld, hanging, is, queryingBy, type World } from '../support/session-world.ts';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(() => world.close());

type Query = Platform['shards']['query'];

interface Slow {
  platform: Platform;
  /** Resolves when it has searched. */
  first: Promise<void>;
  /** How often it has searched. */
  count: () => number;
}

/** Each search for this takes a second, so the next is due after 15 s, which do not pass. */
function slowAt(what: string, platform: Platform): Slow {
  const first = Promise.withResolvers<void>();
  let elapsedMs = 0;
  const query: Query = async (named, ...rest) => {
    if (named !== what) return platform.shards.query(named, ...rest);
    const found = await platform.shards.query<never>(named, ...rest);
    elapsedMs += 1_000;
    first.resolve();
    return found;
  };
  const clock = { ...systemClock, elapsedMs: () => elapsedMs };
  const shards = { ...platform.shards, query };
  return { platform: { ...platform, clock, shards }, first: first.promise, count: () => elapsedMs / 1_000 };
}

test('the sessions of a node that dies are taken over', async () => {
  const { platform, first, count } = slowAt('looking for dead nodes', await world.anotherNode());
  await world.work({ platform, ask: answering([{ text: 'here' }]) });
  await first;
  const begun = Promise.withResolvers<void>();
  const dying = await world.work({ ask: hanging('half', begun.resolve) });
  const sessionId = await world.open(await world.agent());
  await begun.promise;
  await world.expireLease(dying.nodeId);
  await world.until(sessionId, is('idle'));
  expect(count()).toBe(1);
});

test('a node that renews its lease is no longer dead', async () => {
  const { platform, count } = slowAt('looking for dead nodes', world.platform);
  const [nodeId, own] = [newUuid(), newUuid()];
  const setLease = (id: string, end: string) =>
    world.platform.db.query(sql`
      insert into nodes as w (node_id, lease_expires_at) values (${id}, now() + ${end}::interval)
      on conflict (node_id) do update set lease_expires_at = excluded.lease_expires_at`);
  const sessionId = await world.open(await world.agent());
  await world.platform.db.query(sql`
    update sessions set node_id = ${nodeId}
    where organization_id = ${world.organizationId} and session_id = ${uuidOf('ses', sessionId)}`);
  const findDeadNodes = createDeadNodeSearch(platform, own);
  await setLease(own, '-1 second');
  expect(await findDeadNodes()).toEqual([nodeId]);
  // Its lease was removed.
  expect(await findDeadNodes()).toEqual([nodeId]);
  await setLease(nodeId, '1 minute');
  expect(await findDeadNodes()).toEqual([]);
  await setLease(nodeId, '-1 second');
  expect(await findDeadNodes()).toEqual([nodeId]);
  // It has been dead for long, but no search has found that no session names it.
  await setLease(nodeId, '-1 hour');
  expect(await findDeadNodes()).toEqual([nodeId]);
  expect(count()).toBe(1);
});

test('rows of nodes that died more than a day ago are deleted, once a minute', async () => {
  const { db } = world.platform;
  let elapsedMs = 0;
  const clock = { ...systemClock, elapsedMs: () => elapsedMs };
  const findDeadNodes = createDeadNodeSearch({ ...world.platform, clock }, newUuid());
  const died = async (end: string) => {
    await db.query(sql`insert into nodes (node_id, lease_expires_at) values (${newUuid()}, now() + ${end}::interval)`);
    await findDeadNodes();
    return db.execute(sql`select 1 from nodes where lease_expires_at < now()`);
  };
  expect(await died('-25 hours')).toBe(0);
  expect(await died('-25 hours')).toBe(1);
  elapsedMs = 59_999;
  expect(await died('-23 hours')).toBe(2);
  elapsedMs = 60_000;
  expect(await died('-25 hours')).toBe(1);
});

test('a session cancelled on another node aborts its model, even if the wake-up is lost', async () => {
  const { platform, first, count } = slowAt('looking for sessions of this node', await world.anotherNode());
  const aborted = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  await world.work({
    platform,
    ask(call, signal) {
      signal.addEventListener('abort', () => aborted.resolve());
      return hanging('', begun.resolve)(call, signal);
    },
  });
  const sessionId = await world.open(await world.agent());
  await begun.promise;
  await first;
  // Wake-ups of the world's own node reach no other.
  await cancelSession(world.ctx, { sessionId });
  await aborted.promise;
  expect(count()).toBe(1);
});

describe('a session whose claim was committed continues, although the response was lost after the search', () => {
  /** A node that has searched for its own sessions. The response to its first claim is lost after `claimed`. */
  async function start(claimed: () => Promise<void>): Promise<Slow> {
    const node = await world.anotherNode();
    let isLost = false;
    const db: Db = {
      ...node.db,
      async query<Row>(statement: Sql) {
        const rows = await node.db.query<Row>(statement);
        if (isLost || rows.length === 0 || !statement.text.includes('update sessions s set epoch')) return rows;
        isLost = true;
        await claimed();
        throw new DatabaseUnavailable(new Error('Connection terminated unexpectedly'), true);
      },
    };
    const slow = slowAt('looking for sessions of this node', { ...node, db, shards: createShards(db) });
    await world.work({ platform: slow.platform, ask: answering([{ text: 'here' }]) });
    await slow.first;
    return slow;
  }

  test('after the next search', async () => {
    const { count } = await start(async () => {});
    const sessionId = await world.open(await world.agent());
    await world.until(sessionId, is('idle'));
    expect(count()).toBe(2);
  });

  test('after its row was locked when that search found it', async () => {
    const { db } = world.platform;
    const locked = Promise.withResolvers<void>();
    const unlock = Promise.withResolvers<void>();
    let locking: Promise<void> | undefined;
    const { count } = await start(() => {
      locking = db.transaction(async (tx) => {
        await tx.query(sql`select 1 from sessions where organization_id = ${world.organizationId} for update`);
        locked.resolve();
        await unlock.promise;
      });
      return locked.promise;
    });
    const sessionId = await world.open(await world.agent());
    await expect.poll(count).toBe(3);
    unlock.resolve();
    await locking;
    await world.until(sessionId, is('idle'));
  });
});

test('a session whose next turn starts on its node continues, although its transcript can’t be read at once', async () => {
  const { platform, first, count } = slowAt('looking for sessions of this node', world.platform);
  let isBroken = false;
  const breaking = queryingBy(platform, async ({ text }) => {
    if (!text.includes('from messages') || isBroken) return;
    isBroken = true;
    throw new DatabaseUnavailable(new Error('Connection terminated unexpectedly'));
  });
  await world.work({ platform: breaking, ask: answering([{ text: 'here' }]) });
  const sessionId = await world.open(await world.agent());
  await world.until(sessionId, is('idle', 1));
  await first;
  await sendMessage(world.ctx, { sessionId, content: 'more' });
  await world.until(sessionId, is('idle', 2));
  expect(isBroken).toBe(true);
  expect(count()).toBe(2);
});

describe('the end of a child session reaches its parent', () => {
  const ask = byModel({
    parent: answering([{ calls: [['helper', { input: 'help' }]] }, { text: 'Done' }]),
    child: hanging('Hm'),
  });

  /** A parent whose node searches no more, and its child. */
  async function family({ platform, first }: Slow): Promise<{ sessionId: string; childId: string }> {
    await world.work({ platform, ask });
    const sessionId = await openFamily(world);
    const { sessionId: childId } = await childOf(world, sessionId);
    await world.until(sessionId, is('waiting'));
    await first;
    return { sessionId, childId };
  }

  test('after a wake-up', async () => {
    const slow = slowAt('looking for ended child sessions', world.platform);
    const { sessionId, childId } = await family(slow);
    await cancelSession(world.ctx, { sessionId: childId });
    await world.until(sessionId, is('idle'));
    expect(slow.count()).toBe(1);
  });

  test('if reading the child and reporting it fail once each', async () => {
    let broken = 0;
    const breakOnce = (statement: Sql, text: string) => {
      if (!statement.text.includes(text) || broken >= 2) return;
      broken += 1;
      throw new Error('deadlock detected');
    };
    const { db } = world.platform;
    const breaking: Db = {
      ...db,
      async query<Row>(statement: Sql) {
        breakOnce(statement, 'x.parent_due');
        return db.query<Row>(statement);
      },
      transaction: (act) =>
        db.transaction((tx) => {
          const query: Tx['query'] = async (statement) => {
            breakOnce(statement, 'set parent_due = false');
            return tx.query(statement);
          };
          return act({ ...tx, query });
        }),
    };
    const shards = createShards(breaking);
    const slow = slowAt('looking for ended child sessions', { ...world.platform, db: breaking, shards });
    const { sessionId, childId } = await family(slow);
    await cancelSession(world.ctx, { sessionId: childId });
    await world.until(sessionId, is('idle'));
    expect(broken).toBe(2);
    expect(slow.count()).toBe(1);
  });

  test('by a search, if any wake-up may have been lost', async () => {
    const platform = await world.anotherNode();
    const slow = slowAt('looking for ended child sessions', platform);
    const { sessionId, childId } = await family(slow);
    // Wake-ups of the world's own node reach no other.
    await cancelSession(world.ctx, { sessionId: childId });
    platform.wake.publish('child', undefined as never);
    await world.until(sessionId, is('idle'));
    expect(slow.count()).toBe(2);
  });
});
