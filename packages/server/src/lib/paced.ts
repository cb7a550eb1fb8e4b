import type { Clock } from './clock.ts';

// A search may take 2% of the time.
const PAUSE_PER_MS = 50;
const LONGEST_PAUSE_MS = 15_000;

/**
 * A search that something repeats all the time. If one took long, calls return undefined without searching, until the search has taken
 * 2% of the time or 15 s are over. A search that failed is repeated by the next call.
 *
 * PostgreSQL keeps the index entries of deleted and updated rows as long as any transaction may need them. During a backup, a search
 * of a queue reads an entry of everything that has gone through it since the backup began.
 */
export function paced<T>(clock: Clock, search: () => Promise<T>): () => Promise<T | undefined> {
  let nextAt = 0;
  return async () => {
    const startedAt = clock.now().getTime();
    if (startedAt < nextAt) return undefined;
    const found = await search();
    const endedAt = clock.now().getTime();
    nextAt = endedAt + Math.min((endedAt - startedAt) * PAUSE_PER_MS, LONGEST_PAUSE_MS);
    return found;
  };
}
