// Bounds the bytes from outside that a node has in memory: responses of tools, files on their way to a store, files for models. They are
// taken before they are read, so what has no room yet waits at its sender.
//
// A caller takes all that it needs at once, and what depends on it takes nothing more: callers that each had a part and waited for the
// rest could wait for each other forever.
import { totalmem } from 'node:os';
import { createFairShare, type FairShare } from './fair-share.ts';

const MIB = 1024 * 1024;
/** Enough for 128 files on their way to the database at a time. */
const MAX_BYTES = 256 * MIB;
/** The share of the memory that the process may use. */
const MAX_PART = 1 / 4;

/** Responses up to this length are not counted: a call of a tool takes about as much in any case. */
export const UNCOUNTED_BYTES = 64 * 1024;
/** How often each byte of a text is in memory while it is read, checked and stored. */
export const COPIES_OF_TEXT = 4;

export function createMemory(): FairShare {
  return createMemoryShare(MAX_BYTES, MAX_PART);
}

/** A part of the memory that the process may use, and at most `maxBytes`; half of it for one organization. */
export function createMemoryShare(maxBytes: number, maxPart: number): FairShare {
  const usable = Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem());
  const max = Math.min(maxBytes, Math.floor(usable * maxPart));
  return createFairShare({ max, maxOfOrganization: max / 2 });
}

/** The memory of one call: taken once, and returned when the call ends. */
export interface HeldMemory {
  /** Resolves when there is room. Later calls have no effect. Throws the signal's reason. */
  take(bytes: number): Promise<void>;
  release(): void;
}

export function holdMemory(memory: FairShare, organizationId: string, signal: AbortSignal): HeldMemory {
  let taken: Promise<(() => void) | undefined> | undefined;
  let release = () => {};
  let isOver = false;
  return {
    async take(bytes) {
      taken ??= memory.take(organizationId, bytes, signal).then((done) => {
        if (isOver) done?.();
        else if (done) release = done;
        return done;
      });
      await taken;
      signal.throwIfAborted();
    },
    release() {
      isOver = true;
      release();
      release = () => {};
    },
  };
}
