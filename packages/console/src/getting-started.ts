// Whether "Getting started" is in the navigation. Each person dismisses it for themselves; the browser remembers it, as it does the theme.
import { useSyncExternalStore } from 'react';
import { useOrganization } from './organization.tsx';

const keyOf = (userId: string) => `signalbox.getting-started.${userId}`;
const listeners = new Set<() => void>();

export function useGettingStarted(): { isShown: boolean; show(): void; dismiss(): void } {
  const { user, may } = useOrganization();
  const key = keyOf(user.userId);
  const isDismissed = useSyncExternalStore(subscribe, () => localStorage.getItem(key) === 'dismissed');
  return {
    isShown: may('write') && !isDismissed,
    show: () => change(() => localStorage.removeItem(key)),
    dismiss: () => change(() => localStorage.setItem(key, 'dismissed')),
  };
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

function change(apply: () => void): void {
  apply();
  for (const listener of listeners) listener();
}
