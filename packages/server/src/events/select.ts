// Selects records: for the list, the export, or one by its id.
import type { Event, Input } from '@signalbox/contract';
import sql, { join, type Sql } from 'sql-template-tag';
import { instantOf } from '../lib/instant.ts';
import { typesMatching } from './filter.ts';
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
 * The rows of one organization as EventRow, from the log or a part of it, with the alias e. The first remaining record gets the
 * anchor as its previous hash.
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

/** The reader's filters: `and …` for each. */
export function filtersOf(input: Input<'exportEvents'>): Sql[] {
  const { type, actorId, resourceId, sessionId, agentId, environment, since, until, afterSequence } = input;
  return [
    ...(afterSequence === undefined ? [] : [sql`and e.sequence > ${afterSequence}`]),
    ...ofTypes(typesOf(type)),
    ...(actorId === undefined ? [] : [sql`and e.body->'actor'->>'id' = ${actorId}`]),
    ...(resourceId === undefined ? [] : [sql`and e.body->'resource'->>'id' = ${resourceId}`]),
    ...(sessionId === undefined ? [] : [sql`and e.body->>'sessionId' = ${sessionId}`]),
    ...(agentId === undefined ? [] : [sql`and e.body->>'agentId' = ${agentId}`]),
    ...(environment === undefined ? [] : [sql`and e.body->>'environment' = ${environment}`]),
    ...(since === undefined ? [] : [sql`and e.occurred_at >= ${instantOf(since, 'since')}`]),
    ...(until === undefined ? [] : [sql`and e.occurred_at < ${instantOf(until, 'until')}`]),
  ];
}

/** The types that the filter asks for; undefined if it asks for all. Throws a 400. */
function typesOf(text: string | undefined): string[] | undefined {
  return text === undefined ? undefined : typesMatching(text.split(','), 'type');
}

/** A single type is compared with `=`, so that the index returns its records in order. */
function ofTypes(types: string[] | undefined): Sql[] {
  if (types === undefined) return [];
  return [
    types.length === 1 ? sql`and e.body->>'type' = ${types[0]}` : sql`and e.body->>'type' = any(${types}::text[])`,
  ];
}

/**
 * A page of the records that match `conditionsOf`, ordered by sequence number as `order` says. For several types, the index finds the
 * first records of each, and the page has the first of all these.
 */
export function selectPage(
  organizationId: string,
  input: Input<'exportEvents'>,
  more: readonly Sql[],
  order: Sql,
  limit: number,
): Sql {
  const types = typesOf(input.type);
  const all = conditions([...more, ...filtersOf(input)]);
  if (types === undefined || types.length < 2) {
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

/** Joins conditions that each begin with `and`. */
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
