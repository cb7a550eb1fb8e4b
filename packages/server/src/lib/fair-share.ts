// Divides what a node has a limited amount of: bytes of memory, connections, threads. It is fair between organizations, or
// between others who share it: each may have a part of the whole, and they take turns while they wait, so one can't keep the others waiting
// however much it asks for.
import { onceAborted } from './aborted.ts';

/** Returns what was taken. To be called once. */
export type Release = () => void;

export interface FairShare {
  /** Resolves when it is there; with undefined if the signal is aborted first. An organization that asks for more than its part gets that. */
  take(organizationId: string, amount?: number, signal?: AbortSignal): Promise<Release | undefined>;
  /** Undefined if it is not there now, or others wait. */
  tryTake(organizationId: string, amount?: number): Release | undefined;
  /** How much is not taken. */
  readonly left: number;
  /** The number of callers that wait. */
  readonly waiting: number;
}

export interface FairShareOptions {
  readonly max: number;
  /** The part of one organization. Default: the whole. */
  readonly maxOfOrganization?: number;
}

interface Waiting {
  readonly amount: number;
  enter(): void;
}

export function createFairShare({ max, maxOfOrganization = max }: FairShareOptions): FairShare {
  /** By organization; the next to enter is the first. */
  const lines = new Map<string, Set<Waiting>>();
  const takenBy = new Map<string, number>();
  let taken = 0;
  let waiting = 0;

  const fits = (organizationId: string, amount: number) =>
    taken + amount <= max && (takenBy.get(organizationId) ?? 0) + amount <= maxOfOrganization;

  function add(organizationId: string, amount: number): void {
    taken += amount;
    const left = (takenBy.get(organizationId) ?? 0) + amount;
    if (left === 0) takenBy.delete(organizationId);
    else takenBy.set(organizationId, left);
  }

  function occupy(organizationId: string, amount: number): Release {
    add(organizationId, amount);
    return () => {
      add(organizationId, -amount);
      admit();
    };
  }

  function leaveLine(organizationId: string, one: Waiting): boolean {
    const line = lines.get(organizationId);
    if (!line?.delete(one)) return false;
    waiting -= 1;
    lines.delete(organizationId);
    if (line.size > 0) lines.set(organizationId, line);
    return true;
  }

  function admit(): void {
    // An organization that has had its turn is visited again after the others.
    for (const [organizationId, [first]] of lines) {
      // Smaller ones behind it must not overtake it forever.
      if (taken + first!.amount > max) return;
      if (!fits(organizationId, first!.amount)) continue;
      leaveLine(organizationId, first!);
      first!.enter();
    }
  }

  function tryTake(organizationId: string, asked = 1): Release | undefined {
    const amount = Math.min(asked, maxOfOrganization);
    return waiting === 0 && fits(organizationId, amount) ? occupy(organizationId, amount) : undefined;
  }

  return {
    tryTake,
    async take(organizationId, asked = 1, signal) {
      if (signal?.aborted) return undefined;
      const release = tryTake(organizationId, asked);
      if (release) return release;
      const amount = Math.min(asked, maxOfOrganization);
      const { promise, resolve } = Promise.withResolvers<Release | undefined>();
      const one: Waiting = { amount, enter: () => resolve(occupy(organizationId, amount)) };
      lines.set(organizationId, (lines.get(organizationId) ?? new Set()).add(one));
      waiting += 1;
      admit();
      const forget =
        signal &&
        onceAborted(signal, () => {
          if (!leaveLine(organizationId, one)) return;
          resolve(undefined);
          admit();
        });
      try {
        return await promise;
      } finally {
        forget?.();
      }
    },
    get left() {
      return max - taken;
    },
    get waiting() {
      return waiting;
    },
  };
}
