// The rows of deliveries: written by the reader, sent lane by lane, and finished.
import { destinationEvent, type Event, maxEventsPerDelivery } from '@signalbox/contract';
import sql, { type Sql } from 'sql-template-tag';
import type { Db, Queryable } from '../../db/db.ts';
import { planForLookups } from '../../db/plan-for-lookups.ts';
import { textArray } from '../../db/values.ts';
import { attemptLines, withAttempts } from '../../deliveries/finished-deliveries.ts';
import type { StoredAttempt } from '../../deliveries/stored-attempt.ts';
import { type EventRow, selectEvents, viewEvent } from '../../events/select.ts';
import { newUuid } from '../../lib/ids.ts';
import { type DestinationAssignment, sameDestination } from '../destination/assignments.ts';
import { type LoggedEvent, laneOf } from '../destination/filter.ts';

/** A delivery that waits to be sent. */
export interface WaitingDelivery {
  deliveryId: string;
  lane: string;
  sequences: number[];
  lastSequence: number;
  previousSequence: number | null;
  attemptCount: number;
  retries: number;
  dueAt: Date;
}

type Destination = Pick<DestinationAssignment, 'organizationId' | 'destinationId'>;

const MAX_BODY_BYTES = 64 * 1024;
// What a record has besides when it is sent: two fields of 64 characters, and a comma.
const HASHES_BYTES = 160;

/** The bytes of a delivery. */
export function bodyOf(events: readonly Event[]): Buffer {
  return Buffer.from(JSON.stringify({ event: destinationEvent, events }));
}

/** Stores the records as deliveries, those of each lane in order. */
export function dueDeliveries(
  { organizationId, destinationId }: Destination,
  events: readonly LoggedEvent[],
  now: Date,
): { statement: Sql; rows: number } {
  const rows = [...Map.groupBy(events, laneOf)].flatMap(([lane, ofLane]) =>
    batches(ofLane).map((batch, n, all) => ({
      lane,
      sequences: batch.map(({ sequence }) => sequence),
      previous: all[n - 1]?.at(-1)?.sequence,
    })),
  );
  const first = rows.map(({ sequences }) => sequences[0]!);
  const statement = sql`
    insert into destination_deliveries (organization_id, destination_id, delivery_id, lane, sequences, last_sequence,
      previous_sequence, status, due_at, created_at)
    select t.organization_id, t.destination_id, x.id, x.lane, string_to_array(x.sequences, ',')::bigint[], x.last,
      coalesce(x.previous, (
        select d.last_sequence from destination_deliveries d
        where d.organization_id = ${organizationId} and d.destination_id = ${destinationId} and d.lane = x.lane
          and d.last_sequence < x.first
        order by d.last_sequence desc limit 1)),
      'pending', ${now}::timestamptz, ${now}::timestamptz
    from destinations t cross join unnest(${rows.map(() => newUuid())}::uuid[], ${textArray(rows.map(({ lane }) => lane))}::text[],
      ${textArray(rows.map(({ sequences }) => sequences.join(',')))}::text[], ${first}::bigint[],
      ${rows.map(({ sequences }) => sequences.at(-1)!)}::bigint[], ${rows.map(({ previous }) => previous ?? null)}::bigint[])
      as x(id, lane, sequences, first, last, previous)
    where t.organization_id = ${organizationId} and t.destination_id = ${destinationId}`;
  return { statement, rows: rows.length };
}

/** Up to as many records, and as long a body, as a delivery has. */
function batches(events: readonly LoggedEvent[]): LoggedEvent[][] {
  const all: LoggedEvent[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const event of events) {
    const own = Buffer.byteLength(JSON.stringify(event)) + HASHES_BYTES;
    const isFull = all.at(-1)?.length === maxEventsPerDelivery || bytes + own > MAX_BODY_BYTES;
    if (isFull) all.push([]);
    bytes = isFull ? own : bytes + own;
    all.at(-1)!.push(event);
  }
  return all;
}

/** How many wait, up to `max`. */
export async function countWaiting(db: Db, destination: Destination, max: number): Promise<number> {
  const [row] = await db.query<{ count: number }>(sql`
    select count(*)::int as count from (
      select 1 from destination_deliveries where ${sameDestination(destination)} and status = 'pending' limit ${max}) d`);
  return row!.count;
}

/** The first waiting delivery of each lane, except of these, the one that is due first at the front. */
export async function firstOfLanes(
  db: Db,
  destination: Destination,
  without: readonly string[],
  limit: number,
): Promise<WaitingDelivery[]> {
  // Each lane is one look-up, however many deliveries wait in it.
  const first = (after: Sql) => sql`
    select ${columns} from destination_deliveries d
    where ${sameDestination(destination)} and d.status = 'pending' ${after}
    order by d.lane, d.last_sequence limit 1`;
  const [, rows = []] = await db.batch<WaitingDelivery>([
    planForLookups,
    sql`
      with recursive firsts as (
        (${first(sql``)})
        union all
        select n.* from firsts f cross join lateral (${first(sql`and d.lane > f.lane`)}) n)
      select * from firsts where lane <> all(${[...without]}::text[]) order by "dueAt", "lastSequence" limit ${limit}`,
  ]);
  return rows;
}

/** The first waiting delivery of a lane. */
export async function firstOfLane(
  db: Queryable,
  destination: Destination,
  lane: string,
): Promise<WaitingDelivery | undefined> {
  const [row] = await db.query<WaitingDelivery>(nextOf(destination, lane));
  return row;
}

function nextOf(destination: Destination, lane: string): Sql {
  return sql`
    select ${columns} from destination_deliveries d
    where ${sameDestination(destination)} and d.lane = ${lane} and d.status = 'pending' order by d.last_sequence limit 1`;
}

/** Undefined if retention has deleted all of its records. */
export async function readBody(
  db: Queryable,
  { organizationId }: Pick<Destination, 'organizationId'>,
  sequences: readonly number[],
): Promise<Buffer | undefined> {
  const rows = await db.query<EventRow>(sql`
    ${selectEvents(organizationId)} and e.sequence = any(${[...sequences]}::bigint[]) order by e.sequence`);
  return rows.length === 0 ? undefined : bodyOf(rows.map(viewEvent));
}

/**
 * Ends a delivery, and returns the next one of its lane. `isStale`: it was cancelled in the meantime, by a recovery or because another
 * node sends now.
 */
export async function finishDelivery(
  db: Db,
  destination: Destination,
  delivery: WaitingDelivery,
  { attempts, status, now }: { attempts: readonly StoredAttempt[]; status: 'succeeded' | 'exhausted'; now: Date },
): Promise<{ isStale: boolean; next: WaitingDelivery | undefined }> {
  const [changed, next] = await db.batch<WaitingDelivery>([
    store(
      destination,
      delivery,
      attempts,
      sql`status = ${status}, due_at = null, not_before = null, finished_at = ${now}`,
    ),
    nextOf(destination, delivery.lane),
  ]);
  return { isStale: changed!.length === 0, next: next![0] };
}

/** Sends it again later. */
export async function postponeDelivery(
  db: Db,
  destination: Destination,
  delivery: WaitingDelivery,
  later: { attempts: readonly StoredAttempt[]; retries: number; dueAt: Date; notBefore: Date | null },
): Promise<void> {
  const { attempts, retries, dueAt, notBefore } = later;
  await db.query(
    store(destination, delivery, attempts, sql`retries = ${retries}, due_at = ${dueAt}, not_before = ${notBefore}`),
  );
}

function store(
  destination: Destination,
  { deliveryId, attemptCount }: WaitingDelivery,
  attempts: readonly StoredAttempt[],
  changes: Sql,
): Sql {
  return sql`
    update destination_deliveries d set ${changes}, attempt_count = ${attemptCount + attempts.length},
      attempts = ${attempts.length === 0 ? sql`d.attempts` : withAttempts()}
    from (select ${attemptLines(attempts)}::text as attempts) b
    where ${sameDestination(destination)} and d.delivery_id = ${deliveryId} and d.status = 'pending'
      and d.attempt_count = ${attemptCount}
    returning d.delivery_id as "deliveryId"`;
}

const columns = sql`d.delivery_id as "deliveryId", d.lane, d.sequences, d.last_sequence as "lastSequence",
  d.previous_sequence as "previousSequence", d.attempt_count as "attemptCount", d.retries, d.due_at as "dueAt"`;
