// The sequence numbers of the records of a period.
//
// Records get their sequence number soon after they occurred, so both go up together, but not exactly: transactions that began
// at the same time end in any order, and clocks of nodes differ. event_heads has the most that a record ever was behind one
// before it (late_ms). So a record that occurred more than that before an instant has no record of the instant before it, and
// one that occurred more than that after it has none behind it. Such records are found by halving, one look by the key each.
import sql, { type Sql } from 'sql-template-tag';
import type { Db } from '../db/db.ts';

/** `and …` for the sequence numbers outside of which no record of the time is; `until` itself is not in it. */
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

/** `low` occurred before the instant, `high` not, the instant being moved by what records may be late. */
async function halve(
  db: Db,
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
