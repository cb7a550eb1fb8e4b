// How records of the event log reach destinations: in order, at least once, whatever the receiver and the nodes do.

import sql from 'sql-template-tag';
import { Webhook } from 'standardwebhooks';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  deleteDestination,
  getDestination,
  rotateDestinationSecret,
  updateDestination,
} from '../../src/destinations/destinations.ts';
import { recoverDestination } from '../../src/destinations/recover.ts';
import { getDestinationDelivery, listDestinationDeliveries } from '../../src/destinations/webhook/list.ts';
import { listEvents } from '../../src/events/events.ts';
import { dropEvents } from '../../src/events/retention.ts';
import { createEventWatch } from '../../src/events/watch.ts';
import {
  arrived,
  createDestinationWorld,
  type DestinationWorld,
  eventsOf,
  newSession,
} from '../support/destinations.ts';

const DAY_MS = 24 * 3600_000;

let world: DestinationWorld;
beforeEach(async () => {
  world = await createDestinationWorld();
});
afterEach(() => world.end());

const health = async (destinationId: string) => (await getDestination(world.context(), { destinationId })).destination;
const deliveries = async (destinationId: string) =>
  (await listDestinationDeliveries(world.context(), { destinationId })).data;
const inOrder = (sequences: readonly number[]) => expect(sequences).toEqual([...sequences].sort((a, b) => a - b));

test('records arrive exactly as the list of events has them, signed, within 2 s of their commit, and only those of the filter', async () => {
  const receiver = await world.receiver();
  const { signingSecret, destinationId } = await world.destination(receiver.url, {
    eventTypes: ['session.*', 'approval.requested'],
    environment: 'production',
  });
  await world.sender();
  await world.clock.pass(2_000);
  const [session, other] = [newSession(), newSession()];
  await world.record(session);
  await world.record(other, { environment: 'staging' });
  await world.record(other, { type: 'agent.updated' });
  await world.record(session, { type: 'approval.requested' });
  const committed = world.clock.now().getTime();
  await world.advanceUntil(() => arrived(receiver).length === 2, 500);
  expect(world.clock.now().getTime() - committed).toBeLessThanOrEqual(2_000);

  const context = { ...world.context(), eventWatch: createEventWatch(world.platform) };
  const { data } = await listEvents(context, { order: 'asc', sessionId: session });
  expect(arrived(receiver)).toEqual(data);
  const [first] = receiver.received;
  expect(Object.keys(JSON.parse(first!.body))).toEqual(['event', 'events']);
  expect(first!.envelope.event).toBe('organization.events');
  const headers = first!.headers as Record<string, string>;
  const at = Number(headers['webhook-timestamp']);
  // The library compares with the time of the machine.
  const verified = new Webhook(signingSecret).sign(headers['webhook-id']!, new Date(at * 1000), first!.body);
  expect(headers['webhook-signature']).toBe(verified);
  expect(first!.deliveryId).toMatch(/^dsd_/);
  expect(await deliveries(destinationId)).toMatchObject([{ status: 'succeeded', attemptCount: 1 }]);
});

test('a destination receives what is recorded after its creation, never what is about itself', async () => {
  const receiver = await world.receiver();
  const session = newSession();
  await world.record(session, { changes: { n: [null, 'before'] } });
  const { destinationId } = await world.destination(receiver.url, { eventTypes: ['*'] });
  await world.record(session, { changes: { n: [null, 'after'] } });
  await world.sender();
  await world.advanceUntil(() => arrived(receiver).length > 0);
  await updateDestination(world.context(), { destinationId, name: 'Another name' });
  await world.record(session, { changes: { n: [null, 'last'] } });
  await world.advanceUntil(() => arrived(receiver).length > 1);
  expect(arrived(receiver).map(({ changes }) => changes)).toEqual([{ n: [null, 'after'] }, { n: [null, 'last'] }]);
});

test('many records of many sessions arrive once each, in order within each session, in full deliveries', async () => {
  const receiver = await world.receiver();
  await world.destination(receiver.url);
  const sessions = Array.from({ length: 30 }, newSession);
  const busy = newSession();
  for (let n = 0; n < 5; n += 1) {
    await Promise.all(sessions.map((session) => world.record(session)));
    for (let k = 0; k < 50; k += 1) await world.record(busy);
  }
  const long = { changes: { text: [null, 'x'.repeat(3_000)] as [unknown, unknown] } };
  for (let k = 0; k < 50; k += 1) await world.record(sessions[0]!, long);
  await world.sender();
  await world.advanceUntil(() => arrived(receiver).length >= 450);
  const all = arrived(receiver);
  expect(new Set(all.map(({ sequence }) => sequence)).size).toBe(450);
  for (const session of [...sessions, busy]) {
    inOrder(all.filter(({ sessionId }) => sessionId === session).map(({ sequence }) => sequence));
  }
  for (const { body } of receiver.received) {
    expect(eventsOf({ body }).length).toBeLessThanOrEqual(100);
    expect(Buffer.byteLength(body)).toBeLessThanOrEqual(64 * 1024);
    expect(new Set(eventsOf({ body }).map(({ sessionId }) => sessionId)).size).toBe(1);
  }
  expect(receiver.received.length).toBeLessThan(80);
});

test.each([
  ['429', 429],
  ['500', 500],
  ['a redirect', { status: 307, headers: { location: 'http://127.0.0.1:1/' } }],
  ['a lost connection', 'reset' as const],
])(
  'a delivery that fails with %s is retried with the same id and body, and holds back only its session',
  async (_, failure) => {
    const [bad, good] = [newSession(), newSession()];
    let isBroken = true;
    const receiver = await world.receiver(({ body }) => (isBroken && body.includes(bad) ? failure : 200));
    await world.destination(receiver.url);
    await world.sender();
    await world.record(bad);
    await world.advanceUntil(() => receiver.received.length > 0);
    await world.record(bad);
    await world.record(good);
    await world.advanceUntil(() => arrived(receiver).some(({ sessionId }) => sessionId === good));
    isBroken = false;
    await world.advanceUntil(() => new Set(arrived(receiver).map(({ sequence }) => sequence)).size === 3);
    const ofBad = receiver.received.filter(({ body }) => body.includes(bad));
    const [first, second, next] = [ofBad[0]!, ofBad.at(-2)!, ofBad.at(-1)!];
    expect(second.body).toBe(first.body);
    expect(second.deliveryId).toBe(first.deliveryId);
    expect(second.attempt).toBeGreaterThan(first.attempt);
    expect(next.deliveryId).not.toBe(first.deliveryId);
    expect(next.previousCursor).toBe(String(eventsOf(first)[0]!.sequence));
    expect([...world.lines].map((line) => JSON.stringify(line)).join()).not.toContain('whsec_');
  },
);

test('a receiver that does not respond in time is tried again, and Retry-After is respected', async () => {
  let respond = (): 200 | Promise<200> => new Promise<200>(() => {});
  const receiver = await world.receiver(() => respond());
  const { destinationId } = await world.destination(receiver.url);
  await world.sender({ timeoutMs: 50 });
  await world.record(newSession());
  await world.advanceUntil(async () => (await deliveries(destinationId))[0]?.attemptCount === 1);
  await world.advanceUntil(async () => (await health(destinationId)).health.lastError === 'timeout');
  expect((await health(destinationId)).health.state).toBe('failing');
  respond = () => 200;
  await world.advanceUntil(async () => (await deliveries(destinationId))[0]?.status === 'succeeded');

  receiver.respond = () => ({ status: 503, headers: { 'retry-after': '3600' } });
  await world.record(newSession());
  await world.advanceUntil(async () => (await deliveries(destinationId))[0]?.attemptCount === 1);
  const [waiting] = await deliveries(destinationId);
  expect(Date.parse(waiting!.nextAttemptAt!) - world.clock.now().getTime()).toBeGreaterThan(3_500_000);
});

test('a delivery that is given up leaves a gap that the next one of its session shows', async () => {
  const [bad, good] = [newSession(), newSession()];
  const receiver = await world.receiver(({ body }) => (body.includes('poison') ? 500 : 200));
  const { destinationId } = await world.destination(receiver.url);
  await world.sender();
  await world.record(bad, { changes: { n: [null, 'poison'] } });
  await world.advanceUntil(() => receiver.received.length > 0);
  await world.record(bad);
  // Others succeed meanwhile, so the destination is not disabled.
  await world.advanceUntil(async () => {
    await world.record(good);
    const all = await deliveries(destinationId);
    return all.some(({ status }) => status === 'exhausted');
  }, 3 * 3600_000);
  const last = () => receiver.received.filter(({ body }) => body.includes(bad) && !body.includes('poison'));
  await world.advanceUntil(() => last().length > 0);
  const poison = eventsOf(receiver.received.find(({ body }) => body.includes('poison'))!)[0]!;
  expect(last()[0]!.previousCursor).toBe(String(poison.sequence));
  // A delivery that fails is no event.
  const rows = await world.db.query<{ type: string }>(sql`
    select body->>'type' as type from events where organization_id = ${world.organizationId}`);
  expect(new Set(rows.map(({ type }) => type))).toEqual(
    new Set(['destination.created', 'destination.secret_confirmed', 'session.idle']),
  );
});

test('a destination that fails is probed, degraded after a day and disabled after 5; others receive that, it does not', async () => {
  const broken = await world.receiver(() => 500);
  const alarm = await world.receiver();
  const first = await world.destination(broken.url, { eventTypes: ['*'] });
  const second = await world.destination(broken.url, { eventTypes: ['*'], name: 'Fails as well' });
  await world.destination(alarm.url, { eventTypes: ['destination.degraded', 'destination.disabled'] });
  await world.sender();
  for (let n = 0; n < 6; n += 1) await world.record(newSession());
  await world.advanceUntil(async () => (await health(first.destinationId)).status === 'disabled', 3600_000);
  await world.advanceUntil(() => arrived(alarm).length === 4);
  expect(arrived(alarm).map(({ type }) => type)).toEqual([
    ...Array.from({ length: 2 }, () => 'destination.degraded'),
    ...Array.from({ length: 2 }, () => 'destination.disabled'),
  ]);
  expect(arrived(broken).filter(({ type }) => /^destination\.(degraded|disabled)$/.test(type))).toEqual([]);
  expect(await health(first.destinationId)).toMatchObject({ status: 'disabled', disabledReason: 'failing' });

  // Enabled again, all that waited is sent.
  broken.respond = () => 200;
  const before = broken.received.length;
  for (const { destinationId } of [first, second]) {
    await updateDestination(world.context(), { destinationId, status: 'enabled' });
  }
  await world.advanceUntil(async () =>
    (await deliveries(first.destinationId)).every(({ status }) => status !== 'pending'),
  );
  expect(broken.received.length).toBeGreaterThan(before);
  expect((await health(first.destinationId)).health.state).toBe('healthy');
});

test('a receiver that responds with 410 is disabled at once', async () => {
  const receiver = await world.receiver(() => 410);
  const { destinationId } = await world.destination(receiver.url);
  await world.sender();
  await world.record(newSession());
  await world.advanceUntil(async () => (await health(destinationId)).status === 'disabled');
  expect(await health(destinationId)).toMatchObject({ disabledReason: 'gone' });
  await world.clock.pass(3600_000, 60_000);
  expect(receiver.received).toHaveLength(1);
});

test('what is recorded while it is paused is sent when it resumes', async () => {
  const receiver = await world.receiver();
  const { destinationId } = await world.destination(receiver.url);
  await world.sender();
  await world.clock.pass(2_000);
  await updateDestination(world.context(), { destinationId, status: 'paused' });
  await world.clock.pass(2_000);
  const session = newSession();
  for (let n = 0; n < 3; n += 1) await world.record(session);
  await world.clock.pass(60_000);
  expect(receiver.received).toEqual([]);
  await updateDestination(world.context(), { destinationId, status: 'enabled' });
  await world.advanceUntil(() => arrived(receiver).length === 3);
  await deleteDestination(world.context(), { destinationId });
  await world.record(session);
  await world.clock.pass(60_000);
  expect(arrived(receiver)).toHaveLength(3);
});

test('recovery sends records again from a sequence number or a time on, and cancels what waits', async () => {
  let status = 200;
  const receiver = await world.receiver(() => status);
  const { destinationId } = await world.destination(receiver.url);
  await world.sender();
  const session = newSession();
  for (let n = 0; n < 3; n += 1) {
    await world.record(session);
    await world.clock.pass(10_000);
  }
  expect(arrived(receiver)).toHaveLength(3);
  const [, second] = arrived(receiver);
  status = 500;
  await world.record(session);
  await world.advanceUntil(async () =>
    (await deliveries(destinationId)).some(({ status, attemptCount }) => status === 'pending' && attemptCount > 0),
  );
  status = 200;
  const afresh = async (from: number | string) => {
    receiver.received.length = 0;
    await recoverDestination(world.context(), { destinationId, from });
    await world.advanceUntil(() => arrived(receiver).length === 3);
    await world.clock.pass(60_000);
    const sequences = arrived(receiver).map(({ sequence }) => sequence);
    expect(sequences).toHaveLength(3);
    inOrder(sequences);
    expect(sequences[0]).toBe(second!.sequence);
  };
  await afresh(second!.sequence);
  expect((await deliveries(destinationId)).map(({ status }) => status)).toContain('cancelled');
  await afresh(second!.occurredAt);
  await expect(recoverDestination(world.context(), { destinationId, from: 1_000 })).rejects.toThrow(/ahead of the/);
  const future = new Date(world.clock.now().getTime() + DAY_MS).toISOString();
  await expect(recoverDestination(world.context(), { destinationId, from: future })).rejects.toThrow(/in the future/);
});

test('retention does not wait: the health says which records were lost, and the rest arrives', async () => {
  const receiver = await world.receiver();
  const { destinationId } = await world.destination(receiver.url);
  const { dispatcher } = await world.sender();
  await world.clock.pass(2_000);
  await updateDestination(world.context(), { destinationId, status: 'paused' });
  await world.clock.pass(2_000);
  const { readSequence } = (
    await world.db.query<{ readSequence: number }>(sql`select read_sequence as "readSequence" from destinations`)
  )[0]!;
  const session = newSession();
  for (let n = 0; n < 3; n += 1) await world.record(session);
  await world.clock.advance(DAY_MS);
  const context = { ...world.context(), eventWatch: createEventWatch(world.platform) };
  await listEvents(context, {});
  await dropEvents(world.db, world.organizationId, world.clock.now());
  await world.record(session);
  await updateDestination(world.context(), { destinationId, status: 'enabled' });
  await world.advanceUntil(() => arrived(receiver).length === 1);
  const { lostEvents } = (await health(destinationId)).health;
  expect(lostEvents!.from).toBe(readSequence + 1);
  expect(lostEvents!.to).toBe(arrived(receiver)[0]!.sequence - 1);
  await dispatcher.stop();
});

test('during the grace period of a rotation a receiver may know either secret; the new one is confirmed', async () => {
  let known = '';
  const receiver = await world.receiver(({ headers, body }) => {
    const at = new Date(Number(headers['webhook-timestamp']) * 1000);
    const signature = new Webhook(known).sign(String(headers['webhook-id']), at, body);
    return String(headers['webhook-signature']).split(' ').includes(signature) ? 200 : 401;
  });
  const { destinationId, signingSecret } = await world.destination(receiver.url);
  known = signingSecret;
  await world.sender();
  const sent = async () => {
    const before = receiver.received.length;
    await world.record(newSession());
    await world.advanceUntil(async () => {
      const [last] = await deliveries(destinationId);
      return receiver.received.length > before && last?.status === 'succeeded';
    });
  };
  await sent();
  const rotated = await rotateDestinationSecret(world.context(), { destinationId, gracePeriodSeconds: 3600 });
  await sent();
  expect(receiver.received.at(-1)!.headers['webhook-signature']).toContain(' ');
  known = rotated.signingSecret!;
  await sent();
  await world.clock.pass(3600_000, 60_000);
  await sent();
  expect(receiver.received.at(-1)!.headers['webhook-signature']).not.toContain(' ');
  expect(await health(destinationId)).toMatchObject({ secretVersion: 2, confirmedSecretVersion: 2 });
});

test('own headers are sent and nowhere shown, even if the receiver repeats them; another host or scheme forgets them', async () => {
  const key = 'sk_very_secret_1234567890';
  const receiver = await world.receiver(({ headers }) => ({ status: 200, body: JSON.stringify(headers) }));
  const { destinationId } = await world.destination(receiver.url, {
    headers: { Authorization: `Bearer ${key}`, 'X-Team': 'red "team"' },
  });
  await world.sender();
  await world.record(newSession());
  await world.advanceUntil(async () => (await deliveries(destinationId))[0]?.status === 'succeeded');
  expect(receiver.received[0]!.headers).toMatchObject({ authorization: `Bearer ${key}`, 'x-team': 'red "team"' });
  const [{ deliveryId } = { deliveryId: '' }] = await deliveries(destinationId);
  const shown = await getDestinationDelivery(world.context(), { destinationId, deliveryId });
  expect(shown.destinationDelivery.attempts[0]!.responseBody).toContain('[secret authorization]');
  const rows = await world.db.query(sql`select * from destinations t, destination_deliveries d, events e`);
  for (const text of [shown, await health(destinationId), world.lines, rows].map((one) => JSON.stringify(one))) {
    expect(text).not.toContain(key);
    expect(text).not.toContain('red \\\\\\"team');
  }
  expect((await health(destinationId)).headerNames).toEqual(['authorization', 'x-team']);

  const withoutTls = { destinationId, url: receiver.url };
  const withTls = { destinationId, url: receiver.url.replace('http:', 'https:') };
  for (const [from, to] of [
    [withoutTls, withTls],
    [withTls, withoutTls],
  ] as const) {
    await updateDestination(world.context(), { ...from, headers: { Authorization: `Bearer ${key}` } });
    expect((await health(destinationId)).headerNames).toEqual(['authorization']);
    await updateDestination(world.context(), to);
    expect((await health(destinationId)).headerNames).toEqual([]);
  }

  await updateDestination(world.context(), { ...withoutTls, headers: { Authorization: `Bearer ${key}` } });
  const other = await world.receiver();
  await updateDestination(world.context(), { destinationId, url: other.url });
  await world.record(newSession());
  await world.advanceUntil(() => other.received.length > 0);
  expect(other.received[0]!.headers.authorization).toBeUndefined();
  expect((await health(destinationId)).headerNames).toEqual([]);
});

test('an address that is not allowed is never connected to, and blocks the destination', async () => {
  const { destinationId } = await world.destination('http://127.0.0.1:1/hook');
  await world.db.query(sql`update destinations set url = 'http://10.0.0.1/hook'`);
  await world.sender();
  await world.record(newSession());
  await world.advanceUntil(async () => (await deliveries(destinationId))[0]?.attemptCount === 1);
  await world.clock.pass(2_000);
  expect((await health(destinationId)).health).toMatchObject({
    ...{ state: 'blocked', blockedBy: 'url_not_allowed', lastError: 'not_allowed' },
  });
});

test('the records of one organization never reach another', async () => {
  const [own, foreign] = [await world.receiver(), await world.receiver()];
  await world.destination(own.url, { eventTypes: ['*'] });
  const stranger = await world.destination(foreign.url, { eventTypes: ['*'] }, world.strangerId);
  await world.sender();
  const [a, b] = [newSession(), newSession()];
  await world.record(a);
  await world.record(b, {}, world.strangerId);
  await world.advanceUntil(() => arrived(own).length > 0 && arrived(foreign).length > 0);
  await world.clock.pass(10_000);
  expect(new Set(arrived(own).flatMap(({ sessionId }) => sessionId ?? []))).toEqual(new Set([a]));
  expect(new Set(arrived(foreign).flatMap(({ sessionId }) => sessionId ?? []))).toEqual(new Set([b]));
  const read = { destinationId: stranger.destinationId };
  await expect(getDestination(world.context(), read)).rejects.toThrow('There is no such destination');
  await expect(listDestinationDeliveries(world.context(), read)).rejects.toThrow('There is no such destination');
});
