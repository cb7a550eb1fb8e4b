import * as Radix from '@radix-ui/react-popover';
import type { ReactElement, ReactNode } from 'react';

/** A small form that belongs to a control. Escape and a click elsewhere close it, and the focus returns. */
export function Popover({
  label,
  isOpen,
  onOpenChange,
  trigger,
  children,
}: {
  label: string;
  isOpen: boolean;
  onOpenChange: (isOpen: boolean) => void;
  /** A button. */
  trigger: ReactElement;
  children: ReactNode;
}) {
  return (
    <Radix.Root open={isOpen} onOpenChange={onOpenChange}>
      <Radix.Trigger asChild>{trigger}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content className="popover" align="start" sideOffset={4} collisionPadding={8} aria-label={label}>
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
