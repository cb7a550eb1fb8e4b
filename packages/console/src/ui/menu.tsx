import * as Radix from '@radix-ui/react-dropdown-menu';
import type { ReactNode } from 'react';

export interface MenuItem {
  label: string;
  onSelect: () => void;
  danger?: boolean;
  disabled?: boolean;
}

/** What else can be done with a thing. */
export function Menu({ label, items, children }: { label: string; items: readonly MenuItem[]; children?: ReactNode }) {
  return (
    <Radix.Root modal={false}>
      <Radix.Trigger className="button bare small" aria-label={label}>
        {children ?? <span aria-hidden="true">⋯</span>}
      </Radix.Trigger>
      <Radix.Portal>
        <Radix.Content className="menu" align="end" sideOffset={4} collisionPadding={8}>
          {items.map(({ label: text, onSelect, danger, disabled }) => (
            <Radix.Item
              key={text}
              className={danger ? 'danger' : undefined}
              disabled={disabled ?? false}
              onSelect={onSelect}
            >
              {text}
            </Radix.Item>
          ))}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
