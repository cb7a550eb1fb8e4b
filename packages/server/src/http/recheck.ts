// A stream may stay open for days, and the key that opened it may be rotated, deleted or limited meanwhile: whether it may still
// be read is asked again while it lasts.
import { ApiError } from '../lib/api-error.ts';
import type { Clock } from '../lib/clock.ts';

/** How long a stream outlives its key at most: with 5,000 streams on a node this is 166 look-ups a second, in far fewer queries. */
const RECHECK_EVERY_MS = 30_000;

/** Asks `check` again and again until `signal` is aborted; calls `end` where it is refused. */
export async function recheck(
  clock: Clock,
  signal: AbortSignal,
  check: () => Promise<unknown>,
  end: () => void,
): Promise<void> {
  while (true) {
    try {
      await clock.sleep(RECHECK_EVERY_MS, signal);
      if (signal.aborted) return;
      await check();
    } catch (error) {
      if (signal.aborted) return;
      // A database that is away says nothing about the key.
      if (error instanceof ApiError && (error.status === 401 || error.status === 403)) return end();
    }
  }
}
