// How long text is in the tail, and how much at most: of a session, and of all sessions of an organization since the session's last append.
// It bounds what a reader that starts in the middle, or a node that takes a session over, has to read.
import type { TextHead } from './text-head.ts';

export const MAX_UNFOLDED_MS = 10_000;
/** Deltas of one session in one segment, which bounds what a reader has to parse at once. */
export const MAX_SEGMENT_DELTAS = 1_000;
const MAX_UNFOLDED_CHARACTERS = 32 * 1024;
const MAX_FLUSHED_CHARACTERS = 4 * 1024 * 1024;
// What an entry takes besides its body.
const ENTRY_CHARACTERS = 32;
// Organizations for which it is counted; then counting begins again.
const MAX_COUNTED = 10_000;

export interface TailLimits {
  /** Whether the session's next text may go into the tail. */
  holds(head: TextHead, now: number): boolean;
  /** Text was flushed. */
  count(organizationId: string, body: string): void;
  /** How many characters this node has flushed for the organization. */
  flushedOf(organizationId: string): number;
}

export function createTailLimits(): TailLimits {
  /** By organization, since this was cleared. */
  const flushed = new Map<string, number>();
  const flushedOf = (organizationId: string) => flushed.get(organizationId) ?? 0;
  return {
    holds({ organizationId, pending, unfolded }, now) {
      return (
        unfolded !== undefined &&
        now - unfolded.since < MAX_UNFOLDED_MS &&
        unfolded.items.length + pending.length <= MAX_SEGMENT_DELTAS &&
        unfolded.characters < MAX_UNFOLDED_CHARACTERS &&
        flushedOf(organizationId) - unfolded.flushedBefore < MAX_FLUSHED_CHARACTERS
      );
    },
    count(organizationId, body) {
      if (flushed.size > MAX_COUNTED) flushed.clear();
      flushed.set(organizationId, flushedOf(organizationId) + body.length + ENTRY_CHARACTERS);
    },
    flushedOf,
  };
}
