import { ChevronRight } from 'lucide-react';
import type { DetailsHTMLAttributes, ReactNode } from 'react';

/** What is rarely needed, below a line that says what is there. */
export function Disclosure({
  title,
  summary,
  badge,
  children,
  ...details
}: {
  title: ReactNode;
  /** What is there, in a few words. */
  summary: string;
  badge?: ReactNode;
  children: ReactNode;
} & Pick<DetailsHTMLAttributes<HTMLDetailsElement>, 'open' | 'onToggle'>) {
  return (
    <details className="disclosure" {...details}>
      <summary>
        <ChevronRight aria-hidden="true" />
        {title}
        <span className="quiet small">{summary}</span>
        {badge}
      </summary>
      <div className="stack">{children}</div>
    </details>
  );
}
