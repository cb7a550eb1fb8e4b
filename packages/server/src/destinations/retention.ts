// Deletes old deliveries, which are only for display once they have ended, and those of deleted destinations.
import sql, { type Sql } from 'sql-template-tag';
import type { Db } from '../db/db.ts';
import { deleteInBatches } from '../db/delete-in-batches.ts';
import { areThere } from '../db/rounds.ts';
import type { Within } from '../db/shards.ts';
import { firstUuidOf } from '../lib/ids.ts';

/** Whether an organization may have deliveries to delete, for rounds through all of them: of each destination it looks at the oldest one. */
export function hasOldDestinationDeliveries(organizationId: Sql, before: Date, within: Within): Sql {
  const isKnown = sql`exists (
    select 1 from destinations k
    where k.organization_id = ${organizationId} and k.destination_id = next.id ${within(sql`k.organization_id`)})`;
  const next = (after: Sql) => sql`
    select d.destination_id as id from destination_deliveries d
    where d.organization_id = ${organizationId} and d.destination_id > ${after} ${within(sql`d.organization_id`)}
    order by d.destination_id limit 1`;
  const old = areThere(sql`
    from destinations t
    cross join lateral (
      select d.delivery_id from destination_deliveries d
      where d.organization_id = t.organization_id and d.destination_id = t.destination_id
        ${within(sql`d.organization_id`)}
      order by d.delivery_id limit 1) oldest
    where t.organization_id = ${organizationId} and oldest.delivery_id < ${firstUuidOf(before)}
      ${within(sql`t.organization_id`)}`);
  const first = areThere(
    sql`from (${next(sql`'00000000-0000-0000-0000-000000000000'::uuid`)}) next where not ${isKnown}`,
  );
  const later = areThere(sql`
    from destinations t cross join lateral (${next(sql`t.destination_id`)}) next
    where t.organization_id = ${organizationId} ${within(sql`t.organization_id`)} and not ${isKnown}`);
  return sql`${old} or ${first} or ${later}`;
}

/** Deletes the deliveries that finished before that time, and all of destinations that were deleted. */
export async function dropDestinationDeliveries(
  db: Db,
  organizationId: string,
  before: Date,
  signal: AbortSignal,
): Promise<void> {
  const destinations = await db.query<{ id: string; isKnown: boolean }>(sql`
    with recursive found as (
      (select d.destination_id as id from destination_deliveries d
      where d.organization_id = ${organizationId} order by d.destination_id limit 1)
      union all
      select (
        select d.destination_id from destination_deliveries d
        where d.organization_id = ${organizationId} and d.destination_id > found.id
        order by d.destination_id limit 1)
      from found where found.id is not null)
    select found.id, exists (
      select 1 from destinations t where t.organization_id = ${organizationId} and t.destination_id = found.id) as "isKnown"
    from found where found.id is not null`);
  for (const { id, isKnown } of destinations) {
    await deleteInBatches(db, signal, {
      find: (limit) => sql`
        select x.delivery_id from destination_deliveries x
        where x.organization_id = ${organizationId} and x.destination_id = ${id}
          ${isKnown ? sql`and x.delivery_id < ${firstUuidOf(before)} and x.finished_at < ${before}` : sql``}
        order by x.delivery_id ${limit} for update skip locked`,
      drop: sql`
        delete from destination_deliveries d
        where d.organization_id = ${organizationId} and d.destination_id = ${id}
          and d.delivery_id = any(array(select old.delivery_id from old))`,
    });
  }
}
