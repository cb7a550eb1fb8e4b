// Records as they are read: by the list, by the export, one alone.
import { type Event, eventTypes, type Input } from '@signalbox/contract';
import sql, { join, type Sql } from 'sql-template-tag';
import { invalidField } from '../lib/api-error.ts';
import { instantOf } from '../lib/instant.ts';
import type { PendingEvent } from './record.ts';
import { recordOf } from './sequencer.ts';

export interface EventRow {
  eventId: string;
  sequence: number;
  body: PendingEvent;
  occurredAt: Date;
  hash: Buffer;
  previousHash: Buffer;
}

/** The rows of an EventRow, of one organization, under the alias e; the first that is kept hangs on the anchor. */
export function selectEvents(organizationId: string): Sql {
  return sql`
    select e.event_id as "eventId", e.sequence, e.body, e.occurred_at as "occurredAt", e.hash,
      coalesce(b.hash, h.anchor_hash) as "previousHash"
    from events e
    join event_heads h on h.organization_id = e.organization_id
    left join events b on b.organization_id = e.organization_id and b.sequence = e.sequence - 1
    where e.organization_id = ${organizationId}`;
}

/** What a reader asks for of the log: `and …` for each filter. */
export function filtersOf(input: Input<'exportEvents'>): Sql[] {
  const { type, actorId, resourceId, sessionId, environment, since, until, afterSequence } = input;
  return [
    ...(afterSequence === undefined ? [] : [sql`and e.sequence > ${afterSequence}`]),
    ...(type === undefined ? [] : [ofTypes(type.split(','))]),
    ...(actorId === undefined ? [] : [sql`and e.body->'actor'->>'id' = ${actorId}`]),
    ...(resourceId === undefined ? [] : [sql`and e.body->'resource'->>'id' = ${resourceId}`]),
    ...(sessionId === undefined ? [] : [sql`and e.body->>'sessionId' = ${sessionId}`]),
    ...(environment === undefined ? [] : [sql`and e.body->>'environment' = ${environment}`]),
    ...(since === undefined ? [] : [sql`and e.occurred_at >= ${instantOf(since, 'since')}`]),
    ...(until === undefined ? [] : [sql`and e.occurred_at < ${instantOf(until, 'until')}`]),
  ];
}

/** 400 where one is no type. One alone is compared so that the index gives its records in their order. */
function ofTypes(types: string[]): Sql {
  const unknown = types.find((type) => !(eventTypes as readonly string[]).includes(type));
  if (unknown !== undefined) throw invalidField('type', `\`${unknown}\` is no type of record`);
  return types.length === 1 ? sql`and e.body->>'type' = ${types[0]}` : sql`and e.body->>'type' = any(${types}::text[])`;
}

/** Conditions, each with its `and`, in one piece of SQL. */
export function conditions(parts: readonly Sql[]): Sql {
  return parts.length === 0 ? sql`` : join(parts, ' ');
}

export function viewEvent({ eventId, sequence, occurredAt, body, hash, previousHash }: EventRow): Event {
  return {
    ...recordOf(eventId, sequence, occurredAt, body),
    previousHash: previousHash.toString('hex'),
    hash: hash.toString('hex'),
  };
}
