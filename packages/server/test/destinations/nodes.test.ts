// Which node sends to the destinations of an organization, whatever happens to the nodes.
import sql from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { nodeFor } from '../../src/deliveries/destinations/shares.ts';
import { newUuid } from '../../src/lib/ids.ts';
import { arrived, createDestinationWorld, type DestinationWorld, newSession } from '../support/destinations.ts';

let world: DestinationWorld;
beforeEach(async () => {
  world = await createDestinationWorld();
});
afterEach(() => world.end());

const holders = async () =>
  new Set(
    (await world.db.query<{ id: string | null }>(sql`select node_id as id from destinations`)).map(({ id }) => id),
  );

/** An id with which a node gets the organization, or not, next to these. */
function nodeWith(share: boolean, others: readonly string[]): string {
  for (;;) {
    const id = newUuid();
    if ((nodeFor(world.organizationId, [...others, id]) === id) === share) return id;
  }
}

test('one node sends to all destinations of an organization; a node that joins takes them over, and nothing is lost or repeated', async () => {
  const receivers = [await world.receiver(), await world.receiver()];
  for (const { url } of receivers) await world.destination(url);
  const first = await world.sender();
  const session = newSession();
  await world.record(session);
  await world.advanceUntil(() => receivers.every((receiver) => arrived(receiver).length === 1));
  expect(await holders()).toEqual(new Set([first.nodeId]));

  const second = await world.sender({ nodeId: nodeWith(true, [first.nodeId]) });
  await world.advanceUntil(async () => (await holders()).has(second.nodeId) && (await holders()).size === 1);
  await world.record(session);
  await world.advanceUntil(() => receivers.every((receiver) => arrived(receiver).length === 2));

  await second.dispatcher.stop();
  await world.record(session);
  await world.advanceUntil(() => receivers.every((receiver) => arrived(receiver).length === 3));
  for (const receiver of receivers) {
    const sequences = arrived(receiver).map(({ sequence }) => sequence);
    expect(sequences).toEqual([...new Set(sequences)].sort((a, b) => a - b));
  }
});

test('if the node dies in the middle of a delivery, another sends it again and continues in order', async () => {
  const session = newSession();
  const receiver = await world.receiver(() => new Promise(() => {}));
  await world.destination(receiver.url);
  const dead = await world.sender();
  await world.record(session);
  await world.advanceUntil(() => receiver.received.length === 1);
  await world.record(session);
  await world.clock.pass(2_000);
  // As if its process were gone: its lease ends, and what it does from now on has no effect.
  await world.db.query(sql`update nodes set lease_expires_at = now() - interval '1 second'`);
  receiver.respond = () => 200;
  await world.sender();
  await world.advanceUntil(() => arrived(receiver).length === 3);
  const [first, again, next] = receiver.received;
  expect(again!.deliveryId).toBe(first!.deliveryId);
  expect(again!.body).toBe(first!.body);
  expect(arrived({ received: [again!, next!] }).map(({ sequence }) => sequence)).toEqual(
    [...arrived({ received: [again!, next!] })].map(({ sequence }) => sequence).sort((a, b) => a - b),
  );
  await dead.dispatcher.stop();
});

test('nodes of the previous release get no share, although they send webhooks', async () => {
  const receiver = await world.receiver();
  const own = newUuid();
  await world.destination(receiver.url);
  await world.db.query(sql`
    insert into nodes (node_id, lease_expires_at, delivers)
    values (${nodeWith(true, [own])}, now() + interval '1 day', true)`);
  await world.sender({ nodeId: own });
  await world.record(newSession());
  await world.advanceUntil(() => receiver.received.length === 1);
  expect(await holders()).toEqual(new Set([own]));
});

test('an organization without destinations costs no query of its own', async () => {
  await world.sender();
  await world.clock.pass(2_000);
  const looks = world.statementsLike(/event_heads|events_pending/);
  await world.record(newSession());
  await world.clock.pass(10_000);
  expect(looks.count()).toBe(1);
});
