// Whether this node may write text to the tail (tail.ts): every node of the installation must read it. A node of an earlier release would
// continue a session after its segments, over text that was shown.
//
// - From the first look on, nodes of releases without the tail refuse to start: the migration that created it then requires their code
//   to know it, as any migration may.
// - A node that is running is found by its lease, whose row says whether it reads the tail, or by its connection (wake/older-nodes.ts).
// - A node that had checked the schema, and was not to be found yet, has started within SETTLE_MS.
import sql from 'sql-template-tag';
import type { Platform } from '../platform.ts';
import { isOlderNodeThere } from '../wake/older-nodes.ts';

export interface TailUse {
  /** As of the last look. False if there was none lately. */
  isAllowed(): boolean;
  /** Rejects if the database does not respond. */
  look(): Promise<void>;
}

const SETTLE_MS = 60_000;
// A look counts for as long as a lease does by default.
const MAX_AGE_MS = 15_000;

export function createTailUse(
  { db, clock, log }: Pick<Platform, 'db' | 'clock' | 'log'>,
  settleMs: number = SETTLE_MS,
): TailUse {
  /** Since when each look has found only nodes that read the tail. */
  let since: number | undefined;
  let lookedAt = Number.NEGATIVE_INFINITY;

  async function look(): Promise<void> {
    const raised = await db.execute(sql`
      update signalbox_migrations set works_with = version where name = 'journal_tail' and works_with < version`);
    if (raised > 0) log.info({}, 'the tail is in use: nodes of releases without it refuse to start from now on');
    const [row] = await db.query<{ isUnread: boolean }>(sql`
      select exists (select 1 from nodes w where w.lease_expires_at > now() and not w.reads_tail) as "isUnread"`);
    const isOlder = row!.isUnread || (await isOlderNodeThere(db));
    const now = clock.now().getTime();
    since = isOlder ? undefined : raised > 0 ? now : (since ?? now);
    lookedAt = now;
  }

  return {
    isAllowed() {
      const now = clock.now().getTime();
      return since !== undefined && now - since >= settleMs && now - lookedAt < MAX_AGE_MS;
    },
    look,
  };
}
