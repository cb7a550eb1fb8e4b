// Whether a node of release 0.1 listens. It listens only to the channel of all nodes and follows none, so while one is there,
// every hint goes to that channel. It is found by its connection, whose last statement is the LISTEN: a node that only serves the API
// has no row anywhere.
import sql from 'sql-template-tag';
import type { Db } from '../db/db.ts';
import type { Clock } from '../lib/clock.ts';

/** The channel of all nodes. */
export const CHANNEL = 'signalbox_wake';
const LOOK_EVERY_MS = 10_000;

export async function isOlderNodeThere(db: Pick<Db, 'query'>): Promise<boolean> {
  // What another role may not see is null, which is not equal.
  const [row] = await db.query<{ isThere: boolean }>(sql`
    select exists (select from pg_stat_activity where datname = current_database() and query = ${`listen ${CHANNEL}`})
      as "isThere"`);
  return row!.isThere;
}

/** Returns a function that says what the last look found, and looks again at most every 10 s. Until the first it says yes. */
export function createOlderNodeSearch({
  db,
  clock,
}: {
  db: Pick<Db, 'query'>;
  clock: Pick<Clock, 'now'>;
}): () => boolean {
  let isThere = true;
  let lookAt = 0;

  async function look(): Promise<void> {
    isThere = await isOlderNodeThere(db);
  }

  return () => {
    const now = clock.now().getTime();
    if (now >= lookAt) {
      lookAt = now + LOOK_EVERY_MS;
      // Without an answer, what was found before is still the best that is known.
      look().catch(() => {});
    }
    return isThere;
  };
}
