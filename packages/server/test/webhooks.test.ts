import { Webhook } from 'standardwebhooks';
import { createHmac } from 'node:crypto';
import sql from 'sql-template-tag';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { formatId } from '../src/lib/ids.ts';
import { getDelivery, listDeliveries } from '../src/webhooks/deliveries.ts';
import { retryDelaysMs } from '../src/webhooks/schedule.ts';
import {
  createWebhookSubscription,
  deleteWebhookSubscription,
  getWebhookSubscription,
  rotateWebhookSecret,
  updateWebhookSubscription,
} from '../src/webhooks/subscriptions.ts';
import { createReceiver, type Received, type Receiver } from './support/receiver.ts';
import { append, createWorld, status, type TestSession, text, toolResult, type World } from './support/webhooks.ts';

let world: World;
let receivers: Receiver[];

beforeEach(async () => {
  receivers = [];
  world = await createWorld();
});

afterEach(async () => {
  await world.end();
  await Promise.all(receivers.map((receiver) => receiver.close()));
});

async function receiverOf(answer?: Receiver['answer']): Promise<Receiver> {
  const receiver = await createReceiver(answer);
  receivers.push(receiver);
  return receiver;
}

/** The chunks that a receiver has once it drops what it had already, per Session, in the order of arrival. */
function journalsAt(received: readonly Received[]): Map<string, string[]> {
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

const idOf = ({ sessionId }: TestSession) => formatId('ses', sessionId);

/** Waits until nothing of the Session is due. */
async function settled(session: TestSession): Promise<void> {
  await world.advanceUntil(async () => !(await rowOf(session)).due, 0);
}

async function rowOf({ organizationId, sessionId }: TestSession) {
  const [row] = await world.db.query<{ due: boolean; deliveryId: string | null; turn: number; seq: number }>(sql`
    select delivery_due as due, delivery_id as "deliveryId", delivered_turn as turn, delivered_seq as seq from sessions
    where organization_id = ${organizationId} and session_id = ${sessionId}`);
  return row!;
}

async function deliveries(filter: object = {}) {
  return (await listDeliveries(world.context(), { env: 'production', ...filter })).data;
}

async function eventsOf(type: string) {
  return await world.db.query<{ body: { type: string; changes: Record<string, unknown> | null } }>(
    sql`select body from events_pending where body->>'type' = ${type} order by event_id`,
  );
}

describe('a delivery', () => {
  test('carries the envelope, both signatures, and the place in its Session', async () => {
    const receiver = await receiverOf();
    const secret = await world.subscribe(receiver.url);
    const session = await world.session();
    await world.node();
    await append(world, session, [status('running')]);
    const [first] = await receiver.first(1);
    await settled(session);
    await append(world, session, [status('idle')]);
    const [, second] = await receiver.first(2);

    const { headers, body, envelope } = first!;
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
      'x-service-attempt': '1',
      'x-service-secret-version': '1',
      'x-service-previous-cursor': '',
      'webhook-id': first!.deliveryId,
      'webhook-timestamp': timestamp,
    });
    expect(first!.deliveryId).toMatch(/^whd_/);
    expect(second!.previousCursor).toBe('turn_1:seq_1');
    expect(second!.envelope.cursor).toBe('turn_1:seq_2');
    await settled(session);
    const shown = await getDelivery(world.context(), { env: 'production', deliveryId: first!.deliveryId });
    expect(shown.webhookDelivery).toMatchObject({
      status: 'succeeded',
      previousCursor: null,
      cursor: 'turn_1:seq_1',
      attemptCount: 1,
      attempts: [{ attempt: 1, status: 200, error: null, secretVersion: 1 }],
    });
  });
});
