import { NotFoundError } from '@signalbox/client';
import type { RouteName } from '@signalbox/contract';
import { type ReactNode, useEffect } from 'react';
import { useHeading } from '../data/crumbs.tsx';
import { usePending } from '../data/overview.tsx';
import { capped } from '../lib/text-format.ts';
import { DatedPrices } from './dollars.tsx';
import { ErrorNotice } from './notice.tsx';
import { SkeletonCards } from './skeleton.tsx';
import { WithSlowNotice } from './slow.tsx';

/**
 * A page. Its title is the heading, in the bar of the frame. In its first line are a sentence about the page, or its views, and its
 * actions. `operation` is what a program would call: the bar links to it in the API reference. The tab's title starts with the
 * number of pending approvals in the environment that is shown.
 */
export function Page({
  title,
  about,
  views,
  operation,
  actions,
  children,
}: {
  title: string;
  about?: ReactNode;
  /** In place of `about`: `SavedViews`, or a `nav` of the class `views`. */
  views?: ReactNode;
  operation?: RouteName;
  actions?: ReactNode;
  children: ReactNode;
}) {
  const pending = usePending();
  useHeading(title, operation);
  useEffect(() => {
    document.title = `${pending > 0 ? `(${capped(pending)}) ` : ''}${title} · Signalbox`;
  }, [title, pending]);
  const first = views ?? (about && <div className="quiet about">{about}</div>);
  return (
    <main className="page" id="main">
      <DatedPrices>
        {(first || actions) && (
          <header>
            {first}
            {actions && <div className="row actions">{actions}</div>}
          </header>
        )}
        <WithSlowNotice>{children}</WithSlowNotice>
      </DatedPrices>
    </main>
  );
}

interface QueryState<T> {
  data: T | undefined;
  error: unknown;
  refetch: () => Promise<unknown>;
}

/**
 * Shows a query's data, or that it is loading, or its error. `skeleton`: the shape of the data, if it is not a card. `missing`: what to
 * show if there is no such thing.
 */
export function Await<T>({
  query,
  skeleton = <SkeletonCards cards={1} />,
  missing,
  children,
}: {
  query: QueryState<T>;
  skeleton?: ReactNode;
  missing?: ReactNode;
  children: (data: T) => ReactNode;
}) {
  const { data, error, refetch } = query;
  if (missing && error instanceof NotFoundError) return missing;
  if (data === undefined) return error ? <ErrorNotice error={error} retry={() => refetch()} /> : skeleton;
  return (
    <>
      {error != null && <ErrorNotice error={error} retry={() => refetch()} />}
      {children(data)}
    </>
  );
}
