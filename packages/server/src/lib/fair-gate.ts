// Lets in only so much work at once. Organizations that wait are let in one after the other, so however much one of them asks for, the
// next place is another's.
import { onceAborted } from './aborted.ts';

export interface FairGate {
  /** Resolves with how to leave, which is called once; with undefined if the signal was aborted first. */
  enter(organizationId: string, signal?: AbortSignal): Promise<(() => void) | undefined>;
}

export function createFairGate(maxAtOnce: number): FairGate {
  /** The organization whose turn is next is first. */
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
