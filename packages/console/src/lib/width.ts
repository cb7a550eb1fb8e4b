import { useSyncExternalStore } from 'react';

// As in the style sheets.
const rail = matchMedia('(width >= 720px) and (width < 1100px)');
const phone = matchMedia('(width < 720px)');
const desktop = matchMedia('(width >= 1024px)');
const wide = matchMedia('(width >= 1440px)');

/** Whether the navigation is a column of icons. */
export const useIsRail = (): boolean => useMatches(rail);

/** Whether the navigation is a bar at the bottom. */
export const useIsPhone = (): boolean => useMatches(phone);

/** Whether a table has room for more than the columns that say the most. */
export const useIsDesktop = (): boolean => useMatches(desktop);

/** Whether it has room for columns that are rarely needed. */
export const useIsWide = (): boolean => useMatches(wide);

function useMatches(query: MediaQueryList): boolean {
  return useSyncExternalStore(
    (listener) => {
      query.addEventListener('change', listener);
      return () => query.removeEventListener('change', listener);
    },
    () => query.matches,
  );
}
