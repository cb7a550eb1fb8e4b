// A node's lease: its row in `nodes`, renewed by the database's clock. Sessions and webhook subscriptions name the node that runs
// them. Another node takes them over once the lease has expired.
import sql from 'sql-template-tag';
import type { Db } from '../../db/db.ts';
import { OVER } from '../../lib/aborted.ts';
import type { Platform } from '../../platform.ts';

export interface NodeLease {
  /** Resolves when the row is written. */
  start(): Promise<void>;
  /** Other nodes leave no sessions to this one from now on. */
  leaveShare(): Promise<void>;
  /** Removes the row, so that others may take over at once what the node still has. Stop its runners first. */
  stop(): Promise<void>;
}

/**
 * `leaseSeconds`: how long sessions and subscriptions of a dead node wait at most for another; renewed three times within it.
 * `runs`: whether the node runs sessions and has a share (share.ts).
 */
export function createNodeLease(
  { db, clock, log, metrics }: Pick<Platform, 'db' | 'clock' | 'log' | 'metrics'>,
  { nodeId, leaseSeconds = 15, runs = false }: { nodeId: string; leaseSeconds?: number | undefined; runs?: boolean },
): NodeLease {
  const stopping = new AbortController();
  let renewing: Promise<void> | undefined;

  async function renew(): Promise<void> {
    await db.query(sql`
      insert into nodes as w (node_id, lease_expires_at, runs, reads_tail)
      values (${nodeId}, now() + ${leaseSeconds} * interval '1 second', ${runs}, true)
      on conflict (node_id) do update set lease_expires_at = excluded.lease_expires_at`);
  }

  async function keepRenewing(): Promise<void> {
    while (!stopping.signal.aborted) {
      await clock.sleep((leaseSeconds * 1000) / 3, stopping.signal).catch(() => {});
      if (stopping.signal.aborted) return;
      await renew().catch((error) => {
        metrics.leaseFailures.inc();
        log.warn({ err: error }, 'renewing the node lease failed; retrying');
      });
    }
  }

  return {
    async start() {
      await renew();
      renewing = keepRenewing();
    },
    async leaveShare() {
      await db.execute(sql`update nodes set runs = false where node_id = ${nodeId}`);
    },
    async stop() {
      stopping.abort(OVER);
      await renewing;
      // If the database is unavailable, the lease expires instead.
      await db.execute(sql`delete from nodes where node_id = ${nodeId}`).catch(() => {});
    },
  };
}

/**
 * For a node that has its database to itself: other nodes with a lease there are dead, and their sessions need not wait for it to
 * expire. If one is alive after all, nothing breaks, because writers are fenced by the session's epoch. Workers, whose sessions
 * name a queue, are alive: they continue.
 */
export async function forgetOtherNodes(db: Db): Promise<void> {
  await db.execute(sql`
    delete from nodes w where not exists (select 1 from sessions s where s.node_id = w.node_id and s.queue is not null)`);
}
