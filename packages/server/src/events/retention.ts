// Deletes old records. Only records at the front of the log are deleted, so the rest is still one chain. The hash of the last deleted
// record is kept as the chain's anchor (event_heads); the first remaining record has it as its `previousHash`.
import sql, { type Sql } from 'sql-template-tag';
import type { Db } from '../db/db.ts';
import { areThere } from '../db/rounds.ts';
import type { Within } from '../db/shards.ts';

// The head's row stays locked, and the sequencer waits for it.
const BATCH = 1_000;

/** Whether the oldest record of an organization is older than `before`, for rounds through all of them. */
export function hasOldEvents(organizationId: Sql, before: Date, within: Within): Sql {
  return areThere(sql`
    from event_heads h
    join events e on e.organization_id = h.organization_id and e.sequence = h.anchor_sequence + 1
    where h.organization_id = ${organizationId} and e.occurred_at < ${before} ${within(sql`h.organization_id`)}`);
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
