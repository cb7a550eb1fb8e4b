import { Link, type LinkComponentProps } from '@tanstack/react-router';
import type { LucideIcon } from 'lucide-react';
import type { ReactNode } from 'react';
import { Button } from './button.tsx';

/** In place of a list that has nothing: what would be here, how to create the first one, and where to read more. */
export function EmptyState({
  icon: Icon,
  title,
  children,
  action,
  docs,
}: {
  icon?: LucideIcon;
  title: string;
  /** One sentence. */
  children?: ReactNode;
  /** One button or link. */
  action?: ReactNode;
  docs?: { label: string; href: string };
}) {
  return (
    <div className="empty-state">
      {Icon && <Icon aria-hidden="true" />}
      <h2>{title}</h2>
      {children && <p>{children}</p>}
      {(action || docs) && (
        <div className="row">
          {action}
          {docs && (
            <a href={docs.href} target="_blank" rel="noopener">
              {docs.label}
            </a>
          )}
        </div>
      )}
    </div>
  );
}

/** In place of what an address names, if there is no such thing. */
export function Missing({
  what,
  children = `All ${what}s`,
  ...list
}: LinkComponentProps & {
  /** A singular. */
  what: string;
}) {
  return (
    <EmptyState title={`No such ${what}`} action={<Link {...list}>{children}</Link>}>
      The {what} may have been deleted, or the address is incomplete.
    </EmptyState>
  );
}

/** In place of a list that has nothing with its filters. `onClear` is undefined if only the environment of the frame filters. */
export function NoMatches({
  icon,
  what,
  children = 'Change or clear the filters.',
  onClear,
}: {
  icon: LucideIcon;
  /** A plural. */
  what: string;
  children?: ReactNode;
  onClear: (() => void) | undefined;
}) {
  if (!onClear) {
    return (
      <EmptyState icon={icon} title={`No ${what} in this environment`}>
        Choose another one above, or all of them.
      </EmptyState>
    );
  }
  return (
    <EmptyState icon={icon} title={`No matching ${what}`} action={<Button onClick={onClear}>Clear filters</Button>}>
      {children}
    </EmptyState>
  );
}
