// Which of the two is open over the page: the command palette or the sheet of shortcuts.
import { useSyncExternalStore } from 'react';

export type Opened = 'palette' | 'sheet' | undefined;

let opened: Opened;
const listeners = new Set<() => void>();

export function open(next: Opened): void {
  opened = next;
  for (const listener of listeners) listener();
}

export function useOpened(): Opened {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => opened,
  );
}
