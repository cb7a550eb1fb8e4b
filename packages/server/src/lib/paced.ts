import type { Clock } from './clock.ts';

// A search may take about 5% of the time.
const PAUSE_PER_MS = 20;
const LONGEST_PAUSE_MS = 15_000;

export interface Paced<Args extends unknown[], T> {
  /** Undefined, without a search, during the pause. */
  (...args: Args): Promise<T | undefined>;
  /** The next call searches. */
  endPause(): void;
}

/**
 * Wraps a search that runs in a loop. After each there is a pause of 20 times as long as it took, at most 15 s. There is none after a
 * search that failed, or whose result is to be searched for `again`.
 *
 * PostgreSQL keeps the index entries of deleted and updated rows as long as any transaction may need them. During a backup, a search
 * of a queue reads an entry of everything that has gone through it since the backup began.
 */
export function paced<Args extends unknown[], T>(
  clock: Pick<Clock, 'elapsedMs'>,
  search: (...args: Args) => Promise<T>,
  { again = () => false }: { again?: (found: T) => boolean } = {},
): Paced<Args, T> {
  let pausedUntilMs = Number.NEGATIVE_INFINITY;

  async function searchUnlessPaused(...args: Args): Promise<T | undefined> {
    const startedMs = clock.elapsedMs();
    if (startedMs < pausedUntilMs) return undefined;
    const found = await search(...args);
    const endedMs = clock.elapsedMs();
    const pauseMs = again(found) ? 0 : Math.min((endedMs - startedMs) * PAUSE_PER_MS, LONGEST_PAUSE_MS);
    pausedUntilMs = endedMs + pauseMs;
    return found;
  }

  return Object.assign(searchUnlessPaused, {
    endPause() {
      pausedUntilMs = Number.NEGATIVE_INFINITY;
    },
  });
}
