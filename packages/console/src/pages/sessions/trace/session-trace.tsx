import type { Session, SessionTurn } from '@signalbox/client';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { lazy, Suspense } from 'react';
import { createPortal } from 'react-dom';
import { type ListQuery, useApiQuery } from '../../../data/organization.tsx';
import { ErrorNotice } from '../../../ui/notice.tsx';
import { SkeletonRows } from '../../../ui/skeleton.tsx';
import { sessionSearch } from '../search-params.ts';
import { useTurnsFrom } from '../session-view.tsx';
import { Trace } from './trace.tsx';

const StepDrawer = lazy(async () => ({ default: (await import('./step-drawer.tsx')).StepDrawer }));

/** A link to a step of an earlier turn loads the turns up to that one, if they are not more than this. */
const MAX_TURNS_LOADED = 200;

/** The trace of a session whose turns may still be loading, and the step that the page's address names. */
export function SessionTrace({ session, query }: { session: Session; query: ListQuery<SessionTurn> }) {
  const { data, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  const { step } = sessionSearch(useSearch({ from: '/$organizationId/sessions/$sessionId' }));
  const navigate = useNavigate();
  const isLoaded = data?.some(({ operations }) => operations.some(({ operationId }) => operationId === step));
  const { data: asked } = useApiQuery(
    ['sessions', session.sessionId, 'operations', step, ''],
    (client) => client.sessions.operation(session.sessionId, step!),
    { enabled: step !== undefined && data !== undefined && !isLoaded },
  );
  const isNear = asked !== undefined && asked.turn > session.turn - MAX_TURNS_LOADED;
  useTurnsFrom(isNear ? asked.turn : null, query);
  if (!data) return error ? <ErrorNotice error={error} retry={() => refetch()} /> : <SkeletonRows />;
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
