import type { Session, SessionTurn } from '@signalbox/client';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { lazy, Suspense } from 'react';
import { createPortal } from 'react-dom';
import type { ListQuery } from '../../../organization.tsx';
import { ErrorNotice } from '../../../ui/notice.tsx';
import { SkeletonRows } from '../../../ui/skeleton.tsx';
import { sessionSearch } from '../search-params.ts';
import { Trace } from './trace.tsx';

const StepDrawer = lazy(async () => ({ default: (await import('./step-drawer.tsx')).StepDrawer }));

/** The trace of a session whose turns may still be loading, and the step that the page's address names. */
export function SessionTrace({
  session,
  query: { data, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage },
}: {
  session: Session;
  query: ListQuery<SessionTurn>;
}) {
  const { step } = sessionSearch(useSearch({ from: '/$organizationId/sessions/$sessionId' }));
  const navigate = useNavigate();
  if (!data) return error ? <ErrorNotice error={error} retry={() => void refetch()} /> : <SkeletonRows />;
  const onEarlier = hasNextPage && !isFetchingNextPage ? () => void fetchNextPage() : undefined;
  const show = (next: string | undefined) =>
    void navigate({
      to: '.',
      search: (before) => ({ ...before, step: next }),
      replace: step !== undefined && next !== undefined,
      resetScroll: false,
    });
  return (
    <>
      <Trace
        session={session}
        turns={data}
        selected={step}
        onStep={({ operationId }) => show(operationId)}
        onEarlier={onEarlier}
      />
      {step &&
        // A pane of the page may be a containing block.
        createPortal(
          <Suspense>
            <StepDrawer
              session={session}
              turns={data}
              operationId={step}
              onStep={show}
              onClose={() => show(undefined)}
            />
          </Suspense>,
          document.body,
        )}
    </>
  );
}
