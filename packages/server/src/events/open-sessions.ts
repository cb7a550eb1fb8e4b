// How many sessions are open in each environment: a number that is kept, because counting them reads an index entry for each.
//
// A session that opens or ends writes a record in the same transaction. The sequencer adds these records to the numbers when it moves
// them, in the transaction that moves them, under the lock of the organization's head that it has anyway. No session pays for it, and each
// record counts once, whatever dies. Records that wait to be moved are added by the reader, in one snapshot: what it gets is exact.
//
// The numbers say up to which record they go. After code of an earlier release has moved records, the next batch and readers add what is
// between. Sessions are counted one by one where no numbers are known, and once a week as a check: their number in a snapshot, less what
// the records in the same snapshot that are not counted yet add, is the number after the last counted one.
import type { EventType } from '@signalbox/contract';
import sql, { type Sql } from 'sql-template-tag';
import type { Db, Tx } from '../db/db.ts';
import { planForLookups } from '../db/plan-for-lookups.ts';
import { areThere } from '../db/rounds.ts';
import type { Within } from '../db/shards.ts';

const OPENING = ['session.created', 'session.forked'] satisfies EventType[];
const CHANGING = [...OPENING, 'session.completed', 'session.failed', 'session.cancelled'] satisfies EventType[];
/** The statuses of an open session. */
export const openStatuses = ['idle', 'running', 'waiting'] as const;

/** How many records a reader or a batch adds. If there are more, sessions have to be counted. */
const MOST_UNCOUNTED = 10_000;
const RECOUNT_AFTER_MS = 7 * 24 * 3_600_000;
// Takes seconds at most.
const CHUNK = 200_000;
const BEFORE_ALL = '00000000-0000-0000-0000-000000000000';

/** By environment; without those that have none. */
export type OpenSessions = Record<string, number>;

/** What `event_heads` knows. */
export interface Counted {
  openSessions: OpenSessions | null;
  /** The number of the last record that is included. */
  counted: number;
  sequence: number;
  anchorSequence: number;
}

export const countedColumns = sql`
  h.open_sessions as "openSessions", h.counted, h.sequence, h.anchor_sequence as "anchorSequence"`;

/** The condition that the numbers and the records after them are there; `h` is the row of event_heads. */
const isKept = sql`
  (h.open_sessions is not null and h.anchor_sequence <= h.counted and h.sequence - h.counted <= ${MOST_UNCOUNTED})`;

/** What a record x adds: 1 for a session that opened, -1 for one that ended. */
export const change = sql`case when x.body->>'type' = any(${OPENING}::text[]) then 1 else -1 end`;
/** The condition that a record x adds something. */
export const isChange = sql`x.body->>'type' = any(${CHANGING}::text[])`;

/**
 * Rows of `environment` and `change` whose sums are the numbers of open sessions at this moment; `isKept` is false in one row, without an
 * environment, if they are not known.
 */
export function openSessionsNow(organizationId: string): Sql {
  return sql`
    select k.key as environment, k.value::bigint as change, true as "isKept" from event_heads h
    cross join lateral jsonb_each_text(h.open_sessions) k
    where h.organization_id = ${organizationId}
    union all
    select x.body->>'environment', ${change}, true from events x
    where x.organization_id = ${organizationId}
      and x.sequence > (select h.counted from event_heads h where h.organization_id = ${organizationId} and ${isKept})
      and ${isChange}
    union all
    select x.body->>'environment', ${change}, true from (
      select p.body from events_pending p
      where p.organization_id = ${organizationId}
        and p.event_id >= (select h.pending_from from event_heads h where h.organization_id = ${organizationId})
      limit ${MOST_UNCOUNTED}) x
    where ${isChange}
    union all
    select null, 0, ${isKept} and (
      select count(*) from (
        select 1 from events_pending p
        where p.organization_id = ${organizationId}
          and p.event_id >= (select h.pending_from from event_heads h where h.organization_id = ${organizationId})
        limit ${MOST_UNCOUNTED}) w) < ${MOST_UNCOUNTED}
    from event_heads h where h.organization_id = ${organizationId}`;
}

interface SessionRecord {
  type: EventType;
  environment: string | null;
}

/**
 * For the sequencer, which has locked the head and moves `records`: the numbers after them, or the same object if they change nothing. Null
 * if the sessions have to be counted.
 */
export async function countRecords(
  tx: Tx,
  organizationId: string,
  { openSessions, counted, sequence, anchorSequence }: Counted,
  records: readonly SessionRecord[],
): Promise<OpenSessions | null> {
  if (openSessions === null || counted < anchorSequence || sequence - counted > MOST_UNCOUNTED) return null;
  const missed =
    counted === sequence
      ? []
      : await tx.query<SessionRecord>(sql`
        select x.body->>'type' as type, x.body->>'environment' as environment from events x
        where x.organization_id = ${organizationId} and x.sequence > ${counted} and x.sequence <= ${sequence} and ${isChange}`);
  const changing = [...missed, ...records].filter(({ type }) => isOneOf(CHANGING, type));
  if (changing.length === 0) return openSessions;
  return sums([
    ...Object.entries(openSessions).map(([environment, open]) => ({ environment, open })),
    ...changing.map(({ type, environment }) => ({ environment, open: isOneOf(OPENING, type) ? 1 : -1 })),
  ]);
}

const isOneOf = (types: readonly EventType[], type: EventType) => types.includes(type);

/** By environment, without zeros. A negative sum is kept: the record that makes up for it may be yet to come. */
function sums(numbers: readonly { environment: string | null; open: number }[]): OpenSessions {
  const open = new Map<string, number>();
  for (const { environment, open: number } of numbers) {
    if (environment !== null) open.set(environment, (open.get(environment) ?? 0) + number);
  }
  return Object.fromEntries([...open].filter(([, number]) => number !== 0));
}

/** Whether the sessions of an organization have to be counted, for rounds through all of them. */
export function hasToCount(organizationId: Sql, now: Date, within: Within): Sql {
  return areThere(sql`
    from event_heads h
    where h.organization_id = ${organizationId} ${within(sql`h.organization_id`)}
      and (h.open_sessions is null or h.counted < h.sequence or h.recounted_at is null
        or h.recounted_at < ${new Date(now.getTime() - RECOUNT_AFTER_MS)})`);
}

/** Numbers before and after a count that differ, though no record explains it. */
export interface WrongNumbers {
  kept: OpenSessions;
  counted: OpenSessions;
}

/** Counts the sessions one by one. Returns the numbers that were kept, if they were wrong. */
export async function countOpenSessions(
  db: Db,
  organizationId: string,
  now: Date,
  chunk = CHUNK,
): Promise<WrongNumbers | undefined> {
  const rows = await readSnapshot(db, organizationId, chunk);
  const head = rows.find((row): row is Row & Counted => typeof row.sequence === 'number');
  if (!head) return undefined;
  const { sequence, openSessions, counted: before } = head;
  const counted = sums(rows);
  // The sequencer may have gone further meanwhile: it adds what it moved since.
  await db.execute(sql`
    update event_heads set open_sessions = ${JSON.stringify(counted)}::jsonb, counted = ${sequence}, recounted_at = ${now}
    where organization_id = ${organizationId} and anchor_sequence <= ${sequence}`);
  const isWrong = openSessions !== null && before === sequence && !isSame(openSessions, counted);
  return isWrong ? { kept: openSessions, counted } : undefined;
}

interface Row extends Partial<Counted> {
  environment: string | null;
  /** Null for records. */
  status: string | null;
  open: number;
}

/**
 * What the head says, how many sessions each environment has in each status, and what the records add that are not in the log yet, all
 * from one snapshot. No statement counts more than `chunk` sessions of a status: none takes long.
 */
function readSnapshot(db: Db, organizationId: string, chunk: number): Promise<Row[]> {
  return db.transaction(async (tx) => {
    tx.write(sql`set transaction isolation level repeatable read`);
    tx.write(planForLookups);
    const rows = await tx.query<Row>(sql`
      select ${countedColumns}, null as environment, null as status, 0 as open from event_heads h
      where h.organization_id = ${organizationId}
      union all
      select null, null, null, null, e.name, k.status, s.open from environments e
      cross join lateral unnest(${[...openStatuses]}::text[]) k(status)
      cross join lateral (
        select count(*)::int as open from (
          select 1 from sessions s
          where s.organization_id = ${organizationId} and s.environment = e.name and s.status = k.status
          order by s.session_id limit ${chunk}) x) s
      where e.organization_id = ${organizationId}
      union all
      select null, null, null, null, x.body->>'environment', null, -${change} from events_pending x
      where x.organization_id = ${organizationId} and ${isChange}`);
    for (const row of rows) {
      if (row.status !== null && row.open === chunk) row.open = await countInChunks(tx, organizationId, row, chunk);
    }
    return rows;
  });
}

async function countInChunks(
  tx: Tx,
  organizationId: string,
  { environment, status }: Row,
  chunk: number,
): Promise<number> {
  let open = 0;
  for (let after = BEFORE_ALL; ; ) {
    const [counted]: { open: number; last: string | null }[] = await tx.query(sql`
      select count(*)::int as open, max(x.session_id::text) as last from (
        select s.session_id from sessions s
        where s.organization_id = ${organizationId} and s.environment = ${environment} and s.status = ${status}
          and s.session_id > ${after}
        order by s.session_id limit ${chunk}) x`);
    open += counted!.open;
    if (counted!.open < chunk) return open;
    after = counted!.last!;
  }
}

function isSame(one: OpenSessions, other: OpenSessions): boolean {
  const names = Object.keys(one);
  return names.length === Object.keys(other).length && names.every((name) => one[name] === other[name]);
}
