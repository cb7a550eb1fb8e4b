import { type RefObject, type SyntheticEvent, useEffect, useRef } from 'react';

/**
 * How a modal dialog closes, as properties of the `dialog`. The page handles Escape, because a browser closes a dialog by itself when
 * Escape comes again and again, even if the page prevented that, and the page would not know. What is above the dialog closes first.
 * Without `onClose`, it stays open.
 */
export function useDismiss(dialog: RefObject<HTMLDialogElement | null>, onClose: (() => void) | undefined) {
  const close = useRef(onClose);
  close.current = onClose;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const isTop = [...document.querySelectorAll('dialog[open]')].at(-1) === dialog.current;
      if (event.key !== 'Escape' || event.defaultPrevented || event.isComposing || !isTop) return;
      event.preventDefault();
      close.current?.();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [dialog]);
  return {
    // Other ways, such as the back gesture of a phone. A file input within has an event of the same name.
    onCancel: (event: SyntheticEvent) => {
      if (event.target !== event.currentTarget) return;
      event.preventDefault();
      onClose?.();
    },
    // The browser closed it nevertheless. The page decides, and may ask first.
    onClose: () => {
      const { current } = dialog;
      if (!current?.isConnected || current.open) return;
      current.showModal();
      onClose?.();
    },
  };
}
