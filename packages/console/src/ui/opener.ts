// What opened a dialog, which has the focus again when the dialog closes. A deletion removes it with its row, often a moment later: then
// the focus is on the next row, or on the heading of the list.
import { focusRow } from './table/keys.ts';

export interface Opener {
  element: HTMLElement;
  table: HTMLElement | null;
  index: number;
  /** Undefined: that of the page. */
  heading: HTMLElement | null | undefined;
}

/** Where it is, before it is removed. */
export function openerOf(element: HTMLElement): Opener {
  return {
    element,
    table: element.closest('table'),
    index: Number(element.closest<HTMLElement>('tr[data-index]')?.dataset.index),
    heading: element.closest('section')?.querySelector<HTMLElement>('h2, h3'),
  };
}

const isNowhere = () => document.activeElement === document.body || document.activeElement === null;

/** Focuses it if nothing has the focus, and what is near it if it is removed before the user does anything else. */
export function returnFocus(opener: Opener): void {
  const { element } = opener;
  if (isNowhere()) element.focus({ preventScroll: true });
  const over = new AbortController();
  const look = () => {
    if (element.isConnected || over.signal.aborted) return;
    over.abort();
    if (isNowhere()) focusNear(opener);
  };
  const observer = new MutationObserver(look);
  observer.observe(document.body, { childList: true, subtree: true });
  over.signal.addEventListener('abort', () => observer.disconnect());
  for (const event of ['keydown', 'pointerdown']) {
    addEventListener(event, () => over.abort(), { capture: true, signal: over.signal });
  }
  // It may be gone already, or be removed together with the dialog.
  queueMicrotask(look);
}

function focusNear({ table, index, heading }: Opener): void {
  const rows = [...(table?.isConnected ? table.querySelectorAll<HTMLElement>('tr[data-index]') : [])];
  const next = rows.find((row) => Number(row.dataset.index) >= index) ?? rows.at(-1);
  if (next) focusRow(next);
  else focusHeading(heading?.isConnected ? heading : document.querySelector<HTMLElement>('h1'));
}

function focusHeading(heading: HTMLElement | null): void {
  if (!heading) return;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
}
