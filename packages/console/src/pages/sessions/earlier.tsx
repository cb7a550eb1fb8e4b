// Earlier entries: loaded on demand, and automatically when the user scrolls up.
import { Component, type RefObject, useEffect, useLayoutEffect, useRef } from 'react';
import { Button } from '../../ui/button.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import type { Followed } from './follow.ts';
import { isAtEnd, scrollerOf } from './follow-end.ts';

// Loads them before the user reaches the top.
const AHEAD_PX = 600;

export function Earlier({
  followed: { isReadingOlder, olderError },
  first,
  show,
  content,
}: {
  followed: Followed;
  /** The key of the first entry. */
  first: string | undefined;
  show: () => void;
  content: RefObject<HTMLElement | null>;
}) {
  const box = useRef<HTMLDivElement>(null);
  const hasFailed = olderError !== undefined;
  // biome-ignore lint/correctness/useExhaustiveDependencies: after a short page, the top may still be visible
  useEffect(() => {
    // After a failure, the user retries.
    if (isReadingOlder || hasFailed) return;
    const scroller = scrollerOf(content.current!);
    const source = scroller === document.scrollingElement ? window : scroller;
    let before = scroller.scrollTop;
    // Only on scrolling up: a short conversation, or one just opened, does not load all of its history.
    const onScroll = () => {
      const isUp = scroller.scrollTop < before;
      before = scroller.scrollTop;
      if (isUp && isNear(box.current!, scroller)) show();
    };
    source.addEventListener('scroll', onScroll, { passive: true });
    return () => source.removeEventListener('scroll', onScroll);
  }, [isReadingOlder, hasFailed, first, show, content]);
  // The pressed button is gone, so the focus moves to the entries that it loaded.
  useLayoutEffect(
    () => () => {
      if (box.current?.contains(document.activeElement)) content.current?.focus({ preventScroll: true });
    },
    [content],
  );
  return (
    <div className="stack tight" ref={box}>
      {hasFailed && <ErrorNotice error={olderError} />}
      <Button busy={isReadingOlder} onClick={show}>
        Show earlier
      </Button>
    </div>
  );
}

/** Shows later entries when the user scrolls down, after earlier ones were shown in their place. */
export function Later({ show, content }: { show: () => void; content: RefObject<HTMLElement | null> }) {
  useEffect(() => {
    const scroller = scrollerOf(content.current!);
    const source = scroller === document.scrollingElement ? window : scroller;
    let before = scroller.scrollTop;
    const onScroll = () => {
      const isDown = scroller.scrollTop > before;
      before = scroller.scrollTop;
      if (isDown && scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < AHEAD_PX) show();
    };
    source.addEventListener('scroll', onScroll, { passive: true });
    return () => source.removeEventListener('scroll', onScroll);
  }, [show, content]);
  return (
    <div>
      <Button onClick={show}>Show later</Button>
    </div>
  );
}

function isNear(element: HTMLElement, scroller: Element): boolean {
  const top = scroller === document.scrollingElement ? 0 : scroller.getBoundingClientRect().top;
  return element.getBoundingClientRect().bottom > top - AHEAD_PX;
}

interface KeepPlaceProps {
  /** The key of the first entry. */
  first: string | undefined;
  /** The texts at the ends of turns, which are also added above. */
  ends: unknown;
  /** Later entries are left out. */
  hasLater: boolean;
  content: RefObject<HTMLElement | null>;
}

/** Keeps the visible entries in place when content above them is added or removed. */
export class KeepPlace extends Component<KeepPlaceProps> {
  override getSnapshotBeforeUpdate({ first, ends, hasLater }: KeepPlaceProps) {
    if (first === this.props.first && ends === this.props.ends) return null;
    const content = this.props.content.current;
    // At the end, the page stays at the end.
    if (!content || (!hasLater && isAtEnd(scrollerOf(content)))) return null;
    const entries = content.querySelectorAll('.entries > li[data-turn]');
    const element = Array.from(entries).find((one) => one.getBoundingClientRect().bottom > 0);
    return element ? { element, top: element.getBoundingClientRect().top } : null;
  }

  override componentDidUpdate(_props: unknown, _state: unknown, seen: { element: Element; top: number } | null): void {
    if (!seen?.element.isConnected) return;
    const moved = seen.element.getBoundingClientRect().top - seen.top;
    if (moved !== 0) scrollerOf(seen.element as HTMLElement).scrollTop += moved;
  }

  override render() {
    return null;
  }
}
