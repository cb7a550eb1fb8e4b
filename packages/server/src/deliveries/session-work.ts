// A session in flight: what its loop has to do, and what it knows.
import type { JournalTail } from './journal-tail.ts';

/** A session in flight. */
export interface SessionWork {
  /** Chunks may have been committed since the last read. */
  isWoken: boolean;
  /** When this node first learned of the chunks that wait; undefined: none is known to wait. */
  since: Date | undefined;
  /** It is sent to find out whether the destination works again. */
  isProbe: boolean;
  /** Ids of finished deliveries to send again, between two new ones. */
  readonly redeliveries: string[];
  /** What is known of its journal since the last read. */
  tail?: JournalTail | undefined;
  /** Set while it has, or sends, what few sessions of the node may have at a time. */
  leaveLong?: (() => void) | undefined;
}

/** When nothing long is in memory for this session any more. */
export function leaveLong(work: SessionWork): void {
  work.leaveLong?.();
  work.leaveLong = undefined;
}
