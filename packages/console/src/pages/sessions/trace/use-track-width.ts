import { useLayoutEffect, useState } from 'react';

const TYPICAL_PX = 480;
/** The width of the whole trace below which a row has its bar under its name. */
const STACKED_PX = 400;

/** The width of the time axis in `element`, and whether a row takes two lines; null: it is not there yet. */
export function useTrackWidth(element: HTMLElement | null): { trackPx: number; isStacked: boolean } {
  const [width, setWidth] = useState({ trackPx: TYPICAL_PX, isStacked: false });
  useLayoutEffect(() => {
    const track = element?.querySelector('.trace-track');
    if (!element || !track) return;
    const measure = () => {
      const trackPx = Math.max(1, track.clientWidth);
      const isStacked = element.clientWidth < STACKED_PX;
      setWidth((before) =>
        before.trackPx === trackPx && before.isStacked === isStacked ? before : { trackPx, isStacked },
      );
    };
    // Both: the axis changes its width when rows become two lines.
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    observer.observe(track);
    return () => observer.disconnect();
  }, [element]);
  return width;
}
