// The statements that advance deliveries, also those of a node that was overtaken.
import sql from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { nextStep } from '../../src/deliveries/batch.ts';
import { type FinishedDelivery, newDelivery } from '../../src/deliveries/delivery.ts';
import {
  type Assignment,
  claimSubscriptions,
  findClaimable,
  isAnyUnassigned,
} from '../../src/deliveries/destinations/assignments.ts';
import { DestinationHealth } from '../../src/deliveries/destinations/destination-health.ts';
import { subscriptionHealth } from '../../src/deliveries/destinations/subscription-changes.ts';
import {
  type AdvanceInput,
  advanceMany,
  type DeliveryProgress,
  type NextInput,
  postponeMany,
  readMany,
} from '../../src/deliveries/progress.ts';
import { type SenderContext, SessionLoop } from '../../src/deliveries/session-loop.ts';
import type { SessionWork } from '../../src/deliveries/session-work.ts';
import type { EgressResponse } from '../../src/egress/exchange.ts';
import { createFairShare } from '../../src/lib/fair-share.ts';
import { newUuid } from '../../src/lib/ids.ts';
import { Semaphore } from '../../src/lib/semaphore.ts';
import {
  deleteWebhookSubscription,
  rotateWebhookSecret,
  updateWebhookSubscription,
} from '../../src/webhooks/subscriptions.ts';
import { append, createWorld, status, type TestSession, toolResult, type World } from '../support/webhooks.ts';

let world: World;
let session: TestSession;

beforeEach(async () => {
  world = await createWorld();
  await world.subscribe('https://example.com/');
  session = await world.session();
});

afterEach(() => world.end());

async function claim({ leaseSeconds = 60 } = {}): Promise<{ assignment: Assignment; nodeId: string }> {
  const nodeId = newUuid();
  await world.db.query(sql`
    insert into nodes (node_id, lease_expires_at)
    values (${nodeId}, now() + ${`${leaseSeconds} seconds`}::interval)`);
  const [assignment] = await claimSubscriptions(
    world.platform,
    nodeId,
    (await findClaimable(world.platform, nodeId)).rows,
  );
  return { assignment: assignment!, nodeId };
}

async function expire(nodeId: string): Promise<void> {
  await world.db.query(sql`update nodes set lease_expires_at = now() where node_id = ${nodeId}`);
}

async function read(assignment: Assignment): Promise<DeliveryProgress> {
  const [view] = await readMany(world.db, assignment, [{ sessionId: session.sessionId, after: undefined }]);
  return view!;
}

function nextOf(view: DeliveryProgress, done?: FinishedDelivery): NextInput {
  const step = nextStep(view, ['session.status'], 100);
  if (step.kind !== 'send') throw new Error(`there is nothing to send: ${step.kind}`);
  return {
    epoch: view.epoch,
    after: view.after,
    done,
    next: newDelivery(session.sessionId, step.content, ''),
  };
}

const advance = async (assignment: Assignment, input: AdvanceInput) =>
  (await advanceMany(world.db, assignment, [input], world.clock.now()))[0];
const store = async (assignment: Assignment, input: NextInput) => (await advance(assignment, input)) !== undefined;
const acknowledge = (assignment: Assignment, done: FinishedDelivery) => advance(assignment, { done });
const doneOf = ({ next }: NextInput): FinishedDelivery => ({ delivery: next, attempts: [], through: next.to });

test('a subscription is assigned to one node; another may claim it when the lease has expired, and a node without a lease has none', async () => {
  const first = await claim();
  const second = newUuid();
  expect((await findClaimable(world.platform, second)).rows).toEqual([]);
  await world.db.query(sql`
    insert into nodes (node_id, lease_expires_at) values (${second}, now() + interval '1 minute')`);
  expect((await findClaimable(world.platform, second)).rows).toEqual([]);
  const { rows: own } = await findClaimable(world.platform, first.nodeId);
  expect(own).toMatchObject([{ isAssigned: true }]);
  // A claim of what the node has already changes nothing: it may not have received the result of its first claim.
  const { epoch, webhookSubscriptionId } = first.assignment;
  expect(await claimSubscriptions(world.platform, first.nodeId, own)).toMatchObject([{ epoch, webhookSubscriptionId }]);
  await expire(first.nodeId);
  expect((await findClaimable(world.platform, first.nodeId)).rows).toEqual([]);
  expect((await findClaimable(world.platform, second)).rows).toMatchObject([
    { isAssigned: false, epoch: first.assignment.epoch },
  ]);
});

test('a subscription is unassigned until it is claimed, after each change of it, and when its node is gone', async () => {
  const [before, after] = ['00000000-0000-4000-8000-000000000000', 'ffffffff-ffff-4fff-bfff-ffffffffffff'];
  expect(await isAnyUnassigned(world.platform, [before, after])).toBe(true);
  const first = await claim();
  const isFree = () => isAnyUnassigned(world.platform, [before, first.nodeId, after]);
  const again = async () => {
    expect(await isFree()).toBe(true);
    await claimSubscriptions(world.platform, first.nodeId, (await findClaimable(world.platform, first.nodeId)).rows);
    expect(await isFree()).toBe(false);
  };
  expect(await isFree()).toBe(false);
  expect(await isAnyUnassigned(world.platform, [before, after])).toBe(true);
  expect(await isAnyUnassigned(world.platform, [before])).toBe(true);
  expect(await isAnyUnassigned(world.platform, [after])).toBe(true);
  await updateWebhookSubscription(world.context(), { env: 'production', url: 'https://example.com/other' });
  await again();
  await rotateWebhookSecret(world.context(), { env: 'production' });
  await again();
  await updateWebhookSubscription(world.context(), { env: 'production', status: 'paused' });
  expect(await isFree()).toBe(false);
  await updateWebhookSubscription(world.context(), { env: 'production', status: 'enabled' });
  await again();
});

test('only one of two nodes that found a subscription unassigned gets it', async () => {
  const nodes = [newUuid(), newUuid()];
  for (const nodeId of nodes) {
    await world.db.query(sql`
      insert into nodes (node_id, lease_expires_at) values (${nodeId}, now() + interval '1 minute')`);
  }
  const found = await Promise.all(nodes.map((nodeId) => findClaimable(world.platform, nodeId)));
  const claimed = await Promise.all(
    nodes.map((nodeId, n) => claimSubscriptions(world.platform, nodeId, found[n]!.rows)),
  );
  expect(claimed.flat()).toHaveLength(1);
});

test('a node that was overtaken stores no delivery, even if it read before', async () => {
  const first = await claim();
  await append(world, session, [status()]);
  const stale = nextOf(await read(first.assignment));
  await expire(first.nodeId);
  const second = await claim();
  expect(await store(first.assignment, stale)).toBe(false);
  expect(await store(second.assignment, nextOf(await read(second.assignment)))).toBe(true);
  const rows = await world.db.query(sql`select 1 from pending_deliveries`);
  expect(rows).toHaveLength(1);
});

test('a change of the filter, a pause and a deletion invalidate what was read before', async () => {
  const { assignment } = await claim();
  await append(world, session, [status()]);
  const view = await read(assignment);
  await updateWebhookSubscription(world.context(), { env: 'production', chunkTypes: ['tool.result'] });
  expect(await store(assignment, nextOf(view))).toBe(false);
  const { head, after, epoch } = view;
  const skip = { sessionId: session.sessionId, epoch, after, through: head };
  expect(await advance(assignment, skip)).toBeUndefined();

  const changed = { ...assignment, epoch: assignment.epoch + 1 };
  await updateWebhookSubscription(world.context(), { env: 'production', status: 'paused' });
  expect(await store(changed, { ...nextOf(view), epoch: changed.epoch })).toBe(false);
  await deleteWebhookSubscription(world.context(), { env: 'production' });
  expect(await readMany(world.db, changed, [{ sessionId: session.sessionId, after: undefined }])).toEqual([undefined]);
  expect(await world.db.query(sql`select 1 from pending_deliveries`)).toEqual([]);
});

test('two nodes that store the next delivery of a session store one, and each acknowledgement counts once', async () => {
  const { assignment } = await claim();
  await append(world, session, [status()]);
  const view = await read(assignment);
  const [one, other] = [nextOf(view), nextOf(view)];
  const stored = await Promise.all([store(assignment, one), store(assignment, other)]);
  expect(stored.toSorted()).toEqual([false, true]);
  const winner = stored[0] ? one : other;

  await append(world, session, [status()]);
  const [behind] = await readMany(world.db, assignment, [{ sessionId: session.sessionId, after: winner.next.to }]);
  const follower = nextOf(behind!, doneOf(winner));
  expect(await store(assignment, follower)).toBe(true);
  // The previous delivery was acknowledged with it: a late acknowledgement or a second follower no longer finds it.
  expect(await acknowledge(assignment, doneOf(winner))).toBeUndefined();
  expect(await store(assignment, nextOf(behind!, doneOf(winner)))).toBe(false);
  expect(await acknowledge(assignment, doneOf(follower))).toBe(false);
  const rows = await world.db.query(sql`select status from webhook_deliveries order by delivery_id`);
  expect(rows).toEqual([{ status: 'succeeded' }, { status: 'succeeded' }]);
});

test('of many concurrent attempts to store the next delivery of a session one succeeds', async () => {
  const { assignment } = await claim();
  for (let round = 0; round < 20; round += 1) {
    session = await world.session();
    await append(world, session, [status()]);
    const view = await read(assignment);
    const stored = await Promise.all(Array.from({ length: 6 }, () => store(assignment, nextOf(view))));
    expect(stored.filter(Boolean)).toHaveLength(1);
  }
  expect(await world.db.query(sql`select 1 from pending_deliveries`)).toHaveLength(20);
});

test('a delivery that does not start at the position of the session is not stored', async () => {
  const { assignment } = await claim();
  await append(world, session, [status()]);
  const early = nextOf(await read(assignment));
  const first = nextOf(await read(assignment));
  await store(assignment, first);
  await acknowledge(assignment, doneOf(first));
  expect(await store(assignment, early)).toBe(false);
});

test('after an acknowledgement the session is due exactly if more chunks wait', async () => {
  const { assignment } = await claim();
  await append(world, session, [status()]);
  const first = nextOf(await read(assignment));
  await store(assignment, first);
  await append(world, session, [toolResult()], { isQuiet: true });
  expect(await acknowledge(assignment, doneOf(first))).toBe(true);
  const { head, after, epoch } = await read(assignment);
  const skip = { sessionId: session.sessionId, epoch, after, through: head };
  expect(await advance(assignment, skip)).toBe(false);
});

test('a read has a maximum size, however large the chunks are', async () => {
  const { assignment } = await claim();
  for (let n = 0; n < 5; n += 1) await append(world, session, ['x'.repeat(50_000)]);
  expect((await read(assignment)).segments).toHaveLength(1);
  for (let n = 0; n < 120; n += 1) await append(world, session, [status()]);
  const [view] = await readMany(world.db, assignment, [{ sessionId: session.sessionId, after: { turn: 1, seq: 5 } }]);
  expect(view!.segments).toHaveLength(100);
});

test('what is longer than a delivery with several chunks is read alone, and only on request', async () => {
  const { assignment } = await claim();
  const { sessionId } = session;
  await append(world, session, ['x'.repeat(70_000)]);
  await append(world, session, [status()]);
  const [short] = await readMany(world.db, assignment, [{ sessionId, after: undefined }]);
  expect(short).toMatchObject({ isTooLong: true, segments: [] });
  const [long] = await readMany(world.db, assignment, [{ sessionId, after: undefined, mayBeLong: true }]);
  expect(long).toMatchObject({ isTooLong: false, segments: [{ seqTo: 1 }], head: { seq: 2 } });
  const [rest] = await readMany(world.db, assignment, [{ sessionId, after: { turn: 1, seq: 1 } }]);
  expect(rest).toMatchObject({ isTooLong: false, segments: [{ seqTo: 2 }] });
});

test('a long body that was stored after a failed attempt is read on request as well', async () => {
  const { assignment } = await claim();
  await append(world, session, [status()]);
  const next = nextOf(await read(assignment));
  await store(assignment, next);
  const body = Buffer.from('x'.repeat(70_000));
  const at = world.clock.now();
  const failed = { delivery: next.next, attempts: [], retries: 1, nextAttemptAt: at, notBefore: null, body };
  await postponeMany(world.db, assignment, [failed]);
  expect(await read(assignment)).toMatchObject({ isTooLong: true, delivery: { body: null } });
  const [long] = await readMany(world.db, assignment, [
    { sessionId: session.sessionId, after: undefined, mayBeLong: true },
  ]);
  expect(long).toMatchObject({ isTooLong: false, delivery: { body: body.toString() } });
});

test('an acknowledgement waits for the statement in progress, and is combined with the next delivery if a chunk arrives meanwhile', async () => {
  const { assignment } = await claim();
  const answers: PromiseWithResolvers<EgressResponse>[] = [];
  const request = () => {
    const answer = Promise.withResolvers<EgressResponse>();
    answers.push(answer);
    return answer.promise;
  };
  const accept = (index: number) =>
    answers[index]!.resolve({ status: 200, headers: {}, body: Buffer.alloc(0), truncated: false });
  const sender: SenderContext = {
    assignment,
    isActive: true,
    halted: new AbortController().signal,
    health: new DestinationHealth(world.platform, assignment, subscriptionHealth),
    slots: new Semaphore(2),
    maySend: () => true,
    halt() {},
    waitForRetry() {},
    async accepted() {},
  };
  const loop = new SessionLoop({ ...world.platform, egress: { request } }, sender, {
    version: '0.0.0',
    random: () => 0,
    long: createFairShare({ max: 1 }),
    onStale() {},
    signal: sender.halted,
  });
  const newWork = (): SessionWork => ({ isWoken: false, since: undefined, isProbe: false, redeliveries: [] });
  const advances = world.statementsLike(/^update sessions s set delivery_id = b\.next_id/);

  const work = newWork();
  await append(world, session, [status()]);
  const first = loop.run(session.sessionId, work);
  await world.advanceUntil(() => answers.length === 1, 0);

  const [locked, unlock] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const changing = world.db.transaction(async (tx) => {
    await tx.query(sql`
      select 1 from webhook_subscriptions where organization_id = ${world.organizationId} for update`);
    locked.resolve();
    await unlock.promise;
  });
  await locked.promise;
  const other = await world.session();
  await append(world, other, [status()]);
  const second = loop.run(other.sessionId, newWork());
  await world.advanceUntil(() => advances.count() === 2, 0);

  accept(0);
  for (let turn = 0; turn < 10; turn += 1) await world.db.query(sql`select 1`);
  expect(advances.count()).toBe(2);
  await append(world, session, [status()]);
  work.isWoken = true;
  unlock.resolve();
  await changing;
  await world.advanceUntil(() => answers.length === 3, 0);
  expect(advances.count()).toBe(3);
  accept(1);
  accept(2);
  await Promise.all([first, second]);
  const rows = await world.db.query(sql`select status from webhook_deliveries`);
  expect(rows).toEqual(Array(3).fill({ status: 'succeeded' }));
});
