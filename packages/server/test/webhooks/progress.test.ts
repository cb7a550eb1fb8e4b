// The statements that move deliveries on, against a node that was overtaken.
import sql from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { EgressResponse } from '../../src/egress/egress.ts';
import { newUuid } from '../../src/lib/ids.ts';
import { Semaphore } from '../../src/lib/semaphore.ts';
import { areAnyFree, findCandidates, type Held, hold } from '../../src/webhooks/sending/assignments.ts';
import { nextStep } from '../../src/webhooks/sending/batch.ts';
import { Standing } from '../../src/webhooks/sending/destination-health.ts';
import {
  type Done,
  type FixInput,
  fixMany,
  readMany,
  settleMany,
  type View,
} from '../../src/webhooks/sending/progress.ts';
import { type Hand, type Host, SessionLoop } from '../../src/webhooks/sending/session-loop.ts';
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

async function claim({ leaseSeconds = 60 } = {}): Promise<{ held: Held; nodeId: string }> {
  const nodeId = newUuid();
  await world.db.query(sql`
    insert into nodes (node_id, lease_expires_at)
    values (${nodeId}, now() + ${`${leaseSeconds} seconds`}::interval)`);
  const [held] = await hold(world.platform, nodeId, (await findCandidates(world.platform, nodeId)).rows);
  return { held: held!, nodeId };
}

async function expire(nodeId: string): Promise<void> {
  await world.db.query(sql`update nodes set lease_expires_at = now() where node_id = ${nodeId}`);
}

async function read(held: Held): Promise<View> {
  const [view] = await readMany(world.db, held, [{ sessionId: session.sessionId, after: undefined }]);
  return view!;
}

function fixOf(view: View, done?: Done): FixInput {
  const step = nextStep(view, ['session.status'], 100);
  if (step.kind !== 'send') throw new Error(`there is nothing to send: ${step.kind}`);
  return {
    epoch: view.epoch,
    after: view.after,
    done,
    next: {
      ...step.content,
      deliveryId: newUuid(),
      sessionId: session.sessionId,
      previousCursor: '',
      attemptCount: 0,
      retries: 0,
      nextAttemptAt: null,
      body: null,
    },
  };
}

const fix = async (held: Held, input: FixInput) => (await fixMany(world.db, held, [input], world.clock.now()))[0];
const settle = async (held: Held, done: Done) => (await settleMany(world.db, held, [{ done }], world.clock.now()))[0];
const doneOf = ({ next }: FixInput): Done => ({ delivery: next, attempts: [], through: next.to });

test('a subscription has one holder; another may claim it when the lease is over, and a node without one holds nothing', async () => {
  const first = await claim();
  const second = newUuid();
  expect((await findCandidates(world.platform, second)).rows).toEqual([]);
  await world.db.query(sql`
    insert into nodes (node_id, lease_expires_at) values (${second}, now() + interval '1 minute')`);
  expect((await findCandidates(world.platform, second)).rows).toEqual([]);
  expect((await findCandidates(world.platform, first.nodeId)).rows).toMatchObject([{ isHeld: true }]);
  await expire(first.nodeId);
  expect((await findCandidates(world.platform, first.nodeId)).rows).toEqual([]);
  expect((await findCandidates(world.platform, second)).rows).toMatchObject([
    { isHeld: false, epoch: first.held.epoch },
  ]);
});

test('a subscription is free until it is claimed, after each change of it, and once its node is gone', async () => {
  const [before, after] = ['00000000-0000-4000-8000-000000000000', 'ffffffff-ffff-4fff-bfff-ffffffffffff'];
  expect(await areAnyFree(world.platform, [before, after])).toBe(true);
  const first = await claim();
  const isFree = () => areAnyFree(world.platform, [before, first.nodeId, after]);
  const again = async () => {
    expect(await isFree()).toBe(true);
    await hold(world.platform, first.nodeId, (await findCandidates(world.platform, first.nodeId)).rows);
    expect(await isFree()).toBe(false);
  };
  expect(await isFree()).toBe(false);
  expect(await areAnyFree(world.platform, [before, after])).toBe(true);
  expect(await areAnyFree(world.platform, [before])).toBe(true);
  expect(await areAnyFree(world.platform, [after])).toBe(true);
  await updateWebhookSubscription(world.context(), { env: 'production', url: 'https://example.com/other' });
  await again();
  await rotateWebhookSecret(world.context(), { env: 'production' });
  await again();
  await updateWebhookSubscription(world.context(), { env: 'production', status: 'paused' });
  expect(await isFree()).toBe(false);
  await updateWebhookSubscription(world.context(), { env: 'production', status: 'enabled' });
  await again();
});

test('of two nodes that found it free, one gets it', async () => {
  const workers = [newUuid(), newUuid()];
  for (const nodeId of workers) {
    await world.db.query(sql`
      insert into nodes (node_id, lease_expires_at) values (${nodeId}, now() + interval '1 minute')`);
  }
  const found = await Promise.all(workers.map((nodeId) => findCandidates(world.platform, nodeId)));
  const held = await Promise.all(workers.map((nodeId, n) => hold(world.platform, nodeId, found[n]!.rows)));
  expect(held.flat()).toHaveLength(1);
});

test('a node that was overtaken fixes nothing, though it read before', async () => {
  const first = await claim();
  await append(world, session, [status()]);
  const stale = fixOf(await read(first.held));
  await expire(first.nodeId);
  const second = await claim();
  expect(await fix(first.held, stale)).toBe(false);
  expect(await fix(second.held, fixOf(await read(second.held)))).toBe(true);
  const rows = await world.db.query(sql`select 1 from pending_deliveries`);
  expect(rows).toHaveLength(1);
});

test('a change of the filter, a pause and a deletion stop what was read before them', async () => {
  const { held } = await claim();
  await append(world, session, [status()]);
  const view = await read(held);
  await updateWebhookSubscription(world.context(), { env: 'production', chunkTypes: ['tool.result'] });
  expect(await fix(held, fixOf(view))).toBe(false);
  const { head, after, epoch } = view;
  const skip = { sessionId: session.sessionId, epoch, after, through: head };
  expect(await settleMany(world.db, held, [skip], world.clock.now())).toEqual([undefined]);

  const changed = { ...held, epoch: held.epoch + 1 };
  await updateWebhookSubscription(world.context(), { env: 'production', status: 'paused' });
  expect(await fix(changed, { ...fixOf(view), epoch: changed.epoch })).toBe(false);
  await deleteWebhookSubscription(world.context(), { env: 'production' });
  expect(await readMany(world.db, changed, [{ sessionId: session.sessionId, after: undefined }])).toEqual([undefined]);
  expect(await world.db.query(sql`select 1 from pending_deliveries`)).toEqual([]);
});

test('two fixes of one Session make one delivery, and each acknowledgement counts once', async () => {
  const { held } = await claim();
  await append(world, session, [status()]);
  const view = await read(held);
  const [one, other] = [fixOf(view), fixOf(view)];
  const fixed = await Promise.all([fix(held, one), fix(held, other)]);
  expect(fixed.toSorted()).toEqual([false, true]);
  const winner = fixed[0] ? one : other;

  await append(world, session, [status()]);
  const [behind] = await readMany(world.db, held, [{ sessionId: session.sessionId, after: winner.next.to }]);
  const follower = fixOf(behind!, doneOf(winner));
  expect(await fix(held, follower)).toBe(true);
  // The one before was acknowledged with it: neither a late acknowledgement nor a second follower finds it again.
  expect(await settle(held, doneOf(winner))).toBeUndefined();
  expect(await fix(held, fixOf(behind!, doneOf(winner)))).toBe(false);
  expect(await settle(held, doneOf(follower))).toBe(false);
  const rows = await world.db.query(sql`select status from webhook_deliveries order by delivery_id`);
  expect(rows).toEqual([{ status: 'succeeded' }, { status: 'succeeded' }]);
});

test('however many fix one Session at the same moment, one of them does', async () => {
  const { held } = await claim();
  for (let round = 0; round < 20; round += 1) {
    session = await world.session();
    await append(world, session, [status()]);
    const view = await read(held);
    const fixed = await Promise.all(Array.from({ length: 6 }, () => fix(held, fixOf(view))));
    expect(fixed.filter(Boolean)).toHaveLength(1);
  }
  expect(await world.db.query(sql`select 1 from pending_deliveries`)).toHaveLength(20);
});

test('a fix that starts elsewhere than the Session has come to is refused', async () => {
  const { held } = await claim();
  await append(world, session, [status()]);
  const early = fixOf(await read(held));
  const first = fixOf(await read(held));
  await fix(held, first);
  await settle(held, doneOf(first));
  expect(await fix(held, early)).toBe(false);
});

test('an acknowledgement leaves the Session due exactly where something stands behind it', async () => {
  const { held } = await claim();
  await append(world, session, [status()]);
  const first = fixOf(await read(held));
  await fix(held, first);
  await append(world, session, [toolResult()], { isQuiet: true });
  expect(await settle(held, doneOf(first))).toBe(true);
  const { head, after, epoch } = await read(held);
  const skip = { sessionId: session.sessionId, epoch, after, through: head };
  expect(await settleMany(world.db, held, [skip], world.clock.now())).toEqual([false]);
});

test('what is read is bounded, however large the chunks are', async () => {
  const { held } = await claim();
  for (let n = 0; n < 5; n += 1) await append(world, session, ['x'.repeat(50_000)]);
  expect((await read(held)).segments).toHaveLength(2);
  for (let n = 0; n < 120; n += 1) await append(world, session, [status()]);
  const [view] = await readMany(world.db, held, [{ sessionId: session.sessionId, after: { turn: 1, seq: 5 } }]);
  expect(view!.segments).toHaveLength(100);
});

test('an acknowledgement waits for what is being fixed, and goes with the next delivery where a chunk comes meanwhile', async () => {
  const { held } = await claim();
  const answers: PromiseWithResolvers<EgressResponse>[] = [];
  const request = () => {
    const answer = Promise.withResolvers<EgressResponse>();
    answers.push(answer);
    return answer.promise;
  };
  const accept = (index: number) =>
    answers[index]!.resolve({ status: 200, headers: {}, body: Buffer.alloc(0), truncated: false });
  const host: Host = {
    held,
    isActive: true,
    halted: new AbortController().signal,
    standing: new Standing(world.platform, held),
    slots: new Semaphore(2),
    maySend: () => true,
    halt() {},
    waitForRetry() {},
    async accepted() {},
  };
  const loop = new SessionLoop({ ...world.platform, egress: { ...world.platform.egress, request } }, host, {
    version: '0.0.0',
    random: () => 0,
    onStale() {},
    signal: host.halted,
  });
  const handOf = (): Hand => ({ isWoken: false, since: undefined, isProbe: false, resends: [] });
  const fixes = world.statementsLike(/^update sessions s set delivery_id = b\.delivery_id/);
  const acknowledgements = world.statementsLike(/^update sessions s set delivery_id = null/);

  const hand = handOf();
  await append(world, session, [status()]);
  const first = loop.run(session.sessionId, hand);
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
  const second = loop.run(other.sessionId, handOf());
  await world.advanceUntil(() => fixes.count() === 2, 0);

  accept(0);
  for (let turn = 0; turn < 10; turn += 1) await world.db.query(sql`select 1`);
  expect(acknowledgements.count()).toBe(0);
  await append(world, session, [status()]);
  hand.isWoken = true;
  unlock.resolve();
  await changing;
  await world.advanceUntil(() => answers.length === 3, 0);
  expect(acknowledgements.count()).toBe(0);
  accept(1);
  accept(2);
  await Promise.all([first, second]);
  const rows = await world.db.query(sql`select status from webhook_deliveries`);
  expect(rows).toEqual(Array(3).fill({ status: 'succeeded' }));
});
