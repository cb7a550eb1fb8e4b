import type { Session, SessionTurn } from '@signalbox/client';
import type { ListQuery } from '../../../organization.tsx';
import { Loading } from '../../../ui/list.tsx';
import { ErrorNotice } from '../../../ui/notice.tsx';
import { type Step, Trace } from './trace.tsx';

/** The trace of a session whose turns may still be loading. */
export function SessionTrace({
  session,
  query: { data, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage },
  selected,
  onStep,
}: {
  session: Session;
  query: ListQuery<SessionTurn>;
  selected?: Step | undefined;
  onStep: (step: Step) => void;
}) {
  if (!data) return error ? <ErrorNotice error={error} retry={() => void refetch()} /> : <Loading />;
  const onEarlier = hasNextPage && !isFetchingNextPage ? () => void fetchNextPage() : undefined;
  return <Trace session={session} turns={data} selected={selected} onStep={onStep} onEarlier={onEarlier} />;
}
