// Which entries of a conversation are in the page: a part of them, so that a conversation of thousands stays fast.
import { useCallback, useMemo, useRef, useState } from 'react';

const FIRST = 200;
const STEP = 100;
const MOST = 400;

export interface ShownPart {
  /** The shown entries are those from here … */
  from: number;
  /** … to before here. */
  to: number;
  /** Later entries are left out. */
  hasLater: boolean;
  showEarlier: () => void;
  showLater: () => void;
  showLatest: () => void;
  /** Shows the entry at this position, among others. */
  show: (index: number) => void;
}

/** Begins with the latest entries. New ones are shown as long as the latest are. */
export function useShownPart(entries: readonly { key: string }[]): ShownPart {
  // By the key of the last one, because earlier entries that are loaded change the positions. Undefined: up to the latest.
  const [{ last, count }, setPart] = useState<{ last?: string | undefined; count: number }>({ count: FIRST });
  const found = last === undefined ? -1 : entries.findIndex(({ key }) => key === last);
  const to = found === -1 ? entries.length : found + 1;
  const from = Math.max(0, to - count);
  const now = useRef({ entries, to, count });
  now.current = { entries, to, count };
  const upTo = useCallback((end: number, most: number) => {
    const all = now.current.entries;
    setPart({ last: end >= all.length ? undefined : all[end - 1]?.key, count: most });
  }, []);
  const showEarlier = useCallback(() => {
    const more = now.current.count + STEP;
    upTo(now.current.to - Math.max(0, more - MOST), Math.min(more, MOST));
  }, [upTo]);
  const showLater = useCallback(() => upTo(now.current.to + STEP, Math.min(now.current.count + STEP, MOST)), [upTo]);
  const showLatest = useCallback(() => setPart({ count: FIRST }), []);
  const show = useCallback((index: number) => upTo(index + STEP, FIRST), [upTo]);
  const hasLater = to < entries.length;
  return useMemo(
    () => ({ from, to, hasLater, showEarlier, showLater, showLatest, show }),
    [from, to, hasLater, showEarlier, showLater, showLatest, show],
  );
}
