// Waiting claims and offered steps: which claim gets which step, and when.
import { channel } from 'node:diagnostics_channel';
import sql from 'sql-template-tag';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { formatId, newUuid, uuidOf } from '../../src/lib/ids.ts';
import { interruptSession } from '../../src/sessions/end-session.ts';
import type { ClaimRequest } from '../../src/workers/offers.ts';
import { appendToWorkerTurn, claimWorkerTurn } from '../../src/workers/worker-turns.ts';
import { createManualClock, type ManualClock } from '../support/manual-clock.ts';
import { createWorld, outline, type World } from '../support/session-world.ts';

let world: World;
let clock: ManualClock;
beforeAll(async () => {
  clock = createManualClock();
  world = await createWorld({ clock });
});
afterAll(() => world.close());

/** Opens a session in its first turn, which no node runs. */
async function open(queue: string): Promise<string> {
  const agentId = await world.agent([], { model: { provider: 'worker', queue } });
  return uuidOf('ses', await world.open(agentId));
}

async function offer(sessionId: string, queue: string, more = sql``): Promise<void> {
  await world.platform.db.execute(sql`
    update sessions set queue = ${queue}, runnable_at = ${new Date(clock.now().getTime() + 60_000)} ${more}
    where organization_id = ${world.organizationId} and session_id = ${sessionId}`);
}

function announce(sessionId: string, queue: string): void {
  world.platform.wake.publish('offered', { organizationId: world.organizationId, sessionId, queue });
}

function claim(queue: string, more: Partial<ClaimRequest> = {}, waitMs = 20_000) {
  const request = { organizationId: world.organizationId, queue, ...more };
  return world.platform.offers.claim(request, waitMs, new AbortController().signal);
}

/** Resolves after one complete search for all waiting claims: the second search begins after the first has ended. */
async function looked(): Promise<void> {
  await claim('nothing', {}, 0);
  await claim('nothing', {}, 0);
}

test('a step goes first to a claim for its session, then to the claim that has waited longest', async () => {
  const [one, other] = [await open('order'), await open('order')];
  const first = claim('order');
  const second = claim('order');
  const own = claim('order', { sessionId: other, turn: 1 });
  await looked();
  await offer(other, 'order');
  announce(other, 'order');
  expect((await own)!.sessionId).toBe(other);
  await offer(one, 'order');
  announce(one, 'order');
  expect((await first)!.sessionId).toBe(one);
  await clock.advance(20_000);
  expect(await second).toBeUndefined();
});

test('a claim for the session comes first even if the search was for another claim', async () => {
  const [one, other] = [await open('kept'), await open('kept')];
  const own = claim('kept', { sessionId: one, turn: 1 });
  const any = claim('kept');
  const elsewhere = claim('else', { sessionId: other, turn: 1 });
  await looked();
  await offer(one, 'kept');
  await offer(other, 'kept');
  announce(other, 'kept');
  expect((await any)!.sessionId).toBe(other);
  expect((await own)!.sessionId).toBe(one);
  await clock.advance(20_000);
  expect(await elsewhere).toBeUndefined();
});

test('with claims on 50 queues, a wake-up searches only its own queue, and the poll searches all in one statement', async () => {
  const gone = new AbortController();
  const asked: unknown[][] = [];
  const node = await world.anotherNode({
    onQuery: ({ text, values }) => {
      if (text.includes('x.queue = h.queue')) asked.push(values[1] as unknown[]);
    },
  });
  const queues = Array.from({ length: 50 }, (_, n) => `one-of-many-${n}`);
  const waits = queues.map((queue) =>
    node.offers.claim({ organizationId: world.organizationId, queue }, 60_000, gone.signal),
  );
  await expect.poll(() => asked).toEqual([queues]);
  const sessionId = await open('one-of-many-7');
  await offer(sessionId, 'one-of-many-7');
  node.wake.publish('offered', { organizationId: world.organizationId, sessionId, queue: 'one-of-many-7' });
  expect((await waits[7])!.sessionId).toBe(sessionId);
  await clock.advance(2_000);
  await expect.poll(() => asked.length).toBe(3);
  expect(asked.slice(1)).toEqual([['one-of-many-7'], queues.filter((queue) => queue !== 'one-of-many-7')]);
  gone.abort();
  await Promise.all(waits);
});

test('the poll finds an offered step without any wake-up', async () => {
  const sessionId = await open('quiet');
  const waits = claim('quiet', {}, 60_000);
  await looked();
  await offer(sessionId, 'quiet');
  await clock.advance(2_000);
  expect((await waits)!.sessionId).toBe(sessionId);
});

test('a turn with a pending stop or a timeout is not offered', async () => {
  const [stopped, late, session] = [await open('late'), await open('late'), await open('late')];
  await offer(stopped, 'late', sql`, stop = 'interrupt'`);
  await offer(late, 'late');
  await clock.advance(60_000);
  await offer(session, 'late');
  expect((await claim('late', {}, 0))!.sessionId).toBe(session);
  expect(await claim('late', {}, 0)).toBeUndefined();
  expect(await claim('late', { sessionId: stopped }, 0)).toBeUndefined();
  expect(await claim('late', { sessionId: late }, 0)).toBeUndefined();
});

test('if two nodes find the same step, one claims it and the other continues to wait', async () => {
  const sessionId = await open('two');
  const node = await world.anotherNode();
  await offer(sessionId, 'two');
  const request = (): ClaimRequest => ({ organizationId: world.organizationId, queue: 'two' });
  const gone = new AbortController();
  const claims = [world.platform, node].flatMap(({ offers }) =>
    Array.from({ length: 5 }, () => offers.claim(request(), 20_000, gone.signal)),
  );
  const winner = await Promise.race(claims);
  expect(winner!.sessionId).toBe(sessionId);
  gone.abort();
  const rows = await Promise.all(claims);
  expect(rows.filter((row) => row !== undefined)).toHaveLength(1);
});

test('a claim that gets a step while its client disconnects releases the step', async () => {
  const sessionId = await open('gone');
  const { offers, wake, db } = world.platform;
  const gone = new AbortController();
  const statements = channel('signalbox.statement');
  const leave = (text: unknown) => void (String(text).includes('insert into nodes') && gone.abort());
  statements.subscribe(leave);
  const givenBack = Promise.withResolvers<void>();
  const stopListening = wake.subscribe('runnable', () => givenBack.resolve());
  await offer(sessionId, 'gone');
  const request: ClaimRequest = { organizationId: world.organizationId, queue: 'gone' };
  expect(await offers.claim(request, 20_000, gone.signal)).toBeUndefined();
  await givenBack.promise;
  statements.unsubscribe(leave);
  stopListening();
  const rows = await db.query(sql`
    select node_id as "nodeId", epoch from sessions
    where organization_id = ${world.organizationId} and session_id = ${sessionId}`);
  expect(rows).toEqual([{ nodeId: null, epoch: 2 }]);
});

test('a repeated claim whose step was released in the meantime returns null, not an error that would end its program', async () => {
  const sessionId = await open('replayed');
  await offer(sessionId, 'replayed');
  const { ctx } = world;
  const input = { queue: 'replayed', waitSeconds: 0 };
  const own = { ...ctx, idempotencyKey: 'one' };
  expect((await claimWorkerTurn(own, input)).workerTurn).not.toBeNull();
  const givenBackBefore: typeof ctx.db.query = async (statement) => {
    // As the first claim does when its caller has disconnected.
    if (statement.text.includes('lease_expires_at as "expiresAt"'))
      await ctx.db.execute(sql`delete from nodes where claim is not null`);
    return ctx.db.query(statement);
  };
  const again = { ...own, db: { ...ctx.db, query: givenBackBefore } };
  expect(await claimWorkerTurn(again, input)).toEqual({ workerTurn: null });
});

test('a claim that is sent again while the first one waits gets the same step, here and on another node', async () => {
  const sessionId = await open('twice');
  const own = { ...world.ctx, idempotencyKey: 'twice' };
  const elsewhere = { ...own, ...(await world.anotherNode()) };
  const input = { queue: 'twice', waitSeconds: 20 };
  const waits = [own, own, elsewhere].map((ctx) => claimWorkerTurn(ctx, input));
  await looked();
  await offer(sessionId, 'twice');
  announce(sessionId, 'twice');
  const [first, second] = await Promise.all(waits.slice(0, 2));
  expect(first!.workerTurn).toMatchObject({ sessionId: formatId('ses', sessionId) });
  expect(second!.workerTurn!.workerTurnId).toBe(first!.workerTurn!.workerTurnId);
  await clock.advance(20_000);
  expect((await waits[2])!.workerTurn!.workerTurnId).toBe(first!.workerTurn!.workerTurnId);
});

test('an organization can’t use all the capacity for claims', async () => {
  const gone = new AbortController();
  const requestOf = (organizationId: string): ClaimRequest => ({ organizationId, queue: 'many' });
  const { offers } = world.platform;
  const waits = Array.from({ length: 2_000 }, () => offers.claim(requestOf(world.organizationId), 60_000, gone.signal));
  await expect(offers.claim(requestOf(world.organizationId), 60_000, gone.signal)).rejects.toMatchObject({
    code: 'unavailable',
  });
  const ofAnother = offers.claim(requestOf(newUuid()), 60_000, gone.signal);
  gone.abort();
  expect(new Set(await Promise.all([...waits, ofAnother]))).toEqual(new Set([undefined]));
  expect(await offers.claim(requestOf(world.organizationId), 0, new AbortController().signal)).toBeUndefined();
});

test('text that a worker sends at the moment of an interrupt is refused', async () => {
  const sessionId = await open('interrupted');
  await offer(sessionId, 'interrupted');
  const { nodeId } = (await claim('interrupted'))!;
  const { ctx } = world;
  const batch: typeof ctx.db.batch = async (statements) => {
    await interruptSession(ctx, { sessionId: formatId('ses', sessionId) });
    return ctx.db.batch(statements);
  };
  const input = { workerTurnId: formatId('wtn', nodeId!), deltas: ['too late'] };
  await expect(appendToWorkerTurn({ ...ctx, db: { ...ctx.db, batch } }, input)).rejects.toMatchObject({
    code: 'turn_lost',
  });
  expect(outline(await world.chunks(formatId('ses', sessionId)))).toEqual(['running']);
});
