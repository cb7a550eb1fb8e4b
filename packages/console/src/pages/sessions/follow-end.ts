// Staying at the end while more comes, without taking the page away from whoever reads further up.
import { type RefObject, useCallback, useEffect, useRef, useState } from 'react';

// This near the end is at the end.
const END_PX = 80;

/**
 * `content` grows; what scrolls is the nearest scrolling element around it, or the page. Scrolling up stops the following, coming
 * back to the end goes on with it. Nothing moves while something in the content is selected.
 */
export function useFollowEnd(content: RefObject<HTMLElement | null>, beginsAtEnd: boolean) {
  const following = useRef(beginsAtEnd);
  const [isAway, setAway] = useState(false);

  const toEnd = useCallback(() => {
    following.current = true;
    setAway(false);
    const scroller = scrollerOf(content.current!);
    scroller.scrollTop = scroller.scrollHeight;
  }, [content]);

  useEffect(() => {
    const element = content.current!;
    const scroller = scrollerOf(element);
    const source = scroller === document.scrollingElement ? window : scroller;
    let top = scroller.scrollTop;
    const onScroll = () => {
      if (isAtEnd(scroller)) following.current = true;
      else if (scroller.scrollTop < top) following.current = false;
      top = scroller.scrollTop;
      setAway(!following.current && !isAtEnd(scroller));
    };
    const onGrowth = () => {
      if (following.current && !isSelected(element)) scroller.scrollTop = scroller.scrollHeight;
      else setAway(!isAtEnd(scroller));
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

/** What scrolls the element: the nearest around it that does, or the page. */
export function scrollerOf(element: HTMLElement): Element {
  for (let one = element.parentElement; one; one = one.parentElement) {
    if (/auto|scroll/.test(getComputedStyle(one).overflowY) && one !== document.body) return one;
  }
  return document.scrollingElement!;
}
