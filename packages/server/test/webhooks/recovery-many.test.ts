// A recovery since a time, with very many sessions that have no chunk since then.
import sql, { type Sql } from 'sql-template-tag';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Db } from '../../src/db/db.ts';
import { readAssignment } from '../../src/deliveries/destinations/assignments.ts';
import { rewindDeliveries } from '../../src/deliveries/rewind.ts';
import { recoverDeliveries } from '../../src/webhooks/recovery.ts';
import { costOf } from '../support/plans.ts';
import { append, createWorld, status, type TestSession, type World } from '../support/webhooks.ts';

const MANY = 20_000;
const production = { env: 'production' };

let world: World;
beforeAll(async () => {
  world = await createWorld();
});
afterAll(() => world.end());

/** Inserts sessions that ended at this time, with one segment each. */
async function endMany(environment: string, endedAt: Date): Promise<void> {
  await world.db.query(sql`
    with e as (
      insert into sessions (organization_id, session_id, agent_id, environment, status, turn, next_seq, close_on_idle, metadata,
        created_at, updated_at, ended_at)
      select ${world.organizationId}, ('019aaaaa-0000-7000-8000-' || right(md5(${environment} || n), 12))::uuid,
        ${world.organizationId}, ${environment}, 'completed', 1, 2, true, '{}', ${endedAt}, ${endedAt}, ${endedAt}
      from generate_series(1, ${MANY}::int) n
      on conflict do nothing returning organization_id, session_id, ended_at)
    insert into segments (organization_id, session_id, turn, seq_to, seq_from, body, created_at)
    select organization_id, session_id, 1, 1, 1, '["a"]', ended_at from e`);
}

async function end(session: TestSession): Promise<void> {
  await append(world, session, [status('completed')]);
  await world.db.query(sql`
    update sessions set status = 'completed', ended_at = ${world.clock.now()} where session_id = ${session.sessionId}`);
}

/** Marks everything as delivered. */
async function deliver(organizationId: string): Promise<void> {
  await world.db.query(sql`
    update sessions set delivery_due = false, delivered_turn = turn, delivered_seq = next_seq - 1
    where organization_id = ${organizationId} and environment = 'production'`);
}

test('reads only the sessions of its environment that are open or ended since then, and none of 40,000 others', async () => {
  const receiver = await world.receiver();
  await world.subscribe(receiver.url);
  await endMany('production', world.clock.now());
  const idle = await world.session();
  await append(world, idle, [status('idle')]);
  const ending = await Promise.all(Array.from({ length: 23 }, () => world.session()));
  const [open, endsMeanwhile] = [await world.session(), await world.session()];
  for (const session of [...ending, open, endsMeanwhile]) await append(world, session, [status()]);
  await world.clock.advance(60_000);
  const since = world.clock.now();
  await endMany('staging', since);
  for (const session of ending) await end(session);
  for (const session of [open, endsMeanwhile]) await append(world, session, [status()]);
  await deliver(world.organizationId);
  await world.db.query(sql`analyze sessions, segments`);
  await world.clock.advance(60_000);
  await recoverDeliveries(world.context(), { ...production, since: since.toISOString() });

  const assignment = (await readAssignment(world.platform, world.organizationId, 'production'))!;
  const read: Sql[] = [];
  const listening: Db = {
    ...world.db,
    transaction: (work) =>
      world.db.transaction((tx) =>
        work({
          ...tx,
          query: (statement: Sql) => {
            if (statement.text.includes(' k(status)') || statement.text.includes('from segments')) read.push(statement);
            return tx.query(statement);
          },
        } as typeof tx),
      ),
  };
  const taken: string[] = [];
  for (let isOver = false; !isOver; ) {
    const page = await rewindDeliveries(listening, assignment, 10, world.clock.now());
    taken.push(...page.sessionIds);
    isOver = page.isOver;
    // After the open sessions were read, and before the ended ones are.
    if (endsMeanwhile.seq === 2) await end(endsMeanwhile);
  }
  expect(taken).not.toContain(idle.sessionId);
  expect(new Set(taken)).toEqual(new Set([...ending, open, endsMeanwhile].map(({ sessionId }) => sessionId)));
  // One page of open sessions, three pages of ended ones, and the positions for each page with sessions.
  expect(read).toHaveLength(8);
  for (const statement of read) {
    const { rows, pages } = await costOf(world.db, statement);
    expect({ rows, isFew: rows < 300 && pages < 600 }).toMatchObject({ isFew: true });
  }
});

test('finds a session that ends after the recovery began and before its page was read', async () => {
  const receiver = await world.receiver();
  const organizationId = world.strangerId;
  await world.subscribe(receiver.url, {}, organizationId);
  const sessions = await Promise.all(Array.from({ length: 4 }, () => world.session({ organizationId })));
  for (const session of sessions) await append(world, session, [status()]);
  await deliver(organizationId);
  const since = world.clock.now().toISOString();
  await world.clock.advance(1_000);
  await recoverDeliveries(world.context(organizationId), { ...production, since });
  const assignment = (await readAssignment(world.platform, organizationId, 'production'))!;
  const ids = sessions.map(({ sessionId }) => sessionId).sort();
  expect((await rewindDeliveries(world.db, assignment, 2, world.clock.now())).sessionIds).toEqual(ids.slice(0, 2));
  for (const session of sessions) if (ids.indexOf(session.sessionId) >= 2) await end(session);
  const rest: string[] = [];
  for (let isOver = false; !isOver; ) {
    const page = await rewindDeliveries(world.db, assignment, 2, world.clock.now());
    rest.push(...page.sessionIds);
    isOver = page.isOver;
  }
  expect(rest.sort()).toEqual(ids.slice(2));
});
