// Deletes old records. Only records at the front of the log are deleted, so the rest is still one chain. The hash of the last deleted
// record is kept as the chain's anchor (event_heads); the first remaining record has it as its `previousHash`.
import sql from 'sql-template-tag';
import type { Db } from '../db/db.ts';
import type { Platform } from '../platform.ts';

// The head's row stays locked, and the sequencer waits for it.
const BATCH = 1_000;

/** Organizations whose oldest record is older than `before`, for the background pass. One look-up by key for each. */
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

/** Deletes a batch from the front, up to the first record to keep. Returns whether the batch was full. */
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
