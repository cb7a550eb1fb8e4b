import * as Radix from '@radix-ui/react-tooltip';
import type { ReactElement, ReactNode } from 'react';

const DELAY_MS = 300;

/** Makes tooltips that follow each other appear at once. Around the whole console. */
export function Tooltips({ children }: { children: ReactNode }) {
  return (
    <Radix.Provider delayDuration={DELAY_MS} disableHoverableContent>
      {children}
    </Radix.Provider>
  );
}

/** Explains a control or a value on hover and focus. What a control is called must be in its name as well. */
export function Tooltip({
  text,
  side = 'top',
  isOff = false,
  children,
}: {
  text: ReactNode;
  side?: 'top' | 'right' | 'bottom' | 'left';
  /** The text is already visible. */
  isOff?: boolean;
  /** One element that takes a ref: a control, or something with `tabIndex={0}`. */
  children: ReactElement;
}) {
  if (isOff) return children;
  return (
    <Radix.Root>
      <Radix.Trigger asChild>{children}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content className="tooltip" side={side} sideOffset={6} collisionPadding={8}>
          {text}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
