// Reading the event log (api.md section 8).
import { type Event, type Input, longLists, type Result } from '@signalbox/contract';
import sql, { empty, type Sql } from 'sql-template-tag';
import { notFound } from '../lib/api-error.ts';
import type { Context } from '../lib/context.ts';
import { uuidOf } from '../lib/ids.ts';
import { instantOf } from '../lib/instant.ts';
import { pageOf, pageRequest } from '../lib/page.ts';
import type { PendingEvent } from './record.ts';
import { firstHash, recordOf, sequenceEvents } from './sequencer.ts';

interface Row {
  eventId: string;
  sequence: number;
  body: PendingEvent;
  occurredAt: Date;
  hash: Buffer;
  previousHash: Buffer | null;
}

/** Newest first, or oldest first with `order=asc`; the caller's own writes are in it. */
export async function listEvents(ctx: Context, input: Input<'listEvents'>): Promise<Result<'listEvents'>> {
  const { organizationId } = ctx;
  const ascending = input.order === 'asc';
  const request = pageRequest(`events:${input.order ?? 'desc'}:${organizationId}`, input, longLists.default);
  await sequenceEvents(ctx.db, organizationId);
  const after = request.after === undefined ? undefined : Number(request.after);
  const rows = await ctx.db.query<Row>(sql`
    ${columns()}
    where e.organization_id = ${organizationId}
      ${after === undefined ? empty : ascending ? sql`and e.sequence > ${after}` : sql`and e.sequence < ${after}`}
      ${input.type === undefined ? empty : sql`and e.body->>'type' = ${input.type}`}
      ${input.actorId === undefined ? empty : sql`and e.body->'actor'->>'id' = ${input.actorId}`}
      ${input.resourceId === undefined ? empty : sql`and e.body->'resource'->>'id' = ${input.resourceId}`}
      ${input.sessionId === undefined ? empty : sql`and e.body->>'sessionId' = ${input.sessionId}`}
      ${input.environment === undefined ? empty : sql`and e.body->>'environment' = ${input.environment}`}
      ${input.since === undefined ? empty : sql`and e.occurred_at >= ${instantOf(input.since, 'since')}`}
      ${input.until === undefined ? empty : sql`and e.occurred_at < ${instantOf(input.until, 'until')}`}
    order by e.sequence ${ascending ? sql`asc` : sql`desc`} limit ${request.limit + 1}`);
  return pageOf(request, rows, (row) => String(row.sequence), view);
}

/** One record; 404 where there is none of this id. */
export async function getEvent(ctx: Context, input: Input<'getEvent'>): Promise<Result<'getEvent'>> {
  await sequenceEvents(ctx.db, ctx.organizationId);
  const [row] = await ctx.db.query<Row>(sql`
    ${columns()}
    where e.organization_id = ${ctx.organizationId} and e.event_id = ${uuidOf('evt', input.eventId)}`);
  if (!row) throw notFound('event');
  return { event: view(row) };
}

function columns(): Sql {
  return sql`
    select e.event_id as "eventId", e.sequence, e.body, e.occurred_at as "occurredAt", e.hash, b.hash as "previousHash"
    from events e left join events b on b.organization_id = e.organization_id and b.sequence = e.sequence - 1`;
}

function view({ eventId, sequence, occurredAt, body, hash, previousHash }: Row): Event {
  return {
    ...recordOf(eventId, sequence, occurredAt, body),
    previousHash: (previousHash ?? firstHash).toString('hex'),
    hash: hash.toString('hex'),
  };
}
