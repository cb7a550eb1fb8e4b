import { useSyncExternalStore } from 'react';

// As in shell.css.
const rail = matchMedia('(width >= 720px) and (width < 1100px)');
const phone = matchMedia('(width < 720px)');

/** Whether the navigation is a column of icons. */
export const useIsRail = (): boolean => useMatches(rail);

/** Whether the navigation is a bar at the bottom. */
export const useIsPhone = (): boolean => useMatches(phone);

function useMatches(query: MediaQueryList): boolean {
  return useSyncExternalStore(
    (listener) => {
      query.addEventListener('change', listener);
      return () => query.removeEventListener('change', listener);
    },
    () => query.matches,
  );
}
