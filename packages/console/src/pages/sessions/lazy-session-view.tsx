import { lazy, Suspense } from 'react';
import { SkeletonCards } from '../../ui/skeleton.tsx';

const SessionView = lazy(() => import('./session-view.tsx').then((file) => ({ default: file.SessionView })));

/** A session within a page that is about something else, which need not wait for it. */
export function LazySessionView(props: { sessionId: string; isWatched?: boolean }) {
  return (
    <Suspense fallback={<SkeletonCards cards={1} />}>
      <SessionView {...props} />
    </Suspense>
  );
}
