// Bounds the bytes that are in memory at once for one purpose. It is fair between organizations: each may have a part of the whole, and
// those that wait take turns, so one organization can't keep the others waiting however much it asks for.
import { onceAborted } from './aborted.ts';

export interface ByteBudget {
  /** Resolves with the function that returns the bytes, to be called once; with undefined if the signal is aborted first. */
  take(organizationId: string, bytes: number, signal?: AbortSignal): Promise<(() => void) | undefined>;
}

interface Waiting {
  readonly bytes: number;
  enter(): void;
}

export function createByteBudget(maxBytes: number, maxBytesOfOrganization: number): ByteBudget {
  /** By organization; the next to enter is the first. */
  const waiting = new Map<string, Set<Waiting>>();
  const takenBy = new Map<string, number>();
  let taken = 0;

  const fits = (organizationId: string, bytes: number) =>
    taken + bytes <= maxBytes && (takenBy.get(organizationId) ?? 0) + bytes <= maxBytesOfOrganization;

  function take(organizationId: string, bytes: number): void {
    taken += bytes;
    const left = (takenBy.get(organizationId) ?? 0) + bytes;
    if (left === 0) takenBy.delete(organizationId);
    else takenBy.set(organizationId, left);
  }

  function remove(organizationId: string, one: Waiting): boolean {
    const line = waiting.get(organizationId);
    if (!line?.delete(one)) return false;
    waiting.delete(organizationId);
    if (line.size > 0) waiting.set(organizationId, line);
    return true;
  }

  function admit(): void {
    for (let admitted = true; admitted; ) {
      admitted = false;
      for (const [organizationId, [first]] of [...waiting]) {
        // Smaller ones behind it must not overtake it forever.
        if (taken + first!.bytes > maxBytes) return;
        if (!fits(organizationId, first!.bytes)) continue;
        remove(organizationId, first!);
        take(organizationId, first!.bytes);
        first!.enter();
        admitted = true;
      }
    }
  }

  return {
    async take(organizationId, asked, signal) {
      if (signal?.aborted) return undefined;
      const bytes = Math.min(asked, maxBytesOfOrganization);
      const leave = () => {
        take(organizationId, -bytes);
        admit();
      };
      if (waiting.size === 0 && fits(organizationId, bytes)) {
        take(organizationId, bytes);
        return leave;
      }
      const { promise, resolve } = Promise.withResolvers<(() => void) | undefined>();
      const one: Waiting = { bytes, enter: () => resolve(leave) };
      waiting.set(organizationId, (waiting.get(organizationId) ?? new Set()).add(one));
      admit();
      const forget =
        signal &&
        onceAborted(signal, () => {
          if (!remove(organizationId, one)) return;
          resolve(undefined);
          admit();
        });
      try {
        return await promise;
      } finally {
        forget?.();
      }
    },
  };
}
