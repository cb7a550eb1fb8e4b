// What is before the first entry that is shown: on demand, and by itself for whoever scrolls up to it.
import { Component, type RefObject, useEffect, useLayoutEffect, useRef } from 'react';
import { Button } from '../../ui/button.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import type { Followed } from './follow.ts';
import { isAtEnd, scrollerOf } from './follow-end.ts';

// Asked for before somebody who scrolls up has come to the end of what is there.
const AHEAD_PX = 600;

export function Earlier({
  followed: { isReadingOlder, olderError },
  first,
  show,
  content,
}: {
  followed: Followed;
  /** The first entry's key. */
  first: string | undefined;
  show: () => void;
  content: RefObject<HTMLElement | null>;
}) {
  const box = useRef<HTMLDivElement>(null);
  const hasFailed = olderError !== undefined;
  // biome-ignore lint/correctness/useExhaustiveDependencies: what has come may be so little that its beginning is still seen
  useEffect(() => {
    // What failed is tried again by whoever asks for it.
    if (isReadingOlder || hasFailed) return;
    const scroller = scrollerOf(content.current!);
    const source = scroller === document.scrollingElement ? window : scroller;
    let before = scroller.scrollTop;
    // Only for whoever scrolls up: what is short, or has just been opened, is not read to its beginning by itself.
    const onScroll = () => {
      const isUp = scroller.scrollTop < before;
      before = scroller.scrollTop;
      if (isUp && isNear(box.current!, scroller)) show();
    };
    source.addEventListener('scroll', onScroll, { passive: true });
    return () => source.removeEventListener('scroll', onScroll);
  }, [isReadingOlder, hasFailed, first, show, content]);
  // Whoever pressed the button has it no more: they are at what they asked for.
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

function isNear(element: HTMLElement, scroller: Element): boolean {
  const top = scroller === document.scrollingElement ? 0 : scroller.getBoundingClientRect().top;
  return element.getBoundingClientRect().bottom > top - AHEAD_PX;
}

interface Place {
  /** The key of the first entry. */
  first: string | undefined;
  /** What is said at the ends of turns: that too comes above what is read. */
  ends: unknown;
  content: RefObject<HTMLElement | null>;
}

/** Whatever comes or goes above: what is read stays where it is on the screen. */
export class KeepPlace extends Component<Place> {
  override getSnapshotBeforeUpdate({ first, ends }: Place) {
    if (first === this.props.first && ends === this.props.ends) return null;
    const content = this.props.content.current;
    // Who is at the end stays there.
    if (!content || isAtEnd(scrollerOf(content))) return null;
    const entries = content.querySelectorAll('.entries > li');
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
