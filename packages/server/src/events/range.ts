// The sequence numbers of the records of a period.
//
// Records get their sequence number soon after they occurred, so numbers and times increase together, but not exactly: concurrent
// transactions commit in any order, and the clocks of nodes differ. event_heads has the maximum by which a record was ever older than
// one before it (late_ms). If a record is older than an instant by more than that, no record before it is newer than the instant; if
// it is newer by more than that, no record after it is older. A binary search by key finds such records.
import sql, { type Sql } from 'sql-template-tag';
import type { Db, Queryable } from '../db/db.ts';

/** `and …` for the sequence numbers that contain all records of the period, which ends before `until`. */
export async function sequenceBounds(
  db: Db,
  organizationId: string,
  since: Date | undefined,
  until: Date | undefined,
): Promise<Sql[]> {
  const [from, to] = await Promise.all([
    since && halve(db, organizationId, since, -1),
    until && halve(db, organizationId, until, 1),
  ]);
  return [...(from ? [sql`and e.sequence > ${from.low}`] : []), ...(to ? [sql`and e.sequence < ${to.high}`] : [])];
}

/** A record before which all are older than the instant, and after which none is older by more than records are late. */
export async function sequenceBefore(db: Queryable, organizationId: string, instant: Date): Promise<number> {
  return (await halve(db, organizationId, instant, -1))?.low ?? 0;
}

/** Record `low` is before the instant and `high` is not; the instant is moved by how late records can be. */
async function halve(
  db: Queryable,
  organizationId: string,
  instant: Date,
  direction: 1 | -1,
): Promise<{ low: number; high: number } | undefined> {
  const [found] = await db.query<{ low: number; high: number }>(sql`
    with recursive search(low, high, instant) as (
      select h.anchor_sequence, h.sequence + 1, ${instant}::timestamptz + ${direction} * h.late_ms * interval '1 millisecond'
      from event_heads h where h.organization_id = ${organizationId}
      union all
      select case when e.occurred_at < s.instant then e.sequence else s.low end,
        case when e.occurred_at < s.instant then s.high else e.sequence end, s.instant
      from search s
      join events e on e.organization_id = ${organizationId} and e.sequence = (s.low + s.high) / 2
      where s.high - s.low > 1)
    select s.low, s.high from search s order by s.high - s.low limit 1`);
  return found;
}
