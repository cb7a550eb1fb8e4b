import type { LucideIcon } from 'lucide-react';
import type { ReactNode } from 'react';

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
