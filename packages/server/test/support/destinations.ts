// The setup for tests of destinations: a database, a platform with a manual clock, and records that the tests write.
import type { Event, Input } from '@signalbox/contract';
import sql from 'sql-template-tag';
import type { Dispatcher } from '../../src/deliveries/dispatcher.ts';
import { createDestination } from '../../src/destinations/destinations.ts';
import { createDestinationDispatcher } from '../../src/destinations/dispatcher.ts';
import { type EventDraft, recordEvent, systemSource } from '../../src/events/record.ts';
import { firstHash } from '../../src/events/sequencer.ts';
import { createEventWatch } from '../../src/events/watch.ts';
import { formatId, newUuid } from '../../src/lib/ids.ts';
import type { Received, Receiver } from './receiver.ts';
import { createWorld, type World } from './webhooks.ts';

export interface DestinationWorld extends World {
  /** Starts a node that sends to destinations; retries have no jitter. */
  sender(more?: { timeoutMs?: number; nodeId?: string }): Promise<{ dispatcher: Dispatcher; nodeId: string }>;
  /** Creates a destination for all records of sessions; returns its id and its secret. */
  destination(
    url: string,
    more?: Partial<Input<'createDestination'>>,
    organizationId?: string,
  ): Promise<{ destinationId: string; signingSecret: string }>;
  /** Writes a record about a session. */
  record(sessionId: string, more?: Partial<EventDraft>, organizationId?: string): Promise<void>;
}

/** `ses_…`. */
export const newSession = () => formatId('ses', newUuid());

export async function createDestinationWorld(): Promise<DestinationWorld> {
  const world = await createWorld();
  const { db, clock, platform } = world;
  const started: Dispatcher[] = [];
  for (const organizationId of [world.organizationId, world.strangerId]) {
    await db.query(sql`
      insert into event_heads (organization_id, sequence, hash, anchor_sequence, anchor_hash)
      values (${organizationId}, 0, ${firstHash}, 0, ${firstHash})`);
  }
  return {
    ...world,
    async sender({ nodeId = newUuid(), ...more } = {}) {
      await db.query(sql`
        insert into nodes (node_id, lease_expires_at) values (${nodeId}, now() + interval '1 day')
        on conflict do nothing`);
      const eventWatch = createEventWatch(platform);
      const options = { nodeId, version: '0.0.0', random: () => 0, graceMs: 0, ...more };
      const inner = createDestinationDispatcher({ ...platform, eventWatch }, options);
      const dispatcher: Dispatcher = {
        start: () => inner.start(),
        async stop() {
          await inner.stop();
          await eventWatch.stop();
        },
      };
      started.push(dispatcher);
      dispatcher.start();
      return { dispatcher, nodeId };
    },
    async destination(url, more = {}, organizationId = world.organizationId) {
      const input = { name: 'Test', type: 'webhook', eventTypes: ['session.*'], url, ...more } as const;
      const { destination, signingSecret } = await createDestination(world.context(organizationId), {
        ...input,
        eventTypes: [...input.eventTypes],
      });
      return { destinationId: destination.destinationId, signingSecret: signingSecret! };
    },
    async record(sessionId, more = {}, organizationId = world.organizationId) {
      await db.query(
        recordEvent(systemSource(organizationId), clock.now(), {
          ...{
            type: 'session.idle',
            resource: { type: 'session', id: sessionId },
            sessionId,
            environment: 'production',
          },
          ...more,
        }),
      );
    },
    async end() {
      await Promise.all(started.map((dispatcher) => dispatcher.stop()));
      await world.end();
    },
  };
}

export function eventsOf({ body }: Pick<Received, 'body'>): Event[] {
  return (JSON.parse(body) as { events: Event[] }).events;
}

/** The records that arrived, in order, as they were sent. */
export function arrived({ received }: Pick<Receiver, 'received'>): Event[] {
  return received.flatMap(eventsOf);
}
