import { useLayoutEffect, useState } from 'react';

const TYPICAL_PX = 480;

/** The width of the time axis in `element`; null: it is not there yet. */
export function useTrackWidth(element: HTMLElement | null): number {
  const [width, setWidth] = useState(TYPICAL_PX);
  useLayoutEffect(() => {
    const track = element?.querySelector('.trace-track');
    if (!track) return;
    const observer = new ResizeObserver(([entry]) => setWidth(Math.max(1, entry!.contentRect.width)));
    observer.observe(track);
    return () => observer.disconnect();
  }, [element]);
  return width;
}
