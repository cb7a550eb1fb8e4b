// Single-key shortcuts for people who decide many approvals: J and K move between items, and in an item a key presses the button
// that names it (`aria-keyshortcuts`). They do nothing while the user types, and can be switched off, because speech input could
// press them by accident (WCAG 2.1.4).
import { type KeyboardEvent as ReactKeyboardEvent, type RefObject, useEffect, useState } from 'react';

const STORED = 'signalbox.shortcuts';
const areOn = () => localStorage.getItem(STORED) !== 'off';

/** The `onKeyDown` of a single container with such buttons. */
export function pressShortcut(event: ReactKeyboardEvent<HTMLElement>): void {
  if (areOn() && !isElsewhere(event.nativeEvent)) pressIn(event.currentTarget, event.nativeEvent);
}

function pressIn(container: HTMLElement, event: KeyboardEvent): void {
  if (event.repeat || !/^[a-z]$/i.test(event.key)) return;
  const button = container.querySelector<HTMLElement>(`[aria-keyshortcuts="${event.key.toUpperCase()}"]`);
  if (!button) return;
  event.preventDefault();
  button.click();
}

/** `items`: the container of the elements with `data-item`. On a page with one item, the focus may be anywhere. */
export function useShortcuts(items: RefObject<HTMLElement | null>): { on: boolean; setOn: (on: boolean) => void } {
  const [on, setStoredOn] = useState(areOn);
  useEffect(() => {
    if (!on) return;
    const onKey = (event: KeyboardEvent) => {
      if (!items.current || event.defaultPrevented || isElsewhere(event)) return;
      const key = event.key.toUpperCase();
      const all = [...items.current.querySelectorAll<HTMLElement>('[data-item]')];
      const current = all.findIndex((item) => item.contains(document.activeElement));
      if (key === 'J' || key === 'K') {
        const next = all[current < 0 ? 0 : Math.min(all.length - 1, Math.max(0, current + (key === 'J' ? 1 : -1)))];
        if (!next) return;
        event.preventDefault();
        next.focus();
        next.scrollIntoView({ block: 'nearest' });
      } else {
        const item = all[current] ?? (all.length === 1 ? all[0] : undefined);
        if (item) pressIn(item, event);
      }
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [on, items]);
  return {
    on,
    setOn(next) {
      if (next) localStorage.removeItem(STORED);
      else localStorage.setItem(STORED, 'off');
      setStoredOn(next);
    },
  };
}

/** Whether the key is typed into a field, meant for the browser, or for an open menu or dialog. */
function isElsewhere({ ctrlKey, metaKey, altKey, target }: KeyboardEvent): boolean {
  if (ctrlKey || metaKey || altKey || document.querySelector('dialog[open]')) return true;
  return (
    target instanceof Element && target.closest('input, textarea, select, [contenteditable], [role="menu"]') !== null
  );
}
