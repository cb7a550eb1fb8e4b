// A node's lease: its row in `workers`, renewed by the database's clock. Sessions and webhook subscriptions name the node that
// holds them, and go to another once its lease has run out.
import sql from 'sql-template-tag';
import type { Db } from '../../db/db.ts';
import type { Platform } from '../../platform.ts';

export interface NodeLease {
  /** Resolves when the row is written. */
  start(): Promise<void>;
  /** Removes the row: whatever the node still holds may be taken at once. Stop what holds things first. */
  stop(): Promise<void>;
}

/** `leaseSeconds`: how long a dead node's holdings wait at most before another takes them; renewed three times in it. */
export function createNodeLease(
  { db, clock, log, metrics }: Pick<Platform, 'db' | 'clock' | 'log' | 'metrics'>,
  { nodeId, leaseSeconds = 15 }: { nodeId: string; leaseSeconds?: number | undefined },
): NodeLease {
  const stopping = new AbortController();
  let renewing: Promise<void> | undefined;

  async function renew(): Promise<void> {
    await db.query(sql`
      insert into nodes as w (node_id, lease_expires_at) values (${nodeId}, now() + ${leaseSeconds} * interval '1 second')
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
    async stop() {
      stopping.abort();
      await renewing;
      // A database that is away removes nothing; the lease runs out by itself.
      await db.execute(sql`delete from nodes where node_id = ${nodeId}`).catch(() => {});
    },
  };
}

/**
 * For a node that has its database to itself: whatever node held a lease there is gone, and what it held need not wait for the
 * lease to run out. Were it wrong, nothing would break: writers are fenced by the Session's epoch. The integrator's own
 * programs, whose Sessions name a queue, are not gone: they go on where they were.
 */
export async function forgetOtherNodes(db: Db): Promise<void> {
  await db.execute(sql`
    delete from nodes w where not exists (select 1 from sessions s where s.node_id = w.node_id and s.queue is not null)`);
}
