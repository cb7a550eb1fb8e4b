// What deliveries of some sessions read while the deliveries of very many others wait for their retries, in a database without
// statistics. A table has none until autovacuum comes by, and those of pending deliveries are of a time when hardly any were.
import sql from 'sql-template-tag';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Db } from '../../src/db/db.ts';
import { type Delivery, type FinishedDelivery, newDelivery } from '../../src/deliveries/delivery.ts';
import { type Assignment, readAssignment } from '../../src/deliveries/destinations/assignments.ts';
import { retryNow } from '../../src/deliveries/destinations/subscription-changes.ts';
import { advanceMany, giveUp, type PostponeInput, postponeMany, readMany } from '../../src/deliveries/progress.ts';
import { rewindDeliveries } from '../../src/deliveries/rewind.ts';
import { sequenceEvents } from '../../src/events/sequencer.ts';
import { formatId } from '../../src/lib/ids.ts';
import { deleteEndedSessions } from '../../src/sessions/retention/delete-ended.ts';
import { recoverDeliveries } from '../../src/webhooks/recovery.ts';
import { dropPending } from '../../src/webhooks/retention.ts';
import { costOf } from '../support/plans.ts';
import { countingUse } from '../support/table-use.ts';
import { contentOf, createWorld, type World } from '../support/webhooks.ts';

const WAITING = 10_000;
const SEGMENTS_OF_EACH = 5;
const SESSIONS = 100;
// PostgreSQL plans the first five executions on a connection for their values, and may then plan once for all.
const ROUNDS = 8;

const tables = [
  'sessions',
  'segments',
  'operations',
  'pending_deliveries',
  'webhook_deliveries',
  'events_pending',
] as const;

let world: World;
/** How much of a table the work on some sessions may read. */
let maxRead: number;
let assignment: Assignment;
let db: ReturnType<typeof countingUse<(typeof tables)[number]>>;
beforeAll(async () => {
  await startWorld();
  await insertWaiting(WAITING);
  const [{ isOld } = { isOld: false }] = await world.db.query<{ isOld: boolean }>(sql`
    select current_setting('server_version_num')::int < 170000 as "isOld"`);
  // Before version 17, PostgreSQL may look for the keys of an array among all that the rest of the key matches: everything once for a
  // statement, not once for each of its rows.
  maxRead = isOld ? 8 * WAITING : WAITING / 2;
});
beforeEach(() => {
  db = countingUse(world.db, tables);
});
afterAll(() => world.end());

async function startWorld(): Promise<void> {
  world = await createWorld();
  await world.subscribe('https://example.com/');
  assignment = (await readAssignment(world.platform, world.organizationId, 'production'))!;
  for (const table of tables) await world.db.query(sql([`alter table ${table} set (autovacuum_enabled = false)`]));
}

/** Inserts sessions, each with a delivery that waits for its retry. */
async function insertWaiting(count: number): Promise<void> {
  const { organizationId, webhookSubscriptionId } = assignment;
  await world.db.query(sql`
    with s as (
      insert into sessions (organization_id, session_id, agent_id, environment, status, turn, next_seq, close_on_idle, metadata,
        delivery_due, delivery_subscription_id, delivered_turn, delivery_id, created_at, updated_at)
      select ${organizationId}, gen_random_uuid(), ${organizationId}, 'production', 'idle', 1, 1000, false, '{}', true,
        ${webhookSubscriptionId}::uuid, 1, gen_random_uuid(), now(), now()
      from generate_series(1, ${count}::int)
      returning session_id, delivery_id)
    insert into pending_deliveries (organization_id, webhook_subscription_id, delivery_id, session_id, previous_cursor, from_turn,
      from_seq, to_turn, to_seq, chunk_types, occurred_at, next_attempt_at, created_at)
    select ${organizationId}, ${webhookSubscriptionId}, s.delivery_id, s.session_id, '', 1, 0, 1, 1, 's', now(),
      now() + interval '1 hour', now()
    from s`);
  // Their journals.
  await world.db.query(sql`
    insert into segments (organization_id, session_id, turn, seq_to, seq_from, body, created_at)
    select s.organization_id, s.session_id, 1, n, n, '["x"]', now() from sessions s, generate_series(1, ${SEGMENTS_OF_EACH}::int) n
    where s.organization_id = ${organizationId}`);
}

async function insertSessions(count: number): Promise<string[]> {
  const { organizationId, webhookSubscriptionId } = assignment;
  const rows = await world.db.query<{ id: string }>(sql`
    insert into sessions (organization_id, session_id, agent_id, environment, status, turn, next_seq, close_on_idle, metadata,
      delivery_due, delivery_subscription_id, delivered_turn, created_at, updated_at)
    select ${organizationId}, gen_random_uuid(), ${organizationId}, 'production', 'idle', 1, 1000, false, '{}', true,
      ${webhookSubscriptionId}::uuid, 1, now(), now()
    from generate_series(1, ${count}::int)
    returning session_id as id`);
  return rows.map(({ id }) => id);
}

function deliveryOf(sessionId: string, seq = 0): Delivery {
  return newDelivery(sessionId, contentOf(assignment, seq, world.clock.now()), '');
}

const doneOf = (delivery: Delivery): FinishedDelivery => ({ delivery, attempts: [], through: delivery.to });

/** `max`: of the tables that the work may read more of. */
function expectFewRead(max: Partial<Record<(typeof tables)[number], number>> = {}): void {
  const most = tables.map((table) => Math.max(...db.uses.map((use) => use[table].read)));
  expect(Math.max(...most)).toBeGreaterThan(0);
  for (const [n, table] of tables.entries()) {
    const isFew = most[n]! < (max[table] ?? maxRead);
    expect({ table, read: most[n], isFew }).toMatchObject({ isFew: true });
  }
}

/** Stores a delivery for each session. */
async function store(ids: readonly string[], through: Db = world.db): Promise<Delivery[]> {
  const next = ids.map((id) => deliveryOf(id));
  const inputs = next.map((delivery) => ({
    epoch: assignment.epoch,
    after: delivery.from,
    next: delivery,
    done: undefined,
  }));
  expect(await advanceMany(through, assignment, inputs, world.clock.now())).toEqual(ids.map(() => true));
  return next;
}

async function storeAndAcknowledge(count = SESSIONS): Promise<void> {
  for (let round = 0; round < ROUNDS; round += 1) {
    const ids = await insertSessions(count);
    const first = await store(ids, db);
    const inputs = first.map((delivery) => {
      const next = deliveryOf(delivery.sessionId, 1);
      return { epoch: assignment.epoch, after: next.from, next, done: doneOf(delivery) };
    });
    expect(await advanceMany(db, assignment, inputs, world.clock.now())).toEqual(ids.map(() => true));
    const last = inputs.map(({ next }) => ({ done: doneOf(next) }));
    expect(await advanceMany(db, assignment, last, world.clock.now())).toEqual(ids.map(() => true));
  }
}

test('storing deliveries and acknowledging them', async () => {
  await storeAndAcknowledge();
  expectFewRead();
});

async function readWhatWaits(count = SESSIONS): Promise<void> {
  for (let round = 0; round < ROUNDS; round += 1) {
    const ids = await insertSessions(count);
    await store(ids);
    const found = await readMany(
      db,
      assignment,
      ids.map((sessionId) => ({ sessionId, after: undefined })),
    );
    expect(found.map((one) => one?.delivery?.sessionId)).toEqual(ids);
  }
}

test('reading what waits', async () => {
  await readWhatWaits();
  expectFewRead();
});

async function storeFailedAttempts(count = SESSIONS): Promise<void> {
  for (let round = 0; round < ROUNDS; round += 1) {
    const deliveries = await store(await insertSessions(count));
    const nextAttemptAt = new Date('2100-01-01T00:00:00.000Z');
    const inputs = deliveries.map(
      (delivery): PostponeInput => ({
        delivery,
        attempts: [],
        retries: 1,
        nextAttemptAt,
        notBefore: null,
        body: Buffer.from('{}'),
      }),
    );
    await postponeMany(db, assignment, inputs);
    const rows = await world.db.query(sql`
      select 1 from pending_deliveries where delivery_id = any(${deliveries.map((d) => d.deliveryId)}::uuid[]) and retries = 1`);
    expect(rows).toHaveLength(count);
  }
}

test('storing failed attempts', async () => {
  await storeFailedAttempts();
  expectFewRead();
});

test('giving up', async () => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const [delivery] = await store(await insertSessions(1));
    expect(await giveUp(db, assignment, doneOf(delivery!), world.clock.now())).toBe(true);
  }
  expectFewRead();
});

test('rewinding', async () => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const [sessionId] = await insertSessions(1);
    await store([sessionId!]);
    await world.db.query(sql`
      update sessions set delivered_seq = 5 where organization_id = ${world.organizationId} and session_id = ${sessionId}`);
    await recoverDeliveries(world.context(), {
      env: 'production',
      sessionId: formatId('ses', sessionId!),
      cursor: 'turn_1:seq_1',
    });
    expect((await rewindDeliveries(db, assignment, 10, world.clock.now())).sessionIds).toEqual([sessionId]);
    const rows = await world.db.query(sql`
      select status from webhook_deliveries where organization_id = ${world.organizationId} and session_id = ${sessionId}`);
    expect(rows).toEqual([{ status: 'cancelled' }]);
  }
  expectFewRead();
});

test.each([true, false])('retrying all now (planned for its values: %s)', async (forValues) => {
  for (const statement of retryNow(assignment, world.clock.now())) {
    const { rows, compared } = await costOf(world.db, statement, { forValues });
    expect(rows).toBeGreaterThanOrEqual(WAITING);
    expect(rows + compared).toBeLessThan(3 * WAITING);
  }
});

test('deleting ended sessions', async () => {
  const { signal } = new AbortController();
  for (let round = 0; round < ROUNDS; round += 1) {
    const ids = await insertSessions(SESSIONS);
    await store(ids);
    await world.db.query(sql`
      insert into segments (organization_id, session_id, turn, seq_to, seq_from, body, created_at)
      select ${world.organizationId}, id, 1, n, n, '["x"]', now() from unnest(${ids}::uuid[]) id, generate_series(1, 20) n`);
    await world.db.query(sql`
      update sessions set status = 'completed', ended_at = now()
      where organization_id = ${world.organizationId} and session_id = any(${ids}::uuid[])`);
    const deleted = await deleteEndedSessions({ db, clock: world.clock }, world.organizationId, ids, signal);
    expect(deleted).toBe(SESSIONS);
    const left = await world.db.query(sql`
      select 1 from pending_deliveries where session_id = any(${ids}::uuid[])
      union all select 1 from segments where session_id = any(${ids}::uuid[])`);
    expect(left).toEqual([]);
  }
  expectFewRead({ segments: SEGMENTS_OF_EACH * maxRead });
});

test('moving records of events into their order', async () => {
  await world.db.query(sql`
    insert into event_heads (organization_id, sequence, hash, anchor_sequence, anchor_hash)
    values (${world.organizationId}, 0, ${Buffer.alloc(32)}, 0, ${Buffer.alloc(32)})`);
  await world.db.query(sql`
    insert into events_pending (organization_id, event_id, body, occurred_at)
    select ${world.organizationId}, gen_random_uuid(), '{}', now() from generate_series(1, ${WAITING}::int)`);
  await sequenceEvents(db, world.organizationId);
  expect(db.uses.length).toBeGreaterThan(ROUNDS);
  expectFewRead();
});

test('deleting what waits for a deleted subscription, a batch at a time', async () => {
  const before = db.uses.length;
  await dropPending(db, assignment, new AbortController().signal);
  expect(db.uses.length).toBeGreaterThan(before + 1);
  expectFewRead();
});

test('all of them with plans that were made while the tables were empty', async () => {
  await world.end();
  await startWorld();
  await world.db.query(sql`vacuum analyze pending_deliveries, webhook_deliveries, sessions`);
  const work = async (count: number) => {
    await storeAndAcknowledge(count);
    await readWhatWaits(count);
    await storeFailedAttempts(count);
  };
  db = countingUse(world.db, tables);
  await work(1);
  await insertWaiting(WAITING);
  db = countingUse(world.db, tables);
  await work(SESSIONS);
  expectFewRead();
});
