// Dropping old records. They go from the front of the log only, so that what is left is one chain; the hash of the last that
// went is kept as its anchor (event_heads), and the first that is left names it as its `previousHash`.
import sql from 'sql-template-tag';
import type { Db } from '../db/db.ts';
import type { Platform } from '../platform.ts';

// The head's row is locked meanwhile, and the sequencer waits for it.
const BATCH = 1_000;

/** Organizations whose oldest record is older than `before`, for the background pass: one look by the key for each. */
export async function organizationsToDropEvents({ shards }: Pick<Platform, 'shards'>, before: Date): Promise<string[]> {
  const { rows } = await shards.query<{ organizationId: string }>(
    'looking for old event records',
    (within) => sql`
    select h.organization_id as "organizationId" from event_heads h
    join events e on e.organization_id = h.organization_id and e.sequence = h.anchor_sequence + 1
    where e.occurred_at < ${before} ${within(sql`h.organization_id`)} limit 1000`,
  );
  return rows.map(({ organizationId }) => organizationId);
}

/** Drops a batch from the front, up to the first record that is to stay. Returns whether it was full. */
export function dropEvents(db: Db, organizationId: string, before: Date): Promise<boolean> {
  return db.transaction(async (tx) => {
    const [head] = await tx.query<{ anchorSequence: number }>(sql`
      select anchor_sequence as "anchorSequence" from event_heads
      where organization_id = ${organizationId} for no key update`);
    if (!head) return false;
    const rows = await tx.query<{ sequence: number; hash: Buffer; old: boolean }>(sql`
      select sequence, hash, occurred_at < ${before} as old from events
      where organization_id = ${organizationId} and sequence > ${head.anchorSequence}
      order by sequence limit ${BATCH}`);
    const firstToStay = rows.findIndex(({ old }) => !old);
    const dropped = firstToStay < 0 ? rows : rows.slice(0, firstToStay);
    const last = dropped.at(-1);
    if (!last) return false;
    await Promise.all([
      tx.query(sql`delete from events where organization_id = ${organizationId} and sequence <= ${last.sequence}`),
      tx.query(sql`
        update event_heads set anchor_sequence = ${last.sequence}, anchor_hash = ${last.hash}
        where organization_id = ${organizationId}`),
    ]);
    return dropped.length === BATCH;
  });
}
