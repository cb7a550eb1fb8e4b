import * as Radix from '@radix-ui/react-dropdown-menu';
import { Check, Ellipsis, type LucideIcon } from 'lucide-react';
import { Fragment, type ReactNode, useRef } from 'react';

export interface MenuItem {
  label: string;
  onSelect: () => void;
  icon?: LucideIcon;
  danger?: boolean;
  disabled?: boolean;
  /** One of several of which one is chosen. */
  isChecked?: boolean;
  /** Said after the label, in muted text. */
  hint?: string | undefined;
  /** A line separates items of different groups. */
  group?: string;
}

/** A menu of further actions. Its button has three dots and the name `label`, or `children`, which name it. */
export function Menu({
  label,
  items,
  className = 'button bare small icon',
  align = 'end',
  children,
}: {
  label?: string;
  items: readonly MenuItem[];
  className?: string;
  align?: 'start' | 'end';
  children?: ReactNode;
}) {
  // The action runs after the menu restored the focus, so that a dialog later returns it to the menu's button.
  const chosen = useRef<() => void>(undefined);
  function onClosed() {
    const onSelect = chosen.current;
    chosen.current = undefined;
    if (onSelect) queueMicrotask(onSelect);
  }
  return (
    <Radix.Root modal={false}>
      <Radix.Trigger className={className} {...(children === undefined && { 'aria-label': label })}>
        {children ?? <Ellipsis aria-hidden="true" />}
      </Radix.Trigger>
      <Radix.Portal>
        <Radix.Content className="menu" align={align} sideOffset={4} collisionPadding={8} onCloseAutoFocus={onClosed}>
          {items.map((item, index) => (
            <Fragment key={item.label}>
              {index > 0 && items[index - 1]!.group !== item.group && <Radix.Separator className="line" />}
              <Item item={item} choose={() => (chosen.current = item.onSelect)} />
            </Fragment>
          ))}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

function Item({ item, choose }: { item: MenuItem; choose: () => void }) {
  const { label, icon: Icon, danger, disabled = false, isChecked, hint } = item;
  const shared = { className: danger ? 'danger' : '', disabled, onSelect: choose };
  const content = (
    <>
      {Icon && <Icon aria-hidden="true" />}
      <span>{label}</span>
      {hint !== undefined && <span className="quiet small">{hint}</span>}
      {isChecked && <Check className="check" aria-hidden="true" />}
    </>
  );
  if (isChecked === undefined) return <Radix.Item {...shared}>{content}</Radix.Item>;
  return (
    <Radix.CheckboxItem {...shared} checked={isChecked}>
      {content}
    </Radix.CheckboxItem>
  );
}
