// Long chunks, such as results of tools, are delivered a few at a time: together they would not fit into the memory of a node.
import sql from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { formatId } from '../../src/lib/ids.ts';
import { resendDelivery } from '../../src/webhooks/deliveries.ts';
import { append, createWorld, status, type TestSession, toolResult, type World } from '../support/webhooks.ts';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(() => world.end());

const MAX_LONG = 8;
const longResult = () =>
  ({ ...(toolResult() as object), output: 'x'.repeat(100_000) }) as ReturnType<typeof toolResult>;
const idsOf = (sessions: readonly TestSession[]) =>
  new Set(sessions.map(({ sessionId }) => formatId('ses', sessionId)));

/** Sessions in which a long chunk waits, with a short one before it and one after it. */
async function withLongChunks(count: number): Promise<TestSession[]> {
  const sessions = await Promise.all(Array.from({ length: count }, () => world.session()));
  for (const session of sessions)
    for (const item of [status(), longResult(), status()]) await append(world, session, [item], { isQuiet: true });
  return sessions;
}

test('while the receiver takes its time, a node has eight long chunks in memory, and delivers short ones meanwhile', async () => {
  const slow = Promise.withResolvers<void>();
  let open = 0;
  let most = 0;
  const receiver = await world.receiver(async ({ body }) => {
    if (body.length < 64 * 1024) return 200;
    open += 1;
    most = Math.max(most, open);
    await slow.promise;
    open -= 1;
    return 200;
  });
  await world.subscribe(receiver.url, { chunkTypes: ['session.status', 'tool.result'] });
  const sessions = await withLongChunks(30);
  await world.node();
  await expect.poll(() => open).toBe(MAX_LONG);
  const quick = await world.session();
  await append(world, quick, [status()]);
  await world.delivered(quick);
  expect(open).toBe(MAX_LONG);
  slow.resolve();
  await world.advanceUntil(() => world.isDelivered(...sessions));
  expect(most).toBe(MAX_LONG);
  for (const id of idsOf(sessions)) {
    const own = receiver.received.filter(({ envelope }) => envelope.sessionId === id);
    expect(own.flatMap(({ envelope }) => envelope.chunks.map(({ seq }) => seq))).toEqual([1, 2, 3]);
  }
});

test('so are deliveries that are sent again', async () => {
  let slow = Promise.resolve();
  let open = 0;
  let most = 0;
  const receiver = await world.receiver(async ({ body }) => {
    if (body.length < 64 * 1024) return 200;
    open += 1;
    most = Math.max(most, open);
    await slow;
    open -= 1;
    return 200;
  });
  await world.subscribe(receiver.url, { chunkTypes: ['session.status', 'tool.result'] });
  const sessions = await withLongChunks(20);
  await world.node();
  await world.advanceUntil(() => world.isDelivered(...sessions));
  const long = receiver.received.filter(({ body }) => body.length > 64 * 1024).map(({ deliveryId }) => deliveryId);
  const resend = (deliveryId: string) => resendDelivery(world.context(), { env: 'production', deliveryId });
  const sent = (deliveryId: string) =>
    receiver.received.filter((received) => received.deliveryId === deliveryId).length;
  const { promise, resolve } = Promise.withResolvers<void>();
  slow = promise;
  most = 0;
  for (const deliveryId of long) await resend(deliveryId);
  await world.advanceUntil(() => open >= MAX_LONG, 250);
  const other = await world.session();
  await append(world, other, [status()]);
  await world.delivered(other);
  expect(open).toBe(MAX_LONG);
  resolve();
  await world.advanceUntil(() => long.every((deliveryId) => sent(deliveryId) === 2));
  expect(most).toBe(MAX_LONG);
  const waiting = sql`select 1 from webhook_deliveries where next_attempt_at is not null`;
  await world.advanceUntil(async () => (await world.db.query(waiting)).length === 0);
});

test('a long chunk that the subscription does not want is passed over', async () => {
  const receiver = await world.receiver();
  await world.subscribe(receiver.url, { chunkTypes: ['session.status'] });
  const sessions = await withLongChunks(20);
  await world.node();
  await world.advanceUntil(() => world.isDelivered(...sessions));
  for (const id of idsOf(sessions)) {
    const own = receiver.received.filter(({ envelope }) => envelope.sessionId === id);
    expect(own.flatMap(({ envelope }) => envelope.chunks.map(({ seq }) => seq))).toEqual([1, 3]);
  }
});
