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

/**
 * The rows of an EventRow, of one organization, from the log or a part of it, under the alias e; the first that is kept hangs on
 * the anchor.
 */
export function selectEvents(organizationId: string, from: Sql = sql`events`): Sql {
  return sql`
    select e.event_id as "eventId", e.sequence, e.body, e.occurred_at as "occurredAt", e.hash,
      coalesce(b.hash, h.anchor_hash) as "previousHash"
    from ${from} e
    join event_heads h on h.organization_id = e.organization_id
    left join lateral (
      select p.hash from events p
      where p.organization_id = ${organizationId} and p.sequence = e.sequence - 1 limit 1) b on true
    where e.organization_id = ${organizationId}`;
}

/** What a reader asks for of the log: `and …` for each filter. */
export function filtersOf(input: Input<'exportEvents'>): Sql[] {
  const { type, actorId, resourceId, sessionId, environment, since, until, afterSequence } = input;
  return [
    ...(afterSequence === undefined ? [] : [sql`and e.sequence > ${afterSequence}`]),
    ...(type === undefined ? [] : [ofTypes(typesOf(type))]),
    ...(actorId === undefined ? [] : [sql`and e.body->'actor'->>'id' = ${actorId}`]),
    ...(resourceId === undefined ? [] : [sql`and e.body->'resource'->>'id' = ${resourceId}`]),
    ...(sessionId === undefined ? [] : [sql`and e.body->>'sessionId' = ${sessionId}`]),
    ...(environment === undefined ? [] : [sql`and e.body->>'environment' = ${environment}`]),
    ...(since === undefined ? [] : [sql`and e.occurred_at >= ${instantOf(since, 'since')}`]),
    ...(until === undefined ? [] : [sql`and e.occurred_at < ${instantOf(until, 'until')}`]),
  ];
}

/** Throws a 400 if one is no type. */
function typesOf(text: string): string[] {
  const types = text.split(',');
  const unknown = types.find((type) => !(eventTypes as readonly string[]).includes(type));
  if (unknown !== undefined) throw invalidField('type', `\`${unknown}\` is no type of record`);
  return types;
}

/** One alone is compared so that the index gives its records in their order. */
function ofTypes(types: string[]): Sql {
  return types.length === 1 ? sql`and e.body->>'type' = ${types[0]}` : sql`and e.body->>'type' = any(${types}::text[])`;
}

/**
 * A page of the records that `conditionsOf` is true for, `order` being that of their sequence. Of several types, the first of
 * each are found by the index, then the first of these.
 */
export function selectPage(
  organizationId: string,
  input: Input<'exportEvents'>,
  more: readonly Sql[],
  order: Sql,
  limit: number,
): Sql {
  const types = input.type === undefined ? [] : typesOf(input.type);
  const all = conditions([...more, ...filtersOf(input)]);
  if (types.length < 2) {
    return sql`${selectEvents(organizationId)} ${all} order by e.sequence ${order} limit ${limit}`;
  }
  const { type: _, ...rest } = input;
  return sql`
    ${selectEvents(
      organizationId,
      sql`(
      select x.* from unnest(${types}::text[]) t(type)
      cross join lateral (
        select * from events e
        where e.organization_id = ${organizationId} and e.body->>'type' = t.type
          ${conditions([...more, ...filtersOf(rest)])}
        order by e.sequence ${order} limit ${limit}) x
      order by x.sequence ${order} limit ${limit})`,
    )}
    order by e.sequence ${order}`;
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
