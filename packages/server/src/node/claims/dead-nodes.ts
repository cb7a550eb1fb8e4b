// Which nodes and worker turns are dead: sessions name them, but their lease has expired or was removed.
import sql from 'sql-template-tag';
import { paced } from '../../lib/paced.ts';
import type { Platform } from '../../platform.ts';

// Rows of nodes and worker turns that died more than a day ago, deleted by one statement.
const DELETED_NODES_MAX = 1_000;
const DELETE_EVERY_MS = 60_000;

/**
 * Returns a function that returns the ids of the dead nodes. While its search is paused, they may include nodes that no session names, and
 * lack nodes whose lease was removed since the search, or expired more than two minutes before it was first seen.
 */
export function createDeadNodeSearch(
  { db, shards, clock }: Pick<Platform, 'db' | 'shards' | 'clock'>,
  nodeId: string,
): () => Promise<string[]> {
  let dead: string[] = [];

  const searchSessions = paced(clock, async () => {
    const { rows } = await shards.query<{ nodeId: string }>(
      'looking for dead nodes',
      (within) => sql`
      with alive as materialized (select w.node_id from nodes w where w.lease_expires_at >= now())
      select distinct s.node_id as "nodeId" from sessions s
      where s.node_id is not null and s.node_id <> ${nodeId} and s.node_id not in (select node_id from alive)
        ${within(sql`s.organization_id`)}`,
    );
    return [...new Set(rows.map((row) => row.nodeId))];
  });

  /** The nodes that were dead and are not back, and those that have died since. */
  async function readLeases(): Promise<string[]> {
    const rows = await db.query<{ nodeId: string }>(sql`
      select b.id as "nodeId" from unnest(${dead}::uuid[]) as b(id)
      where not exists (select 1 from nodes w where w.node_id = b.id and w.lease_expires_at >= now())
      union
      select w.node_id from nodes w
      where w.lease_expires_at < now() and w.lease_expires_at > now() - interval '2 minutes' and w.node_id <> ${nodeId}`);
    return rows.map((row) => row.nodeId);
  }

  let deleteAtMs = Number.NEGATIVE_INFINITY;
  async function deleteOld(): Promise<void> {
    if (clock.elapsedMs() < deleteAtMs) return;
    const deleted = await db.execute(sql`
      delete from nodes w using (
        select node_id from nodes where lease_expires_at < now() - interval '1 day' limit ${DELETED_NODES_MAX}) dead
      where w.node_id = dead.node_id`);
    // After a full batch there may be more.
    if (deleted < DELETED_NODES_MAX) deleteAtMs = clock.elapsedMs() + DELETE_EVERY_MS;
  }

  return async () => {
    dead = (await searchSessions()) ?? (await readLeases());
    await deleteOld();
    return dead;
  };
}
