// A panel at the right that shows one item of the page, which stays usable next to it.
import { X } from 'lucide-react';
import { type ReactNode, useEffect, useId, useRef } from 'react';
import { Button } from './button.tsx';
import { DatedPrices } from './dollars.tsx';

export function Drawer({
  title,
  actions,
  onClose,
  children,
}: {
  title: ReactNode;
  actions?: ReactNode;
  onClose: () => void;
  children: ReactNode;
}) {
  const id = useId();
  const heading = useRef<HTMLHeadingElement>(null);
  const close = useRef(onClose);
  close.current = onClose;
  useEffect(() => {
    const before = document.activeElement;
    heading.current?.focus();
    const onKey = (event: KeyboardEvent) => {
      // What is above the drawer closes first.
      if (event.key === 'Escape' && !event.defaultPrevented && !document.querySelector('dialog[open]')) close.current();
    };
    addEventListener('keydown', onKey);
    return () => {
      removeEventListener('keydown', onKey);
      // The focus was in the drawer, and not in the list beside it.
      const isLost = document.activeElement === null || document.activeElement === document.body;
      if (isLost && before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true });
    };
  }, []);
  return (
    <section className="drawer" role="dialog" aria-labelledby={id}>
      <header>
        <h2 id={id} ref={heading} tabIndex={-1}>
          {title}
        </h2>
        {actions}
        <Button look="bare" className="icon" aria-label="Close" onClick={onClose}>
          <X aria-hidden="true" />
        </Button>
      </header>
      <div className="body">
        <DatedPrices>{children}</DatedPrices>
      </div>
    </section>
  );
}
