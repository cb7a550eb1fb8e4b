// The text of an active session on its way into the journal (appender.ts).
import { storableText } from '../lib/text.ts';
import type { JournalHead } from './append.ts';
import { encodeItems, type Item } from './segment.ts';
import type { Unfolded } from './tail.ts';

/** Unwritten text of an active session. */
export interface TextHead extends JournalHead {
  /** Accepted, not yet written. */
  pending: Item[];
  /** A high surrogate that waits for its other half. */
  carry: string;
  /** The write in progress, which no transition may overtake. */
  writing: Promise<void> | undefined;
  /** The next delta is the first of a model call, which users wait for, so it is written at once. */
  first: boolean;
  unfolded?: OpenTail | undefined;
  /** Called once, when the session has a higher epoch. */
  onFenced: () => void;
}

/** Set since the last append of a response. */
export interface OpenTail extends Unfolded {
  /** The next text may be flushed; otherwise it is appended. */
  isOpen: boolean;
  /** When the append was. */
  since: number;
  characters: number;
  /** How much this node had flushed for the organization before. */
  flushedBefore: number;
}

/** Text of a session in one write. */
export interface Batch {
  head: TextHead;
  deltas: Item[];
  /** What follows the session's segments: with the text in the tail, unless it is flushed. */
  items: Item[];
  isFlush: boolean;
  body: string;
}

export function batchOf(head: TextHead, deltas: Item[], isFlush: boolean): Batch {
  const items = isFlush || !head.unfolded ? deltas : [...head.unfolded.items, ...deltas];
  return { head, deltas, items, isFlush, body: encodeItems(items) };
}

/** Never splits a surrogate pair over two deltas; drops NUL, which PostgreSQL cannot store. */
export function wholeText(head: TextHead, delta: string): string {
  let text = head.carry + delta;
  head.carry = '';
  const last = text.charCodeAt(text.length - 1);
  if (last >= 0xd800 && last <= 0xdbff) {
    head.carry = text.slice(-1);
    text = text.slice(0, -1);
  }
  return storableText(text);
}

/** The outcome of a flush is not known, and its text must be appended. */
export function isUnsure({ unfolded }: TextHead): boolean {
  return unfolded !== undefined && unfolded.hidden > 0;
}

/** A session can briefly have two heads, a fenced one and its successor. A flush names its sessions only by their ids. */
export function onePerSession(heads: readonly TextHead[]): TextHead[] {
  const bySession = new Map<string, TextHead>();
  for (const head of heads) {
    const known = bySession.get(head.sessionId);
    if (!known || known.epoch < head.epoch) bySession.set(head.sessionId, head);
  }
  return [...bySession.values()];
}

export function organizationsOf(batches: readonly Batch[]): string[] {
  return [...new Set(batches.map(({ head }) => head.organizationId))];
}
