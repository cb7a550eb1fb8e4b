// The keyboard shortcuts of the console: one list, from which the keys are handled and the sheet (`?`) is written. The frame registers those
// that work everywhere, a page its own while it is open.
//
// Single keys do nothing while the user types or a dialog is open, and can be switched off, because speech input could press them by
// accident (WCAG 2.1.4). Keys with Ctrl or ⌘ always work.
import { useEffect, useRef, useSyncExternalStore } from 'react';

export interface Shortcut {
  /** A key (`j`, `Enter`, `?`), two in a row (`g s`), or one with another (`shift+a`; `mod+k` is Ctrl or ⌘). */
  keys: string;
  /** What it does, as an order: `Next approval`. */
  does: string;
  /** Undefined if the key is handled elsewhere: it is only listed. Returns false if it does not apply now. */
  // biome-ignore lint/suspicious/noConfusingVoidType: most shortcuts return nothing
  run?: (event: KeyboardEvent) => void | false;
}

export interface ShortcutGroup {
  name: string;
  shortcuts: readonly Shortcut[];
}

const STORED = 'signalbox.shortcuts';
// The longest pause between the two keys of `g s`.
const SEQUENCE_MS = 1200;

let groups: readonly ShortcutGroup[] = [];
let isOn = localStorage.getItem(STORED) !== 'off';
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function changed(): void {
  for (const listener of listeners) listener();
}

/** Adds shortcuts while the component is mounted. Those of the page that is open come first. */
export function useShortcuts(name: string, shortcuts: readonly Shortcut[]): void {
  // The latest ones, without registering them again at each rendering.
  const latest = useRef(shortcuts);
  useEffect(() => {
    latest.current = shortcuts;
  });
  const listed = shortcuts.map(({ keys, does }) => `${keys} ${does}`).join('\n');
  // biome-ignore lint/correctness/useExhaustiveDependencies: registered again if what the sheet lists changes
  useEffect(() => {
    const group: ShortcutGroup = {
      name,
      shortcuts: latest.current.map((one, at) => ({
        ...one,
        ...(one.run && { run: (event) => latest.current[at]?.run?.(event) }),
      })),
    };
    groups = [group, ...groups];
    changed();
    return () => {
      groups = groups.filter((one) => one !== group);
      changed();
    };
  }, [name, listed]);
}

/** All that are registered now, those of the page first. */
export function useShortcutGroups(): readonly ShortcutGroup[] {
  return useSyncExternalStore(subscribe, () => groups);
}

/** Whether single keys work. */
export function useShortcutsAreOn(): [boolean, (on: boolean) => void] {
  const on = useSyncExternalStore(subscribe, shortcutsAreOn);
  return [on, setShortcutsOn];
}

export const shortcutsAreOn = () => isOn;

function setShortcutsOn(on: boolean): void {
  isOn = on;
  if (on) localStorage.removeItem(STORED);
  else localStorage.setItem(STORED, 'off');
  changed();
}

/** Handles the keys of the page; once, in the frame. */
export function useShortcutKeys(): void {
  useEffect(() => {
    let first: { key: string; at: number } | undefined;
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.isComposing) return;
      const before = first && event.timeStamp - first.at < SEQUENCE_MS ? `${first.key} ` : '';
      first = undefined;
      const keys = keysOf(event);
      if (keys.startsWith('mod+')) return runFirst(keys, event);
      if (!isOn || isElsewhere(event)) return;
      if (before && runs(before + keys)) return runFirst(before + keys, event);
      if (isPrefix(keys)) first = { key: keys, at: event.timeStamp };
      else runFirst(keys, event);
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
}

function keysOf({ key, ctrlKey, metaKey, shiftKey }: KeyboardEvent): string {
  const isLetter = /^\p{L}$/u.test(key);
  const name = isLetter ? `${shiftKey ? 'shift+' : ''}${key.toLowerCase()}` : key;
  return ctrlKey || metaKey ? `mod+${name}` : name;
}

const all = () => groups.flatMap(({ shortcuts }) => shortcuts).filter(({ run }) => run);
const runs = (keys: string) => all().some((one) => one.keys === keys);
const isPrefix = (key: string) => all().some(({ keys }) => keys.startsWith(`${key} `));

function runFirst(keys: string, event: KeyboardEvent): void {
  for (const one of all()) {
    if (one.keys !== keys || one.run!(event) === false) continue;
    event.preventDefault();
    return;
  }
}

/** Whether the key is typed into a field, meant for the browser, or for an open menu or dialog. */
export function isElsewhere({ ctrlKey, metaKey, altKey, target }: KeyboardEvent): boolean {
  if (ctrlKey || metaKey || altKey || document.querySelector('dialog[open]')) return true;
  return (
    target instanceof Element &&
    target.closest(
      'input:not([type="checkbox"], [type="radio"]), textarea, select, [contenteditable], [role="menu"]',
    ) !== null
  );
}
