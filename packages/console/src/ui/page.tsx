import type { RouteName } from '@signalbox/contract';
import { type ReactNode, useEffect, useRef } from 'react';
import { useSetPageTitle } from '../frame/crumbs.tsx';
import { usePending } from '../pending.tsx';
import { capped } from '../text-format.ts';
import { ErrorNotice } from './notice.tsx';
import { SkeletonCards } from './skeleton.tsx';

/**
 * A page with its title, a sentence about it, and its actions. `operation` is what a program would call: a link to it in the API
 * reference. The tab's title starts with the number of pending approvals.
 */
export function Page({
  title,
  about,
  operation,
  actions,
  children,
}: {
  title: string;
  about?: ReactNode;
  operation?: RouteName;
  actions?: ReactNode;
  children: ReactNode;
}) {
  const heading = useRef<HTMLHeadingElement>(null);
  const pending = usePending();
  const setPageTitle = useSetPageTitle();
  useEffect(() => setPageTitle(title), [title, setPageTitle]);
  useEffect(() => {
    document.title = `${pending > 0 ? `(${capped(pending)}) ` : ''}${title} · Signalbox`;
  }, [title, pending]);
  // After navigation, screen readers start at the heading.
  useEffect(() => heading.current?.focus({ preventScroll: true }), []);
  return (
    <main className="page" id="main">
      <header>
        <div>
          <h1 ref={heading} tabIndex={-1}>
            {title}
          </h1>
          {about && (
            <p className="quiet">
              {about}
              {operation && (
                <>
                  {' '}
                  <a href={`/docs#${operation}`} target="_blank" rel="noopener">
                    API reference
                  </a>
                </>
              )}
            </p>
          )}
        </div>
        {actions && <div className="row">{actions}</div>}
      </header>
      {children}
    </main>
  );
}

interface Asked<T> {
  data: T | undefined;
  error: unknown;
  refetch: () => unknown;
}

/** Shows a query's data, or that it is loading, or its error. */
export function Await<T>({ query, children }: { query: Asked<T>; children: (data: T) => ReactNode }) {
  const { data, error, refetch } = query;
  if (data === undefined)
    return error ? <ErrorNotice error={error} retry={() => void refetch()} /> : <SkeletonCards cards={1} />;
  return (
    <>
      {error != null && <ErrorNotice error={error} retry={() => void refetch()} />}
      {children(data)}
    </>
  );
}
