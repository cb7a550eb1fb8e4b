// The number of pending approvals, for the tab's title and the navigation of every page.
import { createContext, type ReactNode, useContext } from 'react';
import { useApiQuery } from './organization.tsx';

const PendingContext = createContext(0);

// The event log reports changes (live.ts). Polling covers what it misses, because a pending approval must not go unseen.
const AGAIN_MS = 60_000;
export function PendingProvider({ children }: { children: ReactNode }) {
  // Under the noun of approvals, because the other counts of the overview change more often.
  const { data } = useApiQuery(['approvals', 'count'], async (client) => (await client.overview()).pendingApprovals, {
    everyMs: AGAIN_MS,
  });
  return <PendingContext value={data ?? 0}>{children}</PendingContext>;
}

/** 0 outside an organization. */
export const usePending = () => useContext(PendingContext);
