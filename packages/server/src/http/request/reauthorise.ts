// A stream may stay open for days, and the key or the person that opened it may be rotated, deleted, limited, removed or signed
// out meanwhile: whether it may still be read is asked again while it lasts, and at once where this node itself did that.
import { ApiError } from '../../lib/api-error.ts';
import type { Clock } from '../../lib/clock.ts';

/** How long a stream outlives its key at most: with 5,000 streams on a node this is 166 look-ups a second, in far fewer queries. */
const RECHECK_EVERY_MS = 30_000;

/** Who was just changed, for the streams of this node that they have open. */
export interface Doubts {
  /** Asks about every stream of a key or person now. */
  about(callerId: string): void;
  /** Calls `hear` at each doubt about a caller, until the function it returns is called. */
  listen(callerId: string, hear: () => void): () => void;
}

export function createDoubts(): Doubts {
  const listeners = new Map<string, Set<() => void>>();
  return {
    about(callerId) {
      for (const hear of [...(listeners.get(callerId) ?? [])]) hear();
    },
    listen(callerId, hear) {
      const own = listeners.get(callerId) ?? new Set();
      listeners.set(callerId, own.add(hear));
      return () => {
        own.delete(hear);
        if (own.size === 0 && listeners.get(callerId) === own) listeners.delete(callerId);
      };
    },
  };
}

/** Asks `check` again and again until the function it returns is called; calls `end` where it is refused. */
export function recheck(
  clock: Clock,
  check: () => Promise<unknown>,
  end: () => void,
  listen: (hear: () => void) => () => void,
): () => void {
  let isOver = false;
  // Heard while a check is under way, it makes the next pause none: that check may have asked too early.
  let pause = new AbortController();
  const stopListening = listen(() => pause.abort());

  async function run(): Promise<void> {
    while (!isOver) {
      await clock.sleep(RECHECK_EVERY_MS, pause.signal).catch(() => {});
      if (isOver) return;
      pause = new AbortController();
      try {
        await check();
      } catch (error) {
        if (isOver) return;
        // A database that is away says nothing about the key.
        if (error instanceof ApiError && (error.status === 401 || error.status === 403)) return end();
      }
    }
  }

  void run();
  return () => {
    isOver = true;
    stopListening();
    pause.abort();
  };
}
