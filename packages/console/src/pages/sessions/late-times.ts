// The service counts how long a session worked up to two seconds after the turn, and writes no event then (frame/live.ts).
import type { ListedSession } from '@signalbox/client';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { useOrganization } from '../../data/organization.tsx';

const AGAIN_MS = 2500;
// Later than that it is not expected.
const ATTEMPTS = 3;

/** Reads sessions again as long as one that does nothing has no such time yet. */
export function useLateTimes(listed: readonly ListedSession[] = []): void {
  const { organizationId } = useOrganization();
  const queries = useQueryClient();
  const missing = listed
    .filter(({ workingMs, status, turn }) => workingMs === null && turn > 0 && status !== 'running')
    .map(({ sessionId }) => sessionId)
    .join();
  useEffect(() => {
    if (missing === '') return;
    let attempts = 0;
    const timer = setInterval(() => {
      attempts += 1;
      if (attempts === ATTEMPTS) clearInterval(timer);
      void queries.invalidateQueries({ queryKey: [organizationId, 'sessions'] });
    }, AGAIN_MS);
    return () => clearInterval(timer);
  }, [missing, organizationId, queries]);
}
