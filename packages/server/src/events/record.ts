// Writing to the event log. A record is inserted in the transaction of the change that it describes: both are stored or neither.
import { createHash } from 'node:crypto';
import type { Event, EventType } from '@signalbox/contract';
import sql, { type Sql } from 'sql-template-tag';
import type { Actor } from '../lib/context.ts';
import { newUuid } from '../lib/ids.ts';
import { pseudonymOf } from '../vault/pseudonym.ts';
import type { Vault } from '../vault/vault.ts';

/** A record before the sequencer has numbered it. */
export type PendingEvent = Omit<Event, 'eventId' | 'sequence' | 'occurredAt' | 'previousHash' | 'hash'>;

/**
 * What happened. `changes` never contains a secret, not even a sealed one. Of a long value, only the size and the SHA-256 are
 * stored.
 */
export interface EventDraft {
  type: EventType;
  resource: Event['resource'];
  outcome?: Event['outcome'];
  environment?: string | null;
  sessionId?: string | null;
  /** `agt_…`: the agent that it is about, if it is about one. Left out of the record otherwise, as in records of earlier releases. */
  agentId?: string | null;
  changes?: Event['changes'];
}

/** Who did it, and in which request. */
export interface EventSource {
  organizationId: string;
  actor: Actor;
  requestId: string | null;
  ipAddress: string | null;
  userAgent: string | null;
  /** Needed only if the actor is an end user. */
  vault?: Vault;
}

// An agent's instructions and tools are up to 1 MiB. The log says that they changed; the versions have their contents.
const MAX_VALUE_CHARACTERS = 4_096;

/** The service itself, as the actor of what no caller requested. */
export const systemActor: Actor = { type: 'system', id: null, name: 'Signalbox' };

export const systemOrigin = { actor: systemActor, requestId: null, ipAddress: null, userAgent: null };

/** The source of what the service does by itself, outside of requests. */
export function systemSource(organizationId: string): EventSource {
  return { organizationId, ...systemOrigin };
}

/** The statement that writes a record; run it in the transaction of the change. */
export function recordEvent(source: EventSource, now: Date, draft: EventDraft): Sql {
  const body: PendingEvent = {
    type: draft.type,
    outcome: draft.outcome ?? 'success',
    actor: loggedActor(source),
    resource: draft.resource,
    environment: draft.environment ?? null,
    sessionId: draft.sessionId ?? null,
    ...(draft.agentId && { agentId: draft.agentId }),
    changes: shortened(draft.changes),
    context: loggedContext(source),
  };
  return sql`
    insert into events_pending (organization_id, event_id, body, occurred_at)
    values (${source.organizationId}, ${newUuid()}, ${JSON.stringify(body)}, ${now})`;
}

/** An end user must be able to disappear, and the log can't be changed: it has a pseudonym, without name, address and browser. */
function loggedActor({ actor, organizationId, vault }: EventSource): Actor {
  if (actor.type !== 'end_user') return actor;
  const id = actor.id === null ? null : pseudonymOf(vault!, organizationId, actor.id).toString('hex');
  return { type: 'end_user', id, name: 'End user' };
}

function loggedContext({ actor, requestId, ipAddress, userAgent }: EventSource): Event['context'] {
  return actor.type === 'end_user'
    ? { requestId, ipAddress: null, userAgent: null }
    : { requestId, ipAddress, userAgent };
}

/** The changes, with only the size of the values of these fields: they may be personal data of an end user. */
export function withoutValues(changes: Event['changes'], fields: readonly string[]): Event['changes'] {
  if (!changes) return null;
  const sizeOf = (value: unknown) =>
    value === null || value === undefined ? null : { bytes: Buffer.byteLength(JSON.stringify(value)) };
  return Object.fromEntries(
    Object.entries(changes).map(([field, [before, after]]) => [
      field,
      fields.includes(field) ? [sizeOf(before), sizeOf(after)] : [before, after],
    ]),
  );
}

function shortened(changes: EventDraft['changes']): Event['changes'] {
  if (!changes) return null;
  return Object.fromEntries(
    Object.entries(changes).map(([field, [before, after]]) => [field, [shortenedValue(before), shortenedValue(after)]]),
  );
}

function shortenedValue(value: unknown): unknown {
  const text = JSON.stringify(value ?? null);
  if (text.length <= MAX_VALUE_CHARACTERS) return value;
  return { bytes: Buffer.byteLength(text), sha256: createHash('sha256').update(text).digest('hex') };
}

/** `{ field: [before, after] }` of the fields that differ; null if none does. Of something new, nothing is before. */
export function changesBetween<T extends object>(
  before: Partial<T>,
  after: T,
  fields: readonly (keyof T & string)[],
): Event['changes'] {
  const changes: Record<string, [unknown, unknown]> = {};
  for (const field of fields) {
    const pair: [unknown, unknown] = [before[field] ?? null, after[field] ?? null];
    if (JSON.stringify(pair[0]) !== JSON.stringify(pair[1])) changes[field] = pair;
  }
  return Object.keys(changes).length > 0 ? changes : null;
}
