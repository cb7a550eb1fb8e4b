// What a node claims, and the cost of finding and loading it, are bounded by its room, however much waits.
import { randomBytes } from 'node:crypto';
import sql, { type Sql } from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createAgent } from '../../src/agents/agents.ts';
import type { Db } from '../../src/db/db.ts';
import { newUuid, uuidOf } from '../../src/lib/ids.ts';
import { hintedCandidates, readyCandidates, timedCandidates } from '../../src/node/claims/candidates.ts';
import { createSessionRunner, type SessionRunner, type SessionRunnerOptions } from '../../src/node/session-runner.ts';
import { createOrganization } from '../../src/organizations/organizations.ts';
import type { Platform } from '../../src/platform.ts';
import { EVERYTHING } from '../../src/session-rows/share.ts';
import { openSession } from '../../src/sessions/sessions.ts';
import { idle } from '../support/idle.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { answering, createWorld, never, type World } from '../support/session-world.ts';

let world: World;
let workers: SessionRunner[];
beforeEach(async () => {
  world = await createWorld();
  workers = [];
});
afterEach(async () => {
  await Promise.all(workers.map((worker) => worker.stop()));
  await world.close();
});

const FIRST = '00000000-0000-0000-0000-000000000000';

async function work(platform: Platform, options: Partial<SessionRunnerOptions>): Promise<string> {
  const nodeId = newUuid();
  const tools = { list: async () => ({ tools: [], unavailable: [] }), run: async () => ({ output: null }) };
  const worker = createSessionRunner(platform, {
    nodeId,
    tools,
    ask: answering([{ text: 'ok' }]),
    graceMs: 0,
    ...options,
  });
  workers.push(worker);
  await worker.start();
  return nodeId;
}

/** A running session of its own organization, which no node has claimed. */
async function openElsewhere(): Promise<{ organizationId: string; sessionId: string }> {
  const { organizationId } = await world.platform.db.transaction((tx) => createOrganization(tx, 'Other', new Date()));
  const ctx = { ...world.ctx, organizationId };
  const { agent } = await createAgent(ctx, { name: 'Agent', model: 'scripted/test' });
  const { session } = await openSession(ctx, { agentId: agent.agentId, environment: 'production', input: 'go' });
  return { organizationId, sessionId: uuidOf('ses', session.sessionId) };
}

/** As if a node had run them all when it died; with null, when it stopped. */
async function assignToDeadNode(
  organizationIds: readonly string[],
  nodeId: string | null = newUuid(),
  runnableAt = new Date(),
): Promise<void> {
  await world.platform.db.execute(sql`
    update sessions set node_id = ${nodeId}, epoch = epoch + 1, crashes = 0, runnable_at = ${runnableAt}
    where organization_id = any(${[...organizationIds]}::uuid[])`);
}

async function sessionsByNode(): Promise<Map<string | null, number>> {
  const rows = await world.platform.db.query<{ nodeId: string | null; count: number }>(sql`
    select node_id as "nodeId", count(*)::integer as count from sessions
    where organization_id = ${world.organizationId} and status = 'running' group by node_id`);
  return new Map(rows.map(({ nodeId, count }) => [nodeId, count]));
}

test('of a dead node’s 20 sessions with 1 MiB each, a node runs as many as fit into its memory, and another the rest', async () => {
  const agentId = await world.agent();
  const input = randomBytes(768 * 1024).toString('base64');
  for (let n = 0; n < 20; n += 1) await world.open(agentId, { input });
  await assignToDeadNode([world.organizationId]);
  const proceed = Promise.withResolvers<void>();
  const ask: SessionRunnerOptions['ask'] = async function* (...args) {
    await proceed.promise;
    yield* answering([{ text: 'ok' }])(...args);
  };
  const first = await work(await world.anotherNode(), { ask, maxActiveBytes: 2 * 1024 * 1024 });
  // Four MiB are loaded at once; sessions that were claimed beyond them are released.
  await expect.poll(async () => (await sessionsByNode()).get(null)).toBe(16);
  const second = await work(await world.anotherNode(), { ask, maxActiveBytes: 64 * 1024 * 1024 });
  await expect.poll(sessionsByNode).toEqual(
    new Map([
      [first, 4],
      [second, 16],
    ]),
  );
  proceed.resolve();
  await expect.poll(sessionsByNode).toEqual(new Map());
});

const SESSIONS = 90;

/** Sessions whose model answers when `proceed` is called. */
async function openUnclaimed(): Promise<{ ask: SessionRunnerOptions['ask']; proceed(): void }> {
  const agentId = await world.agent();
  for (let n = 0; n < SESSIONS; n += 1) await world.open(agentId);
  const answered = Promise.withResolvers<void>();
  const ask: SessionRunnerOptions['ask'] = async function* (call, signal) {
    await Promise.race([answered.promise, never(signal)]);
    yield* answering([{ text: 'ok' }])(call, signal);
  };
  return { ask, proceed: answered.resolve };
}

test.each([
  ['a dead node', newUuid()],
  ['a node that stops', null],
])('the sessions of %s are taken over by all other nodes, about as many by each', async (_, nodeId) => {
  const { ask, proceed } = await openUnclaimed();
  const clock = createManualClock(new Date());
  // A node whose lease does not expire during the test.
  const other = newUuid();
  await assignToDeadNode([world.organizationId], other);
  await world.platform.db.execute(sql`
    insert into nodes (node_id, lease_expires_at) values (${other}, now() + interval '1 hour')`);
  const nodes: string[] = [];
  for (let n = 0; n < 3; n += 1) nodes.push(await work(await world.anotherNode({ clock }), { ask }));
  await idle();
  await assignToDeadNode([world.organizationId], nodeId, clock.now());
  await clock.advance(1_000);
  const byNode = await sessionsByNode();
  expect([...byNode.keys()].toSorted()).toEqual(nodes.toSorted());
  expect([...byNode.values()].reduce((a, b) => a + b)).toBe(SESSIONS);
  // Fewer than 10 of 90 happen by chance in one of 100,000 runs.
  expect(Math.min(...byNode.values())).toBeGreaterThanOrEqual(10);
  proceed();
  await idle();
  expect(await sessionsByNode()).toEqual(new Map());
});

test('the only node left takes over all sessions by its first search; beside one that hangs, what that leaves in two seconds', async () => {
  const { ask, proceed } = await openUnclaimed();
  const clock = createManualClock(new Date());
  await assignToDeadNode([world.organizationId]);
  // A worker turn has a lease too, but takes over nothing.
  await world.platform.db.execute(sql`
    insert into nodes (node_id, lease_expires_at) values (${newUuid()}, now() + interval '1 hour')`);
  const first = await work(await world.anotherNode({ clock }), { ask });
  await idle();
  expect(await sessionsByNode()).toEqual(new Map([[first, SESSIONS]]));

  await assignToDeadNode([world.organizationId]);
  await world.platform.db.execute(sql`
    insert into nodes (node_id, lease_expires_at, runs) values (${newUuid()}, now() + interval '1 hour', true)`);
  await clock.advance(1_000);
  const taken = (await sessionsByNode()).get(first)!;
  expect(taken).toBeGreaterThanOrEqual(20);
  expect(taken).toBeLessThanOrEqual(SESSIONS - 20);
  await clock.pass(2_000);
  expect(await sessionsByNode()).toEqual(new Map([[first, SESSIONS]]));
  proceed();
  await idle();
  expect(await sessionsByNode()).toEqual(new Map());
});

test('while a node stops, nothing is left to it: another takes over all sessions by its first search', async () => {
  const { ask } = await openUnclaimed();
  const clock = createManualClock(new Date());
  await work(await world.anotherNode({ clock }), { ask, graceMs: 5_000 });
  await idle();
  const stopped = workers[0]!.stop();
  const second = await work(await world.anotherNode({ clock }), { ask });
  await idle();
  await assignToDeadNode([world.organizationId], null, clock.now());
  await clock.advance(1_000);
  expect(await sessionsByNode()).toEqual(new Map([[second, SESSIONS]]));
  await clock.passWhile(stopped);
});

test('sessions of 40 organizations are taken over by three statements for each 32 of them', async () => {
  const opened: { organizationId: string }[] = [];
  for (let n = 0; n < 40; n += 1) opened.push(await openElsewhere());
  const organizationIds = opened.map(({ organizationId }) => organizationId);
  await assignToDeadNode(organizationIds);
  const statements: Sql[] = [];
  await work(await world.anotherNode({ onQuery: (statement) => statements.push(statement) }), {});
  const idle = () =>
    world.platform.db.execute(sql`
      select from sessions where organization_id = any(${organizationIds}::uuid[]) and status = 'idle'`);
  await expect.poll(idle).toBe(40);
  const like = (pattern: RegExp) => statements.filter(({ text }) => pattern.test(text)).length;
  expect([
    like(/update sessions s set epoch/),
    like(/octet_length/),
    like(/cross join lateral \(\s+select x\.\*/),
  ]).toEqual([2, 2, 2]);
});

/** Running and unclaimed; in the organization that sorts before all others. */
async function insertBacklog(count: number, runnableAt = new Date()): Promise<string> {
  const { db } = world.platform;
  const organizationId = FIRST.replace(/0$/, '1');
  await db.execute(sql`
    insert into organizations (organization_id, name, created_at) values (${organizationId}, 'Full', now())
    on conflict do nothing`);
  await db.execute(sql`
    insert into environments (organization_id, name, environment_id, created_at)
    values (${organizationId}, 'production', ${newUuid()}, now()) on conflict do nothing`);
  await db.execute(sql`
    insert into agents (organization_id, agent_id, version, created_at, updated_at)
    values (${organizationId}, ${organizationId}, 1, now(), now()) on conflict do nothing`);
  await db.execute(sql`
    insert into sessions (organization_id, session_id, agent_id, environment, status, turn, runnable_at, close_on_idle,
      metadata, created_at, updated_at)
    select ${organizationId}, gen_random_uuid(), ${organizationId}, 'production', 'running', 1,
      ${runnableAt}::timestamptz, false, '{}', now(), now()
    from generate_series(1, ${count}::integer)`);
  await db.execute(sql`analyze sessions`);
  return organizationId;
}

interface Plan {
  'Shared Hit Blocks': number;
  'Shared Read Blocks': number;
}

/** The pages that each statement touches. */
async function pagesOf(look: (platform: Platform) => Promise<unknown>): Promise<number> {
  const { platform } = world;
  let pages = 0;
  const query: Db['query'] = async (statement) => {
    const text = `explain (analyze, buffers, timing off, format json) ${statement.text}`;
    const explained = { ...statement, text, values: statement.values } as unknown as Sql;
    const [row] = await platform.db.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>(explained);
    const { Plan: plan } = row!['QUERY PLAN'][0];
    pages += plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
    return [];
  };
  await look({ ...platform, db: { ...platform.db, query } });
  return pages;
}

const BACKLOG = 100_000;

test('finding sessions to claim costs the same with a backlog of 100,000 as with one of 1,000', {
  timeout: 300_000,
}, async () => {
  const other = await openElsewhere();
  const full = await insertBacklog(1_000);
  const looks = {
    hinted: (on: Platform) => hintedCandidates(on, [other]),
    page: (on: Platform) => readyCandidates(on, FIRST, EVERYTHING),
    behindTheFullOne: (on: Platform) => readyCandidates(on, full, EVERYTHING),
    timed: (on: Platform) => timedCandidates(on, { runnableAt: new Date(0), sessionId: FIRST }, EVERYTHING),
  };
  const measure = async () => {
    await world.platform.shards.find([FIRST]);
    const pages = new Map<string, number>();
    for (const [name, look] of Object.entries(looks)) pages.set(name, await pagesOf(look));
    return pages;
  };
  const before = await measure();
  await insertBacklog(BACKLOG);
  const after = await measure();
  // An index may have grown a level or two deeper; a page of 200 touches a row each.
  for (const [name, pages] of after)
    expect(pages, name).toBeLessThanOrEqual(before.get(name)! + (name === 'page' ? 420 : 12));
  expect(after.get('page')).toBeLessThan(700);
});

test('next to the backlog of an organization at its limit, another’s session is claimed after two searches', async () => {
  const full = await insertBacklog(1_000, new Date(0));
  const other = await openElsewhere();
  const looks: unknown[] = [];
  const nodeId = newUuid();
  const hangs = Promise.withResolvers<never>();
  hangs.promise.catch(() => {});
  const platform = await world.anotherNode({
    onQuery: ({ text, values }) => {
      if (text.includes("status = 'running' and organization_id >")) looks.push(values[0]);
    },
  });
  await world.platform.db.execute(sql`
    update sessions set runnable_at = now() where organization_id = ${full}`);
  const isIdle = async () =>
    (await world.platform.db.execute(sql`
      select from sessions
      where organization_id = ${other.organizationId} and session_id = ${other.sessionId} and status = 'idle'`)) === 1;
  await work(platform, {
    nodeId,
    maxActive: 10,
    ask: async function* (call, signal) {
      if (call.organizationId === full) await hangs.promise;
      yield* answering([{ text: 'ok' }])(call, signal);
    },
  });
  await expect.poll(isIdle).toBe(true);
  expect(looks.slice(0, 2)).toEqual([FIRST, full]);
  hangs.reject(new Error('over'));
});
