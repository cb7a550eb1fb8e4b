import { type ReactNode, useEffect, useRef } from 'react';
import { usePending } from '../pending.tsx';
import { capped } from '../words.ts';
import { Loading } from './list.tsx';
import { ErrorNotice } from './notice.tsx';

/**
 * A page: its title, what it is for in a sentence, and what can be done on it. The title of the browser's tab begins with how
 * many approvals are pending.
 */
export function Page({
  title,
  about,
  actions,
  children,
}: {
  title: string;
  about?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}) {
  const heading = useRef<HTMLHeadingElement>(null);
  const pending = usePending();
  useEffect(() => {
    document.title = `${pending > 0 ? `(${capped(pending)}) ` : ''}${title} · Signalbox`;
  }, [title, pending]);
  // Whoever came here by a link is at its beginning, also with a screen reader.
  useEffect(() => heading.current?.focus({ preventScroll: true }), []);
  return (
    <main className="page" id="main">
      <header>
        <div>
          <h1 ref={heading} tabIndex={-1}>
            {title}
          </h1>
          {about && <p className="quiet">{about}</p>}
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

/** What is asked for, once it is there; until then that it is loading, or why it does not come. */
export function Await<T>({ query, children }: { query: Asked<T>; children: (data: T) => ReactNode }) {
  const { data, error, refetch } = query;
  if (data === undefined) return error ? <ErrorNotice error={error} retry={() => void refetch()} /> : <Loading />;
  return (
    <>
      {error != null && <ErrorNotice error={error} retry={() => void refetch()} />}
      {children(data)}
    </>
  );
}
