// A table by keyboard: j and k go to the next and the previous row, x selects it, Enter opens it (the link has the focus then).
import { type RefObject, useEffect, useRef } from 'react';

export function useTableKeys({
  table,
  count,
  show,
  onToggle,
}: {
  table: RefObject<HTMLElement | null>;
  count: number;
  show: (index: number) => void;
  onToggle: ((index: number) => void) | undefined;
}): void {
  const current = useRef({ count, show, onToggle });
  current.current = { count, show, onToggle };
  useEffect(() => {
    // The row that had the focus last. It may have left the page since, because the person scrolled.
    let at = -1;
    const rowOf = (target: EventTarget | null) =>
      target instanceof Element ? target.closest<HTMLElement>('tr[data-index]') : null;
    function onFocus(event: FocusEvent) {
      const row = rowOf(event.target);
      if (row && table.current?.contains(row)) at = Number(row.dataset.index);
    }
    function onKey(event: KeyboardEvent) {
      if (!isForTable(event, table.current)) return;
      const { count, show, onToggle } = current.current;
      if (event.key === 'x' && onToggle && at >= 0 && at < count) onToggle(at);
      else if (event.key === 'j' || event.key === 'k') {
        const next = Math.min(count - 1, Math.max(0, at + (event.key === 'j' ? 1 : -1)));
        if (count === 0) return;
        at = next;
        focusRowAt(table.current!, next, show);
      } else return;
      event.preventDefault();
    }
    document.addEventListener('focusin', onFocus);
    document.addEventListener('keydown', onKey);
    return () => {
      document.removeEventListener('focusin', onFocus);
      document.removeEventListener('keydown', onKey);
    };
  }, [table]);
}

/** Whether a key is for this table: nothing else uses it, and the focus is in the table, or in no control and no other table. */
function isForTable(event: KeyboardEvent, table: HTMLElement | null): boolean {
  if (!table || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return false;
  if (document.querySelector('dialog[open], [role="menu"], .popover')) return false;
  const { target } = event;
  if (!(target instanceof HTMLElement)) return false;
  if (target.closest('input:not([type="checkbox"]), textarea, select, [contenteditable="true"]')) return false;
  if (table.contains(target)) return true;
  return target.closest('table') === null && document.querySelector('table[data-keys]') === table;
}

const selectorOf = (index: number) => `tr[data-index="${index}"]`;

export function focusRow(row: HTMLElement): void {
  (row.querySelector<HTMLElement>('.row-link') ?? row).focus({ preventScroll: true });
  row.scrollIntoView({ block: 'nearest' });
}

function focusRowAt(table: HTMLElement, index: number, show: (index: number) => void): void {
  const focus = () => {
    const row = table.querySelector<HTMLElement>(selectorOf(index));
    if (!row) return false;
    focusRow(row);
    return true;
  };
  if (focus()) return;
  show(index);
  // The rows at the new place are rendered after the scroll event.
  const observer = new MutationObserver(() => focus() && observer.disconnect());
  observer.observe(table, { childList: true, subtree: true });
}
