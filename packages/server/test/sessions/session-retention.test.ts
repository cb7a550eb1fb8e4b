// Retention of sessions: old ended sessions are deleted with all their rows, and nothing else is.
import sql, { raw, type Sql } from 'sql-template-tag';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Db } from '../../src/db/db.ts';
import { newUuid } from '../../src/lib/ids.ts';
import { createMetrics } from '../../src/observe/metrics.ts';
import type { ShareNow } from '../../src/session-rows/share.ts';
import { dropOldSessions } from '../../src/sessions/retention/retention.ts';
import { haltingAt } from '../support/halting.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { costOf, listenTo } from '../support/plans.ts';
import { createTestPlatform, type TestPlatform } from '../support/platform.ts';
import { startTestService } from '../support/service.ts';

const clock = createManualClock();
const daysAgo = (days: number) => new Date(clock.now().getTime() - days * 86_400_000);
const never = new AbortController().signal;

let test_: TestPlatform;
let db: Db;
let organizationId: string;
const subscriptionId = newUuid();

beforeAll(async () => {
  test_ = await createTestPlatform({ clock });
  db = test_.platform.db;
  organizationId = test_.organizationId;
  await db.execute(sql`
    insert into agents (organization_id, agent_id, version, created_at, updated_at)
    values (${organizationId}, ${organizationId}, 1, now(), now())`);
  await db.execute(sql`
    insert into webhook_subscriptions (organization_id, environment, webhook_subscription_id, url, chunk_types, status,
      sealed_secret, secret_version, created_at, updated_at)
    values (${organizationId}, 'production', ${subscriptionId}, '', '{}', 'paused', '', 1, now(), now())`);
});
beforeEach(async () => {
  await db.execute(sql`delete from segments where organization_id = ${organizationId}`);
  await db.execute(sql`delete from webhook_deliveries where organization_id = ${organizationId}`);
  await db.execute(sql`delete from pending_deliveries where organization_id = ${organizationId}`);
  await db.execute(sql`delete from received_webhooks where organization_id = ${organizationId}`);
  await db.execute(sql`delete from sessions where organization_id = ${organizationId}`);
  await db.execute(sql`delete from messages where organization_id = ${organizationId}`);
  await keepDays('production', null);
});
afterAll(() => test_.close());

const keepDays = (environment: string, days: number | null) =>
  db.execute(sql`
    update environments set keep_sessions_days = ${days}
    where organization_id = ${organizationId} and name = ${environment}`);

/** `rows`: the number of rows of each kind that belong to it. */
async function session({
  endedAt = null as Date | null,
  environment = 'production',
  rootId = null as string | null,
  rows = 1,
} = {}): Promise<string> {
  const id = newUuid();
  await db.batch([
    sql`
      insert into sessions (organization_id, session_id, agent_id, environment, status, close_on_idle, metadata, created_at,
        updated_at, ended_at, root_session_id, parent_session_id)
      values (${organizationId}, ${id}, ${organizationId}, ${environment}, ${endedAt ? 'completed' : 'idle'}, false, '{}',
        now(), now(), ${endedAt}, ${rootId}, ${rootId})`,
    sql`
      insert into segments (organization_id, session_id, turn, seq_to, seq_from, body, created_at)
      select ${organizationId}::uuid, ${id}::uuid, 1, n, n, '[]', now() from generate_series(1, ${rows}) n`,
    sql`
      insert into messages (organization_id, session_id, turn, position, message_id, role, content, created_at)
      select ${organizationId}::uuid, ${id}::uuid, 1, n, gen_random_uuid(), 'user', '[]', now()
      from generate_series(1, ${rows}) n`,
    sql`
      insert into operations (organization_id, session_id, turn, step, index, operation_id, kind, status, created_at)
      select ${organizationId}::uuid, ${id}::uuid, 1, n, 0, gen_random_uuid(), 'model', 'succeeded', now()
      from generate_series(1, ${rows}) n`,
    sql`
      insert into approvals (organization_id, operation_id, session_id, agent_id, environment, name, input_schema, once, status,
        requested_at)
      values (${organizationId}, ${newUuid()}, ${id}, ${organizationId}, ${environment}, 'x', '{}', false, 'denied', now())`,
    sql`
      insert into webhook_deliveries (organization_id, webhook_subscription_id, delivery_id, session_id, previous_cursor, from_turn,
        from_seq, to_turn, to_seq, chunk_types, occurred_at, status, attempts, attempt_count, created_at, finished_at)
      select ${organizationId}::uuid, ${subscriptionId}::uuid, gen_random_uuid(), ${id}::uuid, '', 0, 0, 1, n, 'm', now(),
        'succeeded', '{}', 0, now(), now() from generate_series(1, ${rows}) n`,
    sql`
      insert into pending_deliveries (organization_id, webhook_subscription_id, delivery_id, session_id, previous_cursor, from_turn,
        from_seq, to_turn, to_seq, chunk_types, occurred_at, created_at)
      values (${organizationId}, ${subscriptionId}, ${id}, ${id}, '', 0, 0, 1, 1, 'm', now(), now())`,
    sql`
      update sessions set delivery_id = ${id}, delivery_subscription_id = ${subscriptionId}
      where organization_id = ${organizationId} and session_id = ${id}`,
    sql`
      insert into received_webhooks (organization_id, webhook_subscription_id, received_webhook_id, session_id, headers, body,
        truncated, verified, received_at)
      values (${organizationId}, ${subscriptionId}, ${newUuid()}, ${id}, '{}', '', false, true, now())`,
  ]);
  return id;
}

async function left(table = 'sessions'): Promise<string[]> {
  const rows = await db.query<{ id: string }>(sql`
    select distinct t.session_id as id from ${raw(table)} t where t.organization_id = ${organizationId} order by 1`);
  return rows.map(({ id }) => id);
}

const drop = (keptDays?: number, over: Partial<TestPlatform['platform']> = {}, signal = never, shareNow?: ShareNow) =>
  dropOldSessions({ ...test_.platform, ...over }, organizationId, keptDays, signal, shareNow);

test('a session is deleted with its children and all their rows; others stay complete', async () => {
  const old = await session({ endedAt: daysAgo(30) });
  await session({ endedAt: daysAgo(30), rootId: old });
  const stays = [await session({ endedAt: daysAgo(29.9) }), await session()].toSorted();
  const metrics = createMetrics();
  await drop(30, { metrics });
  for (const table of [
    'sessions',
    'segments',
    'messages',
    'operations',
    'approvals',
    'webhook_deliveries',
    'pending_deliveries',
    'received_webhooks',
  ]) {
    expect(await left(table), table).toEqual(stays);
  }
  expect(await metrics.registry.metrics()).toContain('signalbox_dropped_sessions_total 2');
});

test('the shorter retention of operator and environment applies; without either, every session stays', async () => {
  const [ten, twenty] = [await session({ endedAt: daysAgo(10) }), await session({ endedAt: daysAgo(20) })];
  const both = [ten, twenty].toSorted();
  const staging = await session({ endedAt: daysAgo(20), environment: 'staging' });
  await drop();
  expect(await left()).toEqual([...both, staging].toSorted());
  await keepDays('production', 15);
  await drop(30);
  expect(await left()).toEqual([ten, staging].toSorted());
  await drop(5);
  expect(await left()).toEqual([]);
});

test('the operator’s retention applies to sessions of a deleted environment', async () => {
  await session({ endedAt: daysAgo(10), environment: 'gone' });
  await drop();
  expect(await left()).toHaveLength(1);
  await drop(5);
  expect(await left()).toEqual([]);
});

test('a session with an open child stays until the child has ended, and does not block the deletion of others', async () => {
  const parent = await session({ endedAt: daysAgo(30) });
  const child = await session({ rootId: parent });
  await session({ endedAt: daysAgo(20) });
  await drop(5);
  expect(await left()).toEqual([parent, child].toSorted());
  await db.execute(sql`
    update sessions set ended_at = ${daysAgo(0)} where organization_id = ${organizationId} and session_id = ${child}`);
  await drop(5);
  expect(await left()).toEqual([]);
});

test('a session is deleted in batches of a thousand rows, and the next pass continues an interrupted one', async () => {
  const id = await session({ endedAt: daysAgo(30), rows: 2_500 });
  const counts: number[] = [];
  const stopping = new AbortController();
  const cut: Db = {
    ...db,
    async query<Row>(statement: Sql) {
      const rows = await db.query<Row & { found?: number }>(statement);
      if (rows[0]?.found !== undefined) counts.push(rows[0].found);
      if (counts.length === 5) stopping.abort();
      return rows;
    },
  };
  await drop(5, { db: cut }, stopping.signal);
  expect(counts).toEqual([1_000, 1_000, 500, 1_000, 1_000]);
  expect(await left()).toEqual([id]);
  await drop(5);
  expect(await left()).toEqual([]);
  expect(await left('messages')).toEqual([]);
});

test('nothing of a session is left, although another node deletes a part of it at the same time', async () => {
  await session({ endedAt: daysAgo(30), rows: 2_500 });
  const node = await db.connect();
  await node.query('begin');
  await node.query('delete from segments where ctid = any(array(select ctid from segments limit 600))');
  const dropped = drop(5);
  const waiting = sql`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  await vi.waitUntil(async () => (await db.query(waiting)).length > 0);
  await node.query('commit');
  await node.end();
  await dropped;
  expect(await left('segments')).toEqual([]);
});

test('the deletion does not wait for sessions that are being written', async () => {
  const open = await session();
  await session({ endedAt: daysAgo(30) });
  await db.transaction(async (tx) => {
    await tx.query(sql`
      select 1 from sessions where organization_id = ${organizationId} and session_id = ${open} for update`);
    await drop(5);
    expect(await left()).toEqual([open]);
  });
});

/** A node that deletes as the others do, and which sessions it has tried to delete. */
async function node(part: number, parts: number) {
  const platform = await test_.anotherNode({ clock });
  const tried = new Set<string>();
  const watched: Db = {
    ...platform.db,
    async query<Row>(statement: Sql) {
      const rows = await platform.db.query<Row & { sessionId?: string; endedAt?: string }>(statement);
      for (const { sessionId, endedAt } of rows) if (sessionId && endedAt) tried.add(sessionId);
      return rows;
    },
  };
  return { tried, drop: () => drop(5, { ...platform, db: watched }, never, async () => ({ part, parts })) };
}

test('several nodes at once delete different sessions: together all that are old, with their children, and no other', async () => {
  const olds: string[] = [];
  for (let n = 0; n < 60; n += 1) olds.push(await session({ endedAt: daysAgo(30) }));
  for (const rootId of olds.slice(0, 10)) await session({ endedAt: daysAgo(30), rootId });
  const stays = [await session(), await session({ endedAt: daysAgo(4) })].toSorted();
  const nodes = await Promise.all([0, 1, 2].map((part) => node(part, 3)));
  await Promise.all(nodes.map((one) => one.drop()));
  for (const table of ['sessions', 'segments', 'messages', 'operations', 'webhook_deliveries'])
    expect(await left(table), table).toEqual(stays);
  const tried = nodes.map((one) => [...one.tried]);
  expect(tried.flat().toSorted()).toEqual(olds.toSorted());
  expect(tried.every((ids) => ids.length > 0)).toBe(true);
});

test('nodes that all take everything, as while their number changes, wait for none of the others and leave nothing', async () => {
  for (let n = 0; n < 30; n += 1) await session({ endedAt: daysAgo(30) });
  const stays = await session();
  const nodes = await Promise.all([0, 1].map(() => node(0, 1)));
  await Promise.all(nodes.map((one) => one.drop()));
  for (const table of ['sessions', 'segments', 'messages']) expect(await left(table), table).toEqual([stays]);
});

test('what another transaction has locked is left with its family, and the others are deleted without waiting', async () => {
  const parent = await session({ endedAt: daysAgo(40) });
  const child = await session({ endedAt: daysAgo(40), rootId: parent });
  const alone = await session({ endedAt: daysAgo(35) });
  for (let n = 0; n < 5; n += 1) await session({ endedAt: daysAgo(30) });
  const node = await db.connect();
  await node.query('begin');
  await node.query(`select 1 from sessions where session_id in ('${child}', '${alone}') for key share`);
  await drop(5);
  expect(await left()).toEqual([parent, child, alone].toSorted());
  expect(await left('messages')).toEqual([parent, child, alone].toSorted());
  await node.query('commit');
  await node.end();
  await drop(5);
  expect(await left()).toEqual([]);
  expect(await left('messages')).toEqual([]);
});

test.each(
  [
    /delete from segments/,
    /delete from webhook_deliveries/,
    /delete from messages/,
    /into kept_transcripts/,
    /^delete from sessions/,
  ].flatMap((statement) => (['before', 'after'] as const).map((when) => ({ statement, when }))),
)(
  'a node that is killed $when $statement has deleted nothing that is not old, and the next one deletes the rest',
  async ({ statement, when }) => {
    const old = await session({ endedAt: daysAgo(30), rows: 3 });
    await session({ endedAt: daysAgo(30), rootId: old, rows: 3 });
    const stays = [await session({ endedAt: daysAgo(4), rows: 3 }), await session({ rows: 3 })].toSorted();
    const rowsOf = () =>
      db.query(sql`
      select (select count(*)::int from segments g where g.session_id = any(${stays}::uuid[])) as segments,
        (select count(*)::int from messages m where m.session_id = any(${stays}::uuid[])) as messages`);
    const before = await rowsOf();
    const killed = haltingAt(await test_.anotherNode({ clock }), statement, when);
    void drop(5, killed.platform).catch(() => {});
    await killed.halted;
    expect(await rowsOf()).toEqual(before);
    await drop(5);
    killed.release();
    for (const table of ['sessions', 'segments', 'messages']) expect(await left(table), table).toEqual(stays);
    expect(await rowsOf()).toEqual(before);
  },
);

describe('among many', () => {
  test('expired sessions are found without reading the others', async () => {
    await db.execute(sql`
      insert into sessions (organization_id, session_id, agent_id, environment, status, close_on_idle, metadata, created_at,
        updated_at, ended_at)
      select ${organizationId}::uuid, gen_random_uuid(), ${organizationId}::uuid, 'production',
        case when n % 2 = 0 then 'idle' else 'completed' end, false, '{}', now(), now(),
        case when n % 2 = 1 then ${daysAgo(1)}::timestamptz end
      from generate_series(1, 20000) n`);
    // The tests before this one have left dead rows.
    await db.execute(sql`vacuum analyze`);
    await session({ endedAt: daysAgo(30) });
    const heard = listenTo(db);
    await drop(5, { db: heard.db });
    const looks = heard.statements.filter(({ text }) => /^\s*(with|select)/.test(text));
    expect(looks.length).toBeGreaterThan(1);
    for (const statement of looks) {
      const { rows, wholeTables } = await costOf(db, statement);
      expect(
        wholeTables.filter((table) => table === 'sessions'),
        statement.text,
      ).toEqual([]);
      expect(rows, statement.text).toBeLessThan(10);
    }
    expect(
      (
        await db.query<{ count: number }>(sql`
      select count(*)::int as count from sessions where organization_id = ${organizationId}`)
      )[0]!.count,
    ).toBe(20_000);
  });

  test('more than a batch of them go in one pass, and no others', async () => {
    await db.execute(sql`
      insert into sessions (organization_id, session_id, agent_id, environment, status, close_on_idle, metadata, created_at,
        updated_at, ended_at)
      select ${organizationId}::uuid, gen_random_uuid(), ${organizationId}::uuid, 'production', 'completed', false, '{}',
        now(), now(), ${daysAgo(30)}::timestamptz
      from generate_series(1, 450) n`);
    const ended = async () =>
      (
        await db.query<{ count: number }>(sql`
      select count(*)::int as count from sessions where organization_id = ${organizationId} and ended_at <= ${daysAgo(20)}`)
      )[0]!.count;
    expect(await ended()).toBe(450);
    await drop(5);
    expect(await ended()).toBe(0);
  });
});

test('a node deletes the sessions that ended before the retention of their environment', async () => {
  const clock = createManualClock();
  const service = await startTestService({ clock });
  const { client } = service;
  const created = await client.environments.create({ name: 'short', keepSessionsDays: 1 });
  expect(created.keepSessionsDays).toBe(1);
  expect((await client.environments.update('short', { keepSessionsDays: null })).keepSessionsDays).toBeNull();
  expect((await client.environments.update('short', { keepSessionsDays: 2 })).keepSessionsDays).toBe(2);
  const { data: events } = await client.events.list({ type: 'environment.updated' });
  expect(events.map(({ changes }) => changes)).toEqual([
    { keepSessionsDays: [null, 2] },
    { keepSessionsDays: [1, null] },
  ]);
  await expect(client.environments.update('short', { keepSessionsDays: 0 })).rejects.toMatchObject({ status: 400 });
  await expect(client.environments.update('none', { keepSessionsDays: 1 })).rejects.toMatchObject({ status: 404 });
  const { secret } = await client.keys.create({ name: 'W', permission: 'write' });
  await expect(service.clientWith(secret!).environments.update('short', {})).rejects.toMatchObject({ status: 403 });

  const { agentId } = await client.agents.create({ name: 'A', model: 'scripted/echo' });
  const open = (environment: string) =>
    client.sessions.open({ agentId, environment, input: 'Hi', closeOnIdle: true }).then(({ sessionId }) => sessionId);
  const [goes, stays] = await Promise.all([open('short'), open('production')]);
  const statusOf = (id: string) => client.sessions.get(id).then(({ status }) => status);
  await expect.poll(async () => [await statusOf(goes), await statusOf(stays)]).toEqual(['completed', 'completed']);
  await clock.advance(2 * 86_400_000 + 1);
  // A pass leaves a session whose row another transaction has locked to the next one.
  const isGone = async () => (await statusOf(goes).catch(({ code }) => code)) === 'not_found';
  await clock.passUntil(isGone, 3_600_000);
  expect(await statusOf(stays)).toBe('completed');
  await clock.passWhile(service.stop());
});
