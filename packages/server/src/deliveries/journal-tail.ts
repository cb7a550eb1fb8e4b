// What the loop of a session knows of its journal, so that it reads it less often: what it has read and not sent yet, and what this
// node has committed since.
//
// It only saves reads. Once something may be missing, because another node has committed or a turn has begun, it offers nothing more,
// and the loop reads.
import { comparePositions, formatCursor, type Position } from '../journal/cursor.ts';
import type { Segment } from '../journal/segment.ts';
import type { JournalCommit } from '../wake/hints.ts';
import type { FinishedDelivery } from './delivery.ts';
import type { DeliveryProgress } from './progress.ts';

// Far more than is committed during a delivery, and little enough for the 2,000 sessions that a sender may have in flight.
const MAX_KEPT_CHARACTERS = 16 * 1024;

export class JournalTail {
  /** As if it were read now, except that `segments` may end before `head`. */
  #progress: DeliveryProgress;
  /** Where the segments end. */
  #end: Position;
  #length: number;
  #isBroken = false;

  /** It begins with what was read, as far as it is kept. */
  constructor(read: DeliveryProgress) {
    const segments = keptOf(read.segments);
    this.#progress = { ...read, segments, delivery: undefined };
    this.#end = endOf(segments) ?? read.after;
    this.#length = lengthOf(segments);
  }

  /** Undefined if there is nothing to send, or something may be missing. */
  get progress(): DeliveryProgress | undefined {
    return this.#isBroken || this.#progress.segments.length === 0 ? undefined : this.#progress;
  }

  /** There are more segments than were read or kept. */
  get isPartial(): boolean {
    return comparePositions(this.#end, this.#progress.head) < 0;
  }

  /** The journal has grown; without a commit, in a way that this node does not know. */
  add(commit: JournalCommit | undefined): void {
    const { head, segments } = this.#progress;
    const end = endOf(commit?.segments ?? []);
    // What was read can include a commit that is announced afterwards.
    if (end && comparePositions(end, head) <= 0) return;
    // Another turn can have another trace.
    const follows = commit && end?.turn === head.turn && comparePositions(commit.previous, head) === 0;
    if (!follows) {
      this.#isBroken = true;
      return;
    }
    const length = this.#length + lengthOf(commit.segments);
    const isKept = !this.isPartial && length <= MAX_KEPT_CHARACTERS;
    this.#progress = { ...this.#progress, head: end, segments: isKept ? [...segments, ...commit.segments] : segments };
    if (!isKept) return;
    this.#end = end;
    this.#length = length;
  }

  /** The receiver accepted a delivery. */
  delivered({ delivery, through }: Pick<FinishedDelivery, 'delivery' | 'through'>): void {
    this.passed(through);
    this.#progress = { ...this.#progress, acknowledgedCursor: formatCursor(delivery.to) };
  }

  /** What is up to this position is in a delivery, or need not be sent. It is not kept while an attempt waits for the receiver. */
  passed(through: Position): void {
    const segments = this.#progress.segments.filter(
      ({ turn, seqTo }) => comparePositions({ turn, seq: seqTo }, through) > 0,
    );
    this.#progress = { ...this.#progress, after: through, segments };
    this.#length = lengthOf(segments);
  }
}

function keptOf(segments: readonly Segment[]): Segment[] {
  let count = 0;
  for (let left = MAX_KEPT_CHARACTERS; count < segments.length; count += 1) {
    left -= segments[count]!.body.length;
    if (left < 0) break;
  }
  return segments.slice(0, count);
}

function endOf(segments: readonly Segment[]): Position | undefined {
  const last = segments.at(-1);
  return last && { turn: last.turn, seq: last.seqTo };
}

function lengthOf(segments: readonly Segment[]): number {
  return segments.reduce((sum, { body }) => sum + body.length, 0);
}
