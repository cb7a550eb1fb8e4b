import { useSyncExternalStore } from 'react';

// As in shell.css.
const rail = matchMedia('(width >= 720px) and (width < 1100px)');

/** Whether the navigation is a column of icons. */
export function useIsRail(): boolean {
  return useSyncExternalStore(
    (listener) => {
      rail.addEventListener('change', listener);
      return () => rail.removeEventListener('change', listener);
    },
    () => rail.matches,
  );
}
