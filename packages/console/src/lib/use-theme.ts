import { useSyncExternalStore } from 'react';
import { chosenTheme, subscribeToTheme, type Theme } from './theme.ts';

/** The chosen theme. Apart from lib/theme.ts, because the API reference has a theme and no React. */
export function useTheme(): Theme {
  return useSyncExternalStore(subscribeToTheme, chosenTheme);
}
