// How times are shown: relative or as dates, and in which time zone. The browser remembers it, as it does the theme.
import { useSyncExternalStore } from 'react';

export interface TimeSettings {
  style: 'relative' | 'absolute';
  /** An IANA name. Undefined for the browser's own zone. */
  zone?: string;
}

const KEY = 'signalbox.time';
const listeners = new Set<() => void>();
let stored: string | null | undefined;
let settings: TimeSettings = { style: 'relative' };

/** The current choice, also outside components. */
export function timeSettings(): TimeSettings {
  const text = localStorage.getItem(KEY);
  if (text !== stored) {
    stored = text;
    settings = readSettings(text);
  }
  return settings;
}

export function useTimeSettings(): TimeSettings {
  return useSyncExternalStore(subscribe, timeSettings);
}

export function chooseTimeSettings(chosen: TimeSettings): void {
  localStorage.setItem(KEY, JSON.stringify(chosen));
  for (const listener of listeners) listener();
}

function readSettings(text: string | null): TimeSettings {
  try {
    const { style, zone } = JSON.parse(text ?? '{}');
    return {
      style: style === 'absolute' ? 'absolute' : 'relative',
      // A browser may know other zones than the one that stored it.
      ...(typeof zone === 'string' && isZone(zone) && { zone }),
    };
  } catch {
    return { style: 'relative' };
  }
}

function isZone(zone: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone });
    return true;
  } catch {
    return false;
  }
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  // Changed in another tab.
  addEventListener('storage', listener);
  return () => {
    listeners.delete(listener);
    removeEventListener('storage', listener);
  };
}
