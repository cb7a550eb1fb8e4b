// The keys of people who decide many approvals: J and K move between items, and in an item a key presses the button that names it
// (`aria-keyshortcuts`).
import type { KeyboardEvent as ReactKeyboardEvent, RefObject } from 'react';
import { isElsewhere, type Shortcut, shortcutsAreOn, useShortcuts } from '../../shortcuts/registry.ts';

/** The `onKeyDown` of a single container with such buttons. */
export function pressShortcut(event: ReactKeyboardEvent<HTMLElement>): void {
  if (shortcutsAreOn() && !isElsewhere(event.nativeEvent) && pressIn(event.currentTarget, event.nativeEvent)) {
    event.preventDefault();
  }
}

function pressIn(container: HTMLElement, event: KeyboardEvent): boolean {
  if (event.repeat || !/^[a-z]$/i.test(event.key)) return false;
  const button = container.querySelector<HTMLElement>(`[aria-keyshortcuts="${event.key.toUpperCase()}"]`);
  if (!button) return false;
  button.click();
  return true;
}

/** `items`: the container of the elements with `data-item`. On a page with one item, the focus may be anywhere. */
export function useApprovalShortcuts(items: RefObject<HTMLElement | null>, more: readonly Shortcut[] = []): void {
  const all = () => [...(items.current?.querySelectorAll<HTMLElement>('[data-item]') ?? [])];
  const move = (by: number) => (): false | undefined => {
    const found = all();
    const current = found.findIndex((item) => item.contains(document.activeElement));
    const next = found[current < 0 ? 0 : Math.min(found.length - 1, Math.max(0, current + by))];
    if (!next) return false;
    next.focus();
    next.scrollIntoView({ block: 'nearest' });
    return undefined;
  };
  const press = (event: KeyboardEvent): false | undefined => {
    const found = all();
    const item =
      found.find((one) => one.contains(document.activeElement)) ?? (found.length === 1 ? found[0] : undefined);
    return item && pressIn(item, event) ? undefined : false;
  };
  // Unless it presses what has the focus in the item.
  const open = (): false | undefined => {
    const { activeElement } = document;
    const fold = activeElement?.matches('[data-item]') && activeElement.querySelector<HTMLElement>('[aria-expanded]');
    if (!fold || !all().some((item) => item === activeElement)) return false;
    fold.click();
    return undefined;
  };
  const isList = more.length > 0;
  useShortcuts(isList ? 'Approvals' : 'Approval', [
    ...(isList
      ? [
          { keys: 'j', does: 'Next approval', run: move(1) },
          { keys: 'k', does: 'Previous approval', run: move(-1) },
          { keys: 'x', does: 'Select or deselect', run: press },
          { keys: 'Enter', does: 'Show or hide details', run: open },
          { keys: 'o', does: 'Show or hide details', run: press },
        ]
      : []),
    { keys: 'a', does: 'Approve, then Enter to confirm', run: press },
    { keys: 'd', does: 'Deny, type a reason, then Enter', run: press },
    { keys: 'e', does: 'Edit the input, Enter when done, Enter again to approve', run: press },
    { keys: 'Escape', does: 'Go back without deciding' },
    ...more,
  ]);
}
