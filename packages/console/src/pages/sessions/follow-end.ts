// Keeps the page at the end while content is added, unless the user scrolled up.
import { type RefObject, useCallback, useEffect, useRef, useState } from 'react';
import type { ShownPart } from './shown-part.ts';

// A position this close to the end counts as the end.
const END_PX = 80;

/**
 * `content` grows; the nearest scrolling element around it, or the page, scrolls. Scrolling up stops the following, and scrolling
 * to the end resumes it. Nothing moves while the user has selected text in the content.
 */
export function useFollowEnd(
  content: RefObject<HTMLElement | null>,
  beginsAtEnd: boolean,
  { hasLater, showLatest }: Pick<ShownPart, 'hasLater' | 'showLatest'>,
) {
  const following = useRef(beginsAtEnd);
  const [isAway, setAway] = useState(false);
  // The end of a part is not the end.
  const isPart = useRef(hasLater);
  isPart.current = hasLater;

  const toEnd = useCallback(() => {
    following.current = true;
    setAway(false);
    showLatest();
    const scroller = scrollerOf(content.current!);
    scroller.scrollTop = scroller.scrollHeight;
  }, [content, showLatest]);

  useEffect(() => {
    const element = content.current!;
    const scroller = scrollerOf(element);
    const source = scroller === document.scrollingElement ? window : scroller;
    let top = scroller.scrollTop;
    const onScroll = () => {
      if (isAtEnd(scroller)) following.current = !isPart.current;
      else if (scroller.scrollTop < top) following.current = false;
      top = scroller.scrollTop;
      setAway(!following.current && (isPart.current || !isAtEnd(scroller)));
    };
    const onGrowth = () => {
      if (following.current && !isSelected(element)) scroller.scrollTop = scroller.scrollHeight;
      else setAway(isPart.current || !isAtEnd(scroller));
      top = scroller.scrollTop;
    };
    const observer = new ResizeObserver(onGrowth);
    observer.observe(element);
    source.addEventListener('scroll', onScroll, { passive: true });
    return () => {
      observer.disconnect();
      source.removeEventListener('scroll', onScroll);
    };
  }, [content]);

  return { isAway, toEnd };
}

export function isAtEnd(scroller: Element): boolean {
  return scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < END_PX;
}

function isSelected(element: HTMLElement): boolean {
  const selection = getSelection();
  return selection !== null && !selection.isCollapsed && element.contains(selection.anchorNode);
}

/** The nearest scrolling element around this one, or the page. */
export function scrollerOf(element: HTMLElement): Element {
  for (let one = element.parentElement; one; one = one.parentElement) {
    if (/auto|scroll/.test(getComputedStyle(one).overflowY) && one !== document.body) return one;
  }
  return document.scrollingElement!;
}
