// How high the rows of tables are. The browser remembers it, as it does the theme. The heights are in tokens.css.
import { useSyncExternalStore } from 'react';

export type Density = 'compact' | 'comfortable';

const KEY = 'signalbox.density';
const listeners = new Set<() => void>();
// Rows on a touch screen are higher, and on a phone they have two lines.
const media = ['(pointer: coarse)', '(max-width: 719px)'].map((query) => matchMedia(query));
let rowPx: number | undefined;

function chosenDensity(): Density {
  return localStorage.getItem(KEY) === 'comfortable' ? 'comfortable' : 'compact';
}

export function chooseDensity(density: Density): void {
  localStorage.setItem(KEY, density);
  applyDensity();
}

export function applyDensity(): void {
  document.documentElement.dataset.density = chosenDensity();
  changed();
}

export function useDensity(): Density {
  return useSyncExternalStore(subscribe, chosenDensity);
}

/** The height of a table's row, which depends on the font size of the browser as well. */
export function useRowPx(): number {
  return useSyncExternalStore(subscribe, () => (rowPx ??= readRowPx()));
}

function readRowPx(): number {
  const style = getComputedStyle(document.documentElement);
  return Number.parseFloat(style.getPropertyValue('--row')) * Number.parseFloat(style.fontSize);
}

function changed(): void {
  rowPx = undefined;
  for (const listener of listeners) listener();
}

function onStorage({ key }: StorageEvent): void {
  if (key === KEY) applyDensity();
}

function subscribe(listener: () => void): () => void {
  if (listeners.size === 0) {
    for (const one of media) one.addEventListener('change', changed);
    // Changed in another tab.
    addEventListener('storage', onStorage);
  }
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    for (const one of media) one.removeEventListener('change', changed);
    removeEventListener('storage', onStorage);
  };
}
