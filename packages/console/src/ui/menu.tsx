import * as Radix from '@radix-ui/react-dropdown-menu';
import { type ReactNode, useRef } from 'react';

export interface MenuItem {
  label: string;
  onSelect: () => void;
  danger?: boolean;
  disabled?: boolean;
}

/** A menu of further actions. */
export function Menu({ label, items, children }: { label: string; items: readonly MenuItem[]; children?: ReactNode }) {
  // The action runs after the menu restored the focus, so that a dialog later returns it to the menu's button.
  const chosen = useRef<() => void>(undefined);
  function onClosed() {
    const onSelect = chosen.current;
    chosen.current = undefined;
    if (onSelect) queueMicrotask(onSelect);
  }
  return (
    <Radix.Root modal={false}>
      <Radix.Trigger className="button bare small" aria-label={label}>
        {children ?? <span aria-hidden="true">⋯</span>}
      </Radix.Trigger>
      <Radix.Portal>
        <Radix.Content className="menu" align="end" sideOffset={4} collisionPadding={8} onCloseAutoFocus={onClosed}>
          {items.map(({ label: text, onSelect, danger, disabled }) => (
            <Radix.Item
              key={text}
              className={danger ? 'danger' : undefined}
              disabled={disabled ?? false}
              onSelect={() => {
                chosen.current = onSelect;
              }}
            >
              {text}
            </Radix.Item>
          ))}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
