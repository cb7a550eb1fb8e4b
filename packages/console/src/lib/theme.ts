// Light or dark. Follows the system unless the user chose one, which the browser remembers.

export type Theme = 'system' | 'light' | 'dark';

const KEY = 'signalbox.theme';
const listeners = new Set<() => void>();

export function chosenTheme(): Theme {
  const stored = localStorage.getItem(KEY);
  return stored === 'light' || stored === 'dark' ? stored : 'system';
}

/** Calls the listener when a theme is chosen, here or in another tab. */
export function subscribeToTheme(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function chooseTheme(theme: Theme): void {
  if (theme === 'system') localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, theme);
  applyTheme();
}

function applyTheme(): void {
  const theme = chosenTheme();
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  for (const listener of listeners) listener();
}

/** Applies the choice, here and whenever it is changed in another tab. */
export function startTheme(): void {
  applyTheme();
  addEventListener('storage', ({ key }) => {
    if (key === KEY) applyTheme();
  });
}
