import { createHmac } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { defaultChunkTypes } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { retryDelaysMs } from '../../src/deliveries/back-off.ts';
import { formatId } from '../../src/lib/ids.ts';
import { getDelivery, listDeliveries } from '../../src/webhooks/deliveries.ts';
import { getWebhookSubscription, updateWebhookSubscription } from '../../src/webhooks/subscriptions.ts';
import type { Received, Receiver } from '../support/receiver.ts';
import { append, createWorld, status, type TestSession, text, toolResult, type World } from '../support/webhooks.ts';

let world: World;

beforeEach(async () => {
  world = await createWorld();
});

afterEach(() => world.end());

const receiverOf = (answer?: Receiver['respond']) => world.receiver(answer);

const idOf = ({ sessionId }: TestSession) => formatId('ses', sessionId);

async function isDue({ organizationId, sessionId }: TestSession): Promise<boolean> {
  const [row] = await world.db.query<{ due: boolean }>(sql`
    select delivery_due as due from sessions
    where organization_id = ${organizationId} and session_id = ${sessionId}`);
  return row!.due;
}

/** Waits until everything is delivered, without moving the clock. */
const settled = (session: TestSession) => world.advanceUntil(async () => !(await isDue(session)), 0);

const everything = async (sessions: readonly TestSession[]) =>
  !(await Promise.all(sessions.map(isDue))).some((due) => due);

async function listed(filter: object = {}) {
  return (await listDeliveries(world.context(), { env: 'production', ...filter })).data;
}

async function shown(deliveryId: string) {
  return (await getDelivery(world.context(), { env: 'production', deliveryId })).webhookDelivery;
}

async function subscription() {
  return (await getWebhookSubscription(world.context(), { env: 'production' })).webhookSubscription;
}

async function eventTypes(): Promise<string[]> {
  const rows = await world.db.query<{ type: string }>(
    sql`select body->>'type' as type from events_pending order by event_id`,
  );
  return rows.map(({ type }) => type);
}

/** `turn:seq` of every chunk in the order of arrival, without those that a retry repeated. */
function journalsOf(received: readonly Received[]): Map<string, string[]> {
  const seen = new Set<string>();
  const journals = new Map<string, string[]>();
  for (const { deliveryId, envelope } of received) {
    if (seen.has(deliveryId)) continue;
    seen.add(deliveryId);
    const journal = journals.get(envelope.sessionId) ?? [];
    journals.set(envelope.sessionId, journal);
    journal.push(...envelope.chunks.map(({ turn, seq }) => `${turn}:${seq}`));
  }
  return journals;
}

const upTo = (count: number) => Array.from({ length: count }, (_, index) => `1:${index + 1}`);

/** mulberry32: the same numbers for the same seed. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

test('a delivery has the envelope, both signatures, and its position in the session', async () => {
  const receiver = await receiverOf();
  const secret = await world.subscribe(receiver.url);
  const session = await world.session();
  await world.node();
  await append(world, session, [status('running')]);
  await settled(session);
  await append(world, session, [status('idle')]);
  await settled(session);
  const [first, second] = receiver.received;

  const { headers, body, envelope, deliveryId } = first!;
  expect(envelope).toEqual({
    event: 'session.chunks',
    environment: 'production',
    sessionId: idOf(session),
    agentId: formatId('agt', session.organizationId),
    cursor: 'turn_1:seq_1',
    timestamp: '2026-01-01T00:00:00.000Z',
    chunks: [{ type: 'session.status', status: 'running', waitingFor: null, turn: 1, seq: 1 }],
  });
  const timestamp = String(world.clock.now().getTime() / 1000);
  expect(headers).toMatchObject({
    'content-type': 'application/json',
    'user-agent': 'Signalbox/0.0.0',
    'x-service-timestamp': timestamp,
    'x-service-signature': createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex'),
    'x-service-delivery-id': deliveryId,
    'x-service-attempt': '1',
    'x-service-secret-version': '1',
    'x-service-previous-cursor': '',
    'webhook-id': deliveryId,
    'webhook-timestamp': timestamp,
  });
  expect(second!.previousCursor).toBe('turn_1:seq_1');
  expect(second!.envelope.cursor).toBe('turn_1:seq_2');
  expect(await shown(deliveryId)).toMatchObject({
    status: 'succeeded',
    sessionId: idOf(session),
    previousCursor: null,
    cursor: 'turn_1:seq_1',
    attemptCount: 1,
    nextAttemptAt: null,
    attempts: [{ attempt: 1, status: 200, error: null, secretVersion: 1, responseBody: null }],
    requestBody: body,
  });
  await world.db.query(sql`delete from segments where session_id = ${session.sessionId}`);
  expect(await shown(deliveryId)).toMatchObject({ status: 'succeeded', requestBody: null });
  expect(await listed({ sessionId: idOf(session), status: 'succeeded' })).toHaveLength(2);
  expect(await listed({ status: 'exhausted' })).toEqual([]);
  // The health of the destination is written once a second.
  await world.advanceUntil(async () => (await subscription()).lastSuccessAt !== null);
  expect(await subscription()).toMatchObject({ confirmedSecretVersion: 1, lastSuccessAt: envelope.timestamp });
  expect(await eventTypes()).toContain('webhook_subscription.secret_confirmed');
});

test('no log line contains the url, a body or a secret', async () => {
  const receiver = await receiverOf((request) => (request.attempt > 1 ? 200 : { status: 500, body: 'sorry-body' }));
  const secret = await world.subscribe(`${receiver.url}?token=hidden`);
  const session = await world.session();
  await world.node();
  await append(world, session, [text('secret-text'), status()]);
  await world.advanceUntil(() => everything([session]));
  const printed = JSON.stringify(world.lines);
  expect(world.lines.filter(({ msg }) => msg === 'delivery attempt')).toMatchObject([
    { deliveryId: receiver.received[0]!.deliveryId, attempt: 1, status: 500, error: 'status' },
    { deliveryId: receiver.received[0]!.deliveryId, attempt: 2, status: 200, error: null },
  ]);
  for (const word of ['hidden', '/hook', 'sorry', 'secret-text', secret]) expect(printed).not.toContain(word);
});

describe('order', () => {
  // The receiver fails in every way that takes no time.
  for (const seed of [1, 2, 3]) {
    test(`a session arrives in order, once and complete at a receiver that fails at random (seed ${seed})`, async () => {
      const random = randomOf(seed);
      const bodies = new Map<string, Set<string>>();
      const receiver = await receiverOf((request) => {
        const known = bodies.get(request.deliveryId) ?? new Set();
        bodies.set(request.deliveryId, known.add(request.body));
        const roll = random();
        return roll < 0.25 ? 500 : roll < 0.3 ? 'reset' : roll < 0.35 ? 302 : roll < 0.4 ? 429 : 200;
      });
      await world.subscribe(receiver.url, { chunkTypes: ['message.chunk', 'session.status'] });
      await world.node();
      const sessions = await Promise.all(Array.from({ length: 8 }, () => world.session()));
      const wanted = new Map(sessions.map((session) => [idOf(session), [] as string[]]));
      for (let round = 0; round < 40; round += 1) {
        const session = sessions[Math.floor(random() * sessions.length)]!;
        const items = Array.from({ length: 1 + Math.floor(random() * 4) }, () => {
          const roll = random();
          return roll < 0.5 ? text('word ') : roll < 0.8 ? status() : toolResult();
        });
        await append(world, session, items, { isQuiet: random() < 0.3 });
        for (const [index, item] of items.entries()) {
          const seq = session.seq - items.length + index + 1;
          if (typeof item === 'string' || item.type !== 'tool.result') wanted.get(idOf(session))!.push(`1:${seq}`);
        }
        if (random() < 0.3) world.clock.leap(1_000);
      }
      await world.advanceUntil(() => everything(sessions), 5_000);
      const accepted = journalsOf(receiver.received);
      for (const [id, journal] of wanted) expect(accepted.get(id) ?? [], id).toEqual(journal);
      for (const sent of bodies.values()) expect(sent.size).toBe(1);
      for (const session of sessions) chained(receiver.received, idOf(session));
    });
  }

  test('a session has one delivery in flight at a time, and sessions do not wait for one another', async () => {
    const gate = Promise.withResolvers<number>();
    const [slow, ...quick] = await Promise.all(Array.from({ length: 6 }, () => world.session()));
    const receiver = await receiverOf(({ envelope }) => (envelope.sessionId === idOf(slow!) ? gate.promise : 200));
    await world.subscribe(receiver.url);
    await world.node();
    await append(world, slow!, [status()]);
    await receiver.first(1);
    await append(world, slow!, [status()]);
    for (const session of quick) await append(world, session, [status()]);
    await world.advanceUntil(() => everything(quick), 0);
    expect(receiver.received.filter(({ envelope }) => envelope.sessionId === idOf(slow!))).toHaveLength(1);
    gate.resolve(200);
    await settled(slow!);
    expect(journalsOf(receiver.received).get(idOf(slow!))).toEqual(upTo(2));
  });

  test('two nodes on one database send each session in order, also while the subscription moves between them', async () => {
    const random = randomOf(7);
    const receiver = await receiverOf(() => (random() < 0.2 ? 500 : 200));
    await world.subscribe(receiver.url);
    const workers = [(await world.node()).nodeId, (await world.node()).nodeId];
    const sessions = await Promise.all(Array.from({ length: 6 }, () => world.session()));
    const owner = async () =>
      (await world.db.query<{ nodeId: string }>(sql`select node_id as "nodeId" from webhook_subscriptions`))[0]!.nodeId;
    for (let round = 0; round < 60; round += 1) {
      await append(world, sessions[round % 6]!, [status(), status()], { isQuiet: round % 3 === 0 });
      if (round % 5 === 0) world.clock.leap(1_000);
      if (round % 10 !== 9) continue;
      // The lease of the assigned node expires while its deliveries are in flight, and the other node claims the subscription.
      const lost = await owner();
      await world.db.batch(
        workers.map(
          (nodeId) => sql`
            update nodes set lease_expires_at = now() + ${nodeId === lost ? '-1 hour' : '1 hour'}::interval
            where node_id = ${nodeId}`,
        ),
      );
      await world.advanceUntil(async () => (await owner()) !== lost);
    }
    await world.advanceUntil(() => everything(sessions));
    for (const session of sessions) {
      expect(journalsOf(receiver.received).get(idOf(session))).toEqual(upTo(session.seq));
      chained(receiver.received, idOf(session));
    }
  });
});

/** Checks that each new delivery names the cursor of the previous one. */
function chained(received: readonly Received[], sessionId: string): void {
  const seen = new Set<string>();
  let cursor = '';
  for (const { deliveryId, previousCursor, envelope } of received) {
    if (envelope.sessionId !== sessionId || seen.has(deliveryId)) continue;
    seen.add(deliveryId);
    expect(previousCursor).toBe(cursor);
    cursor = envelope.cursor;
  }
}

describe('the content of a delivery', () => {
  test('text waits up to 100 ms for more text; a status does not wait, and the text goes with it', async () => {
    const receiver = await receiverOf();
    await world.subscribe(receiver.url);
    const session = await world.session();
    await world.node();
    await append(world, session, [text('one ')]);
    await append(world, session, [text('two ')]);
    await append(world, session, [status()]);
    // In steps so small that 100 ms do not pass, or the text after it would have waited already.
    await world.advanceUntil(() => everything([session]), 1);
    expect(receiver.received.map(({ envelope }) => envelope.chunks.length)).toEqual([3]);
    await append(world, session, [text('three ')]);
    await append(world, session, [text('four ')]);
    await world.advanceUntil(() => everything([session]), 25);
    expect(receiver.received.map(({ envelope }) => envelope.chunks.length)).toEqual([3, 2]);
  });

  test('stays the same whatever is committed or changed before a retry; only the timestamp and signatures are new', async () => {
    const receiver = await receiverOf(() => 500);
    await world.subscribe(receiver.url);
    const session = await world.session();
    await world.node();
    await append(world, session, [status(), text('a')]);
    await world.advanceUntil(async () => (await listed())[0]?.attemptCount === 1, 0);
    await append(world, session, [status()]);
    await updateWebhookSubscription(world.context(), { env: 'production', chunkTypes: ['session.status'] });
    await world.advanceUntil(async () => (await listed())[0]?.attemptCount === 3);
    receiver.respond = () => 200;
    await world.advanceUntil(() => everything([session]));

    const [first, second, third, fourth, next] = receiver.received;
    for (const retry of [second!, third!, fourth!]) {
      expect(retry.body).toBe(first!.body);
      expect(retry.deliveryId).toBe(first!.deliveryId);
      expect(retry.headers['x-service-timestamp']).not.toBe(first!.headers['x-service-timestamp']);
      expect(retry.headers['x-service-signature']).not.toBe(first!.headers['x-service-signature']);
    }
    expect([first, second, third, fourth].map((request) => request!.attempt)).toEqual([1, 2, 3, 4]);
    expect(first!.envelope.chunks).toHaveLength(2);
    expect(next!.envelope.chunks).toMatchObject([{ type: 'session.status', seq: 3 }]);
  });

  test('only chunks that match the filter are sent, and no delivery without chunks', async () => {
    const receiver = await receiverOf();
    await world.subscribe(receiver.url, { chunkTypes: ['session.status'] });
    const session = await world.session();
    await world.node();
    await append(world, session, [toolResult(), text('x')]);
    await world.advanceUntil(() => everything([session]), 25);
    expect(receiver.received).toEqual([]);
    await append(world, session, [toolResult(), status(), text('x')]);
    await world.advanceUntil(() => everything([session]), 25);
    await append(world, session, [status()]);
    await settled(session);
    expect(receiver.received.map(({ envelope }) => envelope.cursor)).toEqual(['turn_1:seq_4', 'turn_1:seq_6']);
    chained(receiver.received, idOf(session));
  });

  test('a backlog goes out in full deliveries', async () => {
    const receiver = await receiverOf();
    await world.subscribe(receiver.url);
    const session = await world.session();
    for (let n = 0; n < 25; n += 1) await append(world, session, Array(10).fill(text('word ')), { isQuiet: true });
    await append(world, session, [status()], { turn: 2, isQuiet: true });
    await world.node();
    await settled(session);
    expect(receiver.received.map(({ envelope }) => envelope.chunks.length)).toEqual([100, 100, 51]);
    expect(receiver.received.at(-1)!.envelope.cursor).toBe('turn_2:seq_1');
  });
});

describe('retries', () => {
  test('follow the schedule; after the last one the session continues, and the receiver can detect the gap', async () => {
    const [session, healthy] = [await world.session(), await world.session()];
    const isFailing = ({ envelope }: Received) =>
      envelope.sessionId === idOf(session) && envelope.cursor === 'turn_1:seq_2';
    const receiver = await receiverOf((request) => (isFailing(request) ? 500 : 200));
    await world.subscribe(receiver.url);
    await world.node();
    await append(world, session, [status()]);
    await settled(session);
    await append(world, session, [status()]);
    for (const [retries, delay] of retryDelaysMs.entries()) {
      // The clock does not move after the arrival, so its time is that of the failure.
      await world.advanceUntil(() => receiver.received.filter(isFailing).length === retries + 1);
      const failing = async () => (await listed({ sessionId: idOf(session) }))[0]!;
      await world.advanceUntil(async () => (await failing()).attemptCount === retries + 1, 0);
      expect(new Date((await failing()).nextAttemptAt!).getTime() - world.clock.now().getTime()).toBe(delay);
      // Another session continues, so that the destination does not fail 5 times in a row.
      await append(world, healthy, [status()]);
      await settled(healthy);
      await world.clock.advance(delay - 1);
    }
    await append(world, session, [status()]);
    await world.advanceUntil(() => everything([session]));

    const failed = await shown(receiver.received.find(isFailing)!.deliveryId);
    expect(failed).toMatchObject({ status: 'exhausted', attemptCount: 13, nextAttemptAt: null });
    expect(failed.attempts.map(({ attempt }) => attempt)).toEqual(Array.from({ length: 13 }, (_, n) => n + 1));
    const last = receiver.received.at(-1)!;
    expect(last.envelope.cursor).toBe('turn_1:seq_3');
    expect(last.previousCursor).toBe('turn_1:seq_1');
    const exhausted = await world.db.query<{ agentId: string }>(sql`
      select body->>'agentId' as "agentId" from events_pending where body->>'type' = 'webhook_delivery.exhausted'`);
    expect(exhausted).toEqual([{ agentId: expect.stringMatching(/^agt_/) }]);
    expect((await subscription()).lastFailureAt).not.toBeNull();
  });

  test('are postponed by Retry-After', async () => {
    const receiver = await receiverOf(({ attempt }) =>
      attempt === 1 ? { status: 429, headers: { 'retry-after': '600' }, body: 'slow down\0' } : 200,
    );
    await world.subscribe(receiver.url);
    const session = await world.session();
    await world.node();
    await append(world, session, [status()]);
    await world.advanceUntil(
      async () => (await listed())[0]?.nextAttemptAt !== null && receiver.received.length > 0,
      0,
    );
    expect((await listed())[0]).toMatchObject({ status: 'pending', nextAttemptAt: '2026-01-01T00:10:00.000Z' });
    await world.advanceUntil(() => everything([session]), 1_000);
    const { attempts } = await shown(receiver.received[0]!.deliveryId);
    expect(attempts).toMatchObject([{ status: 429, error: 'status', responseBody: 'slow down' }, { status: 200 }]);
    expect(new Date(attempts[1]!.at).getTime()).toBeGreaterThanOrEqual(Date.parse('2026-01-01T00:10:00.000Z'));
  });

  test('any 2xx is success, and at most 16 KiB of an endless response are read', async () => {
    let bytes = 0;
    const cut = Promise.withResolvers<void>();
    const server = createServer((request, response) => {
      request.resume();
      response.writeHead(202).once('close', () => cut.resolve());
      const write = () => {
        while (!response.destroyed) {
          bytes += 4096;
          if (!response.write('x'.repeat(4096))) break;
        }
      };
      response.on('drain', write);
      write();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    await world.subscribe(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    const session = await world.session();
    await world.node();
    await append(world, session, [status()]);
    await settled(session);
    await cut.promise;
    const [{ deliveryId } = { deliveryId: '' }] = await listed();
    const { attempts } = await shown(deliveryId);
    expect(attempts).toMatchObject([{ status: 202, error: null }]);
    expect(attempts[0]!.responseBody).toHaveLength(4096);
    // The most that the sockets of both ends buffer.
    expect(bytes).toBeLessThan(16 * 1024 * 1024);
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  const partOf =
    (statusCode: number, headers = {}) =>
    (response: ServerResponse) => {
      response.writeHead(statusCode, headers).write('almost');
    };
  const lost = { status: null, error: 'timeout' };
  const accepted = { status: 200, error: null };
  test.each<[string, (response: ServerResponse) => void, object[]]>([
    ['does not begin in time', () => {}, [lost, accepted]],
    ['is 200 with a body that does not end', partOf(200), [{ ...accepted, responseBody: 'almost' }]],
    [
      'is 204 with a connection that breaks',
      (response) => response.writeHead(204).end(() => response.destroy()),
      [{ status: 204, error: null }],
    ],
    [
      'is 202 with less than its length',
      (response) => {
        partOf(202, { 'content-length': 100 })(response);
        response.socket!.end();
      },
      [{ status: 202, error: null, responseBody: 'almost' }],
    ],
    [
      'is 500 with a body that does not end',
      partOf(500),
      [{ status: 500, error: 'status', responseBody: 'almost' }, accepted],
    ],
  ])('the status decides, of a response that %s', async (_, respond, attempts) => {
    let count = 0;
    const server = createServer((request, response) => {
      request.resume();
      count += 1;
      if (count === 1) respond(response);
      else response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    await world.subscribe(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    const session = await world.session();
    await world.node({ timeoutMs: 200 });
    await append(world, session, [status()]);
    await world.advanceUntil(async () => (await listed())[0]?.attemptCount === 1, 0);
    await world.advanceUntil(() => everything([session]));
    expect((await shown((await listed())[0]!.deliveryId)).attempts).toMatchObject(attempts);
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  test('a redirect is not followed', async () => {
    const target = await receiverOf();
    const receiver = await receiverOf(() => ({ status: 307, headers: { location: target.url } }));
    await world.subscribe(receiver.url);
    const session = await world.session();
    await world.node();
    await append(world, session, [status()]);
    await world.advanceUntil(async () => (await listed())[0]?.attemptCount === 2);
    expect(target.received).toEqual([]);
    const { attempts } = await shown(receiver.received[0]!.deliveryId);
    expect(attempts[0]).toMatchObject({ status: 307, error: 'redirect' });
  });

  test('410 disables the subscription; enabled again, it continues with the same delivery', async () => {
    const receiver = await receiverOf(() => 410);
    await world.subscribe(receiver.url);
    const session = await world.session();
    await world.node();
    await append(world, session, [status()]);
    await world.advanceUntil(async () => (await subscription()).status === 'disabled', 0);
    expect((await subscription()).disabledReason).toBe('gone');
    expect(await eventTypes()).toContain('webhook_subscription.disabled');
    await append(world, session, [status()]);
    await world.advanceUntil(async () => (await listed())[0]?.attemptCount === 1, 0);
    await world.clock.pass(20 * 3_600_000, 3_600_000);
    expect(receiver.received).toHaveLength(1);

    receiver.respond = () => 200;
    await updateWebhookSubscription(world.context(), { env: 'production', status: 'enabled' });
    await settled(session);
    expect(receiver.received.slice(1).map(({ envelope }) => envelope.cursor)).toEqual(['turn_1:seq_1', 'turn_1:seq_2']);
    expect(receiver.received[1]!.body).toBe(receiver.received[0]!.body);
    expect(await eventTypes()).toContain('webhook_subscription.enabled');
    expect((await subscription()).disabledReason).toBeNull();
  });
});

describe('a restart', () => {
  test('sends the delivery that was in flight again, with the same id and bytes, then the chunks after it', async () => {
    const gate = Promise.withResolvers<number>();
    const receiver = await receiverOf(() => gate.promise);
    await world.subscribe(receiver.url);
    const session = await world.session();
    const { dispatcher } = await world.node();
    await append(world, session, [status(), text('a')]);
    await receiver.first(1);
    await append(world, session, [text('b'), status()]);
    const stopped = dispatcher.stop();
    await world.clock.advance(1);
    await stopped;
    receiver.respond = () => 200;
    await world.node();
    await settled(session);
    gate.resolve(200);
    const [first, again, next] = receiver.received;
    expect(again!.deliveryId).toBe(first!.deliveryId);
    expect(again!.body).toBe(first!.body);
    expect(again!.attempt).toBe(1);
    expect(next!.envelope.chunks.map(({ seq }) => seq)).toEqual([3, 4]);
    expect((await listed()).map(({ attemptCount }) => attemptCount)).toEqual([1, 1]);
  });

  test('a node whose subscription another node claimed acknowledges what it had sent, and stores no further delivery', async () => {
    const gate = Promise.withResolvers<number>();
    const receiver = await receiverOf(() => gate.promise);
    await world.subscribe(receiver.url);
    const session = await world.session();
    const first = await world.node();
    await append(world, session, [status()]);
    await receiver.first(1);
    await append(world, session, [status()], { isQuiet: true });
    await world.db.query(sql`
      update nodes set lease_expires_at = now() - interval '1 hour' where node_id = ${first.nodeId}`);
    await world.node();
    const [once, twice] = await receiver.first(2);
    expect(twice!.body).toBe(once!.body);
    // Both nodes sent the first delivery; only the node that the subscription is assigned to sends the second.
    gate.resolve(200);
    await world.advanceUntil(() => everything([session]));
    await first.dispatcher.stop();
    expect(receiver.received.map(({ envelope }) => envelope.cursor)).toEqual([
      'turn_1:seq_1',
      'turn_1:seq_1',
      'turn_1:seq_2',
    ]);
    chained(receiver.received, idOf(session));
  });

  test('a delivery that a stopping node released is claimed at once, without waiting for a lease', async () => {
    const receiver = await receiverOf();
    await world.subscribe(receiver.url);
    const session = await world.session();
    const { dispatcher } = await world.node();
    await append(world, session, [status()]);
    await settled(session);
    await dispatcher.stop();
    await append(world, session, [status()]);
    await world.node();
    await settled(session);
    expect(journalsOf(receiver.received).get(idOf(session))).toEqual(upTo(2));
  });
});

test('everything arrives without any wake-ups', async () => {
  const receiver = await receiverOf();
  await world.subscribe(receiver.url);
  const sessions = await Promise.all(Array.from({ length: 300 }, () => world.session()));
  await world.node();
  for (const session of sessions) await append(world, session, [status()], { isQuiet: true });
  await world.advanceUntil(() => everything(sessions));
  expect(receiver.received).toHaveLength(300);
});

test('a url whose host resolves to a private address fails as not allowed, and the address is not shown', async () => {
  await world.end();
  world = await createWorld({ lookup: async () => ['10.0.0.7'] });
  await world.subscribe('https://hooks.example.com/');
  const session = await world.session();
  await world.node();
  await append(world, session, [status()]);
  await world.advanceUntil(async () => (await listed())[0]?.attemptCount === 1, 0);
  const { attempts } = await shown((await listed())[0]!.deliveryId);
  expect(attempts).toMatchObject([{ status: null, error: 'not_allowed', responseBody: null }]);
  expect(JSON.stringify(world.lines)).not.toContain('10.0.0.7');
});

test('a filter with every chunk type gets every chunk type', async () => {
  const receiver = await receiverOf();
  await world.subscribe(receiver.url, { chunkTypes: [...defaultChunkTypes, 'tool.result', 'turn.completed'] });
  const session = await world.session();
  await world.node();
  await append(world, session, [text('a'), toolResult(), status()]);
  await settled(session);
  expect(receiver.received[0]!.envelope.chunks.map(({ type }) => type)).toEqual([
    'message.chunk',
    'tool.result',
    'session.status',
  ]);
});
