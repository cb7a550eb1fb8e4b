// A semaphore that is fair between organizations: those that wait take turns, so one organization can't keep the others waiting
// however much it asks for.
import { onceAborted } from './aborted.ts';

export interface FairGate {
  /** Resolves with the function to leave by, to be called once; with undefined if the signal is aborted first. */
  enter(organizationId: string, signal?: AbortSignal): Promise<(() => void) | undefined>;
}

export function createFairGate(maxAtOnce: number): FairGate {
  /** By organization; the next to enter is the first. */
  const waiting = new Map<string, Set<() => void>>();
  let atOnce = 0;

  function leave(): void {
    const [next] = waiting;
    if (!next) {
      atOnce -= 1;
      return;
    }
    const [organizationId, entrants] = next;
    const [enter] = entrants;
    entrants.delete(enter!);
    waiting.delete(organizationId);
    if (entrants.size > 0) waiting.set(organizationId, entrants);
    enter!();
  }

  return {
    async enter(organizationId, signal) {
      if (signal?.aborted) return undefined;
      if (atOnce < maxAtOnce) {
        atOnce += 1;
        return leave;
      }
      const { promise, resolve } = Promise.withResolvers<(() => void) | undefined>();
      const enter = () => resolve(leave);
      const entrants = waiting.get(organizationId) ?? new Set();
      waiting.set(organizationId, entrants.add(enter));
      const forget =
        signal &&
        onceAborted(signal, () => {
          if (!entrants.delete(enter)) return;
          if (entrants.size === 0) waiting.delete(organizationId);
          resolve(undefined);
        });
      try {
        return await promise;
      } finally {
        forget?.();
      }
    },
  };
}
