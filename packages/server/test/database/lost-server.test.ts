// On a sharded database, an unavailable server stops only the work of its own organizations, whether its statements fail or hang.
import { isDeepStrictEqual } from 'node:util';
import sql from 'sql-template-tag';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createAgent } from '../../src/agents/agents.ts';
import { beginning } from '../../src/journal/cursor.ts';
import { readJournalInfo } from '../../src/journal/read.ts';
import type { PoolContext } from '../../src/lib/context.ts';
import { newUuid, uuidOf } from '../../src/lib/ids.ts';
import { createUpkeep } from '../../src/maintenance.ts';
import { createSessionRunner } from '../../src/node/session-runner.ts';
import { createOrganization } from '../../src/organizations/organizations.ts';
import type { Platform } from '../../src/platform.ts';
import { createScheduler } from '../../src/schedules/scheduler.ts';
import { createSchedule } from '../../src/schedules/schedules.ts';
import { openSession } from '../../src/sessions/sessions.ts';
import { installShards, type ShardedDb, shardedDb } from '../support/lost-server.ts';
import { createManualClock, type ManualClock } from '../support/manual-clock.ts';
import { createTestPlatform, type TestPlatform } from '../support/platform.ts';
import { answering } from '../support/session-world.ts';
import { partsOf } from '../support/stream-parts.ts';

let clock: ManualClock;
let world: TestPlatform;
/** A node that gets no wake-ups and finds work only by polling; near and far are contexts of organizations on each server. */
let node: Platform;
let sharded: ShardedDb;
let near: PoolContext;
let far: PoolContext;
let stops: (() => Promise<void>)[];
beforeEach(async () => {
  clock = createManualClock();
  world = await createTestPlatform({ clock });
  near = await organization();
  far = await organization();
  await installShards(world.platform.db, [far.organizationId]);
  node = await world.anotherNode({
    over: async (db) => {
      sharded = await shardedDb(db);
      return sharded;
    },
  });
  stops = [];
});
afterEach(async () => {
  sharded.find();
  await clock.passWhile(Promise.all(stops.map((stop) => stop())));
  await clock.passWhile(world.close());
});

async function organization(): Promise<PoolContext> {
  const { organizationId } = await world.platform.db.transaction((tx) => createOrganization(tx, 'Other', clock.now()));
  return { ...world.ctx, organizationId };
}

async function open(ctx: PoolContext): Promise<string> {
  const { agent } = await createAgent(ctx, { name: 'Agent', model: 'scripted/test' });
  const { session } = await openSession(ctx, { agentId: agent.agentId, environment: 'production', input: 'go' });
  return uuidOf('ses', session.sessionId);
}

/** Resolves once `table` has this many rows of near, and of far, that meet a condition. */
async function until(table: string, condition: string, rows: { near: number; far: number }): Promise<void> {
  const count = async ({ organizationId }: PoolContext) => {
    const { rows } = await client.query(`select from ${table} where organization_id = $1 and ${condition}`, [
      organizationId,
    ]);
    return rows.length;
  };
  const client = await world.platform.db.connect();
  try {
    const counts = async () => ({ near: await count(near), far: await count(far) });
    await clock.passUntil(async () => isDeepStrictEqual(await counts(), rows));
  } finally {
    await client.end();
  }
}

function run({ start, stop }: { start(): unknown; stop(): Promise<void> }): Promise<unknown> {
  stops.push(stop);
  return clock.passWhile(Promise.resolve(start()));
}

function worker() {
  const tools = { list: async () => ({ tools: [], unavailable: [] }), run: async () => ({ output: null }) };
  return createSessionRunner(node, { nodeId: newUuid(), tools, ask: answering([{ text: 'ok' }]), graceMs: 0 });
}

describe.each(['fails', 'hangs'] as const)('while a server %s,', (how) => {
  const lose = () => sharded.lose([far.organizationId], how);

  /** The node knows the organizations: it has polled once. */
  async function losing(): Promise<void> {
    await node.shards.query('look', (within) => sql`select 1 from organizations where true ${within()}`);
    lose();
  }

  test('sessions of the others are claimed, and its own when it is back', async () => {
    for (const ctx of [near, far]) await open(ctx);
    await losing();
    await run(worker());
    await until('sessions', "status = 'idle'", { near: 1, far: 0 });
    sharded.find();
    await until('sessions', "status = 'idle'", { near: 1, far: 1 });
  });

  test('sessions of a dead node are taken over for the others', async () => {
    for (const ctx of [near, far]) await open(ctx);
    await world.platform.db.execute(sql`
      update sessions set node_id = ${newUuid()}, epoch = epoch + 1
      where organization_id = any(${[near.organizationId, far.organizationId]}::uuid[])`);
    await losing();
    await run(worker());
    await until('sessions', "status = 'idle'", { near: 1, far: 0 });
  });

  test('a node keeps its active sessions of both', async () => {
    for (const ctx of [near, far]) await open(ctx);
    const proceed = Promise.withResolvers<void>();
    let asked = 0;
    const tools = { list: async () => ({ tools: [], unavailable: [] }), run: async () => ({ output: null }) };
    const ask: typeof answering extends (...args: never) => infer A ? A : never = async function* (...args) {
      asked += 1;
      await proceed.promise;
      yield* answering([{ text: 'ok' }])(...args);
    };
    await run(createSessionRunner(node, { nodeId: newUuid(), tools, ask, graceMs: 0 }));
    await clock.passUntil(() => asked === 2);
    lose();
    const before = sharded.tries();
    // Checks its active sessions repeatedly.
    await clock.passUntil(() => sharded.tries() - before > 5);
    sharded.find();
    proceed.resolve();
    await until('sessions', "status = 'idle'", { near: 1, far: 1 });
    expect(asked).toBe(2);
  });

  test('event records of the others are sequenced, and expired data is deleted', async () => {
    for (const ctx of [near, far]) await createAgent(ctx, { name: 'Agent', model: 'scripted/test' });
    await world.platform.db.execute(sql`
      insert into idempotency_records (organization_id, caller_id, idempotency_key, fingerprint, expires_at)
      select o.organization_id, o.organization_id, 'old', '', ${clock.now()} from organizations o
      where o.organization_id = any(${[near.organizationId, far.organizationId]}::uuid[])`);
    await losing();
    await run(createUpkeep(node, { eventsKeptDays: 1, deliveriesKeptDays: 1, filesKeptDays: 30 }));
    await until('events_pending', 'true', { near: 0, far: 1 });
    await until('idempotency_records', 'true', { near: 0, far: 1 });
    sharded.find();
    await until('events_pending', 'true', { near: 0, far: 0 });
    await until('idempotency_records', 'true', { near: 0, far: 0 });
  });

  test('schedules of the others run', async () => {
    const at = new Date(clock.now().getTime() + 60_000).toISOString();
    for (const ctx of [near, far]) {
      const { agent } = await createAgent(ctx, { name: 'Agent', model: 'scripted/test' });
      await createSchedule(ctx, { agentId: agent.agentId, environment: 'production', input: 'go', at });
    }
    await losing();
    await run(createScheduler(node));
    await clock.advance(60_000);
    await until('sessions', 'true', { near: 1, far: 0 });
    sharded.find();
    await until('sessions', 'true', { near: 1, far: 1 });
  });

  test('streams of the others find chunks without a wake-up', async () => {
    const sessions = [];
    for (const ctx of [near, far]) sessions.push({ ctx, sessionId: await open(ctx) });
    const over = new AbortController();
    const heads = await Promise.all(
      sessions.map(({ ctx, sessionId }) => readJournalInfo(world.platform.db, ctx.organizationId, sessionId)),
    );
    const [stream, other] = heads.map((head) => partsOf(node.live.follow(head, beginning), over.signal));
    for (const one of [stream!, other!]) expect((await one.next()).done).toBe(false);
    const next = [stream!.next(), other!.next()];
    await losing();
    await world.platform.db.execute(sql`
      with s as (
        insert into segments as g (organization_id, session_id, turn, seq_to, seq_from, body, created_at)
        select s.organization_id, s.session_id, s.turn, s.next_seq, s.next_seq, '["x"]', now() from sessions s
        where s.organization_id = ${near.organizationId} returning g.seq_to)
      update sessions set next_seq = s.seq_to + 1 from s where sessions.organization_id = ${near.organizationId}`);
    expect((await clock.passWhile(next[0]!)).value?.json).toContain('"x"');
    over.abort();
    await Promise.all(next);
  });
});
