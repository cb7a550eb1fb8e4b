// The sequencer numbers the records of the event log. It locks the organization's row in event_heads, so it runs once at a time for
// an organization, reads the committed records of events_pending in id order, and moves them to events with the next sequence
// numbers and hashes. Only committed records get a number, so there are no gaps. Numbers are assigned under the lock, so no record
// ever appears before one that was already read.
//
// A read of the log runs it first and waits for it, so that a caller sees its own writes at once. It starts at
// `event_heads.pending_from`, two minutes before the last record that was moved: ids are in the order of time. During a long
// transaction the index keeps an entry of every record that was moved, and a read from the start would go through all of them. The
// background pass starts at the first pending record, so it also moves those that were committed more than two minutes late, or by a
// node whose clock is more than two minutes behind.
import { createHash } from 'node:crypto';
import type { Event } from '@signalbox/contract';
import canonicalize from 'canonicalize';
import sql, { empty } from 'sql-template-tag';
import { COMMITTED_WITHIN_MS } from '../db/committed-within.ts';
import type { Db } from '../db/db.ts';
import { planForLookups } from '../db/plan-for-lookups.ts';
import { firstUuidOf, formatId, timeOfUuid } from '../lib/ids.ts';
import type { Platform } from '../platform.ts';
import { type Counted, countedColumns, countRecords } from './open-sessions.ts';
import type { PendingEvent } from './record.ts';

/** The `previousHash` of an organization's first record. */
export const firstHash = Buffer.alloc(32);

// Bounds the memory of one pass; a longer queue takes more passes.
const BATCH = 500;

interface Head extends Counted {
  hash: Buffer;
  latestAt: Date | null;
  lateMs: number;
  pendingFrom: string;
  now: Date;
}

export interface EventHead {
  /** The number of the last record. */
  sequence: number;
  /** The number of the last record that retention has deleted; 0 if it has deleted none. */
  anchorSequence: number;
}

/** How far the log of an organization goes. */
export async function readEventHead(db: Db, organizationId: string): Promise<EventHead> {
  const [head] = await db.query<EventHead>(sql`
    select sequence, anchor_sequence as "anchorSequence" from event_heads where organization_id = ${organizationId}`);
  if (!head) throw noHead();
  return head;
}

/** Moves what was committed before the call, except what was committed late; resolves when it is in `events`. */
export async function sequenceEvents(db: Db, organizationId: string): Promise<void> {
  if (await hasPending(db, organizationId)) await moveAll(db, { organizationId, from: undefined });
}

/** The organization's records from this one on. If another node is moving them, resolves without waiting, so that nodes do not queue. */
export function sequenceInBackground(db: Db, pending: PendingRecords): Promise<void> {
  return moveAll(db, pending, { isBackground: true });
}

async function moveAll(
  db: Db,
  { organizationId, from }: { organizationId: string; from: string | undefined },
  { isBackground = false } = {},
): Promise<void> {
  for (let next = from; ; ) {
    const moved = await moveBatch(db, organizationId, { isBackground, from: next });
    // A batch that is not full contained every record that was there; later ones are not waited for.
    if (moved.length < BATCH) return;
    next = moved.at(-1);
  }
}

/** A cheap check: most reads find nothing to move, and take no lock. */
async function hasPending(db: Db, organizationId: string): Promise<boolean> {
  const [, found = []] = await db.batch([
    planForLookups,
    sql`
    select 1 from events_pending
    where organization_id = ${organizationId}
      and event_id >= (select pending_from from event_heads where organization_id = ${organizationId})
    limit 1`,
  ]);
  return found.length > 0;
}

/** An organization with pending records, and the id of the first. */
export interface PendingRecords {
  organizationId: string;
  from: string;
}

export const PENDING_PAGE_SIZE = 1_000;

/** For the background pass; at most PENDING_PAGE_SIZE of them from each database server. */
export async function findPendingRecords({ shards }: Pick<Platform, 'shards'>): Promise<PendingRecords[]> {
  const { rows } = await shards.query<PendingRecords>(
    'looking for event records to sequence',
    (within) => sql`
    select distinct on (organization_id) organization_id as "organizationId", event_id as "from" from events_pending
    where true ${within()}
    order by organization_id, event_id limit ${PENDING_PAGE_SIZE}`,
  );
  return rows;
}

/** Returns the ids of the records that it moved, in order. Without `from`, it starts where readers do. */
function moveBatch(
  db: Db,
  organizationId: string,
  { isBackground, from }: { isBackground: boolean; from: string | undefined },
): Promise<string[]> {
  return db.transaction(async (tx) => {
    tx.write(planForLookups);
    const [head] = await tx.query<Head>(sql`
      select ${countedColumns}, h.hash, h.latest_at as "latestAt", h.late_ms as "lateMs", h.pending_from as "pendingFrom", now() as now
      from event_heads h
      where h.organization_id = ${organizationId}
      for update ${isBackground ? sql`skip locked` : empty}`);
    if (!head && isBackground) return [];
    if (!head) throw noHead();
    const pending = await tx.query<{ eventId: string; body: PendingEvent; occurredAt: Date }>(sql`
      select event_id as "eventId", body, occurred_at as "occurredAt" from events_pending
      where organization_id = ${organizationId} and event_id >= ${from ?? head.pendingFrom}
      order by event_id limit ${BATCH}`);
    if (pending.length === 0) return [];

    let { sequence, hash, lateMs } = head;
    let latest = head.latestAt?.getTime() ?? 0;
    const ids: string[] = [];
    const sequences: number[] = [];
    const hashes: Buffer[] = [];
    for (const { eventId, body, occurredAt } of pending) {
      sequence += 1;
      hash = hashOf(hash, recordOf(eventId, sequence, occurredAt, body));
      latest = Math.max(latest, occurredAt.getTime());
      lateMs = Math.max(lateMs, latest - occurredAt.getTime());
      ids.push(eventId);
      sequences.push(sequence);
      hashes.push(hash);
    }
    const bodies = pending.map(({ body }) => body);
    const openSessions = await countRecords(tx, organizationId, head, bodies);
    await Promise.all([
      tx.query(sql`
        with i as (
          insert into events as e (organization_id, sequence, event_id, body, occurred_at, hash)
          select p.organization_id, x.sequence, p.event_id, p.body, p.occurred_at, x.hash
          from unnest(${ids}::uuid[], ${sequences}::bigint[], ${hashes}::bytea[]) as x(event_id, sequence, hash)
          cross join lateral (
            -- The limit forces a look-up by the whole key. The table is mostly empty, and so are its statistics: a join would read all that
            -- waits for each row.
            select y.* from events_pending y
            where y.organization_id = ${organizationId} and y.event_id = x.event_id
            limit 1) p
          returning e.event_id)
        delete from events_pending p
        where p.organization_id = ${organizationId} and p.event_id = any(array(select i.event_id from i))`),
      tx.query(sql`
        update event_heads set sequence = ${sequence}, hash = ${hash}, latest_at = ${new Date(latest)}, late_ms = ${lateMs},
          pending_from = ${pendingFrom(head, ids.at(-1)!)}, counted = ${sequence}
          ${openSessions === head.openSessions ? empty : sql`, open_sessions = ${openSessions && JSON.stringify(openSessions)}::jsonb`}
        where organization_id = ${organizationId}`),
    ]);
    return ids;
  });
}

/** A little before the last record that was moved, and before now: the clock of the node that wrote it may be ahead. */
function pendingFrom({ pendingFrom: before, now }: Head, lastId: string): string {
  const last = Math.min(timeOfUuid(lastId).getTime(), now.getTime());
  const from = firstUuidOf(new Date(last - COMMITTED_WITHIN_MS));
  return from > before ? from : before;
}

function noHead(): Error {
  return new Error('An organization without an event head');
}

/** What is hashed of a record: everything except the two hashes. */
export function recordOf(
  eventId: string,
  sequence: number,
  occurredAt: Date,
  body: PendingEvent,
): Omit<Event, 'previousHash' | 'hash'> {
  return { eventId: formatId('evt', eventId), sequence, occurredAt: occurredAt.toISOString(), ...body };
}

/** `SHA-256(previousHash ‖ canonical JSON of the record)`. */
export function hashOf(previousHash: Buffer, record: Omit<Event, 'previousHash' | 'hash'>): Buffer {
  return createHash('sha256').update(previousHash).update(canonicalize(record)!).digest();
}
