/** Creates event logs for tests: hashed and linked as the service does, but with other code than that under test. */
import { createHash } from 'node:crypto';
import type { Event } from '../src/index.ts';

/** Records from 1, each linked to the previous one. */
export function chainOf(length: number): Event[] {
  const events: Event[] = [];
  let previousHash = '0'.repeat(64);
  for (let sequence = 1; sequence <= length; sequence += 1) {
    const event = sealed(recordOf(sequence), previousHash);
    events.push(event);
    previousHash = event.hash;
  }
  return events;
}

type Bare = Omit<Event, 'previousHash' | 'hash'>;

/** With its fields in the order of canonical JSON. */
export function recordOf(sequence: number): Bare {
  const actor: Event['actor'] = { id: 'key_1', name: 'Zoë "deploy" \u2028', type: 'api_key' };
  return {
    actor,
    changes: { name: [null, `agent ${sequence}`] },
    context: { ipAddress: '127.0.0.1', requestId: null, userAgent: null },
    environment: null,
    eventId: `evt_${sequence}`,
    occurredAt: '2026-01-01T00:00:00.000Z',
    outcome: 'success',
    resource: { id: `agt_${sequence}`, type: 'agent' },
    sequence,
    sessionId: null,
    type: 'agent.created',
  };
}

export function sealed(record: Bare, previousHash: string): Event {
  const hash = createHash('sha256')
    .update(Buffer.from(previousHash, 'hex'))
    .update(JSON.stringify(record))
    .digest('hex');
  return { ...record, previousHash, hash };
}
