// Waiting for the next record of an organization: a long poll. One query every half second serves all requests that wait on this
// node. It takes no lock and moves no record; a request that is notified reads the log itself.
import sql from 'sql-template-tag';
import { planForLookups } from '../db/plan-for-lookups.ts';
import { OVER } from '../lib/aborted.ts';
import type { Platform } from '../platform.ts';

export interface EventWatch {
  /**
   * Resolves with true when there may be a record after this sequence; with false when the time is over, the signal is
   * aborted, or the node stops.
   */
  after(organizationId: string, sequence: number, ms: number, signal?: AbortSignal): Promise<boolean>;
  stop(): Promise<void>;
}

// The longest delay until a waiting request gets a new record.
const LOOK_EVERY_MS = 500;

interface Waiter {
  organizationId: string;
  sequence: number;
  notify(): void;
}

export function createEventWatch({ db, shards, clock }: Pick<Platform, 'db' | 'shards' | 'clock'>): EventWatch {
  const waiters = new Set<Waiter>();
  const stopping = new AbortController();
  let polling: Promise<void> | undefined;

  async function pollWhileWanted(): Promise<void> {
    while (waiters.size > 0 && !stopping.signal.aborted) {
      await clock.sleep(LOOK_EVERY_MS, stopping.signal).catch(() => {});
      if (waiters.size > 0 && !stopping.signal.aborted) {
        await shards.forEachShardWithTimeout('looking for new event records', [...waiters], organizationOf, look);
      }
    }
  }

  async function look(waiting: readonly Waiter[]): Promise<void> {
    const organizations = [...new Set(waiting.map(organizationOf))];
    const [, heads = []] = await db.batch<{ organizationId: string; sequence: number; more: boolean }>([
      planForLookups,
      sql`
      select h.organization_id as "organizationId", h.sequence, exists (
        select 1 from events_pending p where p.organization_id = h.organization_id and p.event_id >= h.pending_from) as more
      from event_heads h where h.organization_id = any(${organizations}::uuid[])`,
    ]);
    const byId = new Map(heads.map((head) => [head.organizationId, head]));
    for (const { organizationId, sequence, notify } of waiting) {
      const head = byId.get(organizationId);
      if (head && (head.more || head.sequence > sequence)) notify();
    }
  }

  return {
    async after(organizationId, sequence, ms, signal) {
      const notified = new AbortController();
      const end = AbortSignal.any([notified.signal, stopping.signal, ...(signal ? [signal] : [])]);
      if (end.aborted) return false;
      const waiter: Waiter = { organizationId, sequence, notify: () => notified.abort(OVER) };
      waiters.add(waiter);
      polling ??= pollWhileWanted().finally(() => {
        polling = undefined;
      });
      await clock.sleep(ms, end).catch(() => {});
      waiters.delete(waiter);
      return notified.signal.aborted;
    },
    async stop() {
      stopping.abort(OVER);
      await polling;
    },
  };
}

function organizationOf({ organizationId }: Waiter): string {
  return organizationId;
}
