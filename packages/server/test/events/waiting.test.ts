// Waiting for the next record of the event log, and what the log omits.
import sql from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createNoteDenied } from '../../src/events/denied.ts';
import { listEvents } from '../../src/events/events.ts';
import { recordEvent } from '../../src/events/record.ts';
import { insertKey, listKeys, rotateKey } from '../../src/keys/keys.ts';
import { ApiError } from '../../src/lib/api-error.ts';
import type { PoolContext } from '../../src/lib/context.ts';
import { uuidOf } from '../../src/lib/ids.ts';
import { createUpkeep } from '../../src/maintenance.ts';
import { createManualClock, type ManualClock } from '../support/manual-clock.ts';
import { createTestPlatform, type TestPlatform } from '../support/platform.ts';

let clock: ManualClock;
let node: TestPlatform;
beforeEach(async () => {
  clock = createManualClock();
  node = await createTestPlatform({ clock });
});
afterEach(() => node.close());

function write(id: string, ctx: PoolContext = node.ctx): Promise<unknown> {
  const draft = { type: 'agent.created' as const, resource: { type: 'agent', id } };
  return ctx.db.query(recordEvent(ctx, clock.now(), draft));
}

/** Starts `listEvents` and resolves once it waits: it has called the watch, which counts it as waiting from that call on. */
async function waitingFor<T>(begin: (ctx: PoolContext) => Promise<T>): Promise<{ listing: Promise<T> }> {
  const asked = Promise.withResolvers<void>();
  const after: PoolContext['eventWatch']['after'] = (...args) => {
    const waiting = node.ctx.eventWatch.after(...args);
    asked.resolve();
    return waiting;
  };
  const listing = begin({ ...node.ctx, eventWatch: { ...node.ctx.eventWatch, after } });
  await asked.promise;
  return { listing };
}

test('a waiting reader gets a response when a record of its organization arrives, also from another node', async () => {
  const other = { ...node.ctx, ...(await node.anotherNode()) };
  await write('a');
  const first = await listEvents(node.ctx, { order: 'asc', wait: 20 });
  expect(first.data.map(({ resource }) => resource.id)).toEqual(['a']);
  const query = { order: 'asc' as const, wait: 20, cursor: first.page.nextCursor };
  const { listing } = await waitingFor((ctx) => listEvents(ctx, query));
  await write('b', other);
  await clock.advance(500);
  const { data, page } = await listing;
  expect(data.map(({ resource }) => resource.id)).toEqual(['b']);
  expect(page.nextCursor).not.toBe(first.page.nextCursor);
});

test('a wait with filters ends at a matching record, and reads others once', async () => {
  const query = { order: 'asc' as const, wait: 20, resourceId: 'wanted' };
  const empty = await clock.passWhile(listEvents(node.ctx, query));
  expect(empty).toEqual({ data: [], page: { hasMore: false, nextCursor: '' } });
  await write('other');
  const past = await clock.passWhile(listEvents(node.ctx, query));
  expect(past.data).toEqual([]);
  const all = await listEvents(node.ctx, { order: 'asc' });
  // After the record that did not match.
  expect(past.page.nextCursor).toBe(all.page.nextCursor);
  const { listing } = await waitingFor((ctx) => listEvents(ctx, { ...query, cursor: past.page.nextCursor }));
  await write('other');
  await write('wanted');
  expect((await clock.passWhile(listing)).data).toMatchObject([{ sequence: 3, resource: { id: 'wanted' } }]);
});

test('a wait ends after its time, when the caller disconnects and when the node stops', async () => {
  await write('a');
  const { page } = await listEvents(node.ctx, { order: 'asc' });
  const query = { order: 'asc' as const, wait: 3, cursor: page.nextCursor };
  const { sleepers } = clock;
  const started = clock.now().getTime();
  expect(await clock.passWhile(listEvents(node.ctx, query))).toEqual({ data: [], page });
  expect(clock.now().getTime() - started).toBeGreaterThanOrEqual(3_000);

  const gone = new AbortController();
  const left = await waitingFor((ctx) => listEvents({ ...ctx, signal: gone.signal }, query));
  gone.abort();
  expect((await left.listing).data).toEqual([]);
  // The polling for waiting readers ends at its next interval.
  await clock.advance(500);
  expect(clock.sleepers).toBeLessThanOrEqual(sleepers);
  const stopped = await waitingFor((ctx) => listEvents(ctx, { ...query, wait: 20 }));
  await node.platform.eventWatch.stop();
  expect((await stopped.listing).data).toEqual([]);
});

test('a wait requires the order “asc”, and a cursor ahead of the log is refused', async () => {
  await expect(listEvents(node.ctx, { wait: 5 })).rejects.toMatchObject({ code: 'invalid_request' });
  const other = await createTestPlatform({ clock });
  for (let n = 0; n < 3; n += 1)
    await write(`${n}`, { ...other.ctx, organizationId: node.organizationId, db: node.platform.db });
  const { page } = await listEvents(node.ctx, { order: 'asc' });
  // As after the restore of a backup.
  await node.platform.db.query(sql`update event_heads set sequence = 1 where organization_id = ${node.organizationId}`);
  const ahead = listEvents(node.ctx, { order: 'asc', cursor: page.nextCursor });
  await expect(ahead).rejects.toMatchObject({ code: 'invalid_cursor' });
  await other.close();
});

test('all nodes together record a refusal once a minute for each key and error code', async () => {
  const { keyId } = await node.platform.db.transaction((tx) =>
    insertKey(tx, node.ctx, clock.now(), { name: 'k', permission: 'read' }),
  );
  const ctx = { ...node.ctx, callerId: uuidOf('key', keyId), keyId: uuidOf('key', keyId) };
  const route = { method: 'GET', path: '/api_keys' } as Parameters<ReturnType<typeof createNoteDenied>>[2];
  const nodes = Array.from({ length: 4 }, createNoteDenied);
  const refuse = async (code: 'insufficient_permission' | 'token_expired') => {
    await Promise.all([...nodes, ...nodes].map((note) => note(ctx, new ApiError(code, 'x'), route)));
  };
  const recorded = async () => {
    const { data } = await listEvents(node.ctx, { type: 'access.denied', order: 'asc' });
    return data.map(({ changes }) => changes!.code![1]);
  };
  await refuse('insufficient_permission');
  await refuse('token_expired');
  expect(await recorded()).toEqual(['insufficient_permission', 'token_expired']);
  await clock.advance(59_999);
  await refuse('token_expired');
  expect(await recorded()).toHaveLength(2);
  await clock.advance(1);
  await refuse('token_expired');
  expect(await recorded()).toEqual(['insufficient_permission', 'token_expired', 'token_expired']);
});

test('a record has the size and hash of a long value instead of the value', async () => {
  const changes = { instructions: ['short', 'x'.repeat(100_000)] as [unknown, unknown] };
  const draft = { type: 'agent.updated' as const, resource: { type: 'agent', id: 'a' }, changes };
  await node.platform.db.query(recordEvent(node.ctx, clock.now(), draft));
  const [event] = (await listEvents(node.ctx, {})).data;
  expect(event!.changes).toEqual({
    instructions: ['short', { bytes: 100_002, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) }],
  });
});

test('upkeep drops only old records, and secrets that were rotated or deleted 90 days ago', async () => {
  const { db } = node.platform;
  const key = async (name: string) =>
    (await db.transaction((tx) => insertKey(tx, node.ctx, clock.now(), { name, permission: 'read' }))).keyId;
  const [kept, gone] = [await key('kept'), await key('gone')];
  await rotateKey(node.ctx, { keyId: kept });
  await rotateKey(node.ctx, { keyId: gone });
  await db.query(sql`
    update api_keys set deleted_at = ${clock.now()}
    where organization_id = ${node.organizationId} and key_id = ${uuidOf('key', gone)}`);
  await db.query(sql`
    insert into access_denials (organization_id, caller_id, code, recorded_at)
    values (${node.organizationId}, ${uuidOf('key', kept)}, 'token_rotated', ${clock.now()})`);
  await listEvents(node.ctx, {});
  const counts = async () => {
    const [row] = await db.query<Record<string, number>>(sql`
      select (select count(*)::int from retired_key_secrets) as secrets, (select count(*)::int from api_keys) as keys,
        (select count(*)::int from access_denials) as denials, (select count(*)::int from events) as events`);
    return row;
  };
  const day = 24 * 3600 * 1000;
  const upkeepAfter = async (days: number, wanted: object) => {
    await clock.advance(days * day);
    const upkeep = createUpkeep(node.platform, { eventsKeptDays: 400, deliveriesKeptDays: 30, filesKeptDays: 30 });
    upkeep.start();
    await expect.poll(counts).toEqual(wanted);
    await upkeep.stop();
  };
  expect(await counts()).toEqual({ secrets: 2, keys: 2, denials: 1, events: 4 });
  await upkeepAfter(89, { secrets: 2, keys: 2, denials: 0, events: 4 });
  await rotateKey(node.ctx, { keyId: kept });
  await upkeepAfter(1, { secrets: 1, keys: 1, denials: 0, events: 5 });
  expect((await listKeys(node.ctx, {})).data).toHaveLength(1);
  await upkeepAfter(310, { secrets: 0, keys: 1, denials: 0, events: 5 });
  await clock.advance(1);
  await upkeepAfter(0, { secrets: 0, keys: 1, denials: 0, events: 1 });
});
